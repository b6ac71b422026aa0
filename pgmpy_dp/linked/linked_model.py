"""A model of parents with their children, which answers questions and draws families."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from pgmpy_dp.checks import checked_integer
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.sampling import uniforms
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.linked.family_view import OF, FamilyView
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.linked.operators.wide_table import WideTable, wide_table
from pgmpy_dp.linked.slot_draws import SlotDraws
from pgmpy_dp.models.answer import QUARTILES, Answer
from pgmpy_dp.models.answers import Drawn
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.evidence import Evidence, checked_evidence
from pgmpy_dp.models.ordered_draws import ordered_groups
from pgmpy_dp.models.posterior.posterior_file import posterior_from_parts, posterior_to_parts
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.array_file import array_file, read_array_file
from pgmpy_dp.private.atomic_file import write_atomically
from pgmpy_dp.private.guarantee import Guarantee
from pgmpy_dp.schema import Schema
from pgmpy_dp.schema.stored import read_from
from pgmpy_dp.shown import quantity, shown

if TYPE_CHECKING:
    import pandas as pd
    from pgmpy.factors.discrete import DiscreteFactor

    from pgmpy_dp.linked.family_draws import Families, FamilyChoice
    from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior

FORMAT, VERSION = "pgmpy_dp.LinkedModel", 1


class LinkedModel:
    """p(parent, n, children): made by :class:`~pgmpy_dp.linked.private_linked_network.PrivateLinkedNetwork`.

    Names of columns may have the name of their table before them, ``"person.age"``; a name that both tables have needs
    it. The number of children has the schema's name for it, "n", and a count its text, "age >= 16".

    Parameters
    ----------
    linked : LinkedSchema
    wide : WideTable
        In the states that the model has.
    model : LogLinearModel
        Over the columns of the wide table.
    privacy : Privacy or None
    within : mapping of (table, column) to Values
        The places of numbers within states.
    n_records, n_records_sd : float
        The number of parents, and the standard deviation of the estimate.

    Attributes
    ----------
    linked, privacy, n_records, n_records_sd
    posterior : ParameterPosterior or None
        The result of the estimator's ``posterior()``, if assigned: files keep it, and reports have its intervals.

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
        self.posterior: ParameterPosterior | None = None
        self._choice_weights: np.ndarray | None = None

    def __repr__(self) -> str:
        parent, child = self.linked.names
        size = f"{parent} {quantity(self.linked.parent or (), 'column')}, "
        size += f"{child} {quantity(self.linked.child, 'column')}"
        return f"LinkedModel({size}; {self.privacy}; one {child} alone: {words_of_a_child(self.privacy)})"

    @property
    def privacy_of_a_child(self) -> Guarantee | None:
        """The promise to one child that is added, removed or changed without its key, its siblings as they were.

        None where nothing is promised to its parent.
        Four times the rho, or twice a pure epsilon: its parent with all children is one unit taken out and another put
        in. An (epsilon, delta) is converted from that. Under ``replace_one`` it is what is promised to the unit. A
        child's move from one parent to another is less protected: two units change, which takes 16 times the rho, or
        four times the epsilon; under ``replace_one`` 4 times the rho, or twice the epsilon.
        """
        return None if self.privacy is None else guarantee_of_a_child(self.privacy)

    @property
    def promise_to_a_child(self) -> Privacy | None:
        """`privacy_of_a_child` as it was proved (``guarantee``) and as it is said (``requested``), as in a record."""
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
            "one distribution, and families have any number. Ask it by ask and query, or sample both tables from it"
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
            For a page of more than 20 MB, a level that needs more draws, and if one child of a parent counts.
        """
        from pgmpy_dp.models.markov_network import MarkovNetwork

        view, title = self.explored(), title or f"Explore {shown(self.linked.names[1])}"
        MarkovNetwork.explorer(view, path, n_draws=n_draws, level=level, title=title, about=about)  # type: ignore[arg-type]

    def explored(self) -> FamilyView:
        """The view that a page to explore is about: a child's, with another one beside it.

        Returns
        -------
        FamilyView

        Raises
        ------
        ValueError
            If one child of a parent counts.
        """
        self.view("pair")  # refused where there are none
        return self.view("child")

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
        if not self._wide.ordered:  # seconds that whoever loads it and draws need not spend again
            arrays["choice"] = self._choice.weights
        if self.posterior is not None:
            header["posterior"], parts = posterior_to_parts(self.posterior)
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
            header, arrays = read_array_file(content, FORMAT, VERSION)
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
            loaded = cls(linked, wide, model, privacy, within, *map(float, header["n_records"]))
            loaded._choice_weights = arrays.get("choice")
            _ = loaded._choice if "choice" in arrays else None  # refused here where they are of another model
            if "posterior" in header and privacy is not None:
                graph: dict[Hashable, list[Hashable]] = {name: [] for name in names}
                loaded.posterior = posterior_from_parts(header["posterior"], arrays, wide.schema, graph, privacy, {})
            return loaded

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
        Two children are drawn as the model has them together, and each further one given all that were drawn before.
        The latter is an approximation, so several families are drawn for each that is wanted, and one is taken, in such
        proportions that tables of children, of two children and of counts are those of the model
        (:mod:`pgmpy_dp.linked.family_draws`). Where children have an order, each is drawn given the one before it. A
        child's cell that the model says is outside the schema is drawn again. Counts are those of the children drawn.
        """
        from pgmpy_dp.models.decoded_columns import as_frame

        parents, children = self.sampled_columns(n_parents, random_state, labels)
        return as_frame(parents, n_parents), as_frame(children, n_parents)

    def sampled_columns(
        self, n_parents: int, random_state: int | np.random.Generator | None = None, labels: bool = False
    ) -> tuple[dict[Hashable, Drawn], dict[Hashable, Drawn]]:
        """The columns that :meth:`sample` draws, as `sampled_columns` of one table has them.

        Parameters
        ----------
        n_parents, random_state, labels

        Returns
        -------
        parents, children : dict of name to Drawn
            A declared number or date and its values, or states and which of them.
        """
        from pgmpy_dp.linked.family_draws import Families

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
        if self.linked.order_rules and not labels:
            self._obey(parents, columns, families, rng)
        return parents, columns

    def _obey(
        self, parents: dict[Hashable, Drawn], children: dict[Hashable, Drawn], families: Families, rng: Any
    ) -> None:
        """Draw the numbers that rules order again within their states, those of a family together."""
        there = np.arange(self.linked.most) < families.size[:, None]
        wholes, parts, rules = dict[Any, Any](), dict[Any, Any](), self.linked.order_rules
        ends: dict[Any, None] = dict.fromkeys(end for rule in rules for end in (rule.low, rule.high))
        for key in ends:
            (table, name), within = key, self._within[key]
            if table == self.linked.names[0]:
                wholes[key] = within, families.codes[:, self._place(name)], parents[name][1]
            else:
                codes = families.children[:, :, list(self.linked.child).index(name)]
                np.place(numbers := np.full(there.shape, np.nan), there, children[name][1])
                parts[key] = within, codes, numbers
        for key, numbers in ordered_groups(rules, wholes, parts, rng).items():
            columns, drawn = (children, numbers[there]) if key in parts else (parents, numbers)
            columns[key[1]] = columns[key[1]][0], drawn

    def _drawn(self, table: str, name: Hashable, codes: np.ndarray, rng: np.random.Generator, labels: bool) -> Drawn:
        schema = self._wide.child if table == self.linked.names[1] else self._wide.schema
        if labels or (table, name) not in self._within:
            return schema.states[name], codes
        return self._within[table, name].drawn(codes, uniforms(codes, rng, "stratified"))

    # -- questions -----------------------------------------------------------------------------

    def view(self, of: str) -> FamilyView:
        """View this model as one of a child, a pair or a family: it answers and reports as models of one table do.

        Parameters
        ----------
        of : {"child", "family", "pair", "family pair"}
            A random child, so that families count for each of their children; a random family, those without children
            too, or a random child of it where a column of children is asked about or known; a random pair of children
            of one family, so that large families count for all their pairs; a random pair of a random family that has
            two children or more.

        Returns
        -------
        FamilyView

        Raises
        ------
        ValueError
            For pairs, if one child of a parent counts.
        """
        if of not in OF:
            raise ValueError(f"of={of!r}; pass one of {', '.join(map(repr, OF))}")
        if "pair" in of and self.linked.most < 2:
            raise ValueError("most=1: the model has no pairs of children; ask about one, or write a report")
        return FamilyView(self, of)

    def marginal_answers(self, level: float = 0.9, quantiles: Sequence[float] = QUARTILES) -> dict[str, Answer]:
        """The distribution of each "table.column" by itself: of a random parent, and of a random child.

        Parameters
        ----------
        level, quantiles
            As of `ask`.

        Returns
        -------
        dict of str to Answer
        """
        (of_parents, of_children), (parent, child) = self.columns, self.linked.names
        parents, children = (self.view(of).marginal_answers(level, quantiles) for of in ("family", "child"))
        answers = {f"{parent}.{name}": parents[name] for name in of_parents}
        return answers | {key: children[key] for key in (f"{child}.{name}" for name in of_children)}

    def ask(
        self,
        variables: Hashable | Sequence[Hashable],
        evidence: Mapping[Hashable, Any] | None = None,
        *,
        of: str | None = None,
        level: float = 0.9,
        quantiles: Sequence[float] = QUARTILES,
    ) -> Answer:
        """The distribution of some columns given what is known of others, with all that there is to say of it.

        Parameters
        ----------
        variables : list of names, or one
            Columns of parents and of one child, the number of children, counts. Of a pair columns of children, asked of
            both: ``"first.age"`` and ``"second.age"``.
        evidence : dict of name to what is known, optional
            As :meth:`~pgmpy_dp.MarkovNetwork.query` takes it; of the number of children a number, a range or a set. Of
            a pair what is known of the parent, or of the first child.
        of : {"child", "family", "pair", "family pair"}, optional
            Of whom, see `view`. Default: "child" where a column of children is named, else "family".
        level : float in (0, 1)
            Of intervals, which the answer has where the model has a `posterior`; of two children only where a table of
            two was measured.
        quantiles : sequence of float in [0, 1]

        Returns
        -------
        Answer
            See :meth:`~pgmpy_dp.MarkovNetwork.ask`. Cells outside the children's schema are left out.

        Raises
        ------
        ValueError
            For unknown names, for evidence that is no state, and for evidence of probability 0.
        """
        view, names, known = self._resolved(variables, evidence, of)
        answer = view.ask(list(names.values()), known, level=level, quantiles=quantiles)
        told = dict(zip(names, answer.states.values(), strict=True))
        conditions = dict(zip(checked_evidence(evidence), answer.evidence.values(), strict=True))
        return replace(answer, states=told, evidence=conditions, of=view.of)

    def query(
        self,
        variables: Hashable | Sequence[Hashable],
        evidence: Mapping[Hashable, Any] | None = None,
        *,
        of: str | None = None,
    ) -> DiscreteFactor:
        """The shares of `ask`, which has the parameters, as pgmpy has them.

        Parameters
        ----------
        variables, evidence, of

        Returns
        -------
        DiscreteFactor
            Sums to 1.

        Raises
        ------
        ValueError
            As `ask`.
        """
        from pgmpy.factors.discrete import DiscreteFactor

        view, names, known = self._resolved(variables, evidence, of)
        _, table = view._table(list(names.values()), known)
        states = {told: view.states[name] for told, name in names.items()}
        return DiscreteFactor(list(names), list(table.shape), table, state_names=states)

    def counted(self, evidence: Mapping[Hashable, Any] | None) -> dict[Hashable, Evidence]:
        """The evidence on columns, with the states and shares that each counts as.

        Parameters
        ----------
        evidence : mapping of name to what is known, or None
            See `ask`.

        Returns
        -------
        dict of name to Evidence

        Raises
        ------
        TypeError, ValueError
            As `ask`.
        """
        view, _, known = self._resolved(self.linked.size, evidence, "child")
        return dict(zip(checked_evidence(evidence), view.counted(known).values(), strict=True))

    def _resolved(
        self, variables: Any, evidence: Mapping[Hashable, Any] | None, of: str | None
    ) -> tuple[FamilyView, dict[Hashable, Hashable], dict[Hashable, Any]]:
        """The view that answers, the columns' names in the answer and in the view, and the evidence."""
        one = isinstance(variables, str) or not isinstance(variables, Iterable)
        listed, conditions = [variables] if one else list(variables), checked_evidence(evidence)
        places = {name: self._column_of(name) for name in (*listed, *conditions)}
        view = self.view(of or ("child" if any(table for table, _ in places.values()) else "family"))
        pairs = "pair" in view.of
        if pairs and (theirs := [name for name in listed if places[name][0] != 1]):
            raise ValueError(f"variables has {theirs}, which are not columns of children; pairs are of children")
        names: dict[Hashable, Hashable] = {}
        for text, titles in zip(("first.", "second.") if pairs else ("",), view.children, strict=False):
            for name in listed:
                table, column = places[name]
                names[f"{text}{name}" if pairs else name] = titles[column] if table else column
        known = {name: view.children[0][column] if table else column for name, (table, column) in places.items()}
        twice = len({known[name] for name in conditions}) < len(conditions)
        if twice or len({*names.values()}) < len(listed) * (1 + pairs):
            raise ValueError(f"variables={listed} or evidence={conditions!r} name a column twice; name each once")
        return view, names, {known[name]: one for name, one in conditions.items()}

    def _weights(self, children: int, each: bool) -> np.ndarray:
        """The weight of each state of the number of children, where so many first slots have a child.

        With `each` families count for each child, or pair, else once. A row's slots are those of random children, so
        the weight of a state with these slots filled is divided by how often they are.
        """
        patterns = self._wide.patterns
        if children == 0:
            return np.ones(len(patterns))
        weights = np.zeros(len(patterns))
        for k, (n, present) in enumerate(patterns):
            if n < children or (not self._wide.ordered and not set(range(children)) <= set(present)):
                continue
            if self._wide.ordered:  # rows are a child each, of which all but the first have one before them
                weights[k] = n if each else n / (n - children + 1)
            else:  # of an only child's rows every other one has it in this slot
                weights[k] = (n if children == 1 else n * (n - 1)) ** each * (2 if n == 1 else 1)
        return weights

    @property
    def columns(self) -> tuple[list[Hashable], list[Hashable]]:
        """The columns of parents, with counts and the number of children; and the columns of children."""
        parents = [*(self.linked.parent or ()), *self.linked.counts, self.linked.size]
        return parents, list(self.linked.child)

    def _column_of(self, name: Hashable) -> tuple[int, Hashable]:
        """The table of a name, 0 for parents and 1 for children, and its column."""
        tables = self.columns
        if isinstance(name, str):
            for k, table in enumerate(self.linked.names):
                columns = {f"{table}.{column}": column for column in tables[k]}
                if name in columns:
                    return k, columns[name]
        held = [k for k in (0, 1) if name in tables[k]]
        if len(held) != 1:
            why = "is a column of both tables; say which" if held else "is in neither table"
            raise ValueError(
                f"{name!r} {why}: {self.linked.names[0]} has {tables[0]}, {self.linked.names[1]} {tables[1]}. How many "
                f"children meet a condition is known of those in LinkedSchema(..., counts={list(self.linked.counts)})"
            )
        return held[0], name

    def _place(self, name: Hashable) -> int:
        return self._wide.schema.variables.index(name)

    @cached_property
    def _in_first_slots(self) -> LogLinearModel:
        """The model of families whose children are in the first slots, with the same distribution of their number."""
        model = self._of_size(np.ones(len(self._wide.patterns), dtype=bool))
        assert model is not None
        return model

    def _of_size(self, states: np.ndarray) -> LogLinearModel | None:
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

    @cached_property
    def _draws(self) -> SlotDraws:
        place = {name: k for k, name in enumerate(self._wide.schema.variables)}
        slots = [[place[name] for name in slot] for slot in self._wide.slots]
        states = [len(self._wide.child.states[name]) for name in self._wide.child]
        return SlotDraws(self._model, slots[0], () if self._wide.ordered else slots[1], place[self._wide.size], states)

    @cached_property
    def _choice(self) -> FamilyChoice:
        from pgmpy_dp.linked.family_draws import FamilyChoice

        return FamilyChoice(self, self._choice_weights)


def promise_to_a_child(privacy: Privacy | None) -> Privacy | None:
    """The promise of a record to one child (``LinkedModel.privacy_of_a_child``), as it was proved and as it is said.

    All that is said of a child comes from here. None where nothing is promised. The rest of the record is the units'.
    """
    whole = None if privacy is None else privacy.together
    if whole is None or whole.adjacency is Adjacency.REPLACE_ONE:
        return whole
    return whole.twice  # a child that moves changes two parents


def guarantee_of_a_child(privacy: Privacy) -> Guarantee | None:
    """The guarantee to one child, in the words of the budget; None where there is none."""
    promise = promise_to_a_child(privacy)
    return None if promise is None else promise.said


def words_of_a_child(privacy: Privacy | None) -> str:
    """The guarantee to one child, as everything prints it."""
    promise = promise_to_a_child(privacy)
    return "nothing is promised" if promise is None else promise.words


def told_of_a_child(privacy: Privacy) -> dict[str, Any]:
    """The facts for programs: `Privacy.told`, and ``guarantee_of_a_child``."""
    child = guarantee_of_a_child(privacy)
    return {**privacy.told(), "guarantee_of_a_child": None if child is None else child.to_dict()}
