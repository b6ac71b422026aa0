"""Finding estimators by what they guarantee and what they learn."""

from __future__ import annotations

from typing import Any

from skbase.lookup import all_objects

__all__ = ["list_estimators"]


def list_estimators(**tags: Any) -> list[type]:
    """The estimators of this package, optionally those with certain tags.

    pgmpy has no place where other packages can register theirs: pass an instance of one of these to
    ``MarkovNetwork.fit(data, estimator=...)``.

    Parameters
    ----------
    **tags
        Tag names and values. A tag that holds several values matches any one of them:
        ``guarantees`` ("pure", "zcdp", "approximate"), ``adjacency`` ("add_remove", "replace_one"),
        ``data_kind`` ("discrete", "sequences"), ``task`` ("parameters", "structure", "sequences"), ``model_kind``
        ("undirected", "chain").

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
    found = all_objects(package_name="pgmpy_dp", return_names=False, suppress_import_stdout=False)
    known = set().union(*(estimator.get_class_tags() for estimator in found))
    unknown = sorted(set(tags) - known)
    if unknown:
        raise ValueError(f"tags {unknown} are not known; the estimators have {sorted(known)}")
    return [estimator for estimator in found if all(_matches(estimator, *item) for item in tags.items())]


def _matches(estimator: type, name: str, wanted: Any) -> bool:
    value = estimator.get_class_tag(name)  # type: ignore[attr-defined]
    return value == wanted or (isinstance(value, tuple | list) and wanted in value)
