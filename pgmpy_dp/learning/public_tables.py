"""Tables of counts that are public, and that a learned model agrees with exactly.

They are no part of what is released: a model is learned from noisy tables, with the public ones beside them as if they
had little noise, and then fitted proportionally to these. If they do not depend on the records that is post-processing.
No check can tell whether they do, so that the caller has to say it (`public_from`), and every statement of the
guarantee repeats it. Tables of the records themselves are entered into the ledger with the charge, and all that it
states is for neighbours that agree on them, from then on. Nothing compares them with the records.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import combinations, product
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from scipy.special import gammaincc

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.fine_grids import undivided
from pgmpy_dp.learning.graph_base import graph_on
from pgmpy_dp.learning.level_engine import Levels, leaf_scope, level_cells
from pgmpy_dp.learning.level_plan import levels_in
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.noisy_tables import noisy_marginals
from pgmpy_dp.learning.options import Settings, anything, by, option
from pgmpy_dp.learning.privacy_record import condition_of
from pgmpy_dp.learning.private_base import PrivateFit
from pgmpy_dp.learning.proportional_fitting import ProportionalFit
from pgmpy_dp.learning.structural_zeros import obeying
from pgmpy_dp.models.markov_network import MarkovNetwork
from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema, encode_label
from pgmpy_dp.schema.rules import Box
from pgmpy_dp.shown import shown

_MET = 1e-8
"""The largest relative error of a cell that proportional fitting may leave: beyond, no model has the tables."""

_LITTLE = 0.1
"""The noise of public tables in a fit, in shares of the least that a released table has. They are exact after it."""

_CHANCE = 1e-3
"""The probability that tables which are right are warned of."""

_WHERE = (
    "pass public_from='elsewhere' if they were not computed from these records (a census, a register, another survey): "
    "every statement of the guarantee will say that you said so. Tables that were have no noise: with 'these records' "
    "every statement is for neighbours that agree on them"
)


def checked_public_from(name: str, value: Any) -> str:
    """The origin of public tables, if it is one that a guarantee can say."""
    if value not in ("elsewhere", "these records"):
        raise ValueError(f"{name}={value!r} is no origin of public tables; {_WHERE}")
    return str(value)


@dataclass(frozen=True, eq=False)
class PublicTables:
    """Public tables of whole counts over variables of one schema, which a model can have together.

    Attributes
    ----------
    counts : dict of tuple of variables to ndarray
        Whole numbers, axes in the order of the scope.
    total : int
        The sum of each table.
    levels : mapping of level to (variable, ndarray of int)
        The levels of variables that scopes name.
    origin : {"elsewhere", "these records"}

    Notes
    -----
    A model has the tables as proportions, whatever their total. Where the number of records is public and is their
    total, they count as tables of as many people as there are records; else as tables of a population that the records
    are a sample of.
    """

    counts: Mapping[tuple[Hashable, ...], np.ndarray]
    total: int
    levels: Levels = field(default_factory=dict)
    origin: str = "elsewhere"

    @classmethod
    def read(cls, public: Any, public_from: Any, schema: Schema) -> PublicTables | None:
        """The tables of an estimator's arguments; None where none were passed.

        Parameters
        ----------
        public : mapping of tuple of variables to counts, or None
            See :class:`~pgmpy_dp.estimators.CollectiveMAP`.
        public_from : str or None
        schema : Schema
            Of the model's variables.

        Raises
        ------
        TypeError, ValueError
            For what is no table over the model's variables, no whole count, a rule of the schema that is broken, tables
            that contradict one another, and tables that no distribution has together.
        """
        if public is None and public_from is None:
            return None
        if public_from is None:
            raise ValueError(f"public_from=None says not where the public tables are from; {_WHERE}")
        if not isinstance(public, Mapping) or not public:
            raise TypeError(f"public is a {type(public).__name__}; pass {{('sex', 'age'): counts}}, one table or more")
        counts, known = dict[tuple[Hashable, ...], np.ndarray](), [*schema.variables, *schema.levels]
        for key, table in public.items():
            scope = tuple(key) if isinstance(key, tuple | list) and key not in known else (key,)
            if not 0 < len({*scope} & {*known}) == len(scope):
                raise ValueError(f"public has {key!r}; name different variables of the model, {known}")
            schema.leaf_scope(scope, "public")
            if finer := [name for name in scope if name in undivided(schema)]:
                raise ValueError(f"public has a table of {finer}, numbers without public cells; declare cuts or bins")
            counts[scope] = _counts(scope, table, schema)
        sums = {_of(scope): int(table.sum()) for scope, table in counts.items()}
        if len({*sums.values()}) > 1 or not min(sums.values()):
            raise ValueError(f"public tables have the sums {sums}; pass one positive sum, of the same people")
        made = cls(counts, min(sums.values()), levels_in(schema, counts), public_from)
        made._require_model(schema)
        return made

    @property
    def margins(self) -> dict[tuple[Hashable, ...], np.ndarray]:
        """The tables as probabilities."""
        return {scope: table / self.total for scope, table in self.counts.items()}

    @property
    def boxes(self) -> list[Box]:
        """The scopes as boxes without states: they forbid nothing, and a layout for them has a table of each."""
        return [dict.fromkeys(scope, frozenset()) for scope in self._scopes]

    @property
    def _scopes(self) -> list[tuple[Hashable, ...]]:
        """The variables of each table, itself or by a level."""
        return [leaf_scope(scope, self.levels) for scope in self.counts]

    @property
    def said(self) -> dict[str, Any]:
        """What a privacy record says of the tables, JSON-able."""
        tables = [[encode_label(name) for name in scope] for scope in self.counts]
        return {"from": self.origin, "tables": tables, "total": self.total}

    def _require_model(self, schema: Schema) -> None:
        """Refuse tables that contradict one another or a rule: no fit to them ends, whatever it starts from."""
        used = tuple(dict.fromkeys(name for scope in self._scopes for name in scope))
        cliques = Cliques(used, tuple(schema.cardinality(name) for name in used), tuple(dict.fromkeys(self._scopes)))
        boxes = [box for box in schema.zeros if {*box} <= {*used}]
        uniform = obeying(LogLinearModel(cliques, np.zeros(cliques.n_cells)), boxes)
        off = ProportionalFit(uniform.cliques, self.margins, levels=self.levels)(uniform.theta)[1]
        error, worst = max((error, _of(scope)) for scope, error in off.items())
        if error > _MET:
            raise ValueError(
                f"no model has all public tables: that of {worst} is off by "
                f"{100 * error:.3g} % of a cell. Another one counts otherwise what they share, or a rule of the schema "
                "(impossible) says that nobody is there; pass tables that agree"
            )

    def beside(self, noisy: NoisyMarginals) -> NoisyMarginals:
        """Released tables and these, as if they had little noise: then a fit reconciles them by the noise of each.

        Where they count other people than the records, these are a sample, and what a sample varies by counts as noise.
        """
        n, least = noisy.n_records, _LITTLE * float(noisy.scale.min())
        sampled = abs(n - self.total) > 3 * noisy.n_records_sd + 0.5
        for scope, margin in self.margins.items():
            spread = float((n * margin * (1 - margin)).mean()) / (2.0 if noisy.noise == "laplace" else 1.0)
            noisy = noisy.beside({scope: margin}, math.hypot(least, sampled * spread**0.5), self.levels)
        return noisy.merged()

    def joined(self, graph: nx.Graph) -> nx.Graph:
        """A model's graph, with an edge between any two variables of a table."""
        pairs = (pair for scope in self._scopes for pair in combinations(scope, 2))
        return graph_on(tuple(graph.nodes), [*graph.edges, *pairs])

    def fitted(self, network: MarkovNetwork) -> MarkovNetwork:
        """The network that has these margins, of all distributions with them the one nearest to a network's."""
        model = network.to_log_linear()
        fit = ProportionalFit(model.cliques, self.margins, model.memory_limit, self.levels)
        model, graph = replace(model, cliques=fit.cliques, theta=fit(model.theta)[0]), self.joined(network)
        return network.from_log_linear(model, graph, network._readable(), network.privacy, network.within)

    def fitted_posterior(self, posterior: ParameterPosterior) -> ParameterPosterior:
        """Draws that have these margins, each by itself."""
        draws, discrepancy = posterior.draws, posterior.discrepancy
        fit = ProportionalFit(draws.cliques, self.margins, draws.memory_limit, self.levels)
        draws = replace(draws, cliques=fit.cliques, theta=np.array([fit(theta)[0] for theta in draws.theta]))
        if discrepancy is not None:  # what is known exactly is not wrong for other reasons either
            coarse = tuple(scope for scope in self.counts if {*scope} & {*self.levels})
            exact = [scope for scope in self.counts if scope not in coarse]
            known = (frozenset(map(draws.cliques.position.__getitem__, scope)) for scope in exact)
            measured = (*discrepancy.measured, *known)
            discrepancy = replace(discrepancy, measured=measured, levels=(*discrepancy.levels, *coarse))
        return replace(posterior, draws=draws, discrepancy=discrepancy)

    def contradiction(self, noisy: NoisyMarginals, n_records: int | None) -> str | None:
        """A sentence about public tables that released ones contradict, beyond what noise and sampling explain.

        Parameters
        ----------
        noisy : NoisyMarginals
            Released tables.
        n_records : int, optional
            The public number of records.

        Notes
        -----
        Each margin that a released and a public table share is compared: the sum of squares, each over its variance. A
        square has the mean 1, and 2 or (Laplace noise) 5 as its variance; a Gamma law of the same mean and variance
        says how likely the sum is. Where the tables' total is not the public number of records, the variance of a
        sample of the population is counted.
        """
        n, released = noisy.n_records, map(noisy.cliques.split, (noisy.counts, noisy.cell_variance))
        sampled, spread = n_records != self.total, 5.0 if noisy.noise == "laplace" else 2.0
        compared = [(1.0, "", 0.0)]
        for scope, table, variance in zip(noisy.cliques.scopes, *released, strict=True):
            for public, margin in self.margins.items():
                told = {*scope, *(name for name, (variable, _) in self.levels.items() if variable in scope)}
                if not (shared := [name for name in public if name in told]):
                    continue
                p = self._margin(margin, public, shared)
                noise = (
                    self._margin(variance, scope, shared) + (noisy.n_records_sd * p) ** 2 + sampled * n * p * (1 - p)
                )
                off = self._margin(table, scope, shared) - n * p
                chance = float(gammaincc(p.size / spread, (off**2 / noise).sum() / spread))
                excess = np.abs(off).sum() - np.sqrt(2 / np.pi * noise).sum()
                compared.append((chance, _of(shared), max(float(excess), 0.0) / (2 * n)))
        chance, shared_names, share = min(compared)
        if chance * len(compared) >= _CHANCE:
            return None
        beside = ", as of a population that the records are a sample of" if sampled else ""
        return (
            f"the released tables contradict the public counts of {shared_names}{beside}: about {100 * share:.1f} % of "
            "the records are elsewhere. The model follows the public ones: are they of these people, in the order of "
            "the schema's states?"
        )

    def _margin(self, table: np.ndarray, scope: tuple[Hashable, ...], kept: Sequence[Hashable]) -> np.ndarray:
        """The cells of a table summed over all variables but some, or to levels of these."""
        levels = {name: level for name, level in self.levels.items() if name not in scope}
        return np.bincount(
            level_cells(tuple(kept), scope, Cliques(scope, table.shape, (scope,)), levels), table.ravel()
        )


