"""When an estimated number of records is next to nothing: said of the released number, which costs nothing."""

from __future__ import annotations

__all__ = ["FEW", "FewRecordsWarning", "LargeDeltaWarning", "few_records", "large_delta"]

FEW = 5.0
"""So many standard deviations from 0 an estimated number is next to nothing."""


class FewRecordsWarning(UserWarning):
    """What was learned is noise: the estimated number of records is within a few standard deviations of 0.

    It depends on the release alone, as everything that is learned does. Where the number is public nothing is said.

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
    ['FewRecordsWarning']
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)


class LargeDeltaWarning(UserWarning):
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

    def __init__(self, message: str) -> None:
        super().__init__(message)


def large_delta(delta: float, n_records: float) -> str | None:
    """What to say where delta is above one over the number of records, public or released; else None.

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
        f"delta={delta:g} is above 1/n, for about {n_records:,.0f} records: a release with this guarantee may give "
        f"away some record outright; use one far below {1.0 / n_records:.1g}, for example 1e-9, which costs little"
    )


def few_records(n_records: float, sd: float, how: str = "pgmpy_dp.check_schema") -> str | None:
    """What to say where an estimated number of records is within `FEW` standard deviations of 0; else None.

    Parameters
    ----------
    n_records, sd : float
        The estimate and its standard deviation; 0 where the number is public, of which nothing is said.
    how : str
        What tells more.

    Examples
    --------
    >>> few_records(480.0, 6.0), few_records(1.0, 0.0)
    (None, None)
    >>> few_records(1.0, 6.0)[:76]
    'about 1 record is inside the schema (standard deviation 6), which is next to'
    """
    if not (sd > 0 and n_records < FEW * sd):
        return None
    number = "1 record is" if round(n_records) == 1 else f"{n_records:,.0f} records are"
    return (
        f"about {number} inside the schema (standard deviation {sd:,.0f}), which is next to nothing: what was learned "
        f"is noise. Either the states of some column match few cells ({how} tells, for a small part of a budget), "
        "or the budget is too small for so few records"
    )
