"""Finding estimators by what they guarantee and what they learn."""

from __future__ import annotations

from typing import Any

from skbase.base import BaseEstimator

from pgmpy_dp.lookup import list_objects


def list_estimators(**tags: Any) -> list[type]:
    """The estimators of this package, optionally those with certain tags.

    pgmpy has no place where other packages can register theirs: pass an instance of one of these to
    ``MarkovNetwork.fit(data, estimator=...)``.

    Parameters
    ----------
    **tags
        Tag names and values. A tag that holds several values matches any one of them:
        ``guarantees`` ("pure", "zcdp", "approximate"), ``adjacency`` ("add_remove", "replace_one", "edge"),
        ``data_kind`` ("discrete", "sequences", "continuous", "graph"), ``task`` ("parameters" of a given graph,
        "parameters and graph", "structure", "sequences", "covariance", "clusters", "communities"), ``model_kind``
        ("undirected", "chain", "mixture").

    Returns
    -------
    list of type
        In alphabetical order.

    Raises
    ------
    ValueError
        If no estimator has a tag of that name.

    Examples
    --------
    >>> [estimator.__name__ for estimator in list_estimators(guarantees="pure", task="parameters")]
    ['CollectiveEM', 'CollectiveMAP', 'NaiveMLE']
    """
    # What fits two tables takes other arguments than these, and is found in its own package.
    return [one for one in list_objects(BaseEstimator, **tags) if getattr(one, "_fits_one_table", True)]
