"""Options that several commands share: their names, their values, and their help."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pgmpy_dp.private.budget import Budget


class TableAdjacency(StrEnum):
    """The relation of neighbouring tables."""

    ADD_REMOVE = "add_remove"
    REPLACE_ONE = "replace_one"


class KeyKinds(StrEnum):
    """The ways to compare keys of linked tables."""

    TEXT = "text"
    INTEGER = "integer"


class Structure(StrEnum):
    """The source of the graph when none is passed."""

    LEARN = "learn"
    CHOW_LIU = "chow-liu"
    INDEPENDENT = "independent"


class Parameters(StrEnum):
    """The ways to learn parameters from noisy tables of a given graph."""

    COLLECTIVE_MAP = "collective-map"
    NAIVE_MLE = "naive-mle"
    COLLECTIVE_EM = "collective-em"


Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="The private records: .csv, .tsv (or either with .gz) or .parquet.")
]
FitData = Annotated[
    Path | None,
    typer.Argument(metavar="DATA", help="The private records: .csv, .tsv (or either with .gz) or .parquet."),
]
Parents = Annotated[
    Path | None,
    typer.Option("--parents", help="Linked tables, in place of DATA: the parents, such as households or patients."),
]
Children = Annotated[
    Path | None,
    typer.Option("--children", help="Linked tables: the children, such as persons or visits. Alone: with --unit."),
]
Ledger = Annotated[
    Path | None, typer.Option("--ledger", help="File that counts what is spent on these records; made if new.")
]
BudgetEpsilon = Annotated[
    float | None, typer.Option("--budget-epsilon", help="Epsilon of a new ledger; default: what this command spends.")
]
BudgetDelta = Annotated[float, typer.Option("--budget-delta", help="Delta of a new ledger.")]
BudgetRho = Annotated[float | None, typer.Option("--budget-rho", help="Rho of a new ledger.")]
SchemaFile = Annotated[Path, typer.Option("--schema", help="JSON file of the public schema; see pgmpy-dp schema.")]
Epsilon = Annotated[
    float | None, typer.Option("--epsilon", help="Budget: epsilon. Without --delta it is pure epsilon-DP.")
]
Delta = Annotated[float, typer.Option("--delta", help="With --epsilon, (epsilon, delta)-DP. Take it far below 1/n.")]
Rho = Annotated[float | None, typer.Option("--rho", help="Budget: rho-zCDP, instead of --epsilon.")]
Draws = Annotated[
    int,
    typer.Option(
        "--draws",
        help="Posterior draws that the model keeps, for intervals and sample --copies; for example 30.",
        min=0,
        max=100_000,
    ),
]
Edges = Annotated[str | None, typer.Option("--edges", help='Public graph, e.g. "age-income,sex-income".')]
EdgesFile = Annotated[Path | None, typer.Option("--edges-file", help="Public graph: CSV with two variables a line.")]
Adjacency = Annotated[
    TableAdjacency, typer.Option("--adjacency", help="What is protected: that a record is there, or its values.")
]
NRecords = Annotated[
    int | None, typer.Option("--n-records", help="Number of records, if public (required for replace_one).", max=10**15)
]
Unit = Annotated[
    str | None, typer.Option("--unit", help="Column of persons, who are protected with all their records.")
]
RowsPerUnit = Annotated[
    str,
    typer.Option(
        "--rows-per-unit", help='How many random records of a person count. With "shares" all count, in part.'
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", help='Text files: the sign between fields, or "tab". Default: a comma, in .tsv a tab.'),
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Text files: utf-8 (default), cp1252 (Windows), latin-1 or another.")
]
Decimal = Annotated[str | None, typer.Option("--decimal", help='Text files: "." (default) or "," before the fraction.')]
Thousands = Annotated[
    str | None, typer.Option("--thousands", help='Text files: the sign between groups of three digits, such as ".".')
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help='Text files without names in the first line: the name of each field, "age,sex,". One without a name is '
        "not read, such as row names, or what is behind a delimiter at the end of a line.",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace output files that exist.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars and no notes.")]
Weight = Annotated[str | None, typer.Option("--weight", help="A number that records count by: a survey's weight.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


@dataclass(frozen=True)
class BudgetOptions:
    """The budget that a command spends."""

    epsilon: Epsilon = None
    delta: Delta = 0.0
    rho: Rho = None

    @property
    def is_passed(self) -> bool:
        """Whether there is a budget to check."""
        return self.epsilon is not None or self.rho is not None

    def budget(self) -> Budget:
        """The budget, checked."""
        from pgmpy_dp.private.budget import Budget

        if not self.is_passed:
            raise ValueError("--epsilon is missing: no budget was given; pass --epsilon 1 --delta 1e-9, or --rho 0.1")
        return Budget(epsilon=self.epsilon, delta=self.delta, rho=self.rho)


KeyKind = Annotated[
    KeyKinds | None,
    typer.Option("--key-kind", help="Linked tables: compare keys as they are written, or as integers: 7, 007, 7.0."),
]


@dataclass(frozen=True)
class LinkedOptions:
    """Two tables that belong together, or one with several records of a person."""

    parents: Parents = None
    children: Children = None
    key_kind: KeyKind = None


@dataclass(frozen=True)
class KeyOptions:
    """The key that joins two tables."""

    key: Annotated[
        str | None, typer.Option("--key", help="Linked tables: the column that both have, such as household.")
    ] = None
    most: Annotated[
        int | None,
        typer.Option("--most", help="Linked tables: so many children of a parent count, others are 'or more'."),
    ] = None
    count: Annotated[
        list[str] | None,
        typer.Option("--count", metavar="<str>", help='Linked tables: how many children meet "age >= 16" is learned.'),
    ] = None
    order: Annotated[
        str | None, typer.Option("--order", help="Linked tables: columns that say the order of children: date.")
    ] = None
    names: Annotated[
        str, typer.Option("--names", help="Linked tables: what the tables are called: household,person.")
    ] = "parent,child"


@dataclass(frozen=True)
class ProtectionOptions:
    """The unit that is protected."""

    adjacency: Adjacency = TableAdjacency.ADD_REMOVE
    n_records: NRecords = None
    unit: Unit = None
    rows_per_unit: RowsPerUnit = "1"


@dataclass(frozen=True)
class LedgerOptions:
    """The file that counts what is spent, and what it allows if it is new."""

    ledger: Ledger = None
    budget_epsilon: BudgetEpsilon = None
    budget_delta: BudgetDelta = 0.0
    budget_rho: BudgetRho = None


Estimator = Annotated[
    Parameters | None,
    typer.Option("--estimator", help="How parameters are learned if the graph is given. Default: collective-map."),
]
Prior = Annotated[
    Path | None,
    typer.Option("--prior", help="Model or noisy tables (.npz) to learn deviations from, public or of an earlier fit."),
]
MissingAtRandom = Annotated[
    str | None,
    typer.Option(
        "--missing-at-random",
        help='Variables without missing values in the model, and what decides if they are missing: "income=age,job".',
    ),
]


@dataclass(frozen=True)
class LearnOptions:
    """The model to learn, and the way to learn it."""

    structure: Annotated[
        Structure | None,
        typer.Option("--structure", help="How to find the graph if none is given; default learn."),
    ] = None
    max_order: Annotated[
        int | None,
        typer.Option("--max-order", help="Number of variables of the largest tables that are measured. Default: 3."),
    ] = None
    workload: Annotated[
        str | None, typer.Option("--workload", help='What the model will be asked, with weights: "age,job=2; age,sex".')
    ] = None
    target: Annotated[
        str | None, typer.Option("--target", help="Variable that the model will predict from others.")
    ] = None
    missing_at_random: MissingAtRandom = None
    means: Annotated[
        str | None, typer.Option("--means", help='Numbers whose means get sums of their own: "cost,pay".')
    ] = None
    optimise: Annotated[
        str | None,
        typer.Option(
            "--optimise", help="What a weak budget is divided for: likelihood (of records; default) or pairs."
        ),
    ] = None
    edges: Edges = None
    edges_file: EdgesFile = None
    estimator: Estimator = None
    prior: Prior = None


@dataclass(frozen=True)
class PublicOptions:
    """Counts that are public, which the model shall have exactly."""

    public: Annotated[
        list[Path] | None,
        typer.Option(
            "--public",
            help="CSV of public counts that the model shall have exactly: variables, then the count. May be repeated.",
        ),
    ] = None
    public_from: Annotated[
        str | None,
        typer.Option("--public-from", help='Of --public: "elsewhere" or "these records" (docs say what changes).'),
    ] = None


TEST_SHARE = 0.1


@dataclass(frozen=True)
class PublishOptions:
    """The criteria that a model must meet to be published."""

    publish_if: Annotated[
        Path | None,
        typer.Option("--publish-if", help="JSON file of criteria: the model is published only if it meets them."),
    ] = None
    test_share: Annotated[
        float, typer.Option("--test-share", help="With --publish-if, part of the budget for the test.")
    ] = TEST_SHARE
    again: Annotated[
        bool, typer.Option("--again", help="With --publish-if, another attempt on the ledger, which says so.")
    ] = False


@dataclass(frozen=True)
class TextOptions:
    """The format of a text file."""

    delimiter: Delimiter = None
    encoding: Encoding = None
    decimal: Decimal = None
    thousands: Thousands = None
    columns: Columns = None
