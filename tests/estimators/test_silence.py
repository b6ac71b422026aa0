"""Neighbours look the same: no exception, warning, log record or output of any fit depends on a record."""

from __future__ import annotations

import logging
import warnings

import pytest

from tests.estimators.cases import CASES, NEIGHBOURS


def observe(case, raw, caplog, capfd, random_state=None) -> tuple:
    """All that a fit shows beside its release."""
    caplog.clear()
    capfd.readouterr()
    public = {"n_records": case.options["n_records"]} if "n_records" in case.options else {}
    error = None
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        try:
            fitted = case.fit(case.make(random_state=random_state), case.data(raw, **public))
            shown = sorted(name for name in vars(fitted) if name.endswith("_"))
        except Exception as raised:
            error, shown = (type(raised), str(raised)), None
    told = sorted({(item.category.__name__, str(item.message)) for item in caught})
    return error, shown, told, [record.getMessage() for record in caplog.records], capfd.readouterr()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_neighbours_look_the_same(case, caplog, capfd):
    for name, (one, other) in NEIGHBOURS[case.kind].items():
        first, second = (observe(case, raw, caplog, capfd) for raw in (one, other))
        assert first == second, name
        assert first[0] is None and first[1], (name, first[0])
        assert first[2:] == ([], [], ("", "")), name
