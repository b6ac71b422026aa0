"""The base of every estimator: one release from private data under a budget, then everything from the release alone."""

from __future__ import annotations

import inspect
import re
import warnings
from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
import scipy.linalg
from skbase.base import BaseEstimator

from pgmpy_dp import __version__
from pgmpy_dp.learning.few_records import (
    ContradictedTablesWarning,
    DroppedRecordsWarning,
    FewRecordsWarning,
    LargeDeltaWarning,
    PiledNumbersWarning,
    dropped_records,
    few_records,
    large_delta,
)
from pgmpy_dp.learning.options import Settings, adjacencies, anything, checked, number, option, whole
from pgmpy_dp.learning.privacy_record import Privacy, handed_over, released, require_release
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.data_base import PrivateData
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema

_TYPES = {"clusters": "density_estimator", "communities": "clusterer", "classes": "classifier"}
"""What scikit-learn calls estimators of some tasks."""

_RAIN = {"rain": ["no", "yes"], "wet": [False, True]}
TABLE_EXAMPLES = (
    {"epsilon": 1.0, "state_names": _RAIN},
    {"rho": 0.1, "state_names": _RAIN, "adjacency": "replace_one", "n_records": 100},
)
"""Arguments of estimators of discrete tables, see `PrivateFit.get_test_params`."""


