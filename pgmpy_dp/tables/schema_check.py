"""A check that the states of a schema match the records, for a small part of a budget, before a fit."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from pgmpy_dp.learning.display import Shown
from pgmpy_dp.learning.few_records import FEW, HARDLY_INSIDE, dropped_records
from pgmpy_dp.learning.least_noise import least_noise
from pgmpy_dp.learning.opened_table import table_for
from pgmpy_dp.learning.options import adjacencies, arguments_of, declares, whole
from pgmpy_dp.learning.privacy_record import Privacy, handed_over, released, require_release
from pgmpy_dp.private.budget import Budget, require_budget
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.guarantee import PureDP
from pgmpy_dp.private.operators.operator_base import planned_noise
from pgmpy_dp.private.operators.record_matches import MatchedCounts
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Levels, Number, Schema, encode_label
from pgmpy_dp.shown import quantity, shown

NOTHING = "nothing"
NOISE = "too noisy"
_LITTLE = "less than half"
_PART = "in part"
ALL = "all"

WORDS = {
    NOTHING: "its states match next to nothing; compare spelling, capitals and blanks, and declare numbers as Number",
    NOISE: "too noisy to tell; spend more on the check",
    _LITTLE: "its states match less than half",
    _PART: "its states match a part",
    ALL: "its states match",
}
_OF_NUMBERS = {
    "number": "next to no cell is a number within its bounds; texts such as 8.90%, $10,300, 5k and 1,5 are read with "
    'units, thousands and decimal of the Number: "pay=0:100000 units %,$,k=1000 thousands ,"',
    "date": "next to no cell is a day within its bounds; texts such as 31.12.2020, 2020-12 and 202012 are read with "
    'format, once or several times: "m=2020-01-01:2020-12-31 format %Y-%m format %d.%m.%Y"',
}
"""Public advice, the same whatever the cells are."""


@dataclass(frozen=True, eq=False)
class SchemaCheck(Shown):
    """Noisy numbers of records that match a schema; ``str`` of it is a summary to read.

    Attributes
    ----------
    table : pandas.DataFrame
        One row for each variable: ``matched``, the estimated number of records whose cell has one of its states (an
        other-state takes further ones, which do not count here); ``sd``, its standard deviation; ``share``, its part of
        the number of records; ``verdict``: "all", "in part", "less than half", "nothing", or "too noisy" to tell;
        ``blank``, the estimated number of cells that are read as missing, of the standard deviation `n_matching_sd`
        (NaN in checks of before 0.4).
    n_records, n_records_sd : float
        The public number of records (with 0), or its estimate and standard deviation.
    n_matching, n_matching_sd : float
        The estimated number of records that a fit with this schema would count: in every column they have one of the
        states, or there is an other-state.
    verdict : str
        Of these records, as in the table.
    release_ : Release
    privacy_ : Privacy
    n_no_record : float or None
        Of text files the estimated number of lines that are no record, since they have another number of fields than
        the first line: the halves of a record with a line break in it, say. None for other data, and where units are
        protected: such a line names none.
    n_longer : float or None
        Those of them that have one field more than the first line: of row names, or after a delimiter at the end.
    """

    table: pd.DataFrame
    n_records: float
    n_records_sd: float
    n_matching: float
    n_matching_sd: float
    verdict: str
    release_: Release
    privacy_: Privacy
    n_no_record: float | None = None
    n_longer: float | None = None

    @classmethod
    def of(cls, release: Release, privacy: Privacy | None = None) -> SchemaCheck:
        """Read a release that was kept; TypeError or ValueError for one of another kind."""
        require_release(release)
        if release.kind != "schema_check":
            raise ValueError(f"release has kind {release.kind!r}, this needs one of kind 'schema_check'")
        counts, noise = release["matched"].array.astype(float), release["matched"].noise
        assert noise is not None
        sd = math.sqrt(noise.variance)
        n, n_sd = (counts[0], sd) if release.n_records is None else (float(release.n_records), 0.0)
        matching, *rest = counts[1:] if release.n_records is None else counts
        d, schema = len(release.schema), release.schema
        columns, blanks, lines = rest[:d], [math.nan] * d, rest[d:]
        if release.public.get("blank"):  # counted apart, so that the two are added where None is a state
            blanks, lines = rest[d : 2 * d], rest[2 * d :]
        rows = []
        for name, matched, blank in zip(schema.variables, columns, blanks, strict=True):
            with_none = _with_none(schema, name) and not math.isnan(blank)
            number, deviation = (matched + blank, math.sqrt(2) * sd) if with_none else (matched, sd)
            rows.append((number, deviation, share_of(number, n), verdict_of(number, deviation, n, n_sd), blank))
        names = pd.Index(list(schema.variables), name="variable", tupleize_cols=False)
        table = pd.DataFrame(rows, index=names, columns=["matched", "sd", "share", "verdict", "blank"])
        return cls(
            *(table, n, n_sd, matching, sd, verdict_of(matching, sd, n, n_sd)),
            *(release, Privacy.of(release) if privacy is None else privacy),
            *(sum(lines) if lines else None, lines[0] if len(lines) > 1 else None),
        )

    @property
    def poor(self) -> list:
        """Variables whose states match next to nothing."""
        return [name for name, verdict in self.table["verdict"].items() if verdict == NOTHING]

    @property
    def failed(self) -> bool:
        """Whether a fit would have next to nothing to learn from, or the states of a variable match next to nothing.

        Also whether more lines are no record than are one.
        """
        lost = (self.n_no_record or 0.0) > max(self.n_records, FEW * self.n_matching_sd)
        return bool(self.n_records < FEW * self.n_records_sd or self.verdict == NOTHING or self.poor or lost)

    def _of_lines(self, no_record: float) -> str:
        """Advice on lines that are no record, where there are more than noise."""
        if no_record < max(3 * self.n_matching_sd, self.n_records / 100):
            return ""
        if self.n_longer is None or self.n_longer < no_record / 2:
            return ": with another number of fields than the first line; are there line breaks in cells?"
        return (
            ": each line has one field more than the header, as with row names before it or a delimiter behind it; "
            'name every field, "" for one without a name: TextFile(path, columns=["", "age"]), --columns ",age"'
        )

    def to_dict(self) -> dict[str, Any]:
        """The facts for programs, as JSON can hold them."""
        numbers = ("n_records", "n_records_sd", "n_matching", "n_matching_sd")
        names = (*numbers, "verdict", "n_no_record", "n_longer", "failed")
        columns = [
            {"variable": encode_label(name)}
            | {what: value for what, value in zip(self.table.columns, values, strict=True) if value == value}
            for name, *values in self.table.itertuples()
        ]
        return {name: getattr(self, name) for name in names} | {"columns": columns, **self.privacy_.told()}

    def __str__(self) -> str:
        lines = [
            f"Records: about {rounded(self.n_records)} (sd {self.n_records_sd:,.0f})"
            if self.release_.n_records is None
            else f"Records: {self.n_records:,.0f}, as declared"
        ]
        if self.n_records < FEW * self.n_records_sd:
            lines[0] += ": next to nothing; there are few records, or the budget of the check is too small"
        share = percent(self.n_matching, self.n_records)
        whole = f"about {rounded(self.n_matching)} ({share}, sd {self.n_matching_sd:,.0f})"
        lines.append(f"Inside the schema, so that a fit counts them: {whole}")
        if self.n_no_record is not None:
            lines.append(
                f"Lines that are no record: about {rounded(self.n_no_record)}{self._of_lines(self.n_no_record)}"
            )
        other, width = self.release_.schema.other, max(len(shown(name)) for name in self.table.index)
        for name, row in self.table.iterrows():
            of = f"{rounded(row.matched):>9} of {rounded(self.n_records)} ({percent(row.matched, self.n_records)})"
            number = self.release_.schema.numbers.get(name)
            words = words_of(row.verdict, number)
            if number and number.of and row.verdict != NOISE:
                words = f"about {rounded(self.n_records - row.matched)} records break the rules about it"
            elif number and row.verdict in (_LITTLE, _PART):
                words += (
                    "; declare the signs of decimals and thousands, units and formats of days, and see what stands "
                    "where a number is missing"
                )
            if row.blank > max(FEW * self.n_matching_sd, self.n_records / 100):
                words += f"; about {rounded(row.blank)} are blank"
                if not _with_none(self.release_.schema, name) and name not in other:
                    words += ", which can be a state: None, on the command line the word blank"
            if isinstance(self.release_.schema[name], Levels) and row.verdict not in (ALL, NOISE):
                words += (
                    f"; about {rounded(self.n_records - row.matched)} cells have no place in the tree of its levels"
                )
            if name in other and row.verdict != ALL:
                words += f" (other cells count as {other[name]!r})"
            lines.append(f"  {shown(name):<{width}}  about {of}, sd {row.sd:,.0f}: {words}")
        sd = math.hypot(self.n_records_sd, self.n_matching_sd)
        if self.verdict == NOTHING and not self.poor and self.n_records >= FEW * self.n_records_sd:
            lines.append("Each column matches some records, but hardly any record matches in all columns")
        elif (said := dropped_records(self.n_records, self.n_matching, sd)) is not None:
            columns = [name for name, row in self.table.iterrows() if row.verdict not in (ALL, NOISE)]
            kept = [said_how for name in columns if (said_how := _keeps_all(self.release_.schema, name))]
            lines.append(f"A fit leaves records out: {said}" + "".join(f"\n  {how}" for how in kept))
        return "\n".join([*lines, f"Spent {self.privacy_}"])


@declares(adjacency=adjacencies(), n_records=whole(0), random_state=whole(0))
def check_schema(
    df: Any,
    budget: Budget,
    schema: Schema | dict | None = None,
    *,
    adjacency: str | None = None,
    n_records: int | None = None,
    random_state: int | None = None,
    unit: Hashable = None,
    rows_per_unit: int | str | None = None,
) -> SchemaCheck:
    """Count the records that match the states of each column, for a small part of a budget.

    A schema that does not fit the records leaves them out in silence, and a fit spends its whole budget on what is
    left. This tells before.

    Parameters
    ----------
    df : dataframe, path or PrivateTable
        As an estimator's `fit` takes it. A `PrivateTable` charges its own ledger, in which fits go on with the rest.
    budget : Budget
        What the check spends, e.g. ``Budget(epsilon=0.05)``: each count has noise of about ``(d + 2)/epsilon`` records
        for d columns, or of ``sqrt((d + 2)/(2 rho))``.
    schema : Schema or dict of variable to list of states
        Public description of the data; required unless `df` is a `PrivateTable`.
    adjacency : {"add_remove", "replace_one"}, optional
        Default: that of the `PrivateTable`, or "add_remove".
    n_records : int, optional
        The public number of records, where there is one; "replace_one" needs it.
    random_state : int, optional
        Tests and benchmarks only: reproducible noise protects nobody.
    unit, rows_per_unit
        Of persons with several records, as an estimator's `fit` takes them.

    Returns
    -------
    SchemaCheck

    Raises
    ------
    TypeError, ValueError
        For public arguments that cannot be used, before anything is spent.
    BudgetExceeded
        If the ledger does not have the budget left; nothing is spent.

    Notes
    -----
    Privacy: the only access to the records is one release, :func:`~pgmpy_dp.tables.schema_check.run`, which has the
    proof. What is said of the noisy counts is post-processing.

    Examples
    --------
    >>> data = pd.DataFrame({"sex": ["F", "M"] * 10_000, "age": [30, 60] * 10_000})
    >>> check = check_schema(data, Budget(epsilon=0.05), {"sex": ["F", "M"], "age": ["30-59", "60-89"]})
    >>> check.table["verdict"].to_dict(), check.poor
    ({'sex': 'all', 'age': 'nothing'}, ['age'])
    """
    require_budget(budget, "a Budget, e.g. Budget(epsilon=0.05)")
    known = arguments_of(check_schema, adjacency=adjacency, n_records=n_records, random_state=random_state)
    table = table_for(df, schema, budget, known, unit, rows_per_unit)
    release = released(table, run, budget, known.random_state)
    with handed_over(release):
        return SchemaCheck.of(release, Privacy.of(release, table.ledger.entries))


def words_of(verdict: str, number: Number | None) -> str:
    """A verdict in words; where no cell of a number or a date matches, with the options that might read such cells."""
    return _OF_NUMBERS[number.kind] if number is not None and verdict == NOTHING else WORDS[verdict]


def verdict_of(matched: float, sd: float, n: float, n_sd: float) -> str:
    """The verdict on a noisy count, in words; counts of next to no records say nothing."""
    if n < max(FEW * n_sd, 1.0) or (matched < FEW * sd and matched + 3 * sd > n / 2):
        return NOISE
    if matched < max(FEW * sd, HARDLY_INSIDE * n):
        return NOTHING
    if matched + 3 * sd < n / 2:
        return _LITTLE
    return _PART if n - matched > max(3 * math.hypot(sd, n_sd), n / 100) else ALL


def _keeps_all(schema: Schema, name: Hashable) -> str | None:
    """The declaration that keeps records whose cell is none of a variable's states; None if it is there already."""
    if name in schema.other:
        return None
    number = schema.numbers.get(name)
    if number is None:
        return f"{name}: a state for all other cells, Schema({{{name!r}: [..., 'other']}}, other={{{name!r}: 'other'}})"
    lacking = [f'{what}="state"' for what in ("missing", "outside") if getattr(number, what) == "drop"]
    return f"{name}: {type(number).__name__}(..., {', '.join(lacking)})" if lacking else None