class TakesPublicTables(PrivateFit):
    """An estimator whose model agrees with public tables.

    Parameters
    ----------
    public : mapping of tuple of variables to counts, optional
        Tables that are public and that the model shall have exactly, ``{("region",): counts, ("sex", "age"): counts}``.
        Counts are an array with states in the schema's order, a mapping or series of combinations of states, or a frame
        with a column for each variable and one of counts: whole numbers, with the same sum in each table. Where nobody
        is, the model has a structural zero. They count as proportions, so that they may be those of a population.
        Tables by a level of a variable are named by that, ``{("county", "age"): counts}``.
    public_from : {"elsewhere", "these records"}, optional
        Where `public` is from; no default. "elsewhere": the caller says that it was not computed from these records. No
        check can tell, so every statement of the guarantee says it. "these records": exact counts of the records, under
        "replace_one" and for single records alone. The ledger enters them, and from then on all that it and its models
        state is for neighbours that agree on them: what a record has in their columns is not protected by that.
    """

    _: KW_ONLY
    public: Any = option(None, anything())
    public_from: str | None = option(None, by(checked_public_from))

    def _public_tables(self, schema: Schema) -> PublicTables | None:
        return PublicTables.read(self.public, self.public_from, schema)

    def _public_said(self, release: Release) -> tuple[Mapping[str, Any], ...]:
        if (tables := self._public_tables(release.schema)) is None:
            return ()
        entered = {*map(frozenset, release.public_tables)}
        if tables.origin == "these records" and not {*map(frozenset, tables.counts)} <= entered:
            raise ValueError(
                "public_from='these records', and the ledger had not entered these tables when it paid for the "
                "release: what it says counts them as private. Fit again with them, under adjacency='replace_one'"
            )
        return (tables.said,)

    def _noted(self, table: PrivateTable, settings: Settings) -> tuple[PrivateTable, Settings]:
        """What a release is made of: records whose ledger enters the tables, and settings with room and words."""
        if (tables := self._public_tables(table.schema)) is None:
            return table, settings
        table = table.agreeing_on(tables.counts if tables.origin == "these records" else ())
        said = condition_of([tables.said])
        return table, settings.but(reserved=tables.boxes, condition="" if said is None else f", {said}")

    def _beside_public(self, release: Release, noisy: NoisyMarginals) -> NoisyMarginals:
        """What the model is learned from: released tables, and public ones beside them."""
        return noisy if (tables := self._public_tables(release.schema)) is None else tables.beside(noisy)

    def _joined(self, graph: nx.Graph, release: Release) -> nx.Graph:
        """The graph with the edges that public tables need."""
        return graph if (tables := self._public_tables(release.schema)) is None else tables.joined(graph)

    def _agreeing(self, model: MarkovNetwork, release: Release) -> tuple[MarkovNetwork, str | None]:
        """The model that agrees with the tables, and a warning where released ones contradict them."""
        if (tables := self._public_tables(model._readable())) is None:
            return model, None
        released = noisy_marginals(release, release.schema.variables)
        return tables.fitted(model), tables.contradiction(released, release.n_records)

    def _agreeing_draws(self, posterior: ParameterPosterior) -> ParameterPosterior:
        tables = self._public_tables(posterior.schema)
        return posterior if tables is None else tables.fitted_posterior(posterior)


