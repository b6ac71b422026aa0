"""A model of parents with their children: what can be asked of it, and families drawn from it."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from pgmpy.factors.discrete import DiscreteFactor

from pgmpy_dp.checks import checked_integer
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.sampling import uniforms
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.linked.as_one_table import of_a_random_child
from pgmpy_dp.linked.family_draws import Families, FamilyChoice
from pgmpy_dp.linked.linked_posterior import LinkedPosterior, Question
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.linked.operators.wide_table import WideTable, wide_table
from pgmpy_dp.linked.slot_draws import SlotDraws
from pgmpy_dp.models.answers import Drawn
from pgmpy_dp.models.decoded_columns import as_series
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.evidence import Evidence, checked_evidence, counted
from pgmpy_dp.models.posterior.posterior_file import posterior_from_parts, posterior_to_parts
from pgmpy_dp.private.accounting import zcdp_to_approx
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.array_file import array_file, read_array_file
from pgmpy_dp.private.atomic_file import write_atomically
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, Guarantee, PureDP, ReservedZCDP
from pgmpy_dp.schema import Schema
from pgmpy_dp.schema.stored import read_from

FORMAT, VERSION = "pgmpy_dp.LinkedModel", 1


class LinkedModel:
    """p(parent, n, children): made by :class:`~pgmpy_dp.linked.private_linked_network.PrivateLinkedNetwork`.

    Names of columns may have the name of their table before them, ``"person.age"``, which those that both tables have
    need. The number of children has the schema's name for it, "n", and a count its text, "age >= 16".

    Parameters
    ----------
    linked : LinkedSchema
    wide : WideTable
        In the states that the model has.
    model : LogLinearModel
        Over the columns of the wide table.
    privacy : Privacy or None
    within : mapping of (table, column) to Values
        How numbers lie within states.
    n_records, n_records_sd : float
        The number of parents, and the standard deviation of the estimate.

    Attributes
    ----------
    linked, privacy, n_records, n_records_sd
    posterior : LinkedPosterior or None
        What the estimator's ``posterior()`` gave, if it was assigned: files keep it, and reports have its intervals.

    Examples
    --------
    >>> import warnings
    >>> from pgmpy_dp import Budget, learn_linked
    >>> from pgmpy_dp.linked import made_up_families
    >>> households, persons, schema = made_up_families(500, most=3)
    >>> with warnings.catch_warnings(action="ignore"):
    ...     model = learn_linked(households, persons, Budget(rho=2.0), schema).model_
    >>> float(model.query("person.status", {"age": "0:15", "n": 3}).values[0].round(2))
    1.0
    >>> households, persons = model.sample(5)
    >>> int(households["n"].sum()) == len(persons)
    True
    """

    def __init__(
        self,
        linked: LinkedSchema,
        wide: WideTable,
        model: LogLinearModel,
        privacy: Privacy | None,
        within: Mapping[tuple[str, Hashable], Values],
        n_records: float,
        n_records_sd: float,
    ) -> None:
        self.linked, self.privacy = linked, privacy
        self.n_records, self.n_records_sd = n_records, n_records_sd
        self._wide, self._model, self._within = wide, model, dict(within)
        self.posterior: LinkedPosterior | None = None

    def __repr__(self) -> str:
        parent, child = self.linked.names
        size = f"{parent} {len(self.linked.parent or ())} columns, {child} {len(self.linked.child)} columns"
        return f"LinkedModel({size}; {self.privacy}; one {child} alone: {words_of_a_child(self.privacy)})"

    @property
    def privacy_of_a_child(self) -> Guarantee | None:
        """What is promised to one child that is added, removed or changed without its key, its siblings as they were.

        None where nothing is promised to its parent.
        Four times the rho, or twice a pure epsilon: its parent with all children is one unit taken out and another put
        in. An (epsilon, delta) is converted from that. Under ``replace_one`` it is what is promised to the unit. That a
        child moved from one parent to another is less protected: two units change, which takes 16 times the rho, or
        four times the epsilon, and 4 times and twice under ``replace_one``.
        """
        return None if self.privacy is None else guarantee_of_a_child(self.privacy)

    @property
    def promise_to_a_child(self) -> Privacy | None:
        """`privacy_of_a_child` as it was proved (``guarantee``) and as it is said (``asked``), as in a record."""
        return promise_to_a_child(self.privacy)

    def to_bayesian_network(self) -> NoReturn:
        """Refused: a family has more children than the network has slots.

        Returns
        -------
        NoReturn

        Raises
        ------
        NotImplementedError
            Always, with the reason.
        """
        raise NotImplementedError(
            "a model of linked tables is no Bayesian network of one table: it has slots for two children, both with "
            "one distribution, and families have any number. Ask it by query, query_pairs and counts, or sample both "
            "tables from it"
        )

    def explorer(
        self,
        path: str | os.PathLike,
        *,
        n_draws: int | None = None,
        level: float = 0.9,
        title: str | None = None,
        about: str | None = None,
    ) -> None:
        """Write an HTML page about a random child, its parent and another child: what is known is chosen there.

        Parameters
        ----------
        path : str or path
        n_draws, level, title, about
            As of :meth:`~pgmpy_dp.MarkovNetwork.explorer`.

        Raises
        ------
        ValueError
            For a page of more than 20 MB, and a level that needs more draws.
        """
        of_a_random_child(self).explorer(
            path, n_draws=n_draws, level=level, title=title or f"Explore {self.linked.names[1]}", about=about
        )

    def save(self, path: str | os.PathLike) -> None:
        """Write the model to one file, losslessly, with a digest that shows damage.

        Parameters
        ----------
        path : str or path
            By custom ``.npz``. The file is written beside its place and moved there.
        """
        cliques = self._model.cliques
        parent = self._wide.schema.subset(list(self.linked.parent)) if self.linked.parent is not None else None
        header = {
            "format": FORMAT,
            "version": VERSION,
            "linked": self.linked.to_dict(),
            "child": self._wide.child.to_dict(),
            "parent": None if parent is None else parent.to_dict(),
            "scopes": [list(scope) for scope in cliques.indices],
            "privacy": None if self.privacy is None else self.privacy.to_dict(),
            "n_records": [self.n_records, self.n_records_sd],
            "within": [
                {"table": table, "values": Schema({name: values.declared}).to_dict(), **values.to_dict()}
                for (table, name), values in self._within.items()
            ],
        }
        arrays = {"theta": self._model.theta}
        if self.posterior is not None:
            header["posterior"], parts = posterior_to_parts(self.posterior.wide)
            arrays |= parts
        write_atomically(os.fspath(path), array_file(header, arrays))

    @classmethod
    def load(cls, path: str | os.PathLike) -> LinkedModel:
        """Read a model written by :meth:`save`. Nothing in the file is executed.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        LinkedModel

        Raises
        ------
        ValueError
            If the file is not a saved model of linked tables, is damaged, or is from a later version.
        """
        content = Path(path).read_bytes()
        with read_from(path, "a saved LinkedModel", "pass a file that its save() wrote"):
            header, arrays = read_array_file(content, FORMAT, {VERSION: True})
            linked = LinkedSchema.from_dict(header["linked"])
            parent = None if header["parent"] is None else Schema.from_dict(header["parent"])
            wide = wide_table(linked, Schema.from_dict(header["child"]), parent)
            names = wide.schema.variables
            sizes = tuple(wide.schema.cardinality(name) for name in names)
            cliques = Cliques(names, sizes, tuple(tuple(names[i] for i in scope) for scope in header["scopes"]))
            within = {}
            for entry in header["within"]:
                ((name, declared),) = Schema.from_dict(entry["values"]).items()
                within[entry["table"], name] = Values.from_dict(declared, entry)
            # Version 0.3 had in the schema alone how keys are compared.
            privacy = header["privacy"] and replace(Privacy.from_dict(header["privacy"]), unit=linked.unit)
            model = LogLinearModel(cliques, arrays["theta"])
            found = cls(linked, wide, model, privacy, within, *map(float, header["n_records"]))
            if "posterior" in header and privacy is not None:
                graph: dict[Hashable, list[Hashable]] = {name: [] for name in names}
                draws = posterior_from_parts(header["posterior"], arrays, wide.schema, graph, privacy, {})
                found.posterior = LinkedPosterior(found, draws)
            return found

    # -- families ------------------------------------------------------------------------------

    def sample(
        self, n_parents: int, random_state: int | np.random.Generator | None = None, labels: bool = False
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Draw synthetic parents with their children; as private as the model, however many there are.

        Parameters
        ----------
        n_parents : int
        random_state : int, numpy.random.Generator or None
            Only for repeatable draws; it has no part in privacy.
        labels : bool, default False
            The states of numbers and days instead of values within them.

        Returns
        -------
        parents, children : pandas.DataFrame
            `parents` has the key, which are fresh numbers 0, 1, ..., the columns of parents, the number of children and
            the counts, which agree with the children drawn. `children` have the key of their parent and their columns.
            Of "so many or more" children so many are drawn.

        Raises
        ------
        ValueError
            If `n_parents` is not a whole number of at least 0.

        Notes
        -----
        Two children are drawn as the model has them together, each further one given all that were drawn before, which
        is an approximation. So several families are drawn for each that is asked for, and one is taken, in such
        proportions that tables of children, of two children and of counts are those of the model
        (:mod:`pgmpy_dp.linked.family_draws`). Where children have an order, each is drawn given the one before it. A
        child's cell that the model says is outside the schema is drawn again. Counts are those of the children drawn.
        """
        parents, children = self.sampled_columns(n_parents, random_state, labels)
        return _frame(parents), _frame(children)

    def sampled_columns(
        self, n_parents: int, random_state: int | np.random.Generator | None = None, labels: bool = False
    ) -> tuple[dict[Hashable, Drawn], dict[Hashable, Drawn]]:
        """What :meth:`sample` draws, column by column, as `sampled_columns` of one table has it.

        Parameters
        ----------
        n_parents, random_state, labels

        Returns
        -------
        parents, children : dict of name to Drawn
            A declared number or date and its values, or states and which of them.
        """
        n = checked_integer("n_parents", n_parents, 0)
        rng = np.random.default_rng(random_state)
        families = Families(self, n, rng)
        codes, size, children = families.codes, families.size, families.children
        keys, sizes = range(max(n, 1)), range(self.linked.most + 1)
        parents: dict[Hashable, Drawn] = {self.linked.key: (keys, np.arange(n))}
        for name in self.linked.parent or ():
            parents[name] = self._drawn(self.linked.names[0], name, codes[:, self._place(name)], rng, labels)
        parents[self.linked.size] = (sizes, size)
        for k, name in enumerate(self.linked.counts):
            parents[name] = (sizes, families.counted[:, k])
        owner, slot = np.nonzero(np.arange(self.linked.most)[None, :] < size[:, None])
        drawn = children[owner, slot]
        columns: dict[Hashable, Drawn] = {self.linked.key: (keys, owner)}
        for j, name in enumerate(self.linked.child):
            columns[name] = self._drawn(self.linked.names[1], name, drawn[:, j], rng, labels)
        return parents, columns

    def _drawn(self, table: str, name: Hashable, codes: np.ndarray, rng: np.random.Generator, labels: bool) -> Drawn:
        schema = self._wide.child if table == self.linked.names[1] else self._wide.schema
        if labels or (table, name) not in self._within:
            return schema.states[name], codes
        return self._within[table, name].drawn(codes, uniforms(codes, rng, "stratified"))

    # -- questions -----------------------------------------------------------------------------

    def query(
        self,
        variables: Hashable | Sequence[Hashable],
        evidence: Mapping[Hashable, Any] | None = None,
        *,
        weight: str | None = None,
    ) -> DiscreteFactor:
        """Distribution of some columns given what is known of others, of a random child or of a random family.

        Parameters
        ----------
        variables : list of names, or one
            Columns of parents and of one child, the number of children, counts.
        evidence : dict of name to what is known, optional
            As :meth:`~pgmpy_dp.MarkovNetwork.query` takes it; of the number of children a number, a range or a set.
        weight : {"child", "family"}, optional
            Of whom: of a random child, so that families count for each of their children; or of a random child of a
            random family. Default: "child" where a column of children is named, else families, those without children
            too.

        Returns
        -------
        DiscreteFactor
            Sums to 1. Cells outside the children's schema are left out.

        Raises
        ------
        ValueError
            For unknown names, for evidence that is no state, and for evidence of probability 0.
        """
        return self._answered(self.about_one(variables, evidence, weight))

    def about_one(self, variables: Any, evidence: Mapping[Hashable, Any] | None, weight: str | None) -> Question:
        """What :meth:`query` asks, which has the parameters.

        Parameters
        ----------
        variables, evidence, weight

        Returns
        -------
        Question

        Raises
        ------
        ValueError
            For what cannot be asked.
        """
        names, given = _listed(variables), checked_evidence(evidence)
        found = {name: self._found(name) for name in (*names, *given)}
        of_child = any(table == 1 for table, _ in found.values())
        if weight not in (None, "child", "family"):
            raise ValueError(f"weight={weight!r}; pass 'child' or 'family'")
        children = int(of_child or weight == "child")
        weights = self._weights(children, weight != "family")
        scope = [self._wide_name(*found[name], 0) for name in names]
        known = self._known(given, 0)
        return self._question(names, [found[name] for name in names], scope, known, weights, children)

    def query_pairs(
        self,
        variables: Hashable | Sequence[Hashable],
        evidence: Mapping[Hashable, Any] | None = None,
        *,
        weight: str = "pair",
    ) -> DiscreteFactor:
        """Distribution of columns of two different children of one parent.

        Parameters
        ----------
        variables : list of names, or one
            Columns of children, asked of both.
        evidence : dict, optional
            Of the parent, or of the first child.
        weight : {"pair", "family"}
            Of whom: of a random pair of children of one parent, so that large families count for all their pairs; or of
            a random pair of a random family that has two children or more.

        Returns
        -------
        DiscreteFactor
            Its variables are ``"first.age"``, ..., ``"second.age"``, .... Where children have an order, the first comes
            just before the second.

        Raises
        ------
        ValueError
            As :meth:`query`, and for columns of parents.
        """
        return self._answered(self.about_two(variables, evidence, weight))

    def about_two(self, variables: Any, evidence: Mapping[Hashable, Any] | None, weight: str) -> Question:
        """What :meth:`query_pairs` asks, which has the parameters.

        Parameters
        ----------
        variables, evidence, weight

        Returns
        -------
        Question

        Raises
        ------
        ValueError
            For what cannot be asked.
        """
        names, given = _listed(variables), checked_evidence(evidence)
        if weight not in ("pair", "family"):
            raise ValueError(f"weight={weight!r}; pass 'pair' or 'family'")
        found = {name: self._found(name) for name in (*names, *given)}
        if theirs := [name for name in names if found[name][0] != 1]:
            raise ValueError(f"variables has {theirs}, which are not columns of children; pairs are of children")
        if self.linked.most < 2:
            raise ValueError("most=1: the model has no pairs of children")
        first, second = (1, 0) if self._wide.ordered else (0, 1)
        scope = [self._wide_name(*found[name], slot) for slot in (first, second) for name in names]
        known = self._known(given, first)
        titles = [f"{which}.{name}" for which in ("first", "second") for name in names]
        kinds = [found[name] for _ in range(2) for name in names]
        if both := [name for name in names if name in given]:
            raise ValueError(f"variables and evidence both have {both}; ask about columns of which nothing is known")
        return self._question(titles, kinds, scope, known, self._weights(2, weight == "pair"), 2)

    def counts(
        self, condition: str, by: Sequence[Hashable] = (), evidence: Mapping[Hashable, Any] | None = None
    ) -> DiscreteFactor:
        """How many children of a random family meet a declared condition.

        Parameters
        ----------
        condition : str
            One of the schema's `counts`.
        by : list of names
            Columns of parents, or the number of children, to have the distribution for each of their states together.
        evidence : dict, optional
            Of the parent.

        Returns
        -------
        DiscreteFactor
            Sums to 1, over the count and `by`.

        Raises
        ------
        ValueError
            For a condition that was not declared: what the model knows of it is not how many children of a family meet
            it.
        """
        return self._answered(self.about_counts(condition, by, evidence))

    def about_counts(self, condition: str, by: Sequence[Hashable], evidence: Mapping[Hashable, Any] | None) -> Question:
        """What :meth:`counts` asks, which has the parameters.

        Parameters
        ----------
        condition, by, evidence

        Returns
        -------
        Question

        Raises
        ------
        ValueError
            For what cannot be asked.
        """
        if condition not in self.linked.counts:
            raise ValueError(
                f"condition={condition!r} is not declared; the schema has counts={list(self.linked.counts)}. Learn "
                f"with LinkedSchema(..., counts=[{condition!r}]), or count in families of sample()"
            )
        return self.about_one([condition, *_listed(by)], evidence, "family")

    def _question(
        self,
        titles: Sequence[Hashable],
        kinds: Sequence[tuple[int, Hashable]],
        scope: Sequence[Hashable],
        known: Sequence[tuple[Hashable, np.ndarray]],
        weights: np.ndarray,
        children: int,
    ) -> Question:
        if both := {name for name, _ in known} & set(scope):
            raise ValueError(f"variables and evidence both have {sorted(map(str, both))}; ask about what is not known")
        return Question(titles, kinds, scope, known, weights, children)

    def _answered(self, question: Question) -> DiscreteFactor:
        """The marginal of some wide columns under evidence, with states of the number of children weighted."""
        scope, size = question.scope, self._wide.size
        everything = list(dict.fromkeys([*scope, *(name for name, _ in question.known), size]))
        table = self._model.marginal(everything)
        for known_name, factor in [*((name, shares[0]) for name, shares in question.known), (size, question.weights)]:
            table = table * factor.reshape([-1 if other == known_name else 1 for other in everything])
        # What is asked about comes first.
        table = table.sum(axis=tuple(range(len(scope), len(everything))))
        for axis, membership in enumerate(self.states_asked(question)):
            table = np.moveaxis(np.tensordot(membership, table, axes=(1, axis)), 0, axis)
        if not table.sum() > 0:
            raise ValueError("evidence has the probability 0 in the model; ask with other evidence")
        named = dict(zip(question.titles, self.labels_asked(question), strict=True))
        return DiscreteFactor(list(question.titles), list(table.shape), table / table.sum(), state_names=named)

    def labels_asked(self, question: Question) -> list[list]:
        """The states of what is asked about, as answers tell them.

        Parameters
        ----------
        question : Question

        Returns
        -------
        list of list
        """
        sizes = sorted({n for n, _ in self._wide.patterns})
        return [
            sizes
            if column == self._wide.size
            else list(self._wide.child.states[name] if kind == 1 else self._wide.schema.states[name])
            for column, (kind, name) in zip(question.scope, question.kinds, strict=True)
        ]

    def states_asked(self, question: Question) -> list[np.ndarray]:
        """For each axis which states of the wide column each of these is.

        Parameters
        ----------
        question : Question

        Returns
        -------
        list of ndarray, shape (states told, states)
        """
        sizes, found = np.array([n for n, _ in self._wide.patterns]), []
        for column, labels in zip(question.scope, self.labels_asked(question), strict=True):
            if column == self._wide.size:
                found.append((np.array(labels)[:, None] == sizes).astype(float))
            else:  # children's have further ones: absent, and outside the schema
                found.append(np.eye(len(labels), len(self._wide.schema.states[column])))
        return found

    def _weights(self, children: int, each: bool) -> np.ndarray:
        """For how much a state of the number of children counts, where so many first slots have a child.

        With `each` families count for each child, or pair, else once. A row's slots are those of random children: what
        a state with these slots filled stands for is divided by how often they are.
        """
        patterns = self._wide.patterns
        if children == 0:
            return np.ones(len(patterns))
        found = np.zeros(len(patterns))
        for k, (n, present) in enumerate(patterns):
            if n < children or (not self._wide.ordered and not set(range(children)) <= set(present)):
                continue
            ways = n if children == 1 else n * (n - 1)
            if self._wide.ordered:  # rows are a child each, of which all but the first have one before them
                found[k] = n if each else 1.0 if children == 1 else n / (n - 1)
                if each and children == 2:
                    found[k] = n
                continue
            filled = [1.0 for m, slots in patterns if m == n and set(range(children)) <= set(slots)]
            share = len(filled) / sum(m == n for m, _ in patterns)
            found[k] = (ways if each else 1.0) / share
        return found

    @property
    def columns(self) -> tuple[list[Hashable], list[Hashable]]:
        """What can be asked about: columns of parents, with counts and the number of children; and of children."""
        parents = [*(self.linked.parent or ()), *self.linked.counts, self.linked.size]
        return parents, list(self.linked.child)

    def _found(self, name: Hashable) -> tuple[int, Hashable]:
        """Which table a name is of, 0 for parents and 1 for children, and the column."""
        tables = self.columns
        if isinstance(name, str):
            for k, table in enumerate(self.linked.names):
                own = {f"{table}.{column}": column for column in tables[k]}
                if name in own:
                    return k, own[name]
        held = [k for k in (0, 1) if name in tables[k]]
        if len(held) != 1:
            why = "is a column of both tables; say which" if held else "is in neither table"
            raise ValueError(
                f"{name!r} {why}: {self.linked.names[0]} has {tables[0]}, {self.linked.names[1]} {tables[1]}"
            )
        return held[0], name

    def _wide_name(self, table: int, column: Hashable, slot: int) -> Any:
        return column if table == 0 else self._wide.slots[slot][list(self.linked.child).index(column)]

    def _place(self, name: Hashable) -> int:
        return self._wide.schema.variables.index(name)

    def counted(self, evidence: Mapping[Hashable, Any] | None) -> dict[Hashable, Evidence]:
        """What is known of columns, with the states and shares that each counts as.

        Parameters
        ----------
        evidence : mapping of name to what is known, or None
            See :meth:`query`.

        Returns
        -------
        dict of name to Evidence

        Raises
        ------
        TypeError, ValueError
            As :meth:`query`.
        """
        found = {}
        for name, given in checked_evidence(evidence).items():
            table, column = self._found(name)
            schema = self._wide.child if table else self._wide.schema
            if (table, column) == (0, self.linked.size):
                schema = Schema({column: sorted({n for n, _ in self._wide.patterns})})
            found[name] = counted(schema, column, given, self._within.get((self.linked.names[table], column)))
        return found

    def _known(self, evidence: Mapping[Hashable, Any], slot: int) -> list[tuple[Hashable, np.ndarray]]:
        """Columns of the wide table of which something is known, and the shares of their states."""
        found = []
        for name, one in self.counted(evidence).items():
            column = self._wide_name(*self._found(name), slot)
            if column == self._wide.size:
                found.append((column, one.shares[:, [list(one.states).index(n) for n, _ in self._wide.patterns]]))
            else:  # children's have further states: absent, and outside the schema
                more = len(self._wide.schema.states[column]) - len(one.likely)
                found.append((column, np.pad(one.shares, ((0, 0), (0, more)))))
        return found

    @cached_property
    def _in_first_slots(self) -> LogLinearModel:
        """The model of families whose children are in the first slots, with its own distribution of their number."""
        found = self._given_size(np.ones(len(self._wide.patterns), dtype=bool))
        assert found is not None
        return found

    def _given_size(self, states: np.ndarray) -> LogLinearModel | None:
        """That model, given some states of the number of children; None where they have the probability 0."""
        patterns = self._wide.patterns
        likely = self._model.marginal([self._wide.size])
        weights = np.full(len(patterns), -np.inf)
        for k, (n, present) in enumerate(patterns):
            if states[k] and present == tuple(range(len(present))) and likely[k] > 0:
                whole = sum(p for p, (m, _) in zip(likely, patterns, strict=True) if m == n)
                weights[k] = np.log(whole / likely[k])
        if np.isneginf(weights).all():
            return None
        cliques = self._model.cliques
        theta = np.append(self._model.theta, weights)
        return replace(self._model, cliques=replace(cliques, scopes=(*cliques.scopes, (self._wide.size,))), theta=theta)

    @property
    def _size_at(self) -> int:
        return self._place(self._wide.size)

    @cached_property
    def _draws(self) -> SlotDraws:
        place = {name: k for k, name in enumerate(self._wide.schema.variables)}
        slots = [[place[name] for name in slot] for slot in self._wide.slots]
        return SlotDraws(self._model, slots[0], () if self._wide.ordered else slots[1], self._size_at)

    @cached_property
    def _choice(self) -> FamilyChoice:
        return FamilyChoice(self)