def _with_none(schema: Schema, name: Hashable) -> bool:
    """Whether blank cells have a state of their own."""
    declared = schema[name]
    return None in (declared.states if isinstance(declared, Number) else declared)


def share_of(matched: float, n: float) -> float:
    """A noisy count as a part of another, from 0 to 1."""
    return min(max(matched / max(n, 1.0), 0.0), 1.0)


def percent(matched: float, n: float) -> str:
    """`share_of` in words."""
    return f"{share_of(matched, n):.0%}"


def rounded(number: float) -> str:
    """A noisy count in words: not below 0."""
    return f"{max(number, 0.0):,.0f}"


def run(table: PrivateTable, budget: Budget, random_state: int | None = None) -> Release:
    """Release the numbers of records, of those that match in all columns and in each, of blank cells and other lines.

    Refuses other objects than a table and a budget, and a budget too small for any count.

    Parameters
    ----------
    random_state : int, optional
        For tests and benchmarks only: repeatable noise, **not private**.

    Returns
    -------
    Release
        ``kind="schema_check"``; one array, that of
        :class:`~pgmpy_dp.private.operators.record_matches.MatchedCounts`.

    Notes
    -----
    Privacy
        *Sensitivity.* Counts of records that meet a condition on their own cells, of which one record moves m: m in l1
        and sqrt(m) in l2 norm. For d columns m is d + 1 under ``add_remove``, and 1 more where the number of records is
        not public, for a cell matches, or is blank, or neither. Under ``replace_one`` m is 2 d + 1.

        *Guarantee.* Laplace noise of scale ``m/epsilon``, epsilon-DP, or Gaussian noise of scale ``sqrt(m/(2 rho))``,
        rho-zCDP; an (epsilon, delta) budget takes whichever is smaller.

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.

        *Side channels.* Arguments that are refused and all shapes depend on public arguments only. Running time depends
        on the number of records.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"sex": ["F", "M"] * 5000, "age": [30, 60] * 5000})
    >>> schema = {"sex": ["F", "M"], "age": ["30-59", "60-89"]}
    >>> table = PrivateTable(frame, schema, ledger=Budget(epsilon=1.0))
    >>> records, matching, sex, age, *blank = run(table, Budget(epsilon=0.1))["matched"].array
    >>> bool(sex > 8000), bool(age < 2000), str(table.ledger.left)
    (True, True, '0.9-DP')
    """
    budget = require_table_and_budget(table, budget)
    facts = table.facts()
    cost = least_noise(lambda cost: planned_noise(MatchedCounts(), facts, cost), [facts.most_matched], budget)
    curator = TableCurator(
        table,
        budget,
        what=f"how many records match the states of {quantity(table.schema, 'column')}",
        columns=table.schema.variables,
        pure=isinstance(cost, PureDP),
        random_state=random_state,
        fine=True,
    )
    matched = curator.ask(MatchedCounts(), share=1)
    return curator.release(
        "schema_check", {"settings": {"budget": budget.guarantee.to_dict()}, "blank": True}, {"matched": matched}
    )
