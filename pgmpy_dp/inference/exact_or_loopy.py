"""Choose the inference of a model: exact on a junction tree, or loopy belief propagation where that is too large.

An *engine* turns parameters into the marginals of all tables and the log-partition function, and knows the directional
derivative of the marginals. Both engines are of this one form, so the fits take either; what differs is told by
`InferenceStatus`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Literal, Protocol

import numpy as np

from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.junction_tree import InferenceSize
from pgmpy_dp.inference.loopy_belief_propagation import (
    LoopyBeliefPropagation,
    LoopySettings,
    require_loopy_memory,
)
from pgmpy_dp.inference.sum_product import inference_size
from pgmpy_dp.shown import quantity

Inference = Literal["exact", "loopy", "auto"] | LoopySettings
"""The choices of a caller; settings mean loopy inference with these settings."""


class InferenceUnavailable(ValueError):
    """A request needs exact inference, and the model runs on loopy belief propagation."""


class InferenceEngine(Protocol):
    """From parameters to (pseudo-)marginals and their derivative.

    Attributes
    ----------
    cliques : Cliques
    """

    cliques: Cliques

    def calibrate(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Marginals of all tables, flat, and the log-partition function, or the engine's approximations of them.

        The marginals are the gradient of the log-partition function, in the approximation too.
        """

    def derivative(self, direction: np.ndarray) -> np.ndarray:
        """Derivative of the marginals at the last calibrated theta along `direction`; symmetric as a matrix."""


@dataclass(frozen=True)
class InferenceStatus:
    """The inference that was used, and how it ended.

    Attributes
    ----------
    method : {"exact", "loopy"}
    converged : bool
        Whether the calibration that the result rests on met its tolerance; True for exact inference.
    residual : float
        Largest difference, in probability, between a table's margin and its variable's belief; 0 for exact inference.
        It says how well the fixed point was found, not how far it is from the exact marginals.
    n_iter : int
        Iterations of that calibration; 0 for exact inference.
    n_calibrations, n_failures : int
        Calibrations by the same engine so far (in a fit: in the whole fit), and how many missed the tolerance; 0 for
        exact inference.
    n_response_failures : int
        Derivatives whose linear system was not solved to its tolerance.
    convexity : float
        Loopy inference's counting numbers: 0 is Bethe's, 1 is tree-reweighted.
    stalled : bool
        Whether an optimiser stopped where its gradient was far from 0, as it does where the approximation is not
        smooth because fixed points of the propagation appear or vanish.
    """

    method: Literal["exact", "loopy"]
    converged: bool = True
    residual: float = 0.0
    n_iter: int = 0
    n_calibrations: int = 0
    n_failures: int = 0
    n_response_failures: int = 0
    convexity: float = 0.0
    stalled: bool = False

    @property
    def sound(self) -> bool:
        """Whether the result converged, its fit did not stall, and 19 of 20 calibrations of the fit converged."""
        return self.converged and not self.stalled and 20 * self.n_failures <= self.n_calibrations

    def __str__(self) -> str:
        if self.method == "exact":
            return "exact inference on a junction tree"
        counting = {0.0: "Bethe", 1.0: "tree-reweighted"}.get(self.convexity, f"fractional ({self.convexity:g})")
        if self.converged:
            ending = f"converged in {quantity(self.n_iter, 'iteration')} to a residual of {self.residual:.1e}"
        else:
            ending = (
                f"did not converge, the residual is {self.residual:.1e} after "
                f"{quantity(self.n_iter, 'iteration')}: the marginals "
                'disagree with one another; try counting="trw" or a number below 1, more damping or a larger max_iter'
            )
        if self.n_failures:
            ending += f"; {self.n_failures} of {quantity(self.n_calibrations, 'calibration')} did not converge"
        if self.stalled:
            ending += "; the optimiser stopped short of an optimum, where the approximation is not smooth"
        if self.n_response_failures:
            ending += f"; {quantity(self.n_response_failures, 'inaccurate derivative')}"
        return f"loopy belief propagation, {counting} counting numbers: {ending}"