def promise_to_a_child(privacy: Privacy | None) -> Privacy | None:
    """What a record promises to one child, see ``LinkedModel.privacy_of_a_child``: as it was proved, and as it is said.

    Whatever speaks of a child asks this. None where nothing is promised. The rest of the record is that of the units.
    """
    whole = None if privacy is None else privacy.together
    if whole is None or whole.adjacency is Adjacency.REPLACE_ONE:
        return whole
    proved, said = whole.guarantee, whole.said
    if isinstance(proved, PureDP):
        return replace(whole, guarantee=PureDP(2.0 * proved.epsilon), asked=None)
    if isinstance(proved, ZCDP):
        rho = 4.0 * proved.rho
        asked = ApproxDP(zcdp_to_approx(rho, said.delta), said.delta) if isinstance(said, ApproxDP) else None
        return replace(whole, guarantee=ZCDP(rho), asked=asked)
    # Of (epsilon, delta) itself, two steps from one to the other.
    if isinstance(said, ReservedZCDP):
        said = ApproxDP(zcdp_to_approx(said.rho, said.eta), math.nextafter(2.0 * said.eta, 1.0))
    assert isinstance(said, ApproxDP)
    delta = min((1.0 + math.exp(said.epsilon)) * said.delta, 1.0 - 2**-53)
    return replace(whole, guarantee=ApproxDP(2.0 * said.epsilon, delta), asked=None)


def guarantee_of_a_child(privacy: Privacy) -> Guarantee | None:
    """What is promised to one child, in the words of the budget; None where nothing is."""
    promise = promise_to_a_child(privacy)
    return None if promise is None else promise.said


def words_of_a_child(privacy: Privacy | None) -> str:
    """What is promised to one child, as everything prints it."""
    promise = promise_to_a_child(privacy)
    return "nothing is promised" if promise is None else promise.words


def told_of_a_child(privacy: Privacy) -> dict[str, Any]:
    """What programs are told: `Privacy.told`, and ``guarantee_of_a_child``."""
    child = guarantee_of_a_child(privacy)
    return {**privacy.told(), "guarantee_of_a_child": None if child is None else child.to_dict()}


def _frame(columns: Mapping[Hashable, Drawn]) -> pd.DataFrame:
    frame = pd.concat([as_series(*column) for column in columns.values()], axis=1)
    frame.columns = pd.Index(list(columns), tupleize_cols=False)
    return frame


def _listed(variables: Any) -> list[Hashable]:
    if isinstance(variables, str) or not isinstance(variables, Iterable):
        return [variables]
    found = list(variables)
    if len(set(found)) != len(found):
        raise ValueError(f"variables={found} has one twice")
    return found
