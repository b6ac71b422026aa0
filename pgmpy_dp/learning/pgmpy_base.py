"""pgmpy's base class of structure learners, which has a private name: imported here and nowhere else.

Ours stands before it among a class's bases, so that `fit`, `score` and tags are ours; `isinstance` and scikit-learn's
tags are what it is for. Its `_check_fit_data` reads the data and raises because of records: nothing here calls it.
Where a version of pgmpy has moved it, our base stands alone (``tests/test_pgmpy_contract.py`` says so).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    StructureBase: Any = object
else:
    try:
        from pgmpy.causal_discovery._base import _BaseCausalDiscovery as StructureBase
    except ImportError:

        class StructureBase:
            """In the place of pgmpy's base class, where that is missing."""
