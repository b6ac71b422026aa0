"""The difference of small and large families: a model gets it, and keeps n and columns of children as they were."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.linked_law import large_families as made_up
from pgmpy_dp import Budget, learn_linked
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.linked import LinkedSchema, PrivateLinkedNetwork
from pgmpy_dp.linked.count_raking import raked
from pgmpy_dp.linked.operators.wide_table import wide_table
from pgmpy_dp.linked.size_trend import SizeTrend, is_hidden, large_families
from pgmpy_dp.models.posterior.posterior_draws import Posterior
from pgmpy_dp.private.reading.frames import encode

pytestmark = [
    pytest.mark.filterwarnings("ignore::pgmpy_dp.GuessedTypesWarning"),
    pytest.mark.filterwarnings("ignore::pgmpy_dp.private.noise.samplers.ReproducibleNoiseWarning"),
]

LINKED = LinkedSchema(None, {"role": ["head", "spouse", "child"]}, "home", 5)
WIDE = wide_table(LINKED)
INSIDE = [0, 1, 2, 4]  # not absent
SIZES = np.array([n for n, _ in WIDE.patterns])


def models(count, rng):
    """Random ones of n and both slots, in which a child's column is independent of n."""
    names = WIDE.schema.variables
    sizes = tuple(map(WIDE.schema.cardinality, names))
    cliques = Cliques(names, sizes, (names[:1], names[1:]))
    of_n, of_two = rng.normal(size=(count, 6))[:, SIZES], rng.normal(size=(count, *sizes[1:]))
    theta = np.concatenate([of_n, (of_two + of_two.transpose(0, 2, 1)).reshape(count, -1)], axis=1)
    return Posterior(cliques, theta, "", "", 10**9).obeying(WIDE.schema.zeros)


class TestModels:
    def test_get_the_difference_and_keep_n_and_the_column(self):
        rng = np.random.default_rng(0)
        before, large = models(4, rng), SIZES > 2
        table = before.query([WIDE.size, "a.role"])[:, :, INSIDE]
        halves = np.stack([table[:, ~large].sum(axis=1), table[:, large].sum(axis=1)], axis=1)
        moved = 0.2 * halves.min(axis=1) * rng.uniform(-1, 1, size=(4, 4))
        moved -= halves.sum(axis=1) * (moved.sum(axis=1) / halves.sum(axis=(1, 2)))[:, None]
        trend = SizeTrend(large, {"role": halves + np.stack([-moved, moved], axis=1)}, 0.0)
        after = raked(LINKED, WIDE, before, trend)
        for slot in "ab":
            made = after.query([WIDE.size, f"{slot}.role"])[:, :, INSIDE]
            difference = made[:, large].sum(axis=1) - made[:, ~large].sum(axis=1)
            np.testing.assert_allclose(difference, halves[:, 1] - halves[:, 0] + 2 * moved, atol=2e-3)
            kept = before.query([WIDE.size, f"{slot}.role"])[:, :, INSIDE]
            np.testing.assert_allclose(made.sum(axis=2), kept.sum(axis=2), atol=2e-3)
            np.testing.assert_allclose(made.sum(axis=1), kept.sum(axis=1), atol=2e-3)

    def test_with_the_difference_that_they_have_stay_as_they_are(self):
        before, large = models(2, np.random.default_rng(1)), SIZES > 2
        table = before.query([WIDE.size, "a.role"])[:, :, INSIDE]
        halves = np.stack([table[:, ~large].sum(axis=1), table[:, large].sum(axis=1)], axis=1)
        after = raked(LINKED, WIDE, before, SizeTrend(large, {"role": halves}, 0.0))
        np.testing.assert_allclose(after.query([WIDE.size, "a.role"]), before.query([WIDE.size, "a.role"]), atol=1e-9)

    def test_get_near_what_no_families_have(self):
        """As noise may say."""
        before, halves = models(2, np.random.default_rng(2)), np.array([[[5.0, -3.0, 0.0, 0.0], [-5.0, 2.0, 9.0, 0.0]]])
        after = raked(LINKED, WIDE, before, SizeTrend(SIZES > 2, {"role": halves}, 1.0))
        of_n = before.query([WIDE.size])
        np.testing.assert_allclose(after.query([WIDE.size]), of_n, atol=0.02)
        shares = [draws.query([WIDE.size, "a.role"])[:, SIZES > 2, 0].sum(axis=1) for draws in (before, after)]
        assert (shares[1] < shares[0]).all()


def test_draws_have_the_noise_once_more_and_the_error_of_a_sample():
    trend = SizeTrend(SIZES > 2, {"role": np.full((1, 2, 3), 0.16)}, 0.03)
    drawn = trend.drawn(4_000, 100.0, np.random.default_rng(0)).tables["role"]
    np.testing.assert_allclose(drawn.mean(axis=0), 0.16, atol=0.003)
    np.testing.assert_allclose(drawn.std(axis=0), 0.05, rtol=0.05)


class TestSearch:
    HOMES, PERSONS, SCHEMA = made_up(2_000, 0)

    def learned(self, epsilon):
        options = {"n_rounds": 2, "probe_share": 0.0, "siblings": 0, "max_clique_cells": 5_000, "random_state": 0}
        return learn_linked(self.HOMES, self.PERSONS, Budget(epsilon=epsilon, delta=1e-9), self.SCHEMA, **options)

    def test_shares_of_persons_are_theirs_and_not_those_of_a_random_household(self, monkeypatch):
        release = self.learned(1.0).release_
        roles = encode(self.PERSONS, self.SCHEMA.child.subset(["role"])).astype(int)[:, 0]
        owner = self.PERSONS["household"].to_numpy()
        of_persons, of_homes = (np.bincount(roles, w) for w in (None, 1 / np.bincount(owner)[owner]))
        of_persons, of_homes = of_persons / of_persons.sum(), of_homes / of_homes.sum()
        away, slopes = of_homes - of_persons, []
        for _ in range(2):
            model = PrivateLinkedNetwork(rho=1.0).fit_release(release).model_
            slopes.append(float((model.query("role").values - of_persons) @ away / (away @ away)))
            monkeypatch.setattr(SizeTrend, "of", lambda *_: None)
        assert abs(slopes[0]) < 0.4 and slopes[1] > 0.5, slopes

    @pytest.mark.parametrize("epsilon", [0.01, 30.0])
    def test_nothing_is_measured_where_noise_hides_it_or_where_it_hides_nothing(self, epsilon):
        assert "halves" not in self.learned(epsilon).release_.public["settings"]


@pytest.mark.parametrize(("slope", "hidden"), [(0.0, True), (0.05, True), (0.17, True), (0.4, False)])
def test_a_dependence_on_n_is_hidden_where_noise_is_larger(slope, hidden):
    """Cells that nobody can have, absent where the child is there, have noise too, and say nothing."""
    noise, cells = np.random.default_rng(0).normal(0.0, 20.0, (len(SIZES), 5)), np.full((len(SIZES), 5), 200.0)
    cells[:, 0] *= 1 + slope * (SIZES - 3)
    cells[:, 3] = 5_000.0
    assert is_hidden(WIDE, {(WIDE.size, "a.role"): (cells + noise, 20.0)}) is hidden


def test_two_groups_are_those_whose_means_tell_most():
    likely = np.array([0.3, 0.3, 0.01, 0.01, 0.19, 0.19])
    assert large_families(np.array([1, 1, 2, 3, 4, 5]), likely).tolist() == [False, False, False, True, True, True]
