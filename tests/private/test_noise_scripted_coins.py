"""Coins from written-out random bits: every decision at its border, where no number of draws would look.

Samplers get the bytes of a script. So laws are held to the last unit, and no test can fail by chance.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from pgmpy_dp.communities.operators import choice
from pgmpy_dp.private.noise import bulk, integer_wishart
from pgmpy_dp.private.noise.integer_wishart import _Normals
from pgmpy_dp.private.noise.subsampling import RATE_UNIT, poisson_sample, uniform_parts


class Script:
    """A generator whose random bytes are written out; all of them have to be asked for."""

    def __init__(self, *blocks: bytes) -> None:
        self.blocks = list(blocks)

    def bytes(self, size: int) -> bytes:
        block = self.blocks.pop(0)
        assert len(block) == size
        return block


class TestCoins:
    @pytest.mark.parametrize("heads", [1, 255, 256, 257, 19661, RATE_UNIT - 257, RATE_UNIT - 256, RATE_UNIT - 1])
    def test_of_all_pairs_of_bytes_the_first_ones_are_heads(self, heads):
        """One record for each pair of bytes: as many heads as the rate has multiples of 1/RATE_UNIT, and which."""
        first = np.repeat(np.arange(256, dtype=np.uint8), 256).tobytes()
        second = np.arange(256, dtype=np.uint8).tobytes()  # asked for where the first byte does not decide
        script = Script(first, second) if heads % 256 else Script(first)
        assert poisson_sample(RATE_UNIT, heads / RATE_UNIT, rng=script).tolist() == list(range(heads))
        assert not script.blocks

    @pytest.mark.parametrize("parts", [1, 3, 1000, 2**31 + 1, 2**32])
    def test_words_beyond_the_largest_multiple_are_drawn_again(self, parts):
        end = 2**32 - 2**32 % parts
        words = [0, parts - 1, end - 1, *({end, 2**32 - 1} if end < 2**32 else ())]
        again = [7] * (len(words) - 3)
        script = Script(*(np.array(some, dtype="<u4").tobytes() for some in (words, again) if some))
        found = uniform_parts(len(words), parts, rng=script)
        assert found.tolist() == [word % parts for word in words[:3] + again] and not script.blocks

    @pytest.mark.parametrize("bound", [1, 2, 5, 256, 257])
    def test_a_number_below_a_bound_is_never_the_bound(self, bound):
        n_bits = (bound - 1).bit_length()
        n_bytes = -(-n_bits // 8)
        words = [drawn << (8 * n_bytes - n_bits) for drawn in ([bound] if bound < 1 << n_bits else []) + [bound - 1]]
        script = Script(*(word.to_bytes(n_bytes, "little") for word in words))
        assert choice.integer_below(bound, script) == bound - 1 and not script.blocks

    @pytest.mark.parametrize(
        ("words", "position"),
        [
            ([0], 0),
            ([2**127 - 4], 0),  # within the weights' rounding of the border, at half of the bits: more are read
            ([2**127 - 1, 2**127], 0),
            ([2**127, 2**127], 1),
            ([2**128 - 1, 2**127], 1),  # nothing is beyond the last position
        ],
    )
    def test_a_choice_reads_on_until_its_number_is_certain(self, words, position):
        """Two equal weights, whose sum is no power of two: the first for numbers below one half, and for no others."""
        script = Script(*(word.to_bytes(16, "little") for word in words))
        assert choice.scaled_choice([(3, 5), (3, 5)], script) == position and not script.blocks

    def test_a_word_that_is_not_decided_has_more_bits(self, monkeypatch):
        """Of 64 bits nothing is known here, and of 128 half of what the word allows is open still."""
        seen, word = [], 1 << 63

        def brackets(distribution, scale, bits):
            seen.append(bits)
            here = ((word << (bits - 64)) + (1 if bits == 128 else 1 << (bits - 66)), 1 << bits)
            return 0, [here if bits > 128 else (0, here[1]), (1 << bits, 1 << bits)]

        monkeypatch.setattr(bulk, "cumulative_brackets", brackets)
        monkeypatch.setattr(bulk.os, "urandom", lambda size: bytes(size))
        assert bulk._resolved("discrete_laplace", 1.0, word) == 0 and seen == [128, 192]


def normal(cell: int, *limbs: int) -> _Normals:
    """One number whose cell and leading bits are given."""
    drawn = _Normals.__new__(_Normals)
    drawn.cells, drawn.signs, drawn.limbs = np.array([cell]), np.ones(1), [np.array([limb]) for limb in limbs]
    return drawn


class TestNormalNumbers:
    @pytest.mark.parametrize(("step", "cell"), [*((10, cell) for cell in (0, 1, 3, 3000)), (1, 0), (1, 1), (1, 3)])
    def test_a_cell_is_taken_with_its_probability(self, cell, step, monkeypatch):
        """All ways in which comparisons can end, each with its probability, add up to exp(-y) of a number in a cell.

        With cells of length 1/2 y is large, and a comparison too many shows in the first digits.
        """
        monkeypatch.setattr(integer_wishart, "_STEP", step)
        t, square = Fraction(1, 2), Fraction(1, 1 << (2 * step))
        y = square * (cell * t + t * t / 2)

        def chance(ends: tuple[bool, ...], left: Fraction, depth: int) -> Fraction:
            """Probability of being taken, once the comparisons so far have ended in this way."""
            asked: list[Fraction] = []

            def below(self, place, unit):
                asked.append(unit * (cell * t + t * t / 2))
                if len(asked) > len(ends):
                    raise StopIteration
                return ends[len(asked) - 1]

            monkeypatch.setattr(_Normals, "_below", below)
            try:
                return left * normal(cell, 1 << 19)._taken(0)
            except StopIteration:
                if depth == 0:
                    return Fraction(0)
                p = asked[-1]
                return chance((*ends, True), left * p, depth - 1) + chance((*ends, False), left * (1 - p), depth - 1)

        reach = (cell + 1) * square
        # Up to 1, u_1 is known to be below `reach`; beyond, nothing is known, and exp(-y) is asked for as a product.
        wanted = math.exp(-y) if math.ceil(reach) > 1 else 1 - -math.expm1(-y) / float(reach)
        assert float(chance((), Fraction(1), 14)) == pytest.approx(wanted, rel=1e-13 if step == 10 else 1e-6)

    def test_a_comparison_ends_where_no_bits_to_come_can_turn_it(self, monkeypatch):
        """y = (t + t**2/2) unit at t in [1/2, 1/2 + 2**-20): words just outside of what is possible, and inside."""
        unit, t, step = Fraction(1, 2), Fraction(1, 2), Fraction(1, 1 << 20)
        least, most = (unit * (x + x * x / 2) for x in (t, t + step))
        last_below = (least / step).__floor__() - 1  # u in [word, word + 1) is below the least y
        first_above = (most / step).__ceil__()
        for word, decided in (
            (last_below, True),
            (last_below + 1, None),
            (first_above - 1, None),
            (first_above, False),
        ):
            script = Script((word << 4).to_bytes(3, "little"))
            monkeypatch.setattr(integer_wishart.os, "urandom", script.bytes)
            number = normal(1, 1 << 19)
            if decided is None:  # it asks for more
                with pytest.raises(IndexError):
                    number._below(0, unit)
            else:
                assert number._below(0, unit) is decided and len(number.limbs) == 1