def _of(scope: Sequence[Hashable]) -> str:
    return ", ".join(map(shown, scope))


def _counts(scope: tuple[Hashable, ...], table: Any, schema: Schema) -> np.ndarray:
    """The whole counts of an array, of a mapping or series of states, or of a frame."""
    states_of = {**schema.states, **{name: level.states for name, level in schema.levels.items()}}
    what, listed = f"the public table of {_of(scope)}", [states_of[name] for name in scope]
    made = np.full(tuple(map(len, listed)), np.nan)
    if hasattr(table, "columns"):
        columns = [*scope, *(name for name in table.columns if name not in scope)]
        if len(columns) != len(scope) + 1 or len(table.columns) != len(columns):
            raise ValueError(f"{what} needs a column for each, and one of counts")
        rows = list(zip(*(table[name].to_list() for name in columns), strict=True))
    elif hasattr(table, "items"):
        tuples = len(scope) > 1
        rows = [(*(s if tuples and isinstance(s, tuple) else (s,)), count) for s, count in table.items()]
    elif np.shape(table) != made.shape:
        raise ValueError(f"{what} has shape {np.shape(table)}; pass {made.shape}, by states")
    else:
        counts = np.asarray(table, dtype=object).ravel()
        rows = [(*cell, count) for cell, count in zip(product(*listed), counts, strict=True)]
    texts = [{"" if s is None else str(s): k for k, s in enumerate(states)} for states in listed]
    places = [text | {s: k for k, s in enumerate(states)} for text, states in zip(texts, listed, strict=True)]
    for number, (*known, count) in enumerate(rows, 1):
        # What was passed may be records, by mistake: no cell is quoted.
        row = f"row {number} of {what}"
        known = [None if pd.api.types.is_scalar(s) and pd.isna(s) else s for s in known]
        at = tuple(place.get(s, -1) for s, place in zip(known, places, strict=False))
        if len(known) != len(scope) or min(at) < 0:
            raise ValueError(f"{row} has no state of each variable; pass those that Schema.states has")
        if not np.isnan(made[at]):
            raise ValueError(f"{row} has the states of an earlier one; pass one count for each combination")
        try:
            made[at] = float(count)
        except (TypeError, ValueError):
            raise ValueError(f"{row} has no number as its count; pass whole numbers") from None
    if gaps := int(np.isnan(made).sum()):
        raise ValueError(f"public lacks {gaps} of the {made.size} counts of {_of(scope)}; write 0 where nobody can be")
    if not ((made >= 0) & (made == np.rint(made)) & (made <= 2**53)).all():
        raise ValueError(f"{what} has negative or broken counts; pass whole numbers of at least 0")
    return made
