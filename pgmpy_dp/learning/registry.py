"""Finding the classes of this package by their tags, as pgmpy finds its own: estimators, and metrics."""

from __future__ import annotations

from typing import Any

from skbase.base import BaseEstimator
from skbase.lookup import all_objects


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
        ("undirected", "directed", "chain", "mixture").

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
    ['CollectiveEM', 'CollectiveMAP', 'NaiveMLE', 'PrivateLinearGaussian']
    """
    # What fits two tables takes other arguments than these, and is found in its own package.
    return [one for one in list_objects(BaseEstimator, **tags) if getattr(one, "_fits_one_table", True)]


def list_objects(base: type, **tags: Any) -> list[type]:
    """The classes of this package derived from `base`, optionally those with certain tags.

    Parameters
    ----------
    base : type
        A class of scikit-base.
    **tags
        Tag names and values. A tag that holds several values matches any one of them.

    Returns
    -------
    list of type
        In alphabetical order.

    Raises
    ------
    ValueError
        If none of the classes has a tag of that name.

    Examples
    --------
    >>> from skbase.base import BaseEstimator
    >>> [estimator.__name__ for estimator in list_objects(BaseEstimator, task="sequences")]
    ['PrivateMarkovChain']
    """
    classes = all_objects(object_types=base, package_name="pgmpy_dp", return_names=False, suppress_import_stdout=False)
    known = set().union(*(one.get_class_tags() for one in classes))
    unknown = sorted(set(tags) - known)
    if unknown:
        raise ValueError(f"tags {unknown} are not known; the classes have {sorted(known)}")
    return [one for one in classes if all(_matches(one, *item) for item in tags.items())]


def _matches(one: type, name: str, wanted: Any) -> bool:
    value = one.get_class_tag(name)  # type: ignore[attr-defined]
    return value == wanted or (isinstance(value, tuple | list) and wanted in value)
