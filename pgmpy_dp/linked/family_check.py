"""A check that linked tables are what their schema says, for a small part of a budget, before a fit."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pandas as pd

from pgmpy_dp.learning.display import Shown
from pgmpy_dp.learning.few_records import FEW
from pgmpy_dp.learning.least_noise import least_noise
from pgmpy_dp.learning.options import adjacencies, arguments_of, declares, whole
from pgmpy_dp.learning.privacy_record import Privacy, handed_over, released, require_release
from pgmpy_dp.linked.linked_model import told_of_a_child, words_of_a_child
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.linked.operators.linked_tables import PrivateLinkedTables, table_of_kinds
from pgmpy_dp.linked.operators.unit_kinds import KIND, KINDS
from pgmpy_dp.linked.private_linked_network import as_two_tables
from pgmpy_dp.private.budget import Budget, require_budget
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.guarantee import PureDP
from pgmpy_dp.private.operators.tables import Tables
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import encode_label
from pgmpy_dp.shown import quantity, shown
from pgmpy_dp.tables.schema_check import ALL, NOISE, NOTHING, percent, rounded, share_of, verdict_of, words_of


@dataclass(frozen=True, eq=False)
class FamilyCheck(Shown):
    """Noisy counts of what linked tables hold; ``str`` of it is a summary to read.

    Attributes
    ----------
    kinds : pandas.Series
        The noisy number of the key's values of each kind: "no parent" (children alone), "several parents" (rows among
        the parents), "outside" (the parent has a cell outside its schema), and of the others those with "no child",
        "children" (up to `most`) and "more children". Rows without a key, and lines of text files that are no record,
        name none and are not counted.
    sd : float
        Of each of these counts.
    table : pandas.DataFrame
        A row for each column, by its table and name. ``matched``: of parents whose key one row has, about how many have
        a declared state; of children the same of keys, each for the share of its children that have one.
        ``sd``; ``share``; ``verdict`` as :class:`~pgmpy_dp.tables.schema_check.SchemaCheck` has it.
    broken : pandas.Series
        The noisy number of parents of whose children a rule of the linked schema's is broken, by the rule; all children
        count, beyond `most` too.
    linked : LinkedSchema
    release_ : Release
    privacy_ : Privacy
    """

    kinds: pd.Series
    sd: float
    table: pd.DataFrame
    broken: pd.Series
    linked: LinkedSchema
    release_: Release
    privacy_: Privacy

    @classmethod
    def of(cls, release: Release, privacy: Privacy | None = None) -> FamilyCheck:
        """Read a release that was kept; TypeError or ValueError for one of another kind."""
        require_release(release)
        if release.kind != "linked_check":
            raise ValueError(f"release has kind {release.kind!r}, this needs one of kind 'linked_check'")
        counts = dict(zip(release.scopes, (value.astype(float) for value in release.values), strict=True))
        deviations = [math.sqrt(noise.variance) for noise in release.noise if noise is not None]
        sd, rows, broken = deviations[0], {}, {}
        for (column, *_), (declared, other, _) in list(counts.items())[1:]:
            if len(column) == 1:  # of a rule
                broken[column[0]] = other
            else:
                n = declared + other
                rows[column] = (declared, sd, share_of(declared, n), verdict_of(declared, sd, n, 0.0))
        index = pd.Index(list(rows), name="column", tupleize_cols=False)
        return cls(
            pd.Series(counts[KIND,], index=pd.Index(KINDS, name="kind"), name="keys"),
            sd,
            pd.DataFrame(list(rows.values()), index=index, columns=["matched", "sd", "share", "verdict"]),
            pd.Series(broken, name="keys", dtype=float).rename_axis("rule"),
            LinkedSchema.from_dict(release.public["linked"]),
            release,
            Privacy.of(release) if privacy is None else privacy,
        )

    @property
    def n_units(self) -> float:
        """The noisy number of the key's values."""
        return float(self.kinds.sum())

    @property
    def n_matching(self) -> float:
        """Noisy number of parents that a fit counts: alone with their key, in the schema, with as many children."""
        return float(self.kinds.iloc[3 if self.linked.least == 0 else 4 :].sum())

    @property
    def verdict(self) -> str:
        """The verdict on these parents, as in the table."""
        return verdict_of(self.n_matching, self._sd(3), self.n_units, self._sd(6))

    @property
    def poor(self) -> list:
        """Columns whose states match next to nothing, by table and name."""
        return [name for name, verdict in self.table["verdict"].items() if verdict == NOTHING]

    @property
    def failed(self) -> bool:
        """Whether a fit would have next to nothing to learn from, or hardly a child has a parent, or a column fails."""
        return bool(self._few or self.verdict == NOTHING or self.poor or self._without_children)

    @property
    def _few(self) -> bool:
        """Whether there is next to no unit; one or two are, however little noise there is."""
        return self.n_units < FEW * max(self._sd(6), 1.0)

    @property
    def _without_children(self) -> bool:
        """Whether next to no parent has children."""
        return verdict_of(float(self.kinds.iloc[4:].sum()), self._sd(2), self.n_units, self._sd(6)) == NOTHING

    def _sd(self, n_cells: int) -> float:
        return self.sd * math.sqrt(n_cells)

    def to_dict(self) -> dict[str, Any]:
        """The facts for programs, as JSON can hold them."""
        columns = [
            {"table": table, "variable": encode_label(name), **dict(zip(self.table.columns, values, strict=True))}
            for (table, name), *values in self.table.itertuples()
        ]
        return {
            "key": encode_label(self.linked.key),
            "kinds": {str(kind): float(count) for kind, count in self.kinds.items()},
            **{name: getattr(self, name) for name in ("sd", "n_units", "n_matching", "verdict", "failed")},
            "columns": columns,
            "rules": [{"rule": rule, "broken": float(count)} for rule, count in self.broken.items()],
            **told_of_a_child(self.privacy_),
        }

    def __str__(self) -> str:
        (parent, child), linked = map(shown, self.linked.names), self.linked
        of_one = linked.parent is None
        lines = [f"Different {shown(linked.key)}: about {rounded(self.n_units)} (sd {self._sd(6):,.0f})"]
        if self._few:
            lines[0] += ": next to nothing; there are few, or the budget of the check is too small"
        said = f"about {rounded(self.n_matching)} ({percent(self.n_matching, self.n_units)}, sd {self._sd(3):,.0f})"
        lines.append(f"Inside the schema, so that a fit counts them: {said}")
        told = {
            "no parent": f"{child} without a row among {parent}; they count nothing",
            "several parents": f"several rows among {parent}; they count nothing, with all their {child}",
            "outside": f"a cell of {parent} outside the schema; they count nothing",
            "no child": f"no {child}" + ("; they count nothing (least=1)" if linked.least else ""),
            "children": f"1 to {linked.most} of {child}",
            "more children": f"more than {linked.most} of {child}; they count as so many, of which {linked.most} are "
            + ("the first" if linked.order else "drawn"),
        }
        for kind, words in told.items():
            if of_one and kind not in ("children", "more children"):
                continue
            lines.append(f"  about {rounded(self.kinds[kind]):>9} (sd {self.sd:,.0f}) have {words}")
        names = [f"{shown(table)}.{shown(name)}" for table, name in self.table.index]
        width = max(map(len, names))
        for name, row in zip(names, self.table.itertuples(), strict=True):
            words = words_of(row.verdict, linked.tables[row.Index[0]].numbers.get(row.Index[1]))
            lines.append(f"  {name:<{width}}  declared in {row.share:.0%} (sd {row.sd:,.0f}): {words}")
        for rule, count in self.broken.items():
            said = f"about {rounded(count)} ({percent(count, self.n_matching)}, sd {self.sd:,.0f}) of {parent}"
            lines.append(f"  {shown(rule)}: {said} break it; those of a model keep it")
        if self._without_children:
            kind = 'with key_kind="integer" (--key-kind integer) 7, 007 and 7.0 are one, and as it is they are three'
            if linked.key_kind == "integer":
                kind = 'with key_kind="integer" only whole numbers are one; "text" compares keys as they are written'
            key = shown(linked.key)
            lines.append(f"Hardly any of {parent} has {child}: compare how the two tables spell {key}; {kind}")
        elif self.verdict not in (ALL, NOISE):
            lost = percent(self.n_units - self.n_matching, self.n_units)
            lines.append(f"A fit leaves {lost} of them out, and what is learned is of the others alone")
        if any(row.verdict not in (ALL, NOISE) and row.Index[0] == linked.names[1] for row in self.table.itertuples()):
            lines.append(f"{child} with a cell outside the schema stay in their families, in a state of its own")
        spent = f"Spent {self.privacy_}; of one {child} alone {words_of_a_child(self.privacy_)}"
        return "\n".join([*lines, spent])


