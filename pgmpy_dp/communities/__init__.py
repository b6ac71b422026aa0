"""Communities of a graph with private edges (Chen et al. 2023).

Each plan's ``run`` returns a release of ``kind="communities"``, which `communities_base.communities` reads.
"""

from typing import TYPE_CHECKING

from pgmpy_dp.front_door import front_door

ESTIMATORS = {
    "PrivateBlockModel": "pgmpy_dp.communities.private_block_model",
}

if TYPE_CHECKING:
    from pgmpy_dp.communities.private_block_model import PrivateBlockModel as PrivateBlockModel

__getattr__, __dir__ = front_door(__name__, ESTIMATORS)
