"""What the file of a model holds, read without pgmpy: describing a model need not wait for it."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmpy_dp.estimators.privacy_record import Privacy
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.schema import Schema, decode_label

__all__ = ["FORMAT", "VERSION", "VERSION_WITH_PRIOR", "ModelFile", "own_schema", "read_model_file"]

FORMAT = "pgmpy_dp.MarkovNetwork"
VERSION = 2
VERSION_WITH_PRIOR = 3
"""Of models with a prior that has a guarantee of its own, which readers of version 2 would leave out."""
_READABLE = (1, 2, 3)


@dataclass(frozen=True)
class ModelFile:
    """The parts of a model in its file, by the names that `MarkovNetwork` has for them.

    Attributes
    ----------
    nodes, latents : list of nodes
    edges : list of pairs of nodes
    states : dict of node to list of states
    scopes : list of list of nodes
        The variables of each factor.
    factors : list of ndarray
    inference : str or dict
        As `pgmpy_dp.models.inference.exact_or_loopy.inference_to_dict` wrote it.
    privacy : Privacy or None
    schema : Schema or None
    within : dict of node to Values
    posterior : dict or None
        As `pgmpy_dp.estimators.posterior.posterior_file` wrote it, beside `posterior_arrays`.
    posterior_arrays : dict of str to ndarray
    """

    nodes: list[Hashable]
    latents: list[Hashable]
    edges: list[tuple[Hashable, Hashable]]
    states: dict[Hashable, list]
    scopes: list[list[Hashable]]
    factors: list[np.ndarray]
    inference: Any
    privacy: Privacy | None
    schema: Schema | None
    within: dict[Hashable, Values]
    posterior: dict | None
    posterior_arrays: dict[str, np.ndarray]


def read_model_file(path: str | os.PathLike) -> ModelFile:
    """Read what `MarkovNetwork.save` wrote. Nothing in the file is executed.

    Parameters
    ----------
    path : str or path

    Raises
    ------
    ValueError
        If the file is not a saved model, or is from a later version.
    """
    with np.load(path, allow_pickle=False) as content:
        header = json.loads(content["header"].tobytes()) if "header" in content.files else {}
        if header.get("format") != FORMAT:
            raise ValueError(f"{os.fspath(path)!r} is not a saved MarkovNetwork; pass a file that save() wrote")
        if header.get("version") not in _READABLE:
            raise ValueError(
                f"{os.fspath(path)!r} has version {header.get('version')!r}, this package reads {_READABLE}; "
                "update pgmpy_dp"
            )
        factors = [content[f"factor_{k}"] for k in range(len(header["scopes"]))]
        arrays = {name: content[name] for name in content.files if name.startswith("posterior_")}
    within = {}
    for entry in header.get("within", ()):
        ((name, declared),) = Schema.from_dict(entry["values"]).items()
        within[name] = Values.from_dict(declared, entry)
    # Files from before loopy inference, and before rules, have no such entries; those of version 1 have no schema.
    return ModelFile(
        nodes=[decode_label(name) for name in header["nodes"]],
        latents=[decode_label(name) for name in header["latents"]],
        edges=[(decode_label(u), decode_label(v)) for u, v in header["edges"]],
        states={
            decode_label(entry["name"]): [decode_label(state) for state in entry["states"]]
            for entry in header["states"]
        },
        scopes=[[decode_label(name) for name in scope] for scope in header["scopes"]],
        factors=factors,
        inference=header.get("inference", "exact"),
        privacy=None if header["privacy"] is None else Privacy.from_dict(header["privacy"]),
        schema=None if header.get("schema") is None else Schema.from_dict(header["schema"]),
        within=within,
        posterior=header.get("posterior"),
        posterior_arrays=arrays,
    )


def own_schema(schema: Schema | None, nodes: Iterable[Hashable], states: Mapping[Hashable, Sequence]) -> Schema | None:
    """The schema, while it is one of a model's variables and states."""
    own = (
        schema is not None
        and set(schema) == set(nodes)
        and all(tuple(states.get(name, ())) == given for name, given in schema.states.items())
    )
    return schema if own else None
