"""A number or a day on its real scale, as parts of an SVG: the area of a cell is its share.

A cell may be narrower than a line, where a number is mostly 0. It is drawn as wide as one, and that area is its share.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pgmpy_dp.models.answer import Estimate
from pgmpy_dp.schema import Number

_WIDTH, _HEIGHT, _LINE = 320, 100, 1.0


def empty_histogram(number: Number) -> dict[str, Any]:
    """The places of cells and ticks, of which explore.js draws the rest.

    Parameters
    ----------
    number : Number

    Examples
    --------
    >>> rooms = empty_histogram(Number(1, 8, cuts=[2, 3], resolution=1))
    >>> [(cell["x"], cell["width"]) for cell in rooms["cells"]]  # 1, 2, and 3 to 8
    [(0.0, 40.0), (40.0, 40.0), (80.0, 240.0)]
    """
    step = number.resolution or 0.0
    ends = number.lower + step * number.firsts if step else np.array(number.ends)
    unit = _WIDTH / (ends[-1] - ends[0])
    places = ((ends - ends[0]) * unit).round(2).tolist()
    middle = (number.lower + number.upper) / 2
    ticks = [number.lower, round(middle) if step or number.kind == "date" else middle, number.upper]
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "first": float(ends[0] - step / 2),  # a value of the resolution is as wide as the resolution
        "unit": float(unit),
        "cells": [{"x": a, "width": max(round(b - a, 2), _LINE)} for a, b in itertools.pairwise(places)],
        "ticks": [number.text(tick) for tick in ticks],
    }


def histogram(number: Number, shares: Sequence[Estimate], numbers: Mapping[Any, Estimate]) -> dict[str, Any]:
    """The same, with heights and intervals of cells, and the marks of mean and quantiles.

    Parameters
    ----------
    number : Number
    shares : sequence of Estimate
        Of its states, the cells first.
    numbers : mapping of "mean" and levels of quantiles to Estimate
        As of `Answer`.

    Examples
    --------
    >>> halves = [Estimate(0.5, 0.4, 0.6), Estimate(0.5, 0.4, 0.6)]
    >>> picture = histogram(Number(0, 10, cuts=[2]), halves, {"mean": Estimate(3.5)})
    >>> [cell["height"] for cell in picture["cells"]], picture["marks"]
    ([83.33, 20.83], {'mean': 112.0})
    """
    picture = empty_histogram(number)
    heights = [
        [(end or 0.0) / cell["width"] for end in one] for one, cell in zip(shares, picture["cells"], strict=False)
    ]
    most = max((max(each) for each in heights), default=0.0) or 1.0
    for cell, share, each in zip(picture["cells"], shares, heights, strict=False):
        height, low, high = (round(_HEIGHT * end / most, 2) for end in each)
        cell |= {"height": height, "y": round(_HEIGHT - height, 2)}
        if share.lower is not None:
            cell |= {"top": round(_HEIGHT - high, 2), "bottom": round(_HEIGHT - low, 2)}
    marks = {key: (one.value - picture["first"]) * picture["unit"] for key, one in numbers.items()}
    return picture | {"marks": {key: round(float(x), 2) for key, x in marks.items() if np.isfinite(x)}}
