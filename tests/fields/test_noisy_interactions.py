"""Centred interactions: the sums by definition, every neighbour of every small table, and whole releases."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.fields.noisy_interactions import noisy_interactions, run
from pgmpy_dp.fields.noisy_parities import run as run_parities
from pgmpy_dp.fields.operators import interactions as interaction_data
from pgmpy_dp.fields.operators.interactions import (
    InteractionUnits,
    field_sensitivity,
    interaction_sums,
    pair_counts,
    pair_sensitivity,
)
from pgmpy_dp.fields.operators.parities import parity_sums
from pgmpy_dp.private.accounting import approx_to_zcdp
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from tests.private.distribution import accepts
from tests.settings import interaction_settings, parity_settings

SIZES = {"binary": (2, 2, 2), "equal": (3, 3, 3), "unequal": (2, 4, 3), "constant": (1, 3, 2), "two": (1, 5)}


def naive(codes: np.ndarray, units: InteractionUnits) -> tuple[np.ndarray, np.ndarray]:
    """The vectors u_i of every record, summed."""
    p = len(units.cardinalities)
    fields = [np.zeros(k, dtype=int) for k in units.cardinalities]
    pairs = dict.fromkeys(itertools.combinations(range(p), 2), 0)
    for record in codes:
        u = [
            c * (k * np.eye(k, dtype=int)[code] - 1)
            for c, k, code in zip(units.multipliers, units.cardinalities, record, strict=True)
        ]
        fields = [f + v for f, v in zip(fields, u, strict=True)]
        pairs = {(i, j): total + np.outer(u[i], u[j]) for (i, j), total in pairs.items()}
    return np.concatenate(fields), np.concatenate([np.ravel(total) for total in pairs.values()])


def records(rng: np.random.Generator, sizes, n: int) -> np.ndarray:
    return np.stack([rng.integers(0, k, size=n) for k in sizes], axis=1).astype(np.uint8)


@pytest.mark.parametrize("sizes", [*SIZES.values(), (12, 30, 2), (7, 11, 13, 17)])
@pytest.mark.parametrize("n", [1, 63, 64, 70])
def test_sums_are_their_definition(sizes, n):
    codes = records(np.random.default_rng(n), sizes, n)
    units = InteractionUnits(sizes)
    fields, pairs, count = interaction_sums(codes, units, Adjacency.ADD_REMOVE)
    expected = naive(codes, units)
    assert np.array_equal(fields.value, expected[0]) and np.array_equal(pairs.value, expected[1])
    assert count.value.tolist() == [n]


@pytest.mark.parametrize("sizes", [(2, 3, 4), (12, 30, 2)])
def test_pair_counts_across_blocks_of_words(sizes):
    codes = records(np.random.default_rng(1), sizes, 200_003)
    tables = pair_counts(codes, sizes)
    for (i, j), table in zip(itertools.combinations(range(len(sizes)), 2), tables, strict=True):
        assert np.array_equal(table, pd.crosstab(codes[:, i], codes[:, j]).to_numpy())


def test_multipliers():
    assert InteractionUnits((4, 4)).multipliers == (1, 1) and InteractionUnits((4, 4)).largest == 4
    assert InteractionUnits((2, 3, 4)).largest == 12
    units = InteractionUnits((7, 11, 13, 17))  # 17017 is beyond the largest unit
    assert max(units.multipliers) * 7 <= 4096 and all(
        4096 - 17 < c * k <= 4096 for c, k in zip(units.multipliers, units.cardinalities, strict=True)
    )
    assert InteractionUnits((5000, 3)).multipliers == (1, 1365)


class TestSensitivity:
    """A record's contribution does not depend on the others, so neighbours of tables are pairs of single records."""

    @pytest.mark.parametrize("sizes", [*SIZES.values(), (7, 11, 13, 17)[:2], (2, 2, 2, 2, 2), (3, 2, 2, 5)])
    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    def test_is_the_largest_over_all_records(self, sizes, adjacency):
        units = InteractionUnits(sizes)
        one = [naive(np.array([r]), units) for r in itertools.product(*map(range, sizes))]
        nothing = tuple(np.zeros_like(part) for part in one[0])
        pairs = [(a, nothing) for a in one]
        if adjacency == "replace_one":
            pairs += list(itertools.combinations(one, 2))
        exact_units = len({c * k for c, k in zip(units.multipliers, sizes, strict=True)}) == 1
        for part, claim in enumerate((field_sensitivity, pair_sensitivity)):
            moved = [a[part] - b[part] for a, b in pairs]
            most = [
                max(int(np.abs(d).sum()) for d in moved),
                max(int((d**2).sum()) for d in moved),
                max(int(np.abs(d).max()) for d in moved),
            ]
            l1, l2, linf = claim(units, Adjacency(adjacency))
            assert Fraction(l1) >= most[0] and Fraction(l2) ** 2 >= most[1] and Fraction(linf) >= most[2]
            if exact_units:
                assert l2 == pytest.approx(math.sqrt(most[1]), rel=1e-12) and linf == most[2]
                if adjacency == "add_remove" or len(set(sizes)) == 1 or part == 0:
                    assert l1 == pytest.approx(most[0], rel=1e-12)
                assert l1 <= 2.01 * max(most[0], 0.5)
            else:
                assert l2 <= 1.02 * math.sqrt(most[1])

    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    @pytest.mark.parametrize(
        ("sizes", "pairs"),
        [
            ((2, 2, 2), ((0, 1), (0, 2), (1, 2))),
            ((2, 2, 2, 2), ((0, 1), (1, 2), (2, 3))),
            ((3, 3, 3), ((0, 1), (0, 2))),
            ((3, 3, 3), ((0, 1), (0, 2), (1, 2))),
            ((2, 4, 3), ((0, 1), (1, 2))),
            ((2, 4, 3, 2), ((0, 1), (0, 2), (1, 2))),
            ((1, 3, 2), ((0, 1), (1, 2))),
            ((5, 5), ((0, 1),)),
            ((2, 3), ()),
        ],
    )
    def test_of_some_pairs(self, sizes, pairs, adjacency):
        units = InteractionUnits(sizes)
        every = list(itertools.product(*map(range, sizes)))
        one = [interaction_sums(np.array([r]), units, Adjacency.ADD_REMOVE, pairs)[1].value for r in every]
        moved = np.array(one + ([a - b for a, b in itertools.combinations(one, 2)] if adjacency[0] == "r" else []))
        absolute = np.abs(moved)
        most = [int(absolute.sum(axis=1).max()), int((moved**2).sum(axis=1).max()), int(absolute.max(initial=0))]
        l1, l2, linf = pair_sensitivity(units, Adjacency(adjacency), pairs)
        assert Fraction(l1) >= most[0] and Fraction(l2) ** 2 >= most[1] and Fraction(linf) >= most[2]
        assert (l1, l2, linf) <= pair_sensitivity(units, Adjacency(adjacency))
        bipartite = len(pairs) < 3 or (len(sizes) == 4 and sizes == (2,) * 4)
        if adjacency == "add_remove" or (len(set(sizes)) == 1 and bipartite):
            assert l2 == pytest.approx(math.sqrt(most[1]), rel=1e-12)

    def test_sums_of_some_pairs_are_those_of_all(self):
        for sizes in ((2, 3, 4, 2), (12, 30, 2, 9)):
            codes = records(np.random.default_rng(3), sizes, 200)
            units, pairs = InteractionUnits(sizes), ((0, 2), (1, 2), (1, 3))
            value = interaction_sums(codes, units, Adjacency.ADD_REMOVE)[1].value
            blocks = itertools.combinations(range(4), 2)
            cuts = np.cumsum([sizes[i] * sizes[j] for i, j in itertools.combinations(range(4), 2)])[:-1]
            every = dict(zip(blocks, np.split(value, cuts), strict=True))
            some = interaction_sums(codes, units, Adjacency.ADD_REMOVE, pairs)[1].value
            assert np.array_equal(some, np.concatenate([every[pair] for pair in pairs]))

    def test_rounded_units_are_covered(self):
        units = InteractionUnits((7, 11, 13, 17))
        rng = np.random.default_rng(0)
        largest = 0
        for _ in range(300):
            a, b = (naive(r[None], units)[1] for r in records(rng, units.cardinalities, 2))
            largest = max(largest, int(((a - b) ** 2).sum()))
        assert 0.9 * largest <= pair_sensitivity(units, Adjacency.REPLACE_ONE)[1] ** 2
        assert pair_sensitivity(units, Adjacency.REPLACE_ONE)[1] ** 2 >= largest

    def test_whole_tables(self):
        """Through the encoder: records outside the schema count as none."""
        rows = [*itertools.product([0, 1], ["x", "y", "z"]), (7, "x"), (0, None)]
        states = {"a": [0, 1], "b": ["x", "y", "z"]}
        values = {}
        for pair in itertools.combinations_with_replacement(rows, 2):
            frame = pd.DataFrame(list(pair), columns=["a", "b"])
            table = PrivateTable(frame, states, adjacency="replace_one", ledger=Budget(rho=1.0), n_records=2)
            values[pair] = interaction_sums(table._codes, InteractionUnits((2, 3)), table.adjacency)
        for first, second in itertools.combinations(values, 2):
            if set(first) & set(second):
                for a, b in zip(values[first], values[second], strict=True):
                    moved = a.value - b.value
                    assert np.abs(moved).sum() <= a.l1 and (moved**2).sum() <= a.l2**2 and np.abs(moved).max() <= a.linf


