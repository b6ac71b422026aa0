"""Numbers and days on their real scale: areas, intervals and marks against the answer that they show."""

from __future__ import annotations

import numpy as np
import pytest

from pgmpy_dp import Date, Number
from pgmpy_dp.models.answer import Estimate
from pgmpy_dp.reporting.marginals import QUANTILES
from pgmpy_dp.reporting.number_picture import empty_histogram, histogram
from tests.reporting.models import fitted


def test_numbers_are_histograms_on_their_real_scale():
    """Area is share, in any cell; marks stand where mean and quantiles are; a day's cells are as wide as they last."""
    network = fitted()
    answer = network.ask("age", quantiles=QUANTILES)
    picture = histogram(answer.number, answer.estimates, answer.numbers)
    cells = picture["cells"]
    assert [cell["width"] / cells[1]["width"] for cell in cells] == pytest.approx([14 / 15, 1, 1, 1, 16 / 15], rel=1e-3)
    areas = np.array([cell["width"] * cell["height"] for cell in cells])
    assert areas / areas.sum() == pytest.approx(answer.shares[:5] / answer.shares[:5].sum(), abs=2e-3)
    for cell, one in zip(cells, answer.estimates, strict=False):
        shares = [(picture["height"] - cell[end]) * cell["width"] for end in ("bottom", "y", "top")]
        assert np.array(shares) / shares[1] == pytest.approx(
            np.array([one.lower, one.value, one.upper]) / one.value, 5e-3
        )
    assert max(picture["height"] - cell["top"] for cell in cells) == pytest.approx(picture["height"], abs=0.02)
    for key, one in answer.numbers.items():
        assert picture["marks"][key] == pytest.approx((one.value + 0.5 - 16) / 75 * picture["width"], abs=0.02)
    days = empty_histogram(Date("2024-01-01", "2024-12-31", cuts=["2024-02-01"]))
    assert days["cells"][0]["width"] / days["width"] == pytest.approx(31 / 366, rel=1e-3)
    assert days["ticks"] == ["2024-01-01", "2024-07-02", "2024-12-31"]


def test_a_number_that_is_never_there_has_an_empty_picture():
    nothing = [Estimate(0.0), Estimate(0.0), Estimate(1.0)]
    picture = histogram(Number(0, 10, cuts=[2]), nothing, {"mean": Estimate(float("nan"))})
    assert [cell["height"] for cell in picture["cells"]] == [0, 0] and picture["marks"] == {}


def test_a_cell_narrower_than_a_line_is_drawn_as_one():
    """Cells follow counts: of costs that are mostly 0 the first is a millionth of the range."""
    shares = [Estimate(0.9, 0.8, 1.0), Estimate(0.1, 0.0, 0.2)]
    for number in (Number(0, 1e5, cuts=[0.01]), Number(0, 1e9, cuts=[1e-6])):
        first, rest = histogram(number, shares, {"mean": Estimate(157.0)})["cells"]
        assert first["width"] == 1 and first["height"] == pytest.approx(90, abs=0.01) and first["top"] == 0
        assert rest["height"] * rest["width"] == pytest.approx(10, abs=0.1 * rest["width"])
