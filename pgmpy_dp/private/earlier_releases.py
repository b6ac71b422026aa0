"""Releases in files of versions 0.1 and 0.2, whose values had places and no names, and whose facts were all together.

The names are those that the plans of today give, see
:meth:`~pgmpy_dp.private.curator.charged_base.ChargedCurator.release`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pgmpy_dp.private.named_values import distinct_names, scope_name
from pgmpy_dp.schema import decode_label

_STATED = (
    *("schema", "scopes", "n_records", "n_units", "n_users", "unit", "rows_per_unit"),
    *("columns", "nodes", "n", "fine", "vouched_for", "interrupted"),
)


def from_version_1(header: Mapping[str, Any], n_values: int) -> dict[str, Any]:
    """The header that the release would have today."""
    public, kind = header["public"], header["kind"]
    fixed, made = _FIXED.get(kind, ["solution"] if "grid_exponent" in public else []), _MADE.get(kind)
    known = (fixed if made is None else made(public))[:n_values]
    names = distinct_names([*known, *(f"value {k}" for k in range(len(known), n_values))])
    return {
        **{name: header[name] for name in ("kind", "adjacency", "guarantee", "mechanism", "reproducible")},
        "values": [
            {"name": name, "noise": noise, "asked": None} for name, noise in zip(names, header["noise"], strict=True)
        ],
        "asked": [],
        "public": {name: fact for name, fact in public.items() if name in _STATED},
        "facts": {name: fact for name, fact in public.items() if name not in _STATED},
    }


def _covariance(public: Mapping[str, Any]) -> list[str]:
    private, rescaled = public["center"] == "private", public.get("scaling") == "private"
    asked = {"sum": private, "count": public["n_records"] is None, "magnitudes": rescaled}
    return [
        "diagonal",
        "off_diagonal",
        *(name for name, was in (asked | {"second_sum": private and rescaled}).items() if was),
    ]


def _pairs(public: Mapping[str, Any]) -> list[str]:
    first = {
        "count": public["n_records"] is None,
        "sum": public["center"] == "private",
        "magnitudes": "lower" in public,
    }
    rounds = range(1, len(public.get("scales_of_sums", ())) + 1)
    return [
        *(name for name, was in first.items() if was),
        *(f"{what} {k}" for k in rounds for what in ("pairs", "signs")),
    ]


def _chain(public: Mapping[str, Any]) -> list[str]:
    return [{1: "initial", 2: "transitions", 3: "triples", 0: "departure"}[n] for n in public.get("lengths", (1, 2))]


def _discovery(public: Mapping[str, Any]) -> list[str]:
    counted = [scope_name([decode_label(name)]) for name, _ in public["counted"]]
    return [*(["n_records"] if public.get("n_records") is None else []), *counted]


_MADE: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "marginals": lambda public: [scope_name(map(decode_label, scope)) for scope in public["scopes"]],
    "covariance": _covariance,
    "pairs": _pairs,
    "chain": _chain,
    "discovery": _discovery,
    "mixture": lambda public: list(public.get("values", ("means", "counts", "status"))),
    "model_score": lambda public: list(public["released"]),
}
_FIXED = {
    "log_potentials": ["parameters", "n_records"],
    "chain_logits": ["initial", "transitions", "n_users"],
    "pseudo_likelihood": ["parameters", "n_records"],
    "precision": ["diagonal", "off_diagonal"],
    "communities": ["labels", "scores", "edge_count"],
    "parities": ["sums", "n_records"],
    "interactions": ["fields", "pairs", "n_records"],
    "regressions": ["vertices", "n_records"],
    "halves": ["vertices", "sums", "half_n_records", "n_records"],
    "edge_votes": ["votes"],
    "stable_structure": ["distance", "edges"],
    "schema_check": ["matched"],
}
