"""Exact inference on many parameters of one model at a time.

Which of them is a variable of its own, last in every clique and every separator of the junction tree, the root's too.
So the sums of `SumProduct` run for all at once over contiguous memory, and no two of them are ever added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT, InferenceTooLarge, JunctionTree, build_junction_tree
from pgmpy_dp.inference.sum_product import inference_size

_CELLS = 2**20
"""Cells of all trees together: more at a time gain nothing, for what they save is the calls' overhead."""

_WHICH = object()


class SumProductBatch:
    """`SumProduct` for several parameter vectors at a time, the rows of an array.

    Parameters
    ----------
    cliques : Cliques
        The model.
    most : int
        How many vectors there are. So many, or as many as fit well in memory, are one batch.
    extra : sequence of sequence of int, optional
        Further sets of variable indices whose marginals are wanted.
    memory_limit : int
        Bytes that may be allocated.

    Attributes
    ----------
    n : int
        Vectors of a batch, at least 1.

    Raises
    ------
    InferenceTooLarge
        Before anything is allocated, if a batch of one would exceed the limit.

    Examples
    --------
    >>> import numpy as np
    >>> engine = SumProductBatch(Cliques(("a",), (2,), (("a",),)), 2)
    >>> marginals, log_partition = engine.calibrate(np.log([[0.25, 0.75], [2.0, 2.0]]))
    >>> marginals.round(12).tolist(), np.exp(log_partition).round(12).tolist()
    ([[0.25, 0.75], [0.5, 0.5]], [1.0, 4.0])
    """

    def __init__(
        self,
        cliques: Cliques,
        most: int,
        extra: Sequence[Sequence[int]] = (),
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
    ) -> None:
        tree = build_junction_tree(cliques, extra)
        self.cliques, self._most = cliques, most
        self.n = max(1, min(most, _CELLS // tree.cells))
        while True:
            try:
                self._engine = self._made(tree, extra, memory_limit)
                break
            except InferenceTooLarge:
                if self.n == 1:
                    inference_size(cliques, extra).require(memory_limit)  # says it without a variable that users lack
                    raise
                self.n //= 2

    def _made(self, tree: JunctionTree, extra: Sequence[Sequence[int]], memory_limit: int) -> SumProduct:
        cliques, which = self.cliques, len(self.cliques.variables)
        sizes, scopes = (*cliques.cardinalities, self.n), tuple((*scope, _WHICH) for scope in cliques.scopes)
        return SumProduct(
            Cliques((*cliques.variables, _WHICH), sizes, scopes),
            [(*scope, which) for scope in extra],
            memory_limit,
            replace(tree, cardinalities=sizes, cliques=tuple((*clique, which) for clique in tree.cliques)),
        )

    def calibrate(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Marginals of all scopes, (n, n_cells) to (n, n_cells + cells of the extra scopes), and log Z, (n,)."""
        marginals, _ = self._engine.calibrate(theta.T.ravel())
        root = self._engine._beliefs
        return marginals.reshape(-1, self.n).T, root.maxima[-1] + np.log(root.sums[-1])

    def derivative(self, direction: np.ndarray) -> np.ndarray:
        """Derivatives of the marginals at the last calibration along directions; shapes as those of `calibrate`."""
        return self._engine.derivative(direction.T.ravel()).reshape(-1, self.n).T

    def sampling_errors(self, rng: np.random.Generator) -> np.ndarray:
        """Draws of `SumProduct.sampling_error` at the last calibration, one for each vector, in rows."""
        return self._engine.sampling_error(rng).reshape(-1, self.n).T

    def batches(self) -> Iterator[np.ndarray]:
        """The numbers of the vectors of each batch; the last vector fills up the last batch."""
        for start in range(0, self._most, self.n):
            yield np.minimum(np.arange(start, start + self.n), self._most - 1)

    def marginals(self, theta: np.ndarray) -> np.ndarray:
        """Marginals under all vectors, as many as there are."""
        return np.concatenate([self.calibrate(theta[batch])[0] for batch in self.batches()])[: self._most]