@lru_cache(maxsize=32)
def _size(cliques: Cliques) -> InferenceSize:
    """The size of exact inference, kept: a fit needs it several times, and a large graph takes a quarter second."""
    return inference_size(cliques)


def checked_inference(name: str, value: Any) -> Inference:
    """`value`, if it is a choice of inference; TypeError or ValueError naming the argument otherwise."""
    what = "'exact', 'loopy', 'auto' or a LoopySettings"
    if not isinstance(value, str | LoopySettings):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}; pass {what}")
    if isinstance(value, str) and value not in ("exact", "loopy", "auto"):
        raise ValueError(f"{name}={value!r} is not supported; pass {what}")
    return value  # type: ignore[return-value]  # one of the texts


def choose_inference(cliques: Cliques, inference: Inference, memory_limit: int) -> Literal["exact"] | LoopySettings:
    """Settle `inference` for this model: "exact", or the settings of loopy belief propagation.

    Parameters
    ----------
    cliques : Cliques
        The model.
    inference : {"exact", "loopy", "auto"} or LoopySettings
        "auto" is exact where exact inference fits in `memory_limit`, and loopy elsewhere.
    memory_limit : int
        Bytes that inference may allocate.

    Raises
    ------
    ValueError, TypeError
        If `inference` is something else.

    Examples
    --------
    >>> chain = Cliques(("a", "b", "c"), (2, 2, 2), (("a", "b"), ("b", "c")))
    >>> choose_inference(chain, "auto", 10_000)
    'exact'
    >>> choose_inference(chain, "auto", 100)
    LoopySettings(counting='bethe', damping=0.1, tol=1e-08, max_iter=500)
    """
    inference = checked_inference("inference", inference)
    if isinstance(inference, LoopySettings):
        return inference
    if inference == "exact" or (inference == "auto" and _size(cliques).memory_bytes <= memory_limit):
        return "exact"
    return LoopySettings()


def make_engine(cliques: Cliques, inference: Inference, memory_limit: int) -> SumProduct | LoopyBeliefPropagation:
    """The engine that `choose_inference` chooses.

    Raises
    ------
    ValueError, TypeError
        If `inference` is none of the choices.
    InferenceTooLarge
        If the engine would need more than `memory_limit` bytes, before anything is allocated.
    """
    chosen = choose_inference(cliques, inference, memory_limit)
    if isinstance(chosen, LoopySettings):
        return LoopyBeliefPropagation(cliques, chosen, memory_limit)
    return SumProduct(cliques, memory_limit=memory_limit)


def require_inference(cliques: Cliques, inference: Inference, memory_limit: int) -> None:
    """Raise what `make_engine` would, and allocate nothing."""
    if isinstance(choose_inference(cliques, inference, memory_limit), LoopySettings):
        require_loopy_memory(cliques, memory_limit)
    else:
        _size(cliques).require(memory_limit)


def inference_of(engine: InferenceEngine) -> Literal["exact"] | LoopySettings:
    """The choice of inference that `engine` came from."""
    return engine.settings if isinstance(engine, LoopyBeliefPropagation) else "exact"


def inference_to_dict(inference: Inference) -> str | dict[str, Any]:
    """A choice as text or a flat dict, for files; `inference_from_dict` reads it."""
    return asdict(inference) if isinstance(inference, LoopySettings) else inference


def inference_from_dict(content: str | dict[str, Any]) -> Inference:
    """The choice that `inference_to_dict` wrote."""
    if isinstance(content, dict):
        return LoopySettings(**content)
    return content  # type: ignore[return-value]  # checked where it is used


def engine_status(engine: InferenceEngine) -> InferenceStatus:
    """The status of the last calibration of `engine`, and its counts so far."""
    if not isinstance(engine, LoopyBeliefPropagation):
        return InferenceStatus("exact")
    return InferenceStatus(
        "loopy",
        engine.converged,
        engine.residual,
        engine.n_iter,
        engine.n_calibrations,
        engine.n_failures,
        engine.n_response_failures,
        engine.settings.convexity,
    )
