"""The base of StableStructure and EdgeVoting: blocks of records that vote, one release, and a graph from it."""

from __future__ import annotations

from dataclasses import dataclass

from pgmpy_dp.checks import require_value
from pgmpy_dp.fields.field_base import WIDTH, BoundedWidth
from pgmpy_dp.fields.votes.block_graphs import LEARNERS, plan_blocks
from pgmpy_dp.learning.graph_base import BaseGraphEstimator
from pgmpy_dp.learning.options import number, one_of, option, whole
from pgmpy_dp.schema import Schema


@dataclass(init=False)
class _OfStrongEdges(BoundedWidth):
    """The first options."""

    min_edge_weight: float | None = option(None, number())


class BaseBlockVotes(BaseGraphEstimator, _OfStrongEdges):
    """Graph by the votes of disjoint blocks of records; abstract, see the two estimators.

    Parameters
    ----------
    width : float
        Public bound lambda > 0 on the width of the model, for the learner "logistic".
    learner : {"auto", "logistic", "inverse-covariance", "chow-liu"}
        How a block learns its graph. "logistic": an l1-constrained logistic regression for each variable, which has the
        guarantee. "inverse-covariance": faster, binary variables only, exact for trees. "chow-liu": trees, with the
        fewest records. "auto": "inverse-covariance" for binary variables and order 2, else "logistic".
    order : int, default 2
        Largest number of variables of an interaction; above 2 for binary variables only.
    n_workers : int, optional
        Threads that learn blocks' graphs; default: up to 4. The result does not depend on it.
    """

    n_blocks: int | None = option(None, whole(1))
    learner: str = option("auto", one_of(LEARNERS))
    order: int = option(2, whole(2))
    n_workers: int | None = option(None, whole(1))

    def _learns_parameters(self) -> bool:
        return False

    def _check_schema(self, schema: Schema) -> None:
        require_value("width", self.width, WIDTH)
        least = "the public lower bound on the absolute interactions that are not 0, which an edge has to reach"
        require_value("min_edge_weight", self.min_edge_weight, least)
        plan_blocks(schema, self._options)
