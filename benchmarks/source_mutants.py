"""One line of the boundary is broken in a copy of the repository, and the tests of its module are to notice.

    python -m benchmarks.source_mutants            # all; make mutants
    python -m benchmarks.source_mutants --only eta

Prints a table with the test that noticed first, and ends with 1 if a mutant was noticed by none. What these lines guard
is seen by no attack, and mostly not by replay: locks, forks, pickles, the order of debit and count, the constants of
certificates, the last bit of a scale. (Mutants that are patched in place: benchmarks/mutants.py for attacks,
tests/auditing/test_replay_mutants.py.)

A place is named by what it is called and what it says, never by a line or a folder: code moves, and is laid out anew.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import io
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import time
import tokenize
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["SOURCE_MUTANTS", "SourceMutant", "caught_by", "copied"]

ROOT = Path(__file__).parents[1]
_LONGEST = 900  # seconds of the tests of one mutant: one that hangs is noticed too


@dataclass(frozen=True)
class SourceMutant:
    """A change of one place in the package.

    Attributes
    ----------
    what : str
    symbol : str
        ``module:Class.function``, the module without its folders. Where no file of that name has the symbol, with `old`
        in it, the only one of the package that does. A module's constant is a symbol too.
    old, new : str
        `old` stands in the symbol once, whatever the spaces, the breaks and the comments between its tokens.
    tests : str
        Names of files of tests, in whichever folders they lie; a file may be followed by ``::`` and a test.
    """

    what: str
    symbol: str
    old: str
    new: str
    tests: str

    def found(self, root: Path = ROOT) -> tuple[Path, str]:
        """The file, relative to `root`, and its content with the change."""
        module, _, name = self.symbol.partition(":")
        for pattern in (f"{module}.py", "*.py"):
            places = [
                (path.relative_to(root), changed)
                for path in sorted((root / "pgmpy_dp").rglob(pattern))
                for changed in _changed(path.read_text(encoding="utf-8"), name, self.old, self.new)
            ]
            if places:
                break
        if len(places) != 1:
            raise ValueError(f"{self.what}: {self.symbol} has {len(places)} times {self.old!r}; mend the list")
        return places[0]

    def test_paths(self, root: Path = ROOT) -> list[str]:
        """The tests, relative to `root`."""
        paths = []
        for name in self.tests.split():
            file, *test = name.split("::")
            places = sorted((root / "tests").rglob(file))
            if not places:
                raise ValueError(f"{self.what}: there is no tests/**/{file}; mend the list")
            paths += ["::".join([str(place.relative_to(root)), *test]) for place in places]
        return paths


def _changed(source: str, name: str, old: str, new: str) -> list[str]:
    """The source with `new` for `old` in the symbol, once for each place."""
    first, *parts = name.split(".")
    if re.search(rf"\b{re.escape(parts[-1] if parts else first)}\b", source) is None:
        return []
    span = _span(ast.parse(source), [first, *parts])
    if span is None:
        return []
    tokens, wanted = _tokens(source), [text for _, _, text in _tokens(old)]
    texts = [text for _, _, text in tokens]
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    changed = []
    for k in range(len(tokens) - len(wanted) + 1):
        (line, column), (end_line, end_column) = tokens[k][0], tokens[k + len(wanted) - 1][1]
        if span[0] <= line and end_line <= span[1] and texts[k : k + len(wanted)] == wanted:
            indented = new.strip().replace("\n", "\n" + " " * column)
            before, after = source[: starts[line - 1] + column], source[starts[end_line - 1] + end_column :]
            changed.append(before + indented + after)
    return changed


def _span(tree: ast.AST, names: list[str]) -> tuple[int, int] | None:
    """First and last line of what has a qualified name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            called = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            called = [target.id for target in targets if isinstance(target, ast.Name)]
        else:
            continue
        if names[0] in called:
            if len(names) == 1:
                return node.lineno, node.end_lineno or node.lineno
            return _span(node, names[1:])
    return None


def _tokens(source: str) -> list[tuple[tuple[int, int], tuple[int, int], str]]:
    """Start, end and text of each token that is more than layout."""
    layout = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENDMARKER}
    found = tokenize.generate_tokens(io.StringIO(source).readline)
    return [(token.start, token.end, token.string) for token in found if token.type not in layout]


_CURATOR = "test_curator.py"
_CERTIFICATES = "test_certificates_constants.py"
_CHARGE = "data.ledger.charge(charged, unit=self.unit, public_tables=data._agreed, **facts)"
_TOLD = "for plan in data._plans:\n    plan.append(charged)"
_OPEN = "self._left = Fraction(1)"

