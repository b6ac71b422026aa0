"""Neighbours look the same: no exception, warning, log record or output of any fit depends on a record."""

from __future__ import annotations

import logging
import warnings

import pytest

from pgmpy_dp.learning.few_records import few_records
from tests.estimators.cases import CASES, NEIGHBOURS
from tests.estimators.test_every_estimator import fit_release

# They rest on released and public numbers, so that learning from the release alone tells the same.
OF_RELEASES = {
    "ContradictedTablesWarning",
    "LargeDeltaWarning",
    "DroppedRecordsWarning",
    "NoEdgeWarning",
    "PiledNumbersWarning",
}


def warned(make) -> tuple[set[tuple[str, str]], object]:
    """All that a call warns of, and what it returns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = make()
    return {(item.category.__name__, str(item.message)) for item in caught}, made


def observe(case, raw, caplog, capfd, public=None, **options) -> tuple:
    """All that a fit shows beside its release, what it says of that, and what is said of data of nobody."""
    caplog.clear()
    capfd.readouterr()
    if public is None:
        public = {"n_records": case.options["n_records"]} if "n_records" in case.options else {}
    error, fitted = None, None
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        try:
            fitted = case.fit(case.make(**options), case.data(raw, **public))
            shown = sorted(name for name in vars(fitted) if name.endswith("_"))
        except Exception as raised:
            error, shown = (type(raised), str(raised)), None
    told = {(item.category.__name__, str(item.message)) for item in caught}
    if (few := few_records(getattr(fitted, "n_records_", 0.0), getattr(fitted, "n_records_sd_", 0.0))) is not None:
        told.remove(("FewRecordsWarning", few))
    # Learning from the release tells the same of it, neither more nor less.
    if of_release := {item for item in told if item[0] in OF_RELEASES}:
        again, _ = warned(lambda: fit_release(case, case.make(**options), fitted.release_))
        assert of_release == {item for item in again if item[0] in OF_RELEASES}
    # So do data of this kind without a record.
    nobody, _ = NEIGHBOURS[case.kind]["none and one"]
    of_kind, _ = warned(lambda: case.data(nobody, **public))
    assert of_kind <= told
    assert {item[0] for item in of_kind} == ({"GuessedTypesWarning"} if case.kind == "sequences" else set())
    told -= of_release | of_kind
    told = sorted(told)
    return error, shown, told, [record.getMessage() for record in caplog.records], capfd.readouterr()


# Edges cannot be replaced, and one noise has a proof for added and removed records only.
REPLACEABLE = [case for case in CASES if case.kind != "graph" and "one-sided-wishart" not in case.name]
OF_EACH = {case.estimator: case for case in REPLACEABLE}


def left_to_others(case) -> bool:
    """Of a kind and an estimator with other cases in the quick part, where this one is tried by replacement."""
    rest = case in REPLACEABLE and case.kind != "sequences" and case is not OF_EACH[case.estimator]
    return rest and CASES.index(case) % 2 == 1


def in_turns(case) -> dict:
    """Every third pair of neighbours, the next two estimators those between."""
    return dict(list(NEIGHBOURS[case.kind].items())[CASES.index(case) % 3 :: 3])


def test_every_pair_has_its_turn():
    quick = [case for case in CASES if not left_to_others(case)]
    for kind, pairs in NEIGHBOURS.items():
        assert {name for case in quick if case.kind == kind for name in in_turns(case)} == set(pairs)


@pytest.mark.parametrize(
    ("case", "pairs"),
    [
        pytest.param(
            case, pairs, marks=[pytest.mark.slow] * (pairs == "all" or left_to_others(case)), id=f"{case.name}-{pairs}"
        )
        for case in CASES
        for pairs in ("in turns", "all")
    ],
)
def test_neighbours_look_the_same(case, pairs, caplog, capfd):
    for name, (one, other) in (in_turns(case) if pairs == "in turns" else NEIGHBOURS[case.kind]).items():
        first, second = (observe(case, raw, caplog, capfd) for raw in (one, other))
        assert first == second, name
        assert first[0] is None and first[1], (name, first[0])
        assert first[2:] == ([], [], ("", "")), name


@pytest.mark.parametrize(
    ("case", "random_state", "pairs"),
    [
        pytest.param(case, seed, pairs, marks=[pytest.mark.slow] * slow, id=f"{seed}-{pairs}-{case.name}")
        for case in REPLACEABLE
        for seed, pairs, slow in (
            (None, "in turns", False),
            (3, "one", case is not OF_EACH[case.estimator]),
            (None, "three", True),
        )
    ],
)
def test_neighbours_by_replacement_look_the_same(case, random_state, pairs, caplog, capfd):
    """Of two datasets of one public size; with a seed there is one more warning, and it is the same."""
    name = "n_users" if case.kind == "sequences" else "n_records"
    options = {"adjacency": "replace_one", name: None, "random_state": random_state}
    if "random_state" not in case.estimator.get_param_names():
        if random_state is not None:
            pytest.skip("its noise cannot be seeded")
        del options["random_state"]
    last = list(NEIGHBOURS[case.kind].values())[-3:]
    for other in {"in turns": [last[REPLACEABLE.index(case) % 3]], "one": last[2:], "three": last}[pairs]:
        raw = max(other, key=len)
        odd, plain = (
            raw.take([*range(len(raw) - 1), k]) if hasattr(raw, "iloc") else raw[[*range(len(raw) - 1), k]]
            for k in (-1, 0)
        )
        public = {"adjacency": "replace_one", name: len(raw)}
        first, second = (observe(case, one, caplog, capfd, public, **options) for one in (odd, plain))
        assert first == second
        assert first[0] is None and first[1]
        assert [told[0] for told in first[2]] == ([] if random_state is None else ["ReproducibleNoiseWarning"])
        assert first[3:] == ([], ("", ""))
