"""Questions about a discrete table: contingency tables, and which of several a model gets most wrong."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import Answer, Units, checked_share
from pgmpy_dp.private.curator.field_curator import FieldCurator
from pgmpy_dp.private.curator.field_matrix_curator import FieldMatrixCurator
from pgmpy_dp.private.curator.field_moment_curator import FieldMomentCurator
from pgmpy_dp.private.curator.mechanism import AdditiveNoise, NoisyMax, additive_scales
from pgmpy_dp.private.curator.voting_curator import VotingCurator
from pgmpy_dp.private.data.contingency import match_sensitivity, table_sensitivity
from pgmpy_dp.private.data.kept_tables import KeptTables
from pgmpy_dp.private.data.pair_scores import joined_misfit_scores
from pgmpy_dp.private.data.table import (
    PrivateTable,
    contingency_tables,
    matched_records,
    most_matched,
    require_table_and_budget,
    share_grid,
    table_units,
)
from pgmpy_dp.private.data.table_distances import checked_means, distance_sensitivity, mean_distances, whole_parts
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.named_values import scope_name
from pgmpy_dp.private.noise.selection import selection_scale
from pgmpy_dp.private.sensitive import Noise, Sensitive
from pgmpy_dp.schema import Schema, encode_label

__all__ = [
    "TableCurator",
    "checked_scopes",
    "distance_noise",
    "match_noise",
    "misfit_scale",
    "most_matched",
    "rehearsed_tables",
    "require_scopes",
    "table_noise",
]

Scope = tuple[Hashable, ...]

_TABLES_AT_ONCE = 50_000  # of counting, before they are kept in one array


def rehearsed_tables(
    counts: Sequence[np.ndarray],
    adjacency: Adjacency,
    cost: PureDP | ZCDP,
    rng: np.random.Generator,
    weights: Sequence[float] | None = None,
) -> tuple[list[np.ndarray], tuple[Noise, ...]]:
    """Tables that are **made up**, with the noise that :meth:`TableCurator.tables` would add, here from `rng`.

    Examples
    --------
    >>> made_up = [np.array([60, 40])]
    >>> rehearsed_tables(made_up, Adjacency.ADD_REMOVE, PureDP(0.5), np.random.default_rng(0))[1]
    (Noise(distribution='discrete_laplace', scale=2.0),)
    """
    exact = [Sensitive(np.asarray(table, dtype=np.int64), adjacency, *table_sensitivity(adjacency)) for table in counts]
    mechanism = AdditiveNoise.of(exact, cost, Fraction(1), weights)
    return mechanism.draw(rng), mechanism.noise


def table_noise(
    count: int, adjacency: Adjacency, cost: PureDP | ZCDP, share: Fraction, weights: Sequence[float] | None = None
) -> list[Noise]:
    """The noise that :meth:`TableCurator.tables` would add to so many tables: from public numbers, without records.

    Raises
    ------
    ValueError
        Where it would bury any count.

    Examples
    --------
    >>> table_noise(2, Adjacency.ADD_REMOVE, PureDP(1.0), Fraction(1))
    [Noise(distribution='discrete_laplace', scale=2.0), Noise(distribution='discrete_laplace', scale=2.0)]
    """
    l1, l2, _ = table_sensitivity(adjacency)
    return additive_scales([(l1, l2)] * count, cost, share, weights)


def match_noise(n_counts: int, cost: PureDP | ZCDP, share: Fraction) -> Noise:
    """The noise of :meth:`TableCurator.matched_counts`, from public numbers; ValueError where it buries any count.

    Examples
    --------
    >>> match_noise(3, PureDP(0.05), Fraction(1))
    Noise(distribution='discrete_laplace', scale=60.0)
    """
    return additive_scales([match_sensitivity(n_counts)[:2]], cost, share)[0]


def distance_noise(n_means: int, cost: PureDP | ZCDP, share: Fraction) -> Noise:
    """The noise of :meth:`TableCurator.distances`, from public numbers; ValueError where it buries any distance.

    Examples
    --------
    >>> distance_noise(2, PureDP(0.1), Fraction(1, 2))
    Noise(distribution='discrete_laplace', scale=40.0)
    """
    return additive_scales([distance_sensitivity(n_means)[:2]], cost, share)[0]


def misfit_scale(adjacency: Adjacency, cost: PureDP | ZCDP, share: Fraction) -> float:
    """Scale of the noise of :meth:`TableCurator.worst_fit`, from public numbers; ValueError where it buries a score."""
    return selection_scale(table_sensitivity(adjacency)[0], cost, share)


class TableCurator(VotingCurator, FieldCurator, FieldMomentCurator, FieldMatrixCurator):
    """A discrete table behind a budget; see :class:`~pgmpy_dp.private.curator.curator_base.Curator` for the arguments.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0, 1] * 500, "b": [0, 1] * 500})
    >>> table = PrivateTable(frame, {"a": [0, 1], "b": [0, 1]}, ledger=Budget(rho=1.0))
    >>> curator = TableCurator(table, Budget(rho=1.0), what="two tables", columns=["a", "b"])
    >>> noisy = curator.tables([("a",), ("b",)], share=Fraction(1, 4))
    >>> noisy[0].shape, str(table.ledger.left), curator.left
    ((2,), '0-zCDP', Fraction(3, 4))
    """

    kind = PrivateTable
    _data: PrivateTable

    def __init__(self, data: PrivateTable, budget: Budget, *, fine: bool = False, **facts: Any) -> None:
        require_table_and_budget(data, budget)
        if not fine:
            data.schema.require_discrete(argument="schema")
        super().__init__(data, budget, **facts)

    def _start(self, *facts: Any) -> None:
        super()._start(*facts)
        self._kept: dict[int, KeptTables] = {}  # by the parts in which records count
        self._shapes: dict[Scope, tuple[int, ...]] = {}  # of scopes that were checked
        self._fine: dict[str, Any] | None = None

    def _child(self, data: Any) -> Self:
        child = super()._child(data)
        child._fine = self._fine
        return child

    @property
    def schema(self) -> Schema:
        """Public description of the variables: with fine grids of numbers that are not divided, until they merge."""
        return self._data._schema

    @property
    def declared(self) -> Schema:
        """Public description of the variables before their numbers were divided."""
        return self._data.schema

    @property
    def n_records(self) -> int | None:
        """The public number of records; None where it is private, as those of random parts are."""
        return self._data.n_records

    def merge(self, schema: Schema, places: Mapping[Hashable, Sequence[int]]) -> None:
        """Count in fewer states from now on; nothing is asked of the records.

        Parameters
        ----------
        schema : Schema
            The variables with their merged states.
        places : mapping of name to sequence of int
            For each variable that changes, which merged state each of its states became: public, or a function of what
            was released.

        Raises
        ------
        ValueError
            Where these do not agree with the schema before, and for a second time.

        Notes
        -----
        Privacy
            A record's merged state is a function of its state, hence of that record alone. So a record adds 1 to one
            cell of a merged table as of any other, and the sensitivities of all operators are what they were.
        """
        places = {name: [int(place) for place in found] for name, found in places.items()}
        with self._turn():
            before, after = self.schema.cardinalities, schema.cardinalities
            if self._fine is not None or list(before) != list(after) or not set(places) <= set(before):
                raise ValueError("states merge once, and into a schema with the same variables")
            checked = {name: places.get(name, list(range(k))) for name, k in before.items()}
            for name, found in checked.items():
                if len(found) != before[name] or set(found) != set(range(after[name])):
                    raise ValueError(
                        f"places[{name!r}] must say for each of {before[name]} states which of the {after[name]} "
                        "merged ones it became, and reach them all"
                    )
            changed = {name: checked[name] for name in places}
            self._fine = {
                "schema": self.schema.to_dict(),
                "tables": len(self.arrays),
                "places": [[encode_label(name), found] for name, found in changed.items()],
            }
            self._data, self._kept, self._shapes = self._data._merged(schema, changed), {}, {}
            self._rows = self._parities = None  # of the states before

    def tables(
        self, scopes: Sequence[Sequence[Hashable]], share: Fraction | float, weights: Sequence[float] | None = None
    ) -> list[np.ndarray]:
        """Noisy contingency tables.

        Parameters
        ----------
        scopes : sequence of sequences of variable names
            One table per scope, axes in its order; scopes may repeat.
        share : Fraction or float
            Of the curator's cost, for all of them.
        weights : sequence of float, optional
            Positive: how the share is divided among the tables. Default: equally.

        Returns
        -------
        list of ndarray of int64
            Counts; they may be negative.

        Raises
        ------
        BudgetExceeded
            If less than the share is left; nothing is spent.
        TypeError, ValueError
            For unknown variables, weights that are not positive, and noise that would bury any count; nothing is spent.

        Notes
        -----
        Privacy
            *Sensitivity.* A record adds 1 to one cell of each of the m tables, or to none if it is outside the schema.
            Under ``add_remove`` table c moves by at most 1 in l1 and l2 norm, under ``replace_one`` by 2 and sqrt(2).

            *Guarantee.* The share s of the cost: with weights w that sum to 1, Laplace noise of scale ``(1 or 2)/(w_c
            s epsilon)`` or Gaussian noise of scale ``sqrt((1 or 2)/(2 w_c s rho))`` in table c.

            *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.
        """
        checked, known = self._checked(scopes)
        weights = None if weights is None else tuple(weights)
        norms = [table_sensitivity(self.adjacency)] * len(checked)
        arguments = {"scopes": checked, "weights": weights, **self._places}
        grid = partial(share_grid, self._data)

        def exact(grid: int) -> list[Sensitive]:
            self._require_states(known)
            return self._exact(checked, grid)

        return self._additive("tables", arguments, share, norms, exact, weights, grid=grid)

    def matched_counts(self, share: Fraction | float) -> np.ndarray:
        """How many records there are, and how many match the schema in all columns and in each column, with noise.

        A record matches in a column if its cell has one of the declared states; a cell that an other-state takes does
        not. It matches in all columns if it is not dropped: there an other-state does.

        Parameters
        ----------
        share : Fraction or float
            Of the curator's cost.

        Returns
        -------
        ndarray of int64, shape (2 + n_variables,), or (1 + n_variables,) where the number of records is public
            The number of records, unless it is public; of those that match in all columns; in each column, in the order
            of the schema. Of text files without units one more: the number of lines that are no record. They may be
            negative.

        Raises
        ------
        BudgetExceeded
            If less than the share is left; nothing is spent.
        ValueError
            For a random part of the records, which has none that do not match, and noise that would bury any count;
            nothing is spent.

        Notes
        -----
        Privacy
            *Sensitivity.* A record adds 0 or 1 to each of the m counts of records, so they move by at most m in l1 and
            sqrt(m) in l2 norm under ``add_remove`` and ``replace_one``
            (:func:`~pgmpy_dp.private.data.contingency.match_sensitivity`). A line that is no record is in the last
            count and in none of these. Added or removed it moves one count by 1, where m is at least 2. In the place of
            a record, or a record in its place, it moves one count more: m + 1 under ``replace_one`` for text files
            (:func:`~pgmpy_dp.private.data.table.most_matched`).

            *Guarantee.* The share s of the cost: Laplace noise of scale ``m/(s epsilon)`` or Gaussian noise of scale
            ``sqrt(m/(2 s rho))`` in each count.

            *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.
        """
        if self._data._is_part:
            raise ValueError("a random part has no records outside the schema; ask before the table is split")
        norms = [match_sensitivity(most_matched(self._data))]

        def exact(grid: int) -> list[Sensitive]:
            return [matched_records(self._data, grid)]

        return self._additive("matched_counts", {}, share, norms, exact, grid=partial(share_grid, self._data))[0]

    def worst_fit(
        self,
        scopes: Sequence[Sequence[Hashable]],
        expected: Sequence[np.ndarray] | np.ndarray,
        share: Fraction | float,
        offsets: Sequence[float] | np.ndarray | None = None,
        weights: Sequence[float] | np.ndarray | None = None,
    ) -> int:
        """Position of the scope whose table is about the furthest from what a model expects.

        Parameters
        ----------
        scopes : sequence of sequences of variable names
            Candidates, at least one. Their exact tables are kept, so that asking again is quick.
        expected : sequence of ndarray, or ndarray of shape (sum of the tables' cells,)
            Counts that the model expects, of the shapes of the tables, or in one vector, each table in C order:
            functions of what was released. They are rounded to integers; NaN counts as 0.
        share : Fraction or float
        offsets : sequence of float, optional
            Subtracted from the distances; default 0.
        weights : sequence of float, optional
            Positive: how much each table's distance counts. Only their ratios matter, and those in steps of 1/1024 of
            the largest. Default: equally.

        Returns
        -------
        int

        Raises
        ------
        BudgetExceeded
            If less than the share is left; nothing is spent.
        TypeError, ValueError
            For unknown variables, tables of other shapes and weights that are not positive; nothing is spent.

        Notes
        -----
        Privacy
            *Sensitivity.* The score ``floor(w norm1(n - round(m))) - floor(w offset)`` of a scope with the weight w,
            of which the largest is 1, moves by at most 1 under ``add_remove``, 2 under ``replace_one``
            (:func:`~pgmpy_dp.private.data.pair_scores.misfit_scores`).

            *Guarantee.* The share s of the cost: Gumbel noise of scale ``D/sqrt(2 s rho)``, or exponential noise of
            scale ``2 D/(s epsilon)``, D being 1 or 2 (:mod:`pgmpy_dp.private.noise.selection`).

            *Source.* McKenna, Mullins, Sheldon and Miklau 2022; Cesar and Rogers 2021.
        """
        checked, known = self._checked(scopes)
        shapes = [known[scope] for scope in checked]
        sizes = np.fromiter(map(math.prod, shapes), dtype=np.int64, count=len(shapes))
        if isinstance(expected, np.ndarray) and expected.shape == (int(sizes.sum()),):
            assumed = np.array(expected, dtype=np.float64)
        else:
            given = [np.asarray(table, dtype=np.float64) for table in expected]
            if [table.shape for table in given] != shapes:
                raise ValueError(
                    f"expected has tables of the shapes {[table.shape for table in given]}, scopes have {shapes}; pass "
                    "one table per scope, axes in its order, or all of them in one vector"
                )
            assumed = np.concatenate([table.ravel() for table in given])
        floors = np.zeros(len(checked)) if offsets is None else np.array(offsets, dtype=np.float64)
        if floors.shape != (len(checked),) or not np.isfinite(floors).all():
            raise ValueError(f"offsets={offsets!r} must be {len(checked)} finite numbers, one per scope")
        counted = None if weights is None else np.array(weights, dtype=np.float64)
        positive = counted is None or bool((counted > 0).all() and np.isfinite(counted).all())
        if counted is not None and not (positive and counted.shape == (len(checked),)):
            raise ValueError(f"weights={weights!r} must be {len(checked)} positive finite numbers, one per scope")
        grid = share_grid(self._data, misfit_scale(self.adjacency, self.cost, checked_share(share)))

        def mechanism(cost: PureDP | ZCDP, s: Fraction) -> NoisyMax:
            self._require_states(known)
            exact = self._joined(checked, sizes, grid)
            return NoisyMax.of(joined_misfit_scores(exact, sizes, grid * assumed, grid * floors, counted), cost, s)

        arguments = {"scopes": checked, "expected": assumed, "offsets": floors, "weights": counted, **self._places}
        # Thousands of tables each time: what a release needs of them is which one it was.
        return self._answer("worst_fit", arguments, share, mechanism, noted={"candidates": len(checked)})

    def distances(
        self,
        scopes: Sequence[Sequence[Hashable]],
        probabilities: Sequence[np.ndarray],
        share: Fraction | float,
        weights: Sequence[Sequence[float]] | np.ndarray | None = None,
    ) -> np.ndarray:
        """How many records would have to be in another cell for tables to be a model's: means over tables, with noise.

        Over the number of records inside the schema (``record_count``) that is the total variation distance.

        Parameters
        ----------
        scopes : sequence of sequences of variable names
            At least one. Their exact tables are kept, so that asking again is quick.
        probabilities : sequence of ndarray
            What the model says of them, of the shapes of the tables, each of sum 1: functions of what was released.
            They are rounded to multiples of 2**-30.
        share : Fraction or float
            Of the curator's cost.
        weights : ndarray of shape (n_means, n_scopes), optional
            For each mean how much each table counts in it; not negative. Rounded to multiples of 2**-20 of a row's
            largest. Default: every table is a mean of its own, which costs as many times as much.

        Returns
        -------
        ndarray of int64, shape (n_means,) or (n_scopes,)
            In records. They may be negative, and larger than the number of records.

        Raises
        ------
        BudgetExceeded
            If less than the share is left; nothing is spent.
        TypeError, ValueError
            For unknown variables, tables that are not probabilities of the right shapes, weights that are not means,
            and noise that would bury any distance; nothing is spent.

        Notes
        -----
        Privacy
            *Sensitivity.* A distance is ``sum_c max(0, n_c - N m_c)``, N the sum of n. One record more, or fewer, moves
            it by at most 1, one in another cell by at most 1, whatever m is; so do means. So k of them move by k in l1
            and sqrt(k) in l2 norm, under ``add_remove`` and ``replace_one``
            (:func:`~pgmpy_dp.private.data.table_distances.mean_distances`).

            *Guarantee.* The share s of the cost: Laplace noise of scale ``k/(s epsilon)`` or Gaussian noise of scale
            ``sqrt(k/(2 s rho))`` in each.

            *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.
        """
        checked, known = self._checked(scopes)
        given = [np.asarray(table, dtype=np.float64) for table in probabilities]
        shapes = [known[scope] for scope in checked]
        if [table.shape for table in given] != shapes:
            raise ValueError(f"probabilities has tables of the shapes {[t.shape for t in given]}, scopes have {shapes}")
        sizes = np.array([table.size for table in given])
        parts = np.concatenate([whole_parts(table) for table in given])
        means = checked_means(weights, len(checked))
        norms = [distance_sensitivity(len(checked) if means is None else len(means))]

        def exact(grid: int) -> list[Sensitive]:
            self._require_states(known)
            return [mean_distances(self._joined(checked, sizes, grid), sizes, parts, means)]

        arguments = {"scopes": checked, "probabilities": parts, "weights": means, **self._places}
        return self._additive("distances", arguments, share, norms, exact, grid=partial(share_grid, self._data))[0]

    def split(self, n_parts: int) -> AbstractContextManager[list[TableCurator]]:
        """Curators of disjoint random parts of the records, each with all that this one has left.

        This one answers nothing until the `with` block ends, and then loses the largest share that one of them used.

        Parameters
        ----------
        n_parts : int

        Yields
        ------
        list of TableCurator
            Their numbers of records are private, also where that of the table is public.

        Notes
        -----
        Memory: parts are codes in memory, a byte a cell for up to 256 states. Data behind a path or an engine are
        fetched for that, once for all splits (``docs/engines.md``): with their parts 2 GB for 10^8 records of 10
        variables.

        Privacy
            Every record goes to a part by a draw of its own, and the guarantees of the parts do not add up.

            *One part differs.* Give neighbouring tables the same draws: the one record that differs is in the same part
            in both, whatever it holds, and the other parts are the same, under add_remove and under replace_one. The
            draws are independent of the records, hence have one distribution under both tables, and a guarantee that
            holds given the draws holds on average over them: for (epsilon, delta) by linearity in the probabilities,
            for zCDP by joint quasi-convexity of Renyi divergences. Draws are made for kept records; a record that is
            outside the schema in one of the tables has a draw in the other only, which changes nothing for the others.
            (Parts by a hash of the content, or by position among the kept records, would change two parts, or many.)

            *Parallel composition.* If mechanism A satisfies rho-zCDP, or epsilon-DP, under the table's adjacency, and B
            too, then running A on one part and B on another satisfies it together; A and B may be chosen one after the
            other, B by A's output.
        """

        def units() -> Units:
            identities, count, _ = table_units(self._data)
            return identities, count, self._data._part

        return self._parted(n_parts, units)

    def _names_of(self, answer: Answer) -> Sequence[str]:
        of_tables = answer.operator == "tables"
        return [*map(scope_name, answer.arguments["scopes"])] if of_tables else super()._names_of(answer)

    def _public(self) -> dict[str, Any]:
        scopes = [
            scope
            for answer in self._all("_answers")
            if answer.operator == "tables"
            for scope in answer.arguments["scopes"]
        ]
        facts = super()._public()
        if scopes:
            facts["schema"] = self.schema.to_dict()
            facts["scopes"] = [[encode_label(name) for name in scope] for scope in scopes]
        return facts if self._fine is None else {**facts, "fine": self._fine}

    @property
    def _places(self) -> dict[str, Any]:
        """What a question depends on besides its own arguments: how states were merged before it."""
        return {} if self._fine is None else {"places": self._fine["places"]}

    def _checked(self, scopes: Sequence[Sequence[Hashable]]) -> tuple[tuple[Scope, ...], dict]:
        """Scopes as tuples of names, and the shapes of tables by which they were checked."""
        known = self._shapes
        if not isinstance(scopes, list | tuple):
            scopes = checked_scopes(scopes)
        try:
            new = [scope for scope in scopes if scope not in known]  # rounds ask about the same ones again and again
        except TypeError:  # lists, or no sequence at all
            new = scopes = checked_scopes(scopes)  # type: ignore[assignment]
        if new or len(scopes) == 0:
            checked = checked_scopes(new)
            require_scopes(self.schema, checked)
            sizes = self.schema.cardinalities
            known.update((scope, tuple(sizes[name] for name in scope)) for scope in checked)
        return tuple(scopes), known  # all of them are tuples, or would not be known

    def _require_states(self, known: dict) -> None:
        """RuntimeError where states were merged, by another thread say, since a request was checked."""
        if known is not self._shapes:
            raise RuntimeError("states were merged while this question was asked, which is of those before; ask again")

    def _joined(self, scopes: Sequence[Scope], sizes: np.ndarray, grid: int) -> Sensitive:
        """Exact tables in one vector, counted where they were not before."""
        kept = self._kept.setdefault(grid, KeptTables())
        missing = [scope for scope in dict.fromkeys(scopes) if scope not in kept]
        for start in range(0, len(missing), _TABLES_AT_ONCE):
            some = missing[start : start + _TABLES_AT_ONCE]
            kept.add(some, contingency_tables(self._data, some, grid))
        return kept.joined(scopes, sizes)

    def _exact(self, scopes: Sequence[Scope], grid: int) -> list[Sensitive]:
        kept = self._kept.setdefault(grid, KeptTables())
        missing = [scope for scope in scopes if scope not in kept]
        counted = iter(contingency_tables(self._data, missing, grid) if missing else ())
        return [kept.table(scope, self._shapes[scope]) if scope in kept else next(counted) for scope in scopes]


def checked_scopes(scopes: Sequence[Sequence[Hashable]]) -> tuple[Scope, ...]:
    """Scopes as tuples of names; TypeError or ValueError for anything else, names that repeat in a scope included."""
    if isinstance(scopes, str | bytes) or not isinstance(scopes, Sequence | set | frozenset | np.ndarray):
        raise TypeError(f"scopes={scopes!r} is a {type(scopes).__name__}; pass a list of tuples of variable names")
    if len(scopes) == 0:
        raise ValueError("scopes is empty; pass at least one tuple of variable names")
    checked = []
    for scope in scopes:
        if isinstance(scope, str | bytes) or not isinstance(scope, Sequence | np.ndarray):
            raise TypeError(
                f"scopes holds {scope!r}, a {type(scope).__name__}; pass tuples of variable names, "
                "for a single variable ('name',)"
            )
        names = tuple(scope)
        if not names or len(set(names)) != len(names):
            raise ValueError(f"scopes holds {names!r}; a scope names at least one variable, and none of them twice")
        checked.append(names)
    return tuple(checked)


def require_scopes(schema: Schema, scopes: Sequence[Sequence[Hashable]]) -> None:
    """ValueError for scopes with variables that `schema` does not declare, or declares as numeric."""
    unknown = sorted({repr(name) for scope in scopes for name in scope if name not in schema.variables})
    if unknown:
        raise ValueError(
            f"scopes use the unknown variables {', '.join(unknown)}; the schema declares {list(schema.variables)}: "
            "add them to the schema (with their states), or remove them from the scopes"
        )
    for scope in scopes:
        schema.require_discrete(scope, argument="schema")