# What is broken, where, what stands there and what instead, and the tests that are to notice.
_ROWS = [
    # -- what a curator keeps of its budget
    (
        "debit after count",
        "charged_base:ChargedCurator._answer_now",
        "self._debit(operator, share, eta)\nexact = mechanism(self._unit_cost if of_units else self._cost, share)",
        "exact = mechanism(self._unit_cost if of_units else self._cost, share)\nself._debit(operator, share, eta)",
        _CURATOR,
    ),
    ("share not debited", "curator_base:Curator._debit", "self._left -= share", "pass", _CURATOR),
    ("eta not debited", "curator_base:Curator._debit", "self._reserve -= eta", "pass", _CURATOR),
    (
        "a share a little above what is left",
        "curator_base:Curator._debit",
        "if share > self._left:",
        "if share > self._left * 9 / 8:",
        _CURATOR,
    ),
    (
        "the last share refused",
        "curator_base:Curator._debit",
        "if share > self._left:",
        "if share >= self._left:",
        _CURATOR,
    ),
    (
        "open before the ledger was charged",
        "charged_base:ChargedCurator._open",
        f"{_CHARGE}\n{_TOLD}\n{_OPEN}",
        f"{_OPEN}\n{_CHARGE}\n{_TOLD}",
        _CURATOR,
    ),
    (
        "answers while outside code sees records",
        "charged_base:ChargedCurator._require_open",
        "if self._data._in_other_hands:",
        "if False:",
        _CURATOR,
    ),
    (
        "answers without the lock",
        "charged_base:ChargedCurator._turn",
        "with self._turns.taken():\n    self._require_open()",
        "if True:\n    self._require_open()",
        _CURATOR,
    ),
    ("changes in the middle of a change", "turns:Turns", "if self._taken:", "if False:", "test_from_outside.py"),
    (
        "subclasses from elsewhere",
        "trusted_types:is_trusted",
        "getattr(sys.modules[cls.__module__], cls.__qualname__, None) is cls",
        "True",
        "test_from_outside.py",
    ),
    (
        "operators from elsewhere",
        "curator_base:Curator._planned",
        'require_trusted("operator", operator, "ask one of those that are there")',
        "pass",
        "test_operators.py",
    ),
    (
        "the operator itself in the place of a copy",
        "curator_base:Curator._planned",
        "cls.checked(operator, facts)",
        "(cls.checked(operator, facts), operator)[1]",
        "test_operators.py",
    ),
    ("an eta for what cannot fail", "curator_base:Curator._planned", "not request.can_fail", "False", _CURATOR),
    (
        "counts in other states than the noise was planned for",
        "curator_base:Curator.ask",
        "if facts is not self._facts:",
        "if False:",
        "test_from_outside.py::TestQuestionsInTheMiddleOfAnAnswer::test_states_that_are_merged_between_the_checks_and_the_count",
    ),
    (
        "statistics that move further than their noise was planned for",
        "mechanism:AdditiveNoise.over",
        "item.l1 > self.grid * l1 or item.l2 > self.grid * l2",
        "False",
        "test_operators.py",
    ),
    (
        "answers in a fork",
        "charged_base:ChargedCurator._require_open",
        "if self._turns.process != os.getpid():",
        "if False:",
        _CURATOR,
    ),
    ("copies of a curator", "charged_base:ChargedCurator", "def __reduce_ex__", "def _reduce", _CURATOR),
    (
        "reserve not subtracted from delta",
        "curator_base:cost_of",
        "budget.delta - reserve, 0.0",
        "budget.delta, 0.0",
        _CURATOR,
    ),
    (
        "parts cost what the cheapest one used",
        "curator_base:Curator._reclaim",
        "min([part._left for part in parts])",
        "max([part._left for part in parts])",
        _CURATOR,
    ),
    (
        "a reserve that comes back whole after parts",
        "curator_base:Curator._reclaim",
        "min([part._reserve for part in parts])",
        "self._reserve",
        _CURATOR,
    ),
    (
        "what parts have answered is nothing to keep",
        "curator_base:Curator._reclaim",
        "answered = self._has_answered()",
        "answered = self._answered",
        "test_curator_care.py",
    ),
    (
        "parts that are closed in the middle of an answer",
        "curator_base:Curator._reclaim",
        "turns.enter_context(part._turns.taken())",
        "pass",
        _CURATOR,
    ),
    ("parts stay open", "curator_base:Curator._reclaim", "part._closed = True", "pass", _CURATOR),
    (
        "a request beyond the schedule",
        "schedule:GradientCurator._debit",
        "if self._requests[operator] >= most:",
        "if self._requests[operator] > most:",
        "test_schedule.py",
    ),
    (
        "a curator that is opened again",
        "charged_base:ChargedCurator._start",
        'if vars(self).setdefault("_began", mine := object()) is not mine:',
        "if False:",
        "test_from_outside.py::TestWhatDecidesNoise",
    ),
    (
        "shares of a schedule, which counts requests",
        "regression_path:_require_shares",
        "not is_exactly(curator, TableCurator)",
        "False",
        "test_schedule.py",
    ),
    (
        "half of the noise of all steps",
        "schedule:GradientCurator.__init__",
        "math.nextafter(made.multiplier * bound, math.inf)",
        "math.nextafter(made.multiplier * bound / 2, math.inf)",
        "test_schedule.py",
    ),
    (
        "steps that forget the count beside them",
        "schedule:sampled_schedule",
        "total - count_rho",
        "total",
        "test_schedule.py",
    ),
    (
        "sampled steps that forget the count beside them",
        "schedule:sampled_schedule",
        "rate, n_steps, rho=count_rho",
        "rate, n_steps, rho=0.0",
        "test_schedule.py",
    ),
    (
        "a sampled replacement as an addition",
        "schedule:sampled_schedule",
        "epsilon, delta = epsilon / 2.0, delta / (1.0 + math.exp(epsilon / 2.0))",
        "pass",
        "test_schedule.py",
    ),
    (
        "a block function gets a view",
        "outside_functions:run_blocks",
        'np.array(blocks[k], order="C")',
        "blocks[k]",
        "test_outside_functions.py",
    ),
    (
        "one generator for all blocks",
        "outside_functions:run_blocks",
        "np.random.default_rng(seeds[k])",
        "np.random.default_rng(seeds[0])",
        "test_outside_functions.py",
    ),
    # -- certificates: constants, and what rounding adds
    (
        "nothing found is certified as the optimum",
        "block_projection:BlockProjection.certified",
        "CertifiedPoint(np.eye(self.n) / self.n, 1.0)",
        "CertifiedPoint(np.eye(self.n) / self.n, 0.0)",
        "test_block_projection.py",
    ),
    (
        "half of the distance above the diagonal",
        "block_projection:BlockProjection.certified",
        "point.distance * math.sqrt(0.5)",
        "point.distance * 0.5",
        "test_block_projection.py",
    ),
    (
        "an edge that moves one entry",
        "block_projection:BlockProjection._tight",
        "4.0 * step / self.n",
        "2.0 * step / self.n",
        "test_block_projection.py",
    ),
    (
        "a dual point outside of its box",
        "log_determinant:certified_precision",
        "np.clip((w + w.T) / 2.0 - moments, -weights, weights)",
        "np.clip((w + w.T) / 2.0 - moments, -2 * weights, 2 * weights)",
        _CERTIFICATES,
    ),
    (
        "a gap without the cap's multiplier",
        "log_determinant:duality_gap",
        "((max_eigenvalue - ((precision @ v) * v).sum(0)) * excess).sum()",
        "0.0 * excess.sum()",
        _CERTIFICATES,
    ),
    (
        "a precision beyond its cap",
        "log_determinant:into_cap",
        "if largest > max_eigenvalue",
        "if largest > 2 * max_eigenvalue",
        _CERTIFICATES,
    ),
    (
        "a gap's distance without its 2",
        "log_determinant:distance_bound",
        "math.sqrt(2 * gap)",
        "math.sqrt(gap)",
        _CERTIFICATES,
    ),
    (
        "a program's optimum moves by a third of its square",
        "block_projection:stable_set_sensitivity",
        "12.0 * alpha / kappa",
        "4.0 * alpha / kappa",
        "test_block_projection.py",
    ),
    (
        "solutions one distance apart, not two",
        "solutions:_moved",
        "program.sensitivity + 2.0 * program.distance",
        "program.sensitivity + program.distance",
        "test_solutions.py",
    ),
    (
        "NaN is a distance",
        "solutions:_released",
        "not point.distance <= distance",
        "point.distance > distance",
        "test_solutions.py",
    ),
    (
        "a matrix's rounding to its grid",
        "solutions:matrix_plan",
        "(moved + d * unit) / unit * (1.0 + 1e-9)",
        "moved / unit",
        "test_solutions.py",
    ),
    *[
        (f"projection: {what}", "certificates:certified_projection", old, new, _CERTIFICATES)
        for what, old, new in [
            ("no rounding of P P' in a", "a += error_x + _g(count) * trace", "a += error_x"),
            ("no rounding of X in a", "a += error_x + _g(count) * trace", "a += _g(count) * trace"),
            ("no rounding of sums in b", "_g(_SUMMED + 2) * size_n * size_x + error_n", "error_n"),
            ("no rounding of N in b", "size_x + error_n + size_n", "size_x + size_n"),
            ("no rounding of X in b", "error_n + size_n * error_x", "error_n"),
            ("no rounding of N in r", "error_n - eigenvalue_floor(rest)", "-eigenvalue_floor(rest)"),
            ("half of b + r", "4.0 * max(b + r, 0.0)", "2.0 * max(b + r, 0.0)"),
            ("no rounding of X in eta", "(eta + error_x)", "eta"),
            ("fewer roundings of X", "_g(2 * count + 20)", "_g(2 * count)"),
            ("fewer roundings of a product", "min(k, _COLUMNS) + -(-k // _COLUMNS) + 2", "min(k, _COLUMNS) + 2"),
            ("no rounding of the subtraction", "_g(count) * trace + 2 * _U * size_n", "_g(count) * trace"),
        ]
    ],
    *[
        (f"pair: {what}", "certificates:certified_pair", old, new, _CERTIFICATES)
        for what, old, new in [
            ("no rounding of G G' in h", "_g(dual_count) * dual_square + error_x", "error_x"),
            ("no rounding of X in h", "_g(dual_count) * dual_square + error_x", "_g(dual_count) * dual_square"),
            ("no rounding of the subtraction", "_U * float(np.linalg.norm(rest))", "0.0"),
            ("no rounding of G' F", "(_g(n + 8) + _g(count + 16)) * math.sqrt", "0.0 * math.sqrt"),
            ("no rounding of F", "(_g(n + 8) + _g(count + 16))", "_g(n + 8)"),
            ("half of b", "4.0 * root * root", "2.0 * root * root"),
            ("no rounding of X in eta", "(eta + error_x)", "eta"),
        ]
    ],
    *[
        (f"floor: {what}", "certificates:eigenvalue_floor", old, new, _CERTIFICATES)
        for what, old, new in [
            ("the shift alone", "-(shift + error)", "-shift"),
            ("no rounding of the diagonal", "+ 2 * _U * (float(diagonal.max()) + shift)", ""),
            ("no rounding of the factor", "_g(depth) * ratio * (1.0 + _g(2 * n + 8)) +", ""),
        ]
    ],
    (
        "floor: fewer roundings",
        "certificates:_depth",
        "-(-n // _BLOCK) + _BLOCK + 6",
        "-(-n // _BLOCK) + 6",
        _CERTIFICATES,
    ),
    # -- votes, distances, thresholds
    (
        "an edge that one block votes for eight times",
        "vote_operators:_checked_graph",
        "or len(set(answer)) < len(answer)",
        "",
        "test_outside_functions.py",
    ),
    (
        "a block's graph of any size",
        "vote_operators:_checked_graph",
        "or len(answer) > most",
        "",
        "test_outside_functions.py",
    ),
    (
        "a vote that moves one graph's edges",
        "vote_operators:vote_sensitivity",
        "2 * int(max_edges)",
        "int(max_edges)",
        "test_block_graphs.py test_replay_votes.py",
    ),
    (
        "a threshold without its last vote",
        "distance_test:distance_test",
        "math.floor(scale * math.log(1.0 / delta) * (1.0 + 1e-12)) + 1",
        "math.floor(scale * math.log(1.0 / delta) * (1.0 + 1e-12))",
        "test_distance_test.py",
    ),
    (
        "a graph that is one vote further from changing",
        "distance_test:mode_and_distance",
        "-(-(ranked[0][1] - ranked[1][1]) // 2) - 1",
        "-(-(ranked[0][1] - ranked[1][1]) // 2)",
        "test_distance_test.py",
    ),
    (
        "every threshold one lower",
        "histogram:stability_histogram",
        "1 + tail_quantile(scale, eta / moved)",
        "tail_quantile(scale, eta / moved)",
        "test_columns.py",
    ),
    (
        "marks of one block of two",
        "histogram:stability_histogram",
        "exact_fraction(rho) / moved",
        "exact_fraction(rho) / int(n_marks)",
        "test_columns.py",
    ),
    # -- noise
    (
        "scales rounded to nearest",
        "additive:round_up",
        "return rounded if Fraction(rounded) >= exact else math.nextafter(rounded, math.inf)",
        "return rounded",
        "test_noise.py",
    ),
    (
        "a root of an epsilon rounded to nearest",
        "additive:root_down",
        "while Fraction(root) ** 2 > exact:\n    root = math.nextafter(root, 0.0)",
        "pass",
        "test_noise.py",
    ),
    (
        "an epsilon for rho that is rounded up",
        "measures:OfRho.pure",
        "additive.root_down(per_rho * self.amount)",
        "additive.root_up(per_rho * self.amount)",
        "test_noise.py",
    ),
    (
        "an epsilon for rho of a better conversion",
        "measures:OfRho.pure",
        "per_rho * self.amount",
        "4 * per_rho * self.amount",
        "test_noise.py",
    ),
    (
        "a selection's noise in one direction",
        "measures:OfEpsilon.selection_scale",
        "additive.round_up(2 * moved / self.amount)",
        "additive.round_up(moved / self.amount)",
        "test_selection.py",
    ),
    (
        "a matrix nearer to its continuous noise",
        "matrix:_analytic",
        "d * (d + 1) / 2 / (12.0 * sigma**2 - 1.0)",
        "d * (d + 1) / 2 / (24.0 * sigma**2 - 1.0)",
        "test_matrix.py",
    ),
    (
        "a matrix of one cell",
        "matrix:_analytic",
        "d * (d + 1) / 2 / (12.0 * sigma**2 - 1.0)",
        "1 / (12.0 * sigma**2 - 1.0)",
        "test_matrix.py",
    ),
    (
        "a matrix's distance is paid for with all of delta",
        "matrix:_analytic",
        "budget.delta * (1.0 - _TAU_SHARE)",
        "budget.delta",
        "test_matrix.py",
    ),
    (
        "off the diagonal half the noise, not its root",
        "matrix:_planned",
        "root_up(Fraction(sigma) ** 2 / 2)",
        "root_up(Fraction(sigma) ** 2 / 4)",
        "test_matrix.py",
    ),
    (
        "a Wishart's scale rounded down",
        "matrix:wishart_scale",
        "math.ceil(trace / (2 * epsilon))",
        "math.floor(trace / (2 * epsilon))",
        "test_matrix.py",
    ),
    (
        "a coin with one head more",
        "subsampling:poisson_sample",
        "second < low",
        "second <= low",
        "test_noise_scripted_coins.py",
    ),
    (
        "parts that are not uniform",
        "subsampling:uniform_parts",
        "2**32 - 2**32 % parts",
        "2**32",
        "test_noise_scripted_coins.py",
    ),
    (
        "a normal number's second comparison is its first",
        "integer_wishart:_Normals._taken",
        "self._odd(place, square, 2)",
        "self._odd(place, square, 1)",
        "test_noise_scripted_coins.py",
    ),
    (
        "a normal number's first comparison is new",
        "integer_wishart:_Normals._taken",
        "Fraction(1, cell + 1)",
        "square",
        "test_noise_scripted_coins.py",
    ),
    (
        "a comparison that more bits would turn",
        "integer_wishart:_Normals._below",
        "Fraction(word + 1, 1 << bits) <= least",
        "Fraction(word, 1 << bits) <= least",
        "test_noise_scripted_coins.py",
    ),
    (
        "an entry that more bits would turn",
        "integer_wishart:_rounded",
        "(d + 1) * (2 * largest * middle + middle * middle)",
        "0",
        "test_integer_wishart.py",
    ),
    (
        "a matrix that rounding makes positive semidefinite",
        "integer_wishart:positive_semidefinite",
        "8 * (d + 2) * 2.0**-53",
        "-8 * (d + 2) * 2.0**-53",
        "test_integer_wishart.py",
    ),
    (
        "a vector's grid without its rounding",
        "fine_grid:fine_grid",
        "+ Fraction(root_up(Fraction(int(size))))",
        "",
        "test_fine_grid.py",
    ),
    (
        "a failure that delta does not pay for",
        "fine_grid:fine_grid",
        "budget.delta * (1.0 - _TAU_SHARE) - both * failure",
        "budget.delta * (1.0 - _TAU_SHARE)",
        "test_fine_grid.py",
    ),
    (
        "a word that more bits would turn",
        "bulk:_resolved",
        "word + 1 <= brackets[place][0]",
        "True",
        "test_noise_scripted_coins.py",
    ),
    (
        "a flip that is a little rarer",
        "choice:flip_rate",
        "-((-share).__floor__())",
        "share.__floor__()",
        "test_sign_sampling.py",
    ),
    (
        "a choice's last number twice",
        "choice:integer_below",
        "if drawn < bound:",
        "if drawn <= bound:",
        "test_noise_scripted_coins.py",
    ),
    # -- exact statistics, and what they are of
    (
        "records that are longer than the grid",
        "moments:clipping_scale",
        "GRID * (1.0 - (n_columns + 16) * 2.0**-51)",
        "GRID * (1.0 + 2.0**-10)",
        "test_moments.py",
    ),
    (
        "records that are longer by half",
        "moments:clipping_scale",
        "GRID * (1.0 - (n_columns + 16) * 2.0**-51)",
        "GRID * 1.5",
        "test_moments.py",
    ),
    (
        "a replaced row moves a matrix as an added one",
        "moments:trace_sensitivity",
        "root_up(2 * squared), 2.0 * trace",
        "root_up(2 * squared), 1.0 * trace",
        "test_moments.py test_matrix.py",
    ),
    (
        "parts of a table with a public size",
        "table:PrivateTable",
        "part._n_records, part._n_units = None,",
        "part._n_records, part._n_units = self._n_records,",
        _CURATOR,
    ),
    (
        "marks that a record takes away are not covered",
        "column_operators:category_histogram",
        "changed_records(adjacency)",
        "1",
        "test_columns.py",
    ),
    (
        "marks of two columns that are one",
        "columns:column_marks",
        "counts[place, key] += times",
        "counts[0, key] += times",
        "test_columns.py",
    ),
    (
        "two rows of a person count where categories are found",
        "columns:drawn_counts",
        "owners, 1, key",
        "owners, 2, key",
        "test_discovery.py test_columns.py",
    ),
    (
        "records that count in each of several groups",
        "tables:GroupedTables._exact",
        "np.equal.outer(np.arange(max(self.groups) + 1), self.groups)",
        "np.greater_equal.outer(np.arange(max(self.groups) + 1), self.groups)",
        "test_operators.py test_linked_replay.py",
    ),
    (
        "pairs of large families that start from the unit's number",
        "unit_rows:_placed",
        "mixed(seeds[units], _START)",
        "mixed(units.astype(np.uint64), _START)",
        "test_unit_rows.py",
    ),
    (
        "the order of equal children from the unit's number",
        "unit_rows:_in_order",
        "mixed(seeds[whose], rank.astype(np.uint64))",
        "mixed(whose.astype(np.uint64), rank.astype(np.uint64))",
        "test_unit_rows.py",
    ),
    ("draws of children without the secret key", "unit_rows:_seeds", "name, key=key,", "name,", "test_unit_rows.py"),
    (
        "pairs that lie beside one another",
        "unit_rows:_placed",
        "np.uint64(len(pairs) // MOST_PAIRS)",
        "np.uint64(1)",
        "test_unit_rows.py",
    ),
    (
        "more children that meet a condition than there is a state for",
        "unit_rows:unit_rows",
        "np.minimum(met.astype(np.int64), most)",
        "met.astype(np.int64)",
        "test_unit_rows.py",
    ),
    (
        "a family of as many children as count as one of more",
        "unit_kinds:unit_kinds",
        "size <= most",
        "size < most",
        "test_unit_rows.py",
    ),
    (
        "a family that counts once for each child in a check",
        "unit_kinds:unit_kinds",
        "GRID // size[child_owner[rows]]",
        "np.full(len(rows), GRID)",
        "test_unit_rows.py test_linked_replay.py",
    ),
    (
        "limits of a rule for the largest family, which others decide",
        "unit_kinds:broken_rules",
        "rule.limits(int(size.max(initial=0)) + 1)[:, size]",
        "rule.limits(int(size.max(initial=0)))[:, size]",
        "test_linked_replay.py",
    ),
    (
        "parents who occur twice, by each of their rows",
        "unit_kinds:unit_kinds",
        "times[parents.owner[has_unit]] == 1",
        "times[parents.owner[has_unit]] >= 1",
        "test_unit_rows.py test_linked_replay.py",
    ),
    (
        "keys that are whole numbers, for the unit of tables",
        "linked_schema:LinkedSchema.__init__",
        "decode_unit(encode_label(self.key), key_kind)",
        "self.key",
        "test_entry.py test_linked_discovery.py",
    ),
    (
        "linked tables of 0.3, for those of texts",
        "ledger_file:_with_kinds",
        "key_kind or UNSAID",
        "key_kind",
        "test_entry.py",
    ),
    (
        "charges of tables, for those of whole numbers",
        "ledger_file:_with_kinds",
        'key_kind == "integer" and not all(linked)',
        "False",
        "test_entry.py",
    ),
    (
        "copies of a file of 0.3 that forget what it left open",
        "ledger_file:_with_kinds",
        'getattr(first, "kind", None) != UNSAID',
        "True",
        "test_entry.py",
    ),
    (
        "releases of 0.3 that forget how keys were compared",
        "sensitive:Release.unit",
        'said.get("linked", {}).get("key_kind")',
        "None",
        "test_entry.py",
    ),
    (
        "the first row of a person counts, whatever is drawn",
        "units:drawn_rows",
        "keys=mixed(seeds[whose], rank.astype(np.uint64))",
        "keys=rank.astype(np.uint64)",
        "test_discovery.py test_columns.py test_units.py",
    ),
    ("any float is a code", "cells:_code_key", "not _is_exact(float(value.real))", "False", "test_cells.py"),
    ("empty fields are codes", "source_base:EveryText.__contains__", 'text != "" or', "True or", "test_cells.py"),
    ("integers are no codes", "coding:coding", "and not reading.codes", "", "test_cells.py test_reading_odd_cells.py"),
    ("labels of any length", "columns:_has_label", "if len(key[1]) > max_length:", "if False:", "test_columns.py"),
    (
        "divisions that somebody else has made",
        "column_operators:NumberTables.checked",
        "not is_exactly(number, Number, Date)",
        "not isinstance(number, Number)",
        "test_columns.py",
    ),
    ("statistics that pickle", "sensitive:Sensitive", "def __reduce_ex__", "def _reduce", "test_sensitive.py"),
    # -- what schemas cost
    (
        "a schema that was found for another unit",
        "discovered:require_same_promise",
        "if whose != unit:",
        "if False:",
        "test_discovered_schema.py",
    ),
    (
        "a schema that was found under another adjacency",
        "discovered:require_same_promise",
        "if under != adjacency:",
        "if False:",
        "test_discovered_schema.py",
    ),
    (
        "a schema that another ledger paid for",
        "discovered:require_same_promise",
        'facts.get("ledger") not in (None, ledger.id)',
        "False",
        "test_discovered_schema.py",
    ),
    (
        "one charge for two discoveries",
        "discovered:require_same_promise",
        "charges.remove(charge)",
        "pass",
        "test_learned_schema.py",
    ),
    (
        "a table that asks nobody who paid for its schema",
        "table:PrivateTable.__init__",
        "require_same_promise(self._declared, self._ledger if ledger is None else ledger, self._adjacency, self._unit)",
        "pass",
        "test_discovered_schema.py",
    ),
    (
        "columns that ask nobody who paid for their schema",
        "columns:PrivateColumns.__init__",
        "require_same_promise(schema, self._ledger if ledger is None else ledger, self._adjacency, self._unit)",
        "pass",
        "test_learned_schema.py",
    ),
    (
        "merged cells that cost nothing",
        "sensitive:Release.schema",
        '"fine" not in self.public',
        "True",
        "test_learned_schema.py",
    ),
    (
        "variables that are taken out for nothing",
        "table_schema:Schema.__init__",
        "self._mark(tuple(costs))",
        "self._mark(())",
        "test_learned_schema.py",
    ),
    (
        "scores that forget what else the schema cost",
        "placed_model:PlacedModel.reading",
        "if cost not in self.discovered",
        "if False",
        "test_learned_schema.py",
    ),
    # -- ledgers
    (
        "delta that converts is spent again",
        "filter:Filter",
        "_within(sums.delta, budget.delta - conversion_delta)",
        "_within(sums.delta, budget.delta)",
        "test_ledger.py",
    ),
    (
        "charges of another unit",
        "filter:Filter",
        "if self.entries and unit != self.entries[0].unit:",
        "if False:",
        "test_ledger.py",
    ),
    ("a charge that is not written", "ledger:Ledger", "self._file.write(content)", "pass", "test_ledger_file.py"),
    (
        "parts of a cost that they do not add up to",
        "ledger:Ledger.set_aside",
        "if not isinstance(whole_cost, PureDP | ZCDP):",
        "if False:",
        "test_ledger.py",
    ),
    (
        "a part for another unit than was charged",
        "ledger:Ledger._require_of_whole",
        "if entry.unit != whole.unit:",
        "if False:",
        "test_ledger.py",
    ),
    (
        "seeds behind a charge that does not say so",
        "ledger:Ledger._require_of_whole",
        "if entry.reproducible and not whole.reproducible:",
        "if False:",
        "test_ledger.py",
    ),
    (
        "a release that says more than holds",
        "sensitive:Release.published_with",
        "if not self.guarantee.implies(guarantee):",
        "if False:",
        "test_sensitive.py",
    ),
    # -- errors by declared measures
    (
        "values above 1 in a sum that a record moves by 1",
        "table_errors:value_parts",
        "and (flat <= 1.0).all()",
        "",
        "test_table_errors.py",
    ),
    (
        "errors of persons by shares with the noise of one part",
        "table_errors:measured_errors",
        "tables.linf * norm",
        "norm",
        "test_table_errors.py",
    ),
    (
        "values in the place of a model's probabilities",
        "model_errors:ModelErrors.checked",
        "if summed & {place for kind, places, _ in measures if kind not in _SUMS for place in places}:",
        "if False:",
        "test_table_errors.py",
    ),
    (
        "a ledger that is not charged for the fit and its test",
        "publish_if:_attempted",
        "table.set_aside(whole, what=what, mechanism=select_and_measure(whole), reproducible=seed is not None)",
        "table.set_aside(test.guarantee, what=what, mechanism='', reproducible=seed is not None)",
        "test_publish_if.py",
    ),
    (
        "half of the noise that is stated",
        "mechanism:AdditiveNoise.draw",
        "self.grid * noise.scale, rng=rng",
        "self.grid * noise.scale / 2, rng=rng",
        "test_replay.py::test_right_fits_hold_and_attain_their_bounds",
    ),
    (
        "the place of the largest exact score",
        "mechanism:NoisyMax.draw",
        "int(noisy_argmax([self.exact.value], self.scale, self.cost, rng)[0])",
        "int(self.exact.value.argmax())",
        "test_replay.py::test_right_fits_hold_and_attain_their_bounds",
    ),
    (
        "a mode whose exact distance passes",
        "distance_test:released_mode",
        "mode if noisy >= test.threshold",
        "mode if distance >= test.threshold",
        "test_distance_test.py",
    ),
    (
        "cells whose exact counts pass",
        "histogram:released_cells",
        "noisy >= histogram.threshold",
        "counts >= histogram.threshold",
        "test_histogram.py test_columns.py",
    ),
    (
        "scores of a record that lacks a value are counted",
        "score_sums:ScoreSums._vectors",
        "COUNT * counts[:, np.newaxis]",
        "COUNT * np.ones_like(counts)[:, np.newaxis]",
        "test_score_sums.py",
    ),
    (
        "scores are shortened to twice the bound",
        "score_sums:_shortened",
        "total > l1_bound, sizes * l1_bound",
        "total > 2 * l1_bound, sizes * 2 * l1_bound",
        "test_score_sums.py",
    ),
    (
        "scores move half as far where one is replaced",
        "score_sums:score_sensitivity",
        "changed = changed_records(adjacency)",
        "changed = 1",
        "test_score_sums.py",
    ),
    (
        "scores of persons count in full",
        "score_sums:ScoreSums._exact",
        "vectors *= weights[start : start + step, np.newaxis]",
        "vectors *= mechanism.grid",
        "test_score_sums.py",
    ),
]
SOURCE_MUTANTS = [SourceMutant(*row) for row in _ROWS]


