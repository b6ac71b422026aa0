"""Read the file of a model without pgmpy, which describing a model need not wait for."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.weighting import Weighting
from pgmpy_dp.private.array_file import read_array_file
from pgmpy_dp.schema import Schema, decode_label
from pgmpy_dp.schema.provenance import cost_texts, marked
from pgmpy_dp.schema.stored import read_from
from pgmpy_dp.shown import shown

FORMAT = "pgmpy_dp.MarkovNetwork"
VERSION = 4


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
        As `pgmpy_dp.inference.exact_or_loopy.inference_to_dict` wrote it.
    privacy : Privacy or None
    schema : Schema or None
    within : dict of node to Values
    missing_at_random : dict of node to tuple of nodes
    weighting : Weighting or None
    posterior : dict or None
        As `pgmpy_dp.models.posterior.posterior_file` wrote it, beside `posterior_arrays`.
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
    missing_at_random: dict[Hashable, tuple[Hashable, ...]]
    weighting: Weighting | None
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
        If the file is not a saved model, is damaged, or is from a later version.
    """
    content = Path(path).read_bytes()
    with reading_model(path):
        header, arrays = read_array_file(content, FORMAT, VERSION)
        factors = [arrays.pop(f"factor_{k}") for k in range(len(header["scopes"]))]
        if header.get("posterior") is None:
            arrays = {}
        every = (*factors, *arrays.values())  # draws have the logarithms of what rules make impossible
        if not all(array.dtype.kind in "iuf" and np.isfinite(array[array != -np.inf]).all() for array in every):
            raise ValueError("it has numbers that are not finite")
        if any((factor < 0).any() for factor in factors):
            raise ValueError("it has a factor with negative entries")
        within = {}
        for entry in header.get("within", ()):
            ((name, declared),) = Schema.from_dict(entry["values"]).items()
            within[name] = Values.from_dict(declared, entry)
        privacy = None if header["privacy"] is None else Privacy.from_dict(header["privacy"])
        schema = None if header.get("schema") is None else Schema.from_dict(header["schema"])
        costs = () if schema is None else cost_texts(schema.discovered)
        model = ModelFile(
            nodes=[decode_label(name) for name in header["nodes"]],
            latents=[decode_label(name) for name in header["latents"]],
            edges=[(decode_label(u), decode_label(v)) for u, v in header["edges"]],
            states={
                decode_label(entry["name"]): marked([decode_label(state) for state in entry["states"]], costs)
                for entry in header["states"]
            },
            scopes=[[decode_label(name) for name in scope] for scope in header["scopes"]],
            factors=factors,
            inference=header.get("inference", "exact"),
            privacy=privacy,
            schema=schema,
            within=within,
            missing_at_random={
                decode_label(name): tuple(decode_label(driver) for driver in drivers)
                for name, drivers in header.get("missing_at_random", ())
            },
            weighting=None if header.get("weighting") is None else Weighting.from_dict(header["weighting"]),
            posterior=header.get("posterior"),
            posterior_arrays=arrays,
        )
        sizes = {name: len(states) for name, states in model.states.items()}
        if not set(model.latents) | {name for edge in model.edges for name in edge} <= set(model.nodes):
            raise ValueError("it has an edge of a variable that it lacks")
        if any(
            factor.shape != tuple(sizes[n] for n in scope) for scope, factor in zip(model.scopes, factors, strict=True)
        ):
            raise ValueError("it has a factor of another shape than its variables")
        return model


def reading_model(path: str | os.PathLike) -> AbstractContextManager[None]:
    """Turn whatever is wrong with a model's file into a ValueError that names it."""
    return read_from(path, "a saved MarkovNetwork", "pass a file that save() wrote")


def filled_words(missing_at_random: Mapping[Hashable, Sequence[Hashable]]) -> list[str]:
    """A line about each variable whose missing values a model has filled in.

    Examples
    --------
    >>> filled_words({"pay": ("age", "job")})
    ['Missing values of pay were filled in, as if age and job alone decided what is missing.']
    """
    return [
        f"Missing values of {shown(name)} were filled in, as if {' and '.join(map(shown, drivers))} alone decided what "
        "is missing."
        for name, drivers in missing_at_random.items()
    ]


def schema_for(schema: Schema | None, nodes: Iterable[Hashable], states: Mapping[Hashable, Sequence]) -> Schema | None:
    """The schema, or None where it no longer has a model's variables and states."""
    matches = (
        schema is not None
        and set(schema) == set(nodes)
        and all(tuple(states.get(name, ())) == listed for name, listed in schema.states.items())
    )
    return schema if matches else None
