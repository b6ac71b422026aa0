"""The draws of samplers in an answer, kept and used again: this shows what a mechanism does before and after its noise.

A mechanism's `draw` gives exact statistics to the samplers and makes the answer of what these return. With the same
numbers from the samplers the answer has to be the same on a neighbour: else something of it comes from exact statistics
without noise. And the samplers have to be asked for the noise that the release says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pgmpy_dp.fields.operators.parities import JointNoise
from pgmpy_dp.fields.operators.vote_operators import StableMode
from pgmpy_dp.mixtures.operators.block_operators import StableCells
from pgmpy_dp.mixtures.operators.cluster_operators import WeightedNoise
from pgmpy_dp.private.curator.mechanism import AdditiveNoise, Mechanism, NoisyMax, SeveralNoisyMax
from pgmpy_dp.private.curator.observer import in_the_place_of_noise
from pgmpy_dp.private.operators.column_operators import StableMarks

Drawn = list[tuple[str, float, tuple[int, str], Any]]
"""For each call of a sampler its law, its scale, how many numbers it was given and of what, and what it returned."""


def drawn(mechanism: Mechanism, draw: Callable[[], Any]) -> tuple[Any, Drawn]:
    """An answer, and what samplers drew for it. Matrices, flips and choices are drawn by others: then it is empty."""
    calls: Drawn = []
    places = _places(mechanism)

    def sampled(law: str, scale: float, values: Sequence[int], measure: Callable[[Any], Any]) -> Any:
        measured = measure(values)
        calls.append((law, scale, (len(values), places), measured))
        return measured

    with in_the_place_of_noise(sampled):
        return draw(), calls


def undrawn(mechanism: Mechanism, calls: Drawn) -> list[str]:
    """Return what is wrong with how much noise was drawn: each number of a statistic has its own."""
    needed = _NUMBERS.get(type(mechanism))
    wanted, number = needed and needed(mechanism), sum(count for _, _, (count, _), _ in calls)
    return [f"noise was drawn for {number} numbers of {wanted}"] if wanted not in (None, number) else []


_NUMBERS: dict[type, Callable[[Any], int]] = {
    AdditiveNoise: lambda m: sum(item.value.size for item in m.exact),
    JointNoise: lambda m: m.exact.value.size,
    WeightedNoise: lambda m: sum(array.size for array in m.exact),
    NoisyMax: lambda m: m.exact.value.size,
    SeveralNoisyMax: lambda m: sum(map(len, m.exact)),
    StableMode: lambda m: 1,
    StableCells: lambda m: m.counts.size,
    StableMarks: lambda m: m.counts.size,
}
"""How many numbers a mechanism adds noise to by the samplers. Others draw theirs otherwise, some very many at once."""


def drawn_again(
    first: Mechanism, mechanism: Mechanism, draw: Callable[[], Any], answer: Any, calls: Drawn
) -> list[str]:
    """Return what is wrong with an answer that a neighbour's mechanism makes of the numbers of the first one's."""
    if not calls:
        return []
    left = iter(calls)
    differs, places = False, _places(mechanism)

    def sampled(law: str, scale: float, values: Sequence[int], measure: Callable[[Any], Any]) -> Any:
        nonlocal differs
        before = next(left, None)
        if before is None or before[:3] != (law, scale, (len(values), places)):
            differs = True
            return measure(values)
        return before[3]

    with in_the_place_of_noise(sampled):
        again = draw()
    stated = _stated(mechanism)
    wrong = [scale for _, scale, *_ in calls if scale not in stated]
    problems = [f"noise of scale {wrong[0]} was drawn where {sorted(stated)} is stated"] if wrong else []
    # Cells that one side alone has are noisy numbers that the other lacks: a threshold hides them but for delta.
    if not differs and not _same(again, answer) and not _by_delta(first, mechanism, answer):
        problems.append("the same noisy numbers make another answer")
    return problems


def _by_delta(first: Mechanism, mechanism: Mechanism, answer: Any) -> bool:
    """Whether the answer is the event that delta is for: neighbours' modes differ, and the noise alone passes the test.

    `movement` sees to it that neither mode was farther than 0 from changing then, and `stated_scales` to the threshold.
    """
    if not (isinstance(first, StableMode) and isinstance(mechanism, StableMode)):
        return False
    return first.mode != mechanism.mode and bool(answer[0][0] >= mechanism.test.threshold)


def _places(mechanism: Mechanism) -> str:
    """Return the places of numbers where the data decide them: the same numbers of other cells mean something else."""
    marks = mechanism.cells.tolist() if isinstance(mechanism, StableCells) else getattr(mechanism, "marks", None)
    return "" if marks is None else repr(marks)


def _stated(mechanism: Any) -> set[float]:
    """All scales that a sampler may be asked for."""
    grid, scale = getattr(mechanism, "grid", 1), getattr(mechanism, "scale", None)
    stated = {grid * noise.scale for noise in mechanism.noise if noise}
    return stated if scale is None else stated | {scale}


def _same(one: Any, other: Any) -> bool:
    several = isinstance(one, list | tuple)
    pairs = zip(one, other, strict=False) if several and len(one) == len(other) else [(one, other)]
    return all(np.array_equal(a, b) for a, b in pairs)