@contextmanager
def copied() -> Iterator[Path]:
    """The package and its tests, without anything compiled, so that no old one is run."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("pgmpy_dp", "tests", "benchmarks", "docs"):
            left_out = shutil.ignore_patterns("__pycache__", "results", "pictures")
            shutil.copytree(ROOT / name, copy / name, ignore=left_out)
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, copy / name)
        yield copy


def caught_by(mutant: SourceMutant, copy: Path) -> str:
    """The test that failed first, "" if none did; `copy` is as it was afterwards.

    Tests run in a fork, which finds what the package needs already imported: that takes longer than most tests.
    """
    place, changed = mutant.found(copy)
    path = copy / place
    before = path.read_text(encoding="utf-8")
    path.write_text(changed, encoding="utf-8")
    try:
        status, output = _tested(mutant.test_paths(copy), copy)
    finally:
        path.write_text(before, encoding="utf-8")
    if status is None:
        return "it never ends"
    found = re.search(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", output, re.MULTILINE)
    if status not in (0, 1, 2) or bool(status) != bool(found):
        raise RuntimeError(f"{mutant.what}: pytest ended with {status}\n{output[-4000:]}")
    return found[1] if found else ""


def _tested(paths: list[str], copy: Path) -> tuple[int | None, str]:
    """How pytest ended, None if it did not, and what it said."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8", dir=copy) as said:
        run = multiprocessing.get_context("fork").Process(target=_run_tests, args=(paths, copy, said.name))
        run.start()
        run.join(_LONGEST)
        if run.is_alive():
            run.kill()
            run.join()
            return None, ""
        return run.exitcode, said.read()


