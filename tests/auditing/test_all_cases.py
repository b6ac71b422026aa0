"""The audit of everything, at small cost.

False alarms: if all claims are true, any of these audits calls one broken with probability at most 1e-6, all cases
together.
"""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import list_estimators
from pgmpy_dp.auditing import AuditCase, Neighbours, audit_catalogue, catalogue, one_run_audit
from pgmpy_dp.auditing.all_cases import family_wise
from pgmpy_dp.auditing.bounds import claimed_value, guarantee_bound, lower_limit, upper_limit
from pgmpy_dp.auditing.cases_discrete import TRIPLE, network_features
from pgmpy_dp.estimators import PrivateNetwork
from pgmpy_dp.private.guarantee import ZCDP
from pgmpy_dp.private.noise.matrix import MECHANISMS
from pgmpy_dp.private.sensitive import _DISTRIBUTIONS, _MATRIX_DISTRIBUTIONS, Noise, Release

CASES = catalogue()
CONFIDENCE = family_wise(1 - 1e-6, len(CASES))
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


# One end-to-end attack of each kind of noise, and the samplers alone; `make test-all` has the others. Whether an exact
# statistic moves too far is what replay sees.
QUICK = (
    *("NaiveMLE(epsilon, add_remove)", "NaiveMLE(rho, replace_one)"),
    *[name for name, case in CASES.items() if case.subject not in {kind.__name__ for kind in list_estimators()}],
)


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CASES])
def test_claims_survive(name):
    assert CASES[name].run("small", CONFIDENCE).holds


def test_what_is_quick_is_there():
    assert set(QUICK) <= set(CASES)


def test_small_costs_can_tell():
    """Outputs that cannot be of one dataset break every claim, at the confidence of these tests."""
    alarm = (1 - CONFIDENCE) / 6  # two limits of three events
    for name, case in CASES.items():
        if isinstance(case, AuditCase):
            n = case.trials[0]
            most = guarantee_bound(case.claim, lower_limit(n, n, alarm), upper_limit(0, n, alarm))
        else:
            coins = np.arange(case.canaries[0]) % 2 == 0
            delta = getattr(case.claim, "delta", 0.0)
            guesses = len(coins) // 4 * 2
            most = one_run_audit(coins, coins, delta=delta, confidence=CONFIDENCE, n_guesses=guesses).bound
        assert most > claimed_value(case.claim), name


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if isinstance(case, AuditCase)])
def test_a_case_attacks_what_it_says(name):
    """One release on each dataset: it claims no more than the case, and shows where its noise comes from."""
    case = CASES[name]
    pair = case.neighbours()
    for data in (pair.first, pair.second):
        output = case.mechanism(data)
        release = getattr(output, "release_", output)
        if not isinstance(release, Release):
            continue
        assert not release.reproducible
        assert release.guarantee.implies(case.claim) and release.adjacency == pair.adjacency
        assert release.unit == pair.unit or case.subject == "PrivateMarkovChain"
        assert release.floating_point is case.floating_point
        if hasattr(output, "privacy_"):
            assert type(output).__name__ == case.subject
            [entry] = output.privacy_.entries
            assert entry.cost == release.guarantee
    pickle.loads(pickle.dumps(case.mechanism))  # so that cases can be attacked in processes


def test_every_guarantee_and_adjacency_of_every_estimator_is_attacked():
    """At least one case for each adjacency that an estimator has, and pure and zCDP claims where it makes them.

    Those without a case ask curators nothing that is new: tests/estimators/test_every_estimator.py replays them.
    """
    attacked = {case.subject for case in CASES.values()}
    estimators = [estimator for estimator in list_estimators() if estimator.__name__ in attacked]
    assert len(estimators) >= 15
    for estimator in estimators:
        own = [case for case in CASES.values() if case.subject == estimator.__name__ and isinstance(case, AuditCase)]
        assert {str(case.neighbours().adjacency) for case in own} == set(estimator.get_class_tag("adjacency"))
        claimed = {case.claim.to_dict()["measure"] for case in own}
        assert claimed >= {m for m in estimator.get_class_tag("guarantees") if m != "approximate"}, estimator


def test_every_matrix_mechanism_is_attacked():
    names = " ".join(CASES)
    assert [m for m in MECHANISMS if m not in ("auto", "double-wishart", "goe") and f"mechanism={m}" not in names] == []
    for name, kind in (
        ("PrivateGraphicalLasso(epsilon, add_remove, d=2)", "discrete_wishart"),
        ("PrivateGraphicalLasso(rho, add_remove, d=2)", "discrete_gaussian"),
    ):
        case = CASES[name]
        assert case.mechanism(case.neighbours().first).release_.noise[0].distribution == kind