@declares(adjacency=adjacencies(), n_records=whole(0), random_state=whole(0))
def check_linked(
    parents: Any,
    children: Any = None,
    budget: Budget | None = None,
    schema: Any = None,
    *,
    key: Hashable = None,
    adjacency: str | None = None,
    n_records: int | None = None,
    random_state: int | None = None,
) -> FamilyCheck:
    """Count what two linked tables hold, and how much of it their schema declares, for a part of a budget.

    A fit silently drops children without a parent, parents that occur twice, and parents outside their schema. This
    check counts them before, with noise, and those that break a rule of the linked schema's.

    Parameters
    ----------
    parents, children, schema, key
        As :func:`~pgmpy_dp.learn` takes them. PrivateLinkedTables in the place of
        `parents` charge their own ledger.
    budget : Budget
        What the check spends, e.g. ``Budget(epsilon=0.05)``: each count has noise of about ``(d + 1)/epsilon`` families
        for d columns of both tables and rules on a child and its parent, or on counts.
    adjacency : {"add_remove", "replace_one"}, optional
        Default: that of the PrivateLinkedTables, or "add_remove".
    n_records : int, optional
        The public number of parents, where there is one; "replace_one" needs it.
    random_state : int, optional
        Tests and benchmarks only: reproducible noise protects nobody.

    Returns
    -------
    FamilyCheck

    Raises
    ------
    TypeError, ValueError
        For public arguments that cannot be used, before anything is spent.
    BudgetExceeded
        If the ledger does not have the budget left; nothing is spent.

    Notes
    -----
    Privacy
        *Sensitivity.* The tables of single columns of :mod:`pgmpy_dp.linked.operators.unit_kinds`, in which a parent
        with all its children counts 1 together: 1 for each of d + 1 tables under ``add_remove``, 2 in l1 and sqrt(2) in
        l2 norm under ``replace_one``.

        *Guarantee.* Laplace noise of scale ``(d + 1)/epsilon`` in each count, or Gaussian noise of scale ``sqrt((d +
        1)/(2 rho))``, under ``add_remove``; an (epsilon, delta) budget takes whichever is smaller.

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.

    Examples
    --------
    >>> import warnings
    >>> from pgmpy_dp.linked import made_up_families
    >>> households, persons, schema = made_up_families(3_000, random_state=0)
    >>> with warnings.catch_warnings(action="ignore"):
    ...     check = check_linked(households, persons[persons["household"] != "h7"], Budget(epsilon=1.0), schema)
    >>> check.verdict, check.failed, bool(check.kinds["children"] > 2_800)
    ('all', False, True)
    """
    require_budget(budget, "a Budget, e.g. Budget(epsilon=0.05)")
    assert budget is not None
    known = arguments_of(check_linked, adjacency=adjacency, n_records=n_records, random_state=random_state)
    if isinstance(parents, PrivateLinkedTables):
        tables = parents
    else:
        parents, children, schema = as_two_tables(parents, children, schema, key)
        whose = {"adjacency": known.adjacency or "add_remove", "n_records": known.n_records}
        tables = PrivateLinkedTables(parents, children, schema, ledger=budget, **whose)
    release = released(tables, _run, budget, known.random_state)
    with handed_over(release):
        return FamilyCheck.of(release, Privacy.of(release, tables.ledger.entries))


def _run(tables: PrivateLinkedTables, budget: Budget, random_state: int | None) -> Release:
    table = table_of_kinds(tables)
    scopes: Sequence[tuple[Hashable, ...]] = [(name,) for name in table.schema.variables]
    columns = [name for schema in tables.linked.tables.values() for name in schema]

    def noise(cost: Any) -> Any:
        return Tables.planned(len(scopes), tables.adjacency, cost, Fraction(1)).noise

    curator = TableCurator(
        table,
        budget,
        what=f"what linked tables of {quantity(columns, 'column')} hold",
        columns=columns,
        pure=isinstance(least_noise(noise, [1] * len(scopes), budget), PureDP),
        random_state=random_state,
    )
    curator.ask(Tables(scopes), share=1)
    return curator.release("linked_check", {"settings": {"budget": budget.guarantee.to_dict()}})