def _run_tests(paths: list[str], copy: Path, output: str) -> None:
    """Run tests of the copy in this process, which ends with pytest's status."""
    stream = os.open(output, os.O_WRONLY)
    os.dup2(stream, 1)
    os.dup2(stream, 2)
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # what captures them here is not pytest's there
    os.chdir(copy)
    os.environ.update(PYTHONPATH=str(copy), PYTHONDONTWRITEBYTECODE="1")
    sys.dont_write_bytecode = True
    sys.path[:] = [str(copy), *(folder for folder in sys.path if folder not in ("", str(ROOT)))]
    for name in [name for name in sys.modules if name.split(".")[0] in ("benchmarks", "pgmpy_dp", "tests")]:
        del sys.modules[name]
    found = importlib.util.find_spec("pgmpy_dp")
    assert Path(str(found and found.origin)).is_relative_to(copy)
    import pytest

    status = pytest.main(["-q", "-x", "-n", "0", "-p", "no:cacheprovider", *paths])
    sys.stdout.flush()
    os._exit(int(status))


def _prepare() -> None:
    """Import what takes long and is not ours."""
    for name in ("dp_accounting.gaussian_mechanism", "dp_accounting.rdp", "opendp.prelude", "pgmpy", "scipy.stats"):
        importlib.import_module(name)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="mutants whose description contains this text")
    options = parser.parse_args(arguments)
    chosen = [mutant for mutant in SOURCE_MUTANTS if options.only in mutant.what]
    print("| mutant | place | the first test that failed |\n| --- | --- | --- |", flush=True)
    caught, start = [], time.monotonic()
    with copied() as copy:
        _prepare()
        for mutant in chosen:
            test = caught_by(mutant, copy)
            caught.append(test)
            print(f"| {mutant.what} | `{mutant.symbol}` | {f'`{test}`' if test else '**none**'} |", flush=True)
        # What fails in the whole copy too has noticed nothing.
        tests = sorted({test for test in caught if "::" in test})
        whole, output = _tested(tests, copy) if tests else (0, "")
    minutes, survived = (time.monotonic() - start) / 60, caught.count("")
    print(f"\n{len(chosen)} mutants, {survived} not caught, in {minutes:.1f} minutes")
    print("These tests pass without a mutant." if whole == 0 else f"A test fails without a mutant:\n{output[-4000:]}")
    return int(survived > 0 or whole != 0)


if __name__ == "__main__":
    sys.exit(main())
