"""Regressions from one random half of the records, parities from the other: Algorithm 5 of Zhang et al. (2020).

Each record goes to one half by a coin of its own, so the two releases compose in parallel: together they cost what each
of them costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmpy_dp.private.data.table import PrivateTable, random_halves
from pgmpy_dp.private.guarantee import PureDP, ZCDP
from pgmpy_dp.private.learners.frank_wolfe import FrankWolfeSettings, descend, release_public
from pgmpy_dp.private.learners.frank_wolfe_plan import frank_wolfe_plan
from pgmpy_dp.private.learners.parities import ParitySettings, plan_parities, release_parities
from pgmpy_dp.private.ledger import Budget
from pgmpy_dp.private.noise.samplers import seeded_generator
from pgmpy_dp.private.sensitive import Noise, Release

__all__ = ["HalvesSettings", "parities_part", "regressions_part", "run"]
