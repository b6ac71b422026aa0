"""One variable given what is known of others, record by record: against the joint table and against queries."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest

from pgmpy_dp import MarkovNetwork, Number, Schema
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.junction_tree import InferenceTooLarge
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.row_conditionals import row_conditionals
from pgmpy_dp.learning.graph_base import graph_on

SIZES = (2, 3, 2, 4, 1, 2)
SCOPES = [
    ((0, 1), (1, 2), (2, 3), (3, 5)),
    ((3, 1, 0), (0,), (2, 4), (5, 2, 0)),
    ((0, 1), (3, 2)),
    ((1, 0, 2, 3), (3, 4, 5)),
]


def made(scopes, seed=0, **options):
    cliques = Cliques(tuple(range(len(SIZES))), SIZES, scopes)
    return LogLinearModel(cliques, np.random.default_rng(seed).normal(size=cliques.n_cells), **options)


def joint(model):
    full = np.zeros(SIZES)
    for scope, table in zip(model.cliques.indices, model.cliques.split(model.theta), strict=True):
        order = np.argsort(scope)
        shape = [SIZES[i] if i in scope else 1 for i in range(len(SIZES))]
        full = full + table.transpose(order).reshape(shape)
    return np.exp(full)


@pytest.mark.parametrize("scopes", SCOPES, ids=str)
@pytest.mark.parametrize("chunk", [1, 4_000_000])
def test_it_is_the_joint_table_whatever_is_known(scopes, chunk, monkeypatch):
    monkeypatch.setattr("pgmpy_dp.inference.row_conditionals._CHUNK", chunk)
    model = made(scopes)
    full = joint(model)
    rng = np.random.default_rng(1)
    codes = np.column_stack([rng.integers(0, k, 80) for k in SIZES])
    codes[rng.random(codes.shape) < 0.4] = -1
    for target in range(len(SIZES)):
        found = row_conditionals(model, codes, target)
        for row, told in zip(codes, found, strict=True):
            table = full
            for axis, code in enumerate(row):
                if axis != target:
                    table = table.sum(axis=axis, keepdims=True) if code < 0 else table.take([code], axis=axis)
            np.testing.assert_allclose(told, table.ravel() / table.sum(), atol=1e-12)


def test_zeros_are_kept_and_what_no_state_can_be_with_is_nan():
    cliques = Cliques(("a", "b", "c"), (2, 2, 2), (("a", "b"), ("b", "c")))
    with np.errstate(divide="ignore"):
        model = LogLinearModel(cliques, np.log([0.0, 1, 0, 1, 1, 2, 3, 1]))
    np.testing.assert_allclose(row_conditionals(model, np.array([[0, -1, -1], [-1, 1, -1]]), 2), [[0.75, 0.25]] * 2)
    found = row_conditionals(model, np.array([[-1, 0, 0], [-1, -1, 0], [-1, 1, 1]]), 0)
    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found[1:], 0.5)


def test_a_table_that_is_too_large_is_refused():
    scopes = tuple(itertools.combinations(range(6), 2))
    with pytest.raises(InferenceTooLarge, match="5 variables that are not known"):
        row_conditionals(made(scopes, memory_limit=100), np.full((1, 6), -1), 0)
    known = np.zeros((1, 6), dtype=int)
    assert row_conditionals(made(scopes, memory_limit=100), known, 0).shape == (1, 2)


class TestOfAModel:
    SCHEMA = Schema({"age": Number(0, 40, cuts=[20], missing="state"), "job": ["a", "b", "c"], "pay": ["low", "high"]})

    def model(self):
        cliques = Cliques(("age", "job", "pay"), (3, 3, 2), (("age", "job"), ("pay", "job"), ("age", "pay")))
        plain = LogLinearModel(cliques, np.random.default_rng(0).normal(size=cliques.n_cells))
        edges = [("age", "job"), ("job", "pay"), ("age", "pay")]
        return MarkovNetwork.from_log_linear(plain, graph_on(["age", "job", "pay"], edges), self.SCHEMA)

    def test_records_are_read_as_they_are_learned_from(self):
        model = self.model()
        frame = pd.DataFrame(
            {"job": ["a", None, "c", "b"], "age": [3, 25.0, None, 20], "pay": "?", "x": 1}, index=list("wxyz")
        )
        found = model.predict_proba(frame, "pay")
        assert found.index.tolist() == list("wxyz") and found.columns.tolist() == ["low", "high"]
        evidence = [{"job": "a", "age": 3}, {"age": 25}, {"job": "c", "age": None}, {"job": "b", "age": 20}]
        for known, row in zip(evidence, found.to_numpy(), strict=True):
            np.testing.assert_allclose(row, model.query("pay", known).values, atol=1e-12)
        lazy = model.predict_proba(pl.DataFrame({"job": ["a", "c"]}).lazy(), "pay")
        np.testing.assert_allclose(lazy.loc[1], model.query("pay", {"job": "c"}).values, atol=1e-12)
        alone = model.predict_proba(pd.DataFrame(index=range(2)), "pay")
        np.testing.assert_allclose(alone, [model.marginal("pay").values] * 2, atol=1e-12)
        assert model.predict_proba(frame.iloc[:0], "pay").shape == (0, 2)

    @pytest.mark.parametrize(
        ("frame", "target", "words"),
        [
            ({"job": ["z"]}, "pay", "'z' in the column 'job', which is not a state of it; use one of a, b, c"),
            ({"job": ["a"]}, "wage", "target='wage' is not a variable of the model; pass one of"),
        ],
    )
    def test_what_it_refuses(self, frame, target, words):
        with pytest.raises(ValueError, match=words):
            self.model().predict_proba(pd.DataFrame(frame), target)
