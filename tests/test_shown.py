"""Messages say numbers with their nouns, as "1 column" and "1,200 cells": f-strings ask `quantity` for them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import pgmpy_dp
from tests.code_lines import parsed

PACKAGE = Path(pgmpy_dp.__file__).parent
COUNTED = re.compile(r" ((?:[a-z]+ ){0,2})([a-z-]*[a-rt-z]s|vertices|classes)\b")
"""What follows a number: up to two words, and a plural."""

VERBS = """
always as asks begins counts declares differs does ends exceeds finds gives goes has holds implies its is keeps lacks
learns leaves makes names needs protects reads says takes tells this was
"""
BETWEEN = "and are at be by for from has have if in must of on or that the to with"

NEVER_ONE = """
cli/audit.py: adjacency --trials
cli/start.py: delta --draws
communities/exponential_mechanism.py: graph.n vertices
communities/published/noisy_projection.py: graph.n vertices
communities/published/noisy_projection.py: k communities
communities/randomised_response.py: n vertices
fields/noisy_interactions.py: len(schema) variables
fields/noisy_parities.py: MOST_FEATURES rows
fields/private_logistic_regression.py: len(states) states
fields/published/frank_wolfe_steps.py: made.layout.n_regressions logistic regressions
fields/sparse_moment_fit.py: error standard errors
fields/sparse_moment_fit.py: n_steps sweeps
fields/votes/edge_voting.py: n_blocks blocks
fields/votes/edge_voting.py: p variables
fields/votes/stable_structure.py: len(table.schema) variables
fields/votes/stable_structure.py: n_blocks blocks
gaussian/pair_correlations.py: d columns
inference/exact_or_loopy.py: counting counting numbers
learning/few_records.py: n_records records
learning/prior.py: sizes[name] states
learning/prior_model.py: gain nats
linked/family_view.py: child rows
models/model_score.py: row['sd'] records
models/posterior/posterior_sampling.py: _MAX_EVALUATIONS steps
models/posterior/posterior_sampling.py: n_draws draws
models/printing_rule.py: most points
models/regression/independence_test.py: self.nobs records
private/data/header.py: len(available) columns
private/reading/owners.py: 'code' if unit is None else 'identifier' rewrites
private/reading/owners.py: codes names columns
reporting/attacks.py: values values
reporting/comparison.py: MOST_PAIRED variables
reporting/comparison.py: percent(level) intervals
reporting/linked_report.py: child rows
reporting/model_report.py: MOST_PAIRED variables
reporting/words.py: child rows
sequences/operators/sequences.py: self._schema.cardinality(self._schema.variables[0]) states
tables/discovery.py: max(rest, 0.0) others
tables/preview.py: table['records_per_cell'].median() records
tables/publishing/criteria.py: len(self.tables) tables
tables/schema_check.py: rounded(self.n_records - row.matched) cells
tables/schema_check.py: rounded(self.n_records - row.matched) records
"""
"""Names, numbers that are not whole, and counts that are never 1."""


def counted(path: Path) -> set[str]:
    """What f-strings outside of errors say of numbers by themselves."""
    tree = parsed(path)
    raised = {id(part) for node in ast.walk(tree) if isinstance(node, ast.Raise) for part in ast.walk(node)}
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr) or id(node) in raised:
            continue
        for value, text in zip(node.values, node.values[1:], strict=False):
            if isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant):
                match = COUNTED.match(text.value)
                if match and match[2] not in VERBS.split() and not {*BETWEEN.split()} & {*match[1].split()}:
                    found.add(ast.unparse(value.value) + match[0])
    return found


def test_every_number_has_its_noun_from_quantity():
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}: {said}" for path in PACKAGE.rglob("*.py") for said in counted(path)
    }
    # Who reads of audits may change the code.
    assert {said for said in found if not said.startswith("auditing/")} == set(NEVER_ONE.strip().splitlines())


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('f"{n} columns of {m:,} possible records"', {"n columns", "m possible records"}),
        ("f\"{quantity(n, 'column')} of {name}\"", set()),
        ('f"{name} has {n} vertices"', {"n vertices"}),
        ('f"{name} asks for more"', set()),
        ('raise ValueError(f"{n} columns")', set()),
    ],
)
def test_the_scan_can_fail(source, said, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(source)
    assert counted(path) == said