@dataclass_transform(eq_default=False, field_specifiers=(field,))
class PrivateFit:
    """A fit goes from a release to fitted attributes in one step: one that fails leaves the estimator as it was.

    Each subclass is made a dataclass: its constructor takes what its bases declare by `option`, then what it declares.
    Of several bases the last one's options come first; one that is there for that is ``dataclass(init=False)``, since
    scikit-base's constructor calls the next one's.

    What means the same in several estimators is documented in their common base. A line of names alone in a subclass's
    docstring, without type and text, stands for the entries that the nearest bases have for these names.

    Parameters
    ----------
    epsilon, delta, rho : float
        The budget of one fit: ``epsilon`` (pure), ``epsilon`` with ``delta``, or ``rho`` (zero-concentrated) alone.
    state_names : Schema or dict of variable to list of states
        Public description of the variables; required unless the data come as a `PrivateTable`.
    adjacency : {"add_remove", "replace_one"}
        The relation of neighbouring tables: what a difference in one record means.
    n_records : int, optional
        The number of records, if it is public. Required under "replace_one".
    random_state : int, optional
        For tests and benchmarks only: makes the noise reproducible, so that nothing is protected.

    Attributes
    ----------
    release_ : Release
        The release: save it to learn again without the records and without further cost.
    privacy_ : Privacy
        Guarantee, adjacency and ledger entries.
    n_features_in_ : int
        How many columns the release is of: public, whatever the records had.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Their names; only where all are text.
    """

    _release_kinds: ClassVar[tuple[str, ...]]
    _examples: ClassVar[tuple[dict[str, Any], ...]] = ({},)
    _made_for: ClassVar[tuple[str, ...]] = ()  # options that must be what the release says of them
    _options: Settings

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(repr=False, eq=False)(cls)

        def texts(names: re.Match[str]) -> str:
            # One entry may document several names, and is told once.
            return "\n".join(dict.fromkeys(_documented(cls, name) for name in names[0].split(", ")))

        if doc := cls.__dict__.get("__doc__"):
            cls.__doc__ = re.sub(r"^[a-z_]+(, [a-z_]+)*$", texts, inspect.cleandoc(doc), flags=re.MULTILINE)

    def __post_init__(self) -> None:
        super().__init__()  # scikit-base's, of estimators whose constructors dataclass writes

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Parameters with which scikit-base's generic tests construct the estimator."""
        return [dict(example) for example in cls._examples]

    def _as_checked(self) -> Self:
        """A copy of this estimator with checked options, which a fit reads, whatever becomes of this one meanwhile.

        Raises
        ------
        TypeError, ValueError
            For an option that its rule refuses.
        """
        taken, values = object.__new__(type(self)), checked(self)
        taken.__dict__ = {**vars(self), **values, "_options": Settings(**values)}
        return taken

    def _prior_privacy(self) -> Privacy | None:
        """The privacy of an earlier release that the fit depends on too."""
        return None

    def _public_said(self, release: Release) -> tuple[Mapping[str, Any], ...]:
        """What the record of the fit says of public tables that its model agrees with."""
        return ()

    def _pick(self, *names: str) -> dict[str, Any]:
        """Options of these names, for a function that takes them by the same names."""
        return {name: getattr(self, name) for name in names}

    def __sklearn_tags__(self: Any) -> Any:
        """What scikit-learn asks of whatever it shows or has in a pipeline; tags alone say it."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        data, task = map(self.get_tags().get, ("data_kind", "task"))
        discrete, graph = data in ("discrete", "sequences", "linked"), data == "graph"
        takes = InputTags(categorical=discrete, string=discrete, allow_nan=not graph, sparse=graph, pairwise=graph)
        estimator_type, binary = _TYPES.get(task), ClassifierTags(multi_class=False) if task == "classes" else None
        target = TargetTags(required=False)
        return Tags(estimator_type, target, classifier_tags=binary, non_deterministic=True, input_tags=takes)

    def _columns(self, release: Release) -> Sequence[Hashable]:
        """Names of the columns that a release is of."""
        return release.schema.variables

    release_: Release
    privacy_: Privacy
    n_features_in_: int
    feature_names_in_: np.ndarray

    def _take(
        self, taken: Self, release: Release, data: PrivateData | None = None, told: bool = True, **context: Any
    ) -> Self:
        """Learn from a release, charged to the ledger of `data` or read from a file; then set all that was learned.

        `taken` is this estimator as it was checked (`_as_checked`).

        What an earlier fit has set and this one does not is gone too. If learning fails the exception has the release.
        A `FewRecordsWarning` says where the released number of records is next to nothing, a `DroppedRecordsWarning`
        where it is clearly below the public number, a `LargeDeltaWarning` where delta is above one over it: unless
        nobody may be `told` yet.
        """
        privacy = Privacy.of(release, () if data is None else data.ledger.entries)
        tables = (*taken._public_said(release), *privacy.public_tables)
        privacy = replace(privacy, learned_by=__version__, public_tables=tables)
        privacy = privacy.depending_on(taken._prior_privacy())  # of the release's own prior, or of another one
        with nullcontext() if data is None else handed_over(release):
            learned = taken._learned(release, privacy, **context)
        kept = {name: value for name, value in vars(self).items() if not name.endswith("_") or name.startswith("_")}
        learned = {**features_in(taken._columns(release)), **learned}
        self.__dict__ = {**kept, **learned, "release_": release, "privacy_": privacy, "_is_fitted": True}
        if told:
            self._warn(stacklevel=4)
        return self

    def _warn(self, stacklevel: int) -> None:
        """Warn of doubts about a fit, which released and public numbers raise."""
        with handed_over(self.release_):  # warnings may be errors
            for category, said in self._doubts(self.release_, self.privacy_, vars(self)).items():
                if said is not None:
                    warnings.warn(said, category, stacklevel=stacklevel)

    def _doubts(
        self, release: Release, privacy: Privacy, learned: Mapping[str, Any]
    ) -> dict[type[Warning], str | None]:
        """The warnings about a fit, from released and public numbers alone."""
        n, sd = learned.get("n_records_", release.n_records or 0.0), learned.get("n_records_sd_", 0.0)
        model: Any = learned.get("model_")
        asked = [model.ask(name).worth for name in getattr(model, "numbers", ())]
        few = few_records(n, sd) or "\n".join(filter(None, (one.missing for one in asked))) or None
        piled = "\n".join(filter(None, (one.piled for one in asked))) or None
        dropped = dropped_records(release.n_records or 0.0, n, sd)
        return {
            FewRecordsWarning: few,
            DroppedRecordsWarning: dropped if few is None else None,
            LargeDeltaWarning: large_delta(privacy.delta, n),
            PiledNumbersWarning: piled if few is None else None,
            ContradictedTablesWarning: learned.get("_contradicted"),
        }

    @abstractmethod
    def _learned(self, *release_and_privacy: Any, **context: Any) -> Mapping[str, Any]:
        """All fitted attributes but `Release` and `Privacy`, from these two and public arguments."""

    def _check_release(self, release: Release) -> None:
        """Raise a TypeError or ValueError if this is not a release of this estimator."""
        require_release(release)
        if release.kind == "interrupted":
            raise ValueError(
                "release was interrupted before it had what this estimator learns from; release.values has what was "
                "answered until then"
            )
        if release.kind not in self._release_kinds:
            kinds = " or ".join(map(repr, self._release_kinds))
            raise ValueError(f"release has kind {release.kind!r}, this estimator needs one of kind {kinds}")


class BudgetedFit(PrivateFit):
    """A fit with a budget; abstract."""

    epsilon: float | None = option(None, number())
    delta: float = option(0.0, number(positive=False, below_one=True))
    rho: float | None = option(None, number())
    _: KW_ONLY
    random_state: int | None = option(None, whole(0))

    def _budget(self) -> Budget:
        return Budget(epsilon=self.epsilon, delta=self.delta, rho=self.rho)


class TableFit(BudgetedFit):
    """A fit with the description of a discrete table; abstract."""

    state_names: Schema | dict | None = option(None, anything())
    adjacency: str = option("add_remove", adjacencies())
    n_records: int | None = option(None, whole(0))


def features_in(names: Sequence[Hashable]) -> dict[str, Any]:
    """Attributes that say which columns a model is of, as scikit-learn has them: names only where all are text.

    Examples
    --------
    >>> features_in(["a", "b"]), features_in([0, 1])
    ({'n_features_in_': 2, 'feature_names_in_': array(['a', 'b'], dtype=object)}, {'n_features_in_': 2})
    """
    text = all(isinstance(name, str) for name in names)
    return {"n_features_in_": len(names), **({"feature_names_in_": np.array(names, dtype=object)} if text else {})}


def _documented(cls: type, name: str) -> str:
    """The entry of the nearest base that documents a name; the name where none does."""
    entry = re.compile(rf"^([a-z_]+, )*{re.escape(name)}(, [a-z_]+)* : .*(\n .*)*", re.MULTILINE)
    matches = (entry.search(inspect.getdoc(base) or "") for base in cls.__mro__[1:])
    return next((match[0] for match in matches if match), name)


class BasePrivateEstimator(BudgetedFit, BaseEstimator):
    """Learns from private data by one release; abstract.

    A subclass names the `_release_kinds` that it can learn from, declares its options, asks for the release in `_run`,
    and makes all it shows in `_learned`. It can refuse bad public arguments in `_check`. Its base for the kind of data
    makes private data of what users pass, in `_private`.
    """

    _tags: ClassVar[dict[str, Any]] = {
        "supports_weighted_data": False,
        "guarantees": ("pure", "zcdp", "approximate"),
        "adjacency": ("add_remove", "replace_one"),
    }

    @abstractmethod
    def _private(self, X: Any, budget: Budget) -> PrivateData:
        """Private data with a ledger of their own; those that are passed as such must agree with the arguments."""

    @abstractmethod
    def _run(self, data: Any, budget: Budget) -> Release:
        """The plan: refuses bad public arguments before it charges."""

    def _check(self) -> None:
        """Refuse public arguments that are wrong whatever the data, before these are opened."""

    def _learns_parameters(self) -> bool:
        """Whether a fit with these arguments sets a `model_` of discrete variables; public."""
        return False

    def fit(self, X: Any, y: None = None) -> Self:
        """Release what is needed under the budget, then learn from it.

        Parameters
        ----------
        X : dataframe, array, path, or private data
            As the class says. Private data (`PrivateTable`, `PrivateSequences`, `PrivateVectors`) are charged to their
            own ledger, which several fits can share; anything else gets a ledger with the budget of this fit.
        y : None
            Ignored; for pipelines.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For a public argument that cannot be used, before anything is spent. Nothing is raised because of a record.
        BudgetExceeded
            If the ledger of private data does not allow the budget; nothing is spent.

        Notes
        -----
        If learning fails after the release, it is paid for and not lost: the exception has it as its attribute
        ``release``, for :meth:`fit_release`. So is what was released before an interruption (Ctrl-C) in the middle.
        """
        return self._fit(X)

    def _fit(self, X: Any, **whose: Any) -> Self:
        taken, data, budget = self._prepared(X, **whose)
        return self._take(taken, released(data, taken._run, budget), data)

    def _prepared(self, X: Any, ledger: Any = None, **whose: Any) -> tuple[Self, Any, Budget]:
        """The arguments of `_run` and `_take`: all that a fit does before its plan, which charges.

        `ledger` is that of private data that are made of `X`; default: a new one, of the budget.
        """
        taken = self._as_checked()
        budget = taken._budget()
        taken._check()
        data = taken._private(X, budget if ledger is None else ledger, **whose)
        _exercise_blas()
        return taken, data, budget

    def fit_release(self, release: Release) -> Self:
        """Learn again from what was released before; needs no records and costs nothing.

        Parameters
        ----------
        release : Release
            As in ``release_``, or read by ``Release.load``.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For a release of another estimator, for other objects, and for bad public arguments.
        """
        taken = self._as_checked()
        taken._check_release(release)
        for name in self._made_for:
            if (value := getattr(taken, name)) != (said := release.public.get(name)):
                raise ValueError(f"{name}={value!r}, and the release has {said!r}; pass the release's")
        return self._take(taken, taken._under_rules(release))

    def _under_rules(self, release: Release) -> Release:
        """The release under the arguments' rules about what is impossible."""
        return release


@cache
def _exercise_blas() -> None:
    """Multiply and factorise once: NumPy and SciPy each have a BLAS, which takes its memory at its first use.

    Where there is none, OpenBLAS ends the process or tries for ever. Nothing has been spent then.
    """
    made_up = np.eye(256)  # small products need no buffer
    scipy.linalg.blas.dgemm(1.0, made_up, scipy.linalg.cholesky(made_up @ made_up))
