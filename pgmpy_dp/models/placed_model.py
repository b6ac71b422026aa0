"""A model with its public states, and where those are among the states in which records are counted."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.score_reading import digest_of
from pgmpy_dp.models.weighting import require_unweighted
from pgmpy_dp.schema import Number, Schema
from pgmpy_dp.shown import shown


@dataclass(frozen=True, eq=False)
class PlacedModel:
    """A model with its public states, that records are compared with or asked around."""

    model: LogLinearModel
    states: Mapping[Hashable, tuple]
    numbers: Mapping[Hashable, Number] = field(default_factory=dict)
    within: Mapping[Hashable, Values] = field(default_factory=dict)
    read_schema: Schema | None = None
    discovered: Sequence[Mapping[str, Any]] = ()  # the costs of finding its states, a part of its own cost

    @classmethod
    def of_network(cls, model: Any) -> Self:
        """Read a MarkovNetwork; ValueError for one that was completed, or does not hold together."""
        model.check_model()
        require_unweighted(model, "records are unweighted; pass the model that it was made from: regress has weight=")
        if filled := [shown(name) for name in model.missing_at_random]:
            raise ValueError(
                f"model has no missing values of {', '.join(filled)}, and records that lack one would be left out "
                "of the comparison: score the observed_model_ of its estimator, or what refit makes of its noisy "
                "tables without --missing-at-random"
            )
        return cls(
            model.to_log_linear(),
            {name: tuple(model.states[name]) for name in model.nodes},
            *(model.numbers, model.within, readable := model._readable()),
            () if model.privacy is None else readable.discovered,
        )

    @property
    def others(self) -> Mapping[Hashable, Any]:
        """The state of each variable that cells without a declared state get, of those that have one."""
        return {} if self.read_schema is None else self.read_schema.other

    @property
    def levels(self) -> Mapping[Hashable, np.ndarray]:
        """The mean of the numbers in each cell of a number, as was released; its middle where nothing was."""
        return {name: self.within.get(name, Values(number)).means for name, number in self.numbers.items()}

    @property
    def schema(self) -> Schema:
        """The schema that reads records in the model's states."""
        merged = [name for name, values in self.within.items() if not isinstance(values.declared, Number)]
        if merged:
            raise ValueError(
                f"model has merged states of {merged}, so that records cannot be read by them; pass schema=, the one "
                "that it was learned with"
            )
        return Schema(dict(self.states)) if self.read_schema is None else self.read_schema

    def reading(self, schema: Any = None) -> Schema:
        """The schema that reads records, the model's or another, without what the model's own cost contains."""
        schema = self.schema if schema is None else Schema.coerce(schema, "schema")
        return schema.discovered_under([cost for cost in schema.discovered if cost not in self.discovered])

    @property
    def digest(self) -> str:
        return digest_of(self.states, self.model)

    def placed(self, schema: Schema) -> tuple[dict, tuple[Schema, dict] | None]:
        """Each variable's order of the model's states in those of the schema, and the merging that comes before it.

        Parameters
        ----------
        schema : Schema
            Of the records, with fine cells.
        """
        orders: dict[Hashable, list[int]] = {}
        changed: dict[Hashable, Any] = {}
        places: dict[Hashable, list[int]] = {}
        for name, ours in self.states.items():
            if name not in schema:
                raise ValueError(
                    f"the model has the variable {name!r}, which the records' schema lacks; add it to the schema"
                )
            theirs = schema.states[name]
            if len(ours) == len(theirs) and set(ours) == set(theirs):
                if ours != theirs:
                    orders[name] = [ours.index(state) for state in theirs]
                continue
            place = self._places(name, schema)
            if place is None:
                raise ValueError(
                    f"the model has the states {_short(ours)} for {name!r}, the records' schema has {_short(theirs)}: "
                    "read the records with the schema that the model was learned with, or one whose cells the model's "
                    "are made up of"
                )
            changed[name], places[name] = self.numbers.get(name, list(ours)), place
        if not changed:
            return orders, None
        merged = schema.replaced(changed)
        odd = [name for name in changed if merged.states[name] != self.states[name]]
        if odd:  # nothing may be left to refuse after the charge
            raise ValueError(f"the records' schema has other-states for {odd}, which the model lacks; leave them out")
        return orders, (merged, places)

    def _places(self, name: Hashable, schema: Schema) -> list[int] | None:
        """The model's state that each finer state of the schema is part of; None where states do not nest so."""
        ours, theirs, values = self.states[name], schema.states[name], self.within.get(name)
        number, finer = self.numbers.get(name), schema.numbers.get(name)
        if number is not None and finer is not None and number.kind == finer.kind:
            edges, places = number.edges, []
            for low, high, _ in finer.spans():
                place = min(max(int(np.searchsorted(edges, low, side="right")) - 1, 0), len(edges) - 2)
                if not edges[place] <= low <= high <= edges[place + 1]:
                    return None
                places.append(place)
            rest = theirs[len(places) :]
            if (number.lower, number.upper) != (finer.lower, finer.upper) or not set(rest) <= set(ours):
                return None
            places += [ours.index(state) for state in rest]
        elif values is not None and values.state is not None and set(values.finer) == set(theirs):
            places = [int(values.state[values.finer.index(state)]) for state in theirs]
        else:
            return None
        return places if set(places) == set(range(len(ours))) else None


def _short(states: Sequence) -> str:
    texts = [repr(state) for state in states]
    return ", ".join(texts if len(texts) <= 8 else [*texts[:7], "..."])
