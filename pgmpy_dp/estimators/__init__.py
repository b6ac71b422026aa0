"""The estimators of all subjects. Each learns a model from private data, for pgmpy, and keeps no records.

A subject is a package beside this one whose ``ESTIMATORS`` says where its classes are. They are imported when first
used, as names of the front door are: what reads a model's file needs none of them.
"""

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING

import pgmpy_dp
from pgmpy_dp.front_door import front_door

if TYPE_CHECKING:
    from pgmpy_dp.communities import *  # noqa: F403
    from pgmpy_dp.fields import *  # noqa: F403
    from pgmpy_dp.gaussian import *  # noqa: F403
    from pgmpy_dp.mixtures import *  # noqa: F403
    from pgmpy_dp.sequences import *  # noqa: F403
    from pgmpy_dp.tables import *  # noqa: F403

_SHARED = {"auditing", "cli", "estimators", "inference", "learning", "models"}
_SHARED |= {"plotting", "private", "reporting", "schema", "theory"}
_PACKAGES = {package.name for package in pkgutil.iter_modules(pgmpy_dp.__path__) if package.ispkg}
_SUBJECTS = sorted(_PACKAGES - _SHARED)
_HOME = {name: home for subject in _SUBJECTS for name, home in import_module(f"pgmpy_dp.{subject}").ESTIMATORS.items()}

__all__ = sorted(_HOME)

__getattr__, __dir__ = front_door(__name__, _HOME)