STATES = {"a": [0, 1], "b": ["x", "y", "z"], "c": [0, 1, 2, 3]}


def subject(n_records=None, adjacency="add_remove", ledger=None, rows=50) -> PrivateTable:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.choice(np.array(states, dtype=object), rows) for name, states in STATES.items()})
    return PrivateTable(
        frame, STATES, adjacency=adjacency, ledger=ledger or Budget(epsilon=1e9, delta=0.5), n_records=n_records
    )


class TestRelease:
    def test_contents_and_reading(self, tmp_path):
        table = subject()
        release = run(table, interaction_settings(), Budget(epsilon=1e8))
        assert release.kind == "interactions" and release.mechanism == "discrete_laplace"
        assert [v.shape for v in release.values] == [(9,), (6 + 8 + 12,), (1,)]
        assert release.public["multipliers"] == [6, 4, 3]
        read = noisy_interactions(release)
        assert read.n_records == 50 and [f.sum() for f in read.fields] == pytest.approx([0] * 3)
        for (i, j), pair in read.pairs.items():
            k, other = len(read.fields[i]), len(read.fields[j])
            onehot = [np.eye(size)[table._codes[:, v]] for v, size in ((i, k), (j, other))]
            expected = (k * onehot[0] - 1).T @ (other * onehot[1] - 1)
            assert pair == pytest.approx(expected, abs=0.5) and pair.sum(axis=0) == pytest.approx(np.zeros(other))
        release.save(tmp_path / "r.npz")
        assert type(release).load(tmp_path / "r.npz") == release
        other = run_parities(
            PrivateTable(pd.DataFrame({"a": [0]}), {"a": [0, 1]}, ledger=Budget(rho=1.0)),
            parity_settings(order=1),
            Budget(rho=1.0),
        )
        with pytest.raises(ValueError, match="has kind 'parities'"):
            noisy_interactions(other)

    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    def test_scales_spend_the_budget(self, adjacency):
        for budget, cost in (
            (Budget(rho=0.5), ZCDP(0.5)),
            (Budget(epsilon=0.5), PureDP(0.5)),
            (Budget(epsilon=1.0, delta=1e-6), ZCDP(approx_to_zcdp(1.0, 1e-6))),
        ):
            table = subject(50 if adjacency == "replace_one" else None, adjacency)
            noise = "laplace" if isinstance(cost, PureDP) else "gaussian"
            release = run(table, interaction_settings(noise), budget)
            assert release.guarantee == cost and table.ledger.entries[0].cost == cost
            units = InteractionUnits((2, 3, 4))
            claims = [field_sensitivity(units, table.adjacency), pair_sensitivity(units, table.adjacency), (1, 1, 1)]
            scales = [item.scale for item in release.noise]
            assert len(scales) == (2 if adjacency == "replace_one" else 3)
            if isinstance(cost, PureDP):
                spent = sum(Fraction(c[0]) / Fraction(s) for c, s in zip(claims, scales, strict=False))
                assert spent <= Fraction(cost.epsilon) and float(spent) == pytest.approx(cost.epsilon)
            else:
                spent = sum(Fraction(c[1]) ** 2 / (2 * Fraction(s) ** 2) for c, s in zip(claims, scales, strict=False))
                assert spent <= Fraction(cost.rho) and float(spent) == pytest.approx(cost.rho)

    def test_two_states_are_as_accurate_as_parities(self):
        """After centring, the noise of z_i and z_i z_j has the scale of the noise on parities."""
        states = {name: [0, 1] for name in "abcd"}
        frame = pd.DataFrame({name: [0, 1] * 10 for name in "abcd"})
        table = PrivateTable(frame, states, ledger=Budget(rho=10.0))
        ours, theirs = (
            run(table, interaction_settings(), Budget(rho=0.1)),
            run_parities(table, parity_settings(), Budget(rho=0.1)),
        )
        field, pair, count = (item.scale for item in ours.noise)
        assert field / math.sqrt(2) == pytest.approx(theirs.noise[0].scale)  # z = (u_1 - u_0)/2
        assert pair / 2 == pytest.approx(theirs.noise[0].scale)  # zz = (u_00 - u_01 - u_10 + u_11)/4
        assert count == pytest.approx(theirs.noise[1].scale)
        codes = table._codes
        fields, pairs, _ = interaction_sums(codes, InteractionUnits((2,) * 4), table.adjacency)
        expected = parity_sums(codes, 2)
        assert (
            fields.value[1::2].tolist() == expected[:4].tolist() and pairs.value[::4].tolist() == expected[4:].tolist()
        )

    def test_of_a_public_graph(self, tmp_path):
        """Only the edges are released, each with the share of a table."""
        graph = [("c", "b"), ("b", "c")]
        release = run(subject(), interaction_settings(graph=graph), Budget(rho=1e6))
        assert [v.shape for v in release.values] == [(9,), (12,), (1,)]
        every = noisy_interactions(run(subject(), interaction_settings(), Budget(rho=1e6)))
        release.save(tmp_path / "r.npz")
        read = noisy_interactions(type(release).load(tmp_path / "r.npz"))
        assert list(read.pairs) == [(1, 2)]
        np.testing.assert_allclose(read.pairs[1, 2], every.pairs[1, 2], atol=1.0)
        assert read.pair_sd < every.pair_sd and read.field_sd < every.field_sd
        units, scales = InteractionUnits((2, 3, 4)), [item.scale for item in release.noise]
        l2 = [f(units, release.adjacency, *a)[1] for f, *a in ((field_sensitivity,), (pair_sensitivity, ((1, 2),)))]
        spent = sum(x**2 / (2 * s**2) for x, s in zip([*l2, 1.0], scales, strict=True))
        assert spent == pytest.approx(1e6) and l2[0] ** 2 / (2 * scales[0] ** 2) == pytest.approx(3 / 5 * 1e6)

    @pytest.mark.parametrize("budget", [Budget(rho=0.5), Budget(epsilon=0.5), Budget(epsilon=0.5, delta=1e-6)])
    def test_of_a_graph_without_edges(self, budget):
        read = noisy_interactions(run(subject(), interaction_settings(graph=[]), budget))
        assert read.pairs == {} and len(read.fields) == 3

    def test_a_graph_of_other_variables_costs_nothing(self):
        table = subject()
        with pytest.raises(ValueError, match="unknown variables 'z'"):
            run(table, interaction_settings(graph=[("a", "z")]), Budget(rho=0.1))
        assert not table.ledger.entries

    def test_noise_has_its_distribution(self):
        states = {name: list(range(40)) for name in "abc"}
        empty = PrivateTable(pd.DataFrame({name: [] for name in "abc"}), states, ledger=Budget(rho=1.0))
        release = run(empty, interaction_settings(), Budget(rho=0.5))
        value, item = release.values[1], release.noise[1]
        assert accepts(value, item.distribution, item.scale) and not accepts(value, item.distribution, 1.3 * item.scale)

    def test_refusals_cost_nothing(self, monkeypatch):
        monkeypatch.setattr(interaction_data, "shared_codes", lambda *table: pytest.fail("looked at records"))
        table = subject(ledger=Budget(epsilon=1.0))
        for settings, budget, text in (
            ({}, {"rho": 0.1}, "pure budget pays only for pure costs"),
            ({}, {"epsilon": 2.0}, "refused: 2-DP was asked"),
            ({"noise": "gaussian"}, {"epsilon": 0.5}, "noise='gaussian' cannot give"),
            ({"max_cells": 25}, {"epsilon": 0.5}, "all pairs have 26 cells together, more than 25"),
        ):
            with pytest.raises(ValueError, match=text):
                run(table, interaction_settings(**settings), Budget(**budget))
        single = PrivateTable(pd.DataFrame({"a": [0]}), {"a": [0, 1]}, ledger=Budget(epsilon=1.0))
        with pytest.raises(ValueError, match=r"variables \['a'\]; interactions need at least two"):
            run(single, interaction_settings(), Budget(epsilon=0.5))
        with pytest.raises(BudgetExceeded):
            run(table, interaction_settings(), Budget(epsilon=1.5))
        assert not table.ledger.entries and not single.ledger.entries
        for arguments in ((None, interaction_settings(), Budget(rho=1.0)), (table, interaction_settings(), 1.0)):
            with pytest.raises(TypeError):
                run(*arguments)

    @pytest.mark.parametrize("rows", [[], [(9, 9), (9, 9)], [(0, 0)] * 3])
    def test_empty_outside_and_constant_tables(self, rows):
        frame = pd.DataFrame(rows, columns=["a", "b"])
        table = PrivateTable(frame, {"a": [0, 1, 2], "b": [0, 1]}, ledger=Budget(rho=1.0))
        release = run(table, interaction_settings(), Budget(rho=0.5))
        assert [v.shape for v in release.values] == [(5,), (6,), (1,)]
        noisy_interactions(release)
