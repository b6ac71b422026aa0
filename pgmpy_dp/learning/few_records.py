"""Warnings of releases that are of little use: they cost nothing, since they depend on released numbers alone."""

from __future__ import annotations

from collections.abc import Iterable

from pgmpy_dp.shown import quantity

FEW = 5.0
"""An estimated number within so many standard deviations of 0 is next to nothing."""

HARDLY_INSIDE = 0.05
"""Of a public number of records, or of a column's: a smaller share matches next to nothing."""

_PILED = 0.05  # of a column's numbers: what counts as many in one cell
_HARDLY_ANY = 0.01  # of the records: what noise alone leaves of a column at most
_HARDLY, _FEW_EDGES = 0.1, 6
"""The share of the budget for tables of several variables below which a graph can hardly find its edges, and the number
of variables for each edge then."""


class _Doubt(UserWarning):
    """A warning of a release, from what the release says alone."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class FewRecordsWarning(_Doubt):
    """The fit learned noise: the estimated number of records is within a few standard deviations of 0.

    It depends on the release alone, as everything that is learned does.

    Parameters
    ----------
    message : str

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> from pgmpy_dp import Budget, learn
    >>> data = pd.DataFrame({"sex": ["female", "male"] * 500, "ill": ["yes", "no"] * 500})
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     fitted = learn(data, Budget(rho=0.5), {"sex": ["F", "M"], "ill": ["no", "yes"]})
    >>> [warning.category.__name__ for warning in caught]
    ['FewRecordsWarning', 'NoEdgeWarning']
    """


class DroppedRecordsWarning(_Doubt):
    """Many records are outside the schema, of a number that is public: what is learned is not of all.

    The released tables say so. Where the number of records is not public, `pgmpy_dp.check` tells.

    Parameters
    ----------
    message : str

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> from pgmpy_dp import Budget, learn
    >>> data = pd.DataFrame({"sex": ["F", "M"] * 500, "ill": ["yes", "no", "no", None] * 250})
    >>> schema = {"sex": ["F", "M"], "ill": ["no", "yes"]}
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     fitted = learn(data, Budget(rho=0.5), schema, n_records=1000)
    >>> [warning.category.__name__ for warning in caught], 740 < fitted.n_records_ < 760
    (['DroppedRecordsWarning'], True)
    """


class LargeDeltaWarning(_Doubt):
    """A delta above 1/n, for n records: what publishes each record outright with that probability would have it too.

    n is public or the released number, so that nothing is told of a record.

    Parameters
    ----------
    message : str

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> from pgmpy_dp import Budget, learn
    >>> data = pd.DataFrame({"sex": ["F", "M"] * 500, "ill": ["yes", "no"] * 500})
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     fitted = learn(data, Budget(epsilon=1.0, delta=0.01), {"sex": ["F", "M"], "ill": ["no", "yes"]})
    >>> [warning.category.__name__ for warning in caught]
    ['LargeDeltaWarning']
    """


class NoEdgeWarning(_Doubt):
    """A learned graph has next to no edges: the budget went to single variables, and the model says little more.

    That was decided by the noise and by released tables of single variables. Nothing is said of how dependent the
    variables are.

    Parameters
    ----------
    message : str

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import pandas as pd
    >>> from pgmpy_dp import Budget, learn
    >>> data = pd.DataFrame(np.random.default_rng(0).integers(0, 5, (50, 20)), columns=[f"v{i}" for i in range(20)])
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     fitted = learn(data, Budget(epsilon=0.3, delta=1e-9), {name: range(5) for name in data})
    >>> [warning.category.__name__ for warning in caught], fitted.graph_.number_of_edges()
    (['FewRecordsWarning', 'NoEdgeWarning'], 0)
    """


class ContradictedTablesWarning(_Doubt):
    """Public tables that a model agrees with are not those of the people whom it was learned from.

    Released tables say so, beyond what their noise and the sampling of the records explain.

    Parameters
    ----------
    message : str

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> from pgmpy_dp import Budget, learn
    >>> data = pd.DataFrame({"sex": ["F", "M"] * 500, "ill": ["yes", "no"] * 500})
    >>> public = {"public": {"sex": [900, 100]}, "public_from": "elsewhere"}
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     fitted = learn(data, Budget(rho=0.5), {"sex": ["F", "M"], "ill": ["no", "yes"]}, **public)
    >>> [warning.category.__name__ for warning in caught]
    ['ContradictedTablesWarning']
    """


class PiledNumbersWarning(_Doubt):
    """Many numbers lie in one of the narrowest cells that were counted: nobody can tell whether they are one value.

    Released counts say so.

    Parameters
    ----------
    message : str

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import pandas as pd
    >>> from pgmpy_dp import Budget, Number, Schema, learn
    >>> data = pd.DataFrame({"gain": np.where(np.arange(9_000) % 3, 7.5, np.linspace(-50, 99, 9_000))})
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     fitted = learn(data, Budget(rho=0.5), Schema({"gain": Number(-50, 100)}))
    >>> [warning.category.__name__ for warning in caught]
    ['PiledNumbersWarning']
    """


def piled_numbers(column: str, cells: Iterable[tuple[str, str, float]]) -> str | None:
    """A sentence about a column of numbers that pile up within cells, by what was released; else None.

    Parameters
    ----------
    column : str
    cells : iterable of (str, str, float)
        Both ends of each, and the share of the numbers that lie in it.

    Examples
    --------
    >>> piled_numbers("cost", [("60", "70", 0.01)])
    >>> piled_numbers("cost", [("60", "70", 0.2)])[:66]
    'cost has 20 % of its numbers between 60 and 70, the narrowest cell'
    """
    many = [f"{100 * share:.0f} % of its numbers between {a} and {b}" for a, b, share in cells if share >= _PILED]
    if not many:
        return None
    many = [*many[:2], *([f"the like in {quantity(many[2:], 'more cell')}"] if many[2:] else [])]
    return (
        f"{column} has {', '.join(many)}, the narrowest cell that was counted: one value looks the same as many "
        "different ones there, so intervals are as wide as the cell. Where one value is public knowledge declare it, "
        "Number(..., spikes=[value]), or a resolution of which it is a value"
    )


def no_edge(n_variables: int, n_edges: int, share: float) -> str | None:
    """A warning's text where a learned graph has no edge, or next to none; else None.

    Parameters
    ----------
    n_variables, n_edges : int
    share : float
        Of the budget, for all tables of several variables that were chosen or required.

    Examples
    --------
    >>> no_edge(3, 1, 0.5), no_edge(1, 0, 0.0)
    (None, None)
    >>> no_edge(9, 1, 0.02)[:63]
    'the graph has 1 edge: 2 % of the budget went to tables of sever'
    """
    if n_variables < 2 or (n_edges and (share >= _HARDLY or n_edges * _FEW_EDGES > n_variables)):
        return None
    return (
        f"the graph has {quantity(n_edges, 'edge')}: {100 * share:.0f} % of the budget went to tables of several "
        "variables, which were predicted to drown in noise. Where dependence matters, pass workload= with the sets of "
        "variables that it matters in (or one_way_share=0.1, in Python), fewer variables or states, or more budget"
    )


def large_delta(delta: float, n_records: float) -> str | None:
    """A warning's text where delta is above one over the number of records, public or released; else None.

    Examples
    --------
    >>> large_delta(1e-9, 480.0), large_delta(0.01, 0.5)
    (None, None)
    >>> large_delta(0.01, 480.0)[:60]
    'delta=0.01 is above 1/n, for about 480 records: a release wi'
    """
    if not (n_records > 1.0 and delta * n_records > 1.0):
        return None
    return (
        f"delta={delta:g} is above 1/n, for about {quantity(n_records, 'record')}: a release with this guarantee may "
        f"give away some record outright; use one far below {1.0 / n_records:.1g}, for example 1e-9, which costs little"
    )


def hardly_any(column: str, share: float) -> str | None:
    """A sentence about a column of numbers or days that next to no record has, by what was released; else None.

    Parameters
    ----------
    column : str
    share : float
        Of the records that have a number.

    Examples
    --------
    >>> hardly_any("pay", 0.2)
    >>> hardly_any("pay", 0.0066)[:62]
    'pay has a value within its bounds in 0.66 % of the records, so'
    """
    if share >= _HARDLY_ANY:
        return None
    return (
        f"{column} has a value within its bounds in {100 * share:.2f} % of the records, so that a mean would be noise. "
        "Cells are read as 1010.5 and 2020-12-31; $1,010.00, 8.9% and 1,5 need units, thousands or decimal of the "
        "Number, 2020-12 and 31.12.2020 a format of the Date ('%Y-%m'), durations states instead of numbers"
    )


def dropped_records(n_records: float, inside: float, sd: float) -> str | None:
    """A warning's text where clearly fewer records are inside the schema than there are; else None.

    Parameters
    ----------
    n_records, inside, sd : float
        The number of records and of those inside, and the standard deviation of the difference.

    Examples
    --------
    >>> dropped_records(1000.0, 995.0, 2.0), dropped_records(1000.0, 900.0, 40.0)
    (None, None)
    >>> dropped_records(1000.0, 750.0, 20.0)[:61]
    'about 250 of 1,000 records (25%) have a cell that is no state'
    """
    if not n_records - inside > max(FEW * sd, n_records / 100.0):
        return None
    lost = n_records - max(inside, 0.0)
    return (
        f"about {lost:,.0f} of {n_records:,.0f} records ({lost / n_records:.0%}) have a cell that is no state of its "
        "column, and are left out; what is learned is of the others alone, who differ where cells are missing for a "
        'reason. Keep them by a state for missing cells: Number(..., missing="state"), and Schema(..., other={column: '
        "state}) for texts"
    )


def few_records(n_records: float, sd: float) -> str | None:
    """A warning's text where an estimated number of records is within `FEW` standard deviations of 0; else None.

    Parameters
    ----------
    n_records, sd : float
        The estimate and its standard deviation, 0 where the number is public: then there is no warning.

    Examples
    --------
    >>> few_records(480.0, 6.0), few_records(1.0, 0.0)
    (None, None)
    >>> few_records(1.0, 6.0)[:76]
    'about 1 record is inside the schema (standard deviation 6), which is next to'
    """
    if not (sd > 0 and n_records < FEW * sd):
        return None
    number = f"{quantity(n_records, 'record')} {'is' if round(n_records) == 1 else 'are'}"
    return (
        f"about {number} inside the schema (standard deviation {sd:,.0f}), which is next to nothing: what was learned "
        "is noise. Either the states of some column match few cells (pgmpy_dp.check tells, for a small part of a "
        "budget), or the budget is too small for so few records"
    )