class TestFloatingPoint:
    """No guarantee rests on a sampler of floats without saying so."""

    def test_noise_says_so(self):
        assert all(Noise(kind, 1.0).floating_point for kind in _MATRIX_DISTRIBUTIONS)
        assert not any(Noise(kind, 1.0).floating_point for kind in _DISTRIBUTIONS)

    def test_releases_and_results_say_so(self):
        from pgmpy_dp import estimators

        rough = [case for case in CASES.values() if case.floating_point]
        assert rough
        table = (RESULTS / "audits.md").read_text().splitlines()
        for case in rough:
            assert isinstance(case, AuditCase)
            release = case.mechanism(case.neighbours().first).release_
            assert "floating_point=True" in repr(release)
            [row] = [line for line in table if line.startswith(f"| {case.name} *f* |")]
            assert "floating point" in getattr(estimators, case.subject).__doc__, row

    def test_only_one_module_of_the_boundary_draws_noise_from_floats(self):
        """Others that draw floats use them for what needs no privacy: starts, rotations, public guesses."""
        folder = Path(__file__).parents[2] / "pgmpy_dp" / "private"
        drawing = {p.name for p in folder.rglob("*.py") if "standard_normal" in p.read_text()}
        assert drawing == {"matrix.py"}
        generators = {p.name for p in folder.rglob("*.py") if "default_rng()" in p.read_text()}
        assert generators == {"observer.py"}  # a curator's, for its plan


class TestRunning:
    def test_a_choice_in_order(self):
        names = ["distance_test", "NaiveMLE(epsilon, add_remove, one run)"]
        reports = audit_catalogue(names, confidence=1 - 1e-6)
        assert [report.name for report in reports] == names and all(report.holds for report in reports)
        assert reports[1].confidence == pytest.approx(1 - 5e-7, abs=1e-12) and 0 <= reports[1].tightness <= 1

    @pytest.mark.parametrize("changes", [{"names": ["nobody"]}, {"cost": "huge"}, {"confidence": 1.0}])
    def test_arguments(self, changes):
        with pytest.raises(ValueError, match=f"{next(iter(changes))}="):
            audit_catalogue(**{"names": ["distance_test"], **changes})

    def test_confidence_of_all_together(self):
        assert family_wise(0.99, 1) == pytest.approx(0.99) and family_wise(0.99, 100) == pytest.approx(0.9999)


class TestNeighbours:
    """Your own are checked where they can be."""

    FRAME = pd.DataFrame({"a": [0, 0, 1], "user": ["p", "p", "q"]})

    def test_what_is_none(self):
        with pytest.raises(ValueError, match="first has 2 records that second lacks"):
            Neighbours(self.FRAME, self.FRAME[:1], "add_remove")
        with pytest.raises(ValueError, match="not neighbours under adjacency='replace_one'"):
            Neighbours(np.zeros((3, 2)), np.zeros((2, 2)), "replace_one")
        with pytest.raises(ValueError, match="not neighbours under adjacency='add_remove'"):
            Neighbours(np.zeros((2, 2)), np.ones((2, 2)), "add_remove")
        with pytest.raises(ValueError, match="differ in 2 edges"):
            Neighbours(nx.path_graph(3), nx.empty_graph(3), "edge")
        with pytest.raises(ValueError, match="different vertices"):
            Neighbours(nx.path_graph(3), nx.path_graph(2), "edge")

    def test_what_are_some(self):
        Neighbours(self.FRAME, self.FRAME[1:], "add_remove")
        Neighbours(self.FRAME[2:], self.FRAME, "add_remove", unit="user")
        with pytest.raises(ValueError, match="change one 'user' with all its rows"):
            Neighbours(self.FRAME, self.FRAME[:1], "replace_one", unit="user")
        Neighbours(np.zeros((2, 2)), np.array([[0.0, 0.0], [1.0, 2.0]]), "replace_one")
        Neighbours("what nobody", "can check", "edge")


def test_a_picture_shows_the_event_the_claim_and_the_bound():
    import matplotlib

    matplotlib.use("Agg")
    report = CASES["noisy_argmax(0.5-zCDP)"].run("small", 0.99)
    ax = report.plot()
    title = ax.get_title()
    assert str(ZCDP(0.5)) in title and f"{report.bound:.3g}" in title and report.name in title
    assert sum(bar.get_height() for bar in ax.containers[0]) == report.event.trials
    assert report.plot(ax) is ax
    matplotlib.pyplot.close("all")


def test_features_of_a_learner_have_one_length_whatever_it_measures():
    """A full audit ended in an error where a search measured a triple beside two pairs."""
    records = pd.DataFrame(list(itertools.product([0, 1], repeat=3)) * 40, columns=list("abc")).assign(
        b=lambda x: x["a"]
    )
    fits = [
        PrivateNetwork(epsilon=50.0, state_names=TRIPLE, n_rounds=n_rounds, random_state=0).fit(records)
        for n_rounds in (1, 6)
    ]
    one, other = map(network_features, fits)
    assert len(one) == len(other) == 3 * (1 + 2) + 3 * (1 + 4) + (1 + 8)
    assert len(fits[0].release_.scopes) < len(fits[1].release_.scopes)
    pair = fits[1].release_.scopes.count(("a", "b"))
    assert pair > 0 and other[9] == pair and other[10:14].sum() == pytest.approx(320, rel=0.05)
