"""The peer dp-recorder beside replay: both on the same fits and neighbours, and on broken copies of the boundary.

    python -m benchmarks.recorder --rows build/recorder.jsonl                # the package as it is
    python -m benchmarks.recorder --rows build/recorder.jsonl --mutants 127  # lines of benchmarks/source_mutants.py
    python -m benchmarks.recorder --rows build/recorder.jsonl --report benchmarks/results/recorder.md

dp-recorder (Cebere et al. 2026, arXiv 2602.17454) records what functions that add noise are called with, gives their
answers again on a neighbour, and compares. It knows what is annotated: here the samplers of noise, with the sensitivity
that the statistic declares, and the few mechanisms that add noise of another kind. Its accountants add up what the
noise costs by these sensitivities, which is held to what the ledger was charged.

What it has no notion of is left to this module: coins by which records are sampled or divided are drawn again for a
neighbour with other records, so fits that draw them are not served.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib
import io
import itertools
import json
import multiprocessing
import os
import pickle
import re
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock
from zlib import crc32

import numpy as np

from benchmarks.machine import describe_machine
from benchmarks.source_mutants import SOURCE_MUTANTS, SourceMutant, copied

ROOT = Path(__file__).parents[1]
_LONGEST = 300  # seconds of both methods under one mutant
_ROUNDING = 1e-6
_ROUNDED = 1.0 - 1e-9  # of norms in floating point, for which the peer allows 1e-9 in all


def peer() -> Any:
    """The peer's module; ends the program where it is not installed."""
    try:
        return importlib.import_module("dp_recorder.auditing.audit_primitives")
    except ImportError as error:
        raise SystemExit(
            f"dp-recorder cannot be imported ({error}); benchmarks/README.md says how to install it"
        ) from error


@dataclass(frozen=True)
class Cost:
    """What noise costs by the sensitivity that it was given for: epsilon, or rho. Composes as the peer's own do."""

    amount: float

    def compose(self, other: Cost) -> Cost:
        return Cost(self.amount + other.amount)


class NotServed(BaseException):
    """A fit asks for what the peer cannot give again."""


def _gap(one: Any, other: Any) -> np.ndarray:
    if np.shape(one) != np.shape(other):
        return np.array([np.inf])
    # As Python integers: the peer's own metrics would wrap around or round.
    return (np.asarray(one, dtype=object) - np.asarray(other, dtype=object)).astype(float).ravel()


def _l1(one: Any, other: Any) -> float:
    return float(np.abs(_gap(one, other)).sum())


def _l2(one: Any, other: Any) -> float:
    return float(np.sqrt((_gap(one, other) ** 2).sum()))


def _of_cells(one: dict, other: dict) -> float:
    """l2 distance of counts by cell."""
    return float(np.sqrt(sum((one.get(cell, 0) - other.get(cell, 0)) ** 2 for cell in {*one, *other})))


def _half_range(one: Any, other: Any) -> float:
    """Of each row of scores, the root of the sum of their squares; of one row its own."""
    rows = [(_gap(a, b).max(), _gap(a, b).min()) for a, b in zip(one.values(), other.values(), strict=True)]
    return float(np.sqrt(sum(max(abs(high), abs(low), (high - low) / 2) ** 2 for high, low in rows)))


def _sum_of_half_ranges(one: Any, other: Any) -> float:
    return float(sum(_half_range({0: a}, {0: b}) for a, b in zip(one.values(), other.values(), strict=True)))


def _eigenvalues(one: Any, other: Any) -> np.ndarray:
    """Of the difference of two symmetric matrices whose upper triangles these are."""
    gap = _gap(one, other)
    d = int((np.sqrt(8 * gap.size + 1) - 1) / 2)
    matrix = np.zeros((d, d))
    matrix[np.triu_indices(d)] = gap
    return np.linalg.eigvalsh(matrix + np.triu(matrix, 1).T)


def _nuclear(one: Any, other: Any) -> float:
    return float(np.abs(_eigenvalues(one, other)).sum()) * _ROUNDED


def _frobenius(one: Any, other: Any) -> float:
    return float(np.sqrt((_eigenvalues(one, other) ** 2).sum())) * _ROUNDED


def _pairs(one: Any, other: Any) -> float:
    return _l1(np.triu(one), np.triu(other))


class Annotated:
    """The package's primitives under the peer's decorator, and what draws names and coins held still."""

    def __init__(self) -> None:
        # Here and not above: a mutant's process imports the copy.
        from pgmpy_dp.private.curator import observer
        from pgmpy_dp.private.noise import samplers

        self.observer = observer
        samplers.exercised()  # it draws once a process
        self.spec = peer().audit_spec
        self.request: Any = None
        self.draw: Callable | None = None
        self.charged: list[Any] = []
        self.several_curators = False
        self.watch = self._watch()
        self.primitives = {
            "discrete_laplace": self._primitive("discrete_laplace", _l1, lambda s, b: s / b),
            "discrete_gaussian": self._primitive("discrete_gaussian", _l2, lambda s, b: s * s / (2 * b * b)),
            "exponential_argmax": self._primitive("exponential_argmax", _sum_of_half_ranges, lambda s, b: 2 * s / b),
            "gumbel_argmax": self._primitive("gumbel_argmax", _half_range, lambda s, b: s * s / (2 * b * b)),
        }
        self.whole = {
            "nuclear": self._whole("nuclear", _nuclear),
            "l1": self._whole("l1", _l1),
            "frobenius": self._whole("frobenius", _frobenius),
            "coins": self._whole("coins", _l1),
            "pairs": self._whole("pairs", _pairs),
            "cells": self._whole("cells", _of_cells),
        }

    def _primitive(self, name: str, metric: Callable, cost: Callable[[float, float], float]) -> Callable:
        from pgmpy_dp.private.noise import samplers

        true = getattr(samplers, name)

        @self.spec(
            kind=name,
            input_arg="values",
            sensitivity_arg="sensitivity",
            metric_fn=metric,
            accountant=lambda sensitivity, scale: Cost(cost(sensitivity, scale)),
        )
        def primitive(values: Any, sensitivity: float, scale: float) -> Any:
            return true(list(values.values()) if isinstance(values, dict) else values, scale)

        def sampler(values: Any, scale: float, *, rng: Any = None) -> Any:
            if self.draw is not None:  # in the middle of a mechanism that is a primitive itself
                return true(values, scale)
            # The peer makes an array of what is no dict, and rows have different lengths.
            shown = dict(enumerate(values)) if isinstance(values, list) else values
            return primitive(shown, self._rows() * self._declared(name, values), scale)

        return sampler

    def _whole(self, kind: str, metric: Callable) -> Callable:
        @self.spec(kind=kind, input_arg="values", sensitivity_arg="sensitivity", metric_fn=metric)
        def primitive(values: Any, sensitivity: float, law: str) -> Any:
            return self.draw()  # type: ignore[misc]

        def drawn(values: Any, sensitivity: float, law: str, draw: Callable) -> Any:
            self.draw = (
                draw  # no argument: the peer compares arguments by their text, which for functions is an address
            )
            try:
                return primitive(values, sensitivity, law)
            finally:
                self.draw = None

        return drawn

    def _declared(self, name: str, values: Any) -> float:
        """How far the statistic says that it moves, in the primitive's norm."""
        if self.request is None:
            return 0.0
        mechanism = self.request.mechanism
        kind = type(mechanism).__name__
        if kind == "StableMode":
            return 1.0
        if kind == "WeightedNoise":
            # Only all arrays together have a bound: each gets its part.
            return float(np.sqrt(float(mechanism.square))) * float(
                next(u for a, u in zip(mechanism.exact, mechanism.units, strict=True) if a is values)
            )
        if kind == "SeveralNoisyMax":
            return mechanism.unit * (np.sqrt(mechanism.weight) if name == "gumbel_argmax" else mechanism.weight)
        exact = mechanism.exact if isinstance(mechanism.exact, tuple) else (mechanism.exact,)
        if kind == "NoisyMax":
            return float(exact[0].linf)
        norm = "l1" if name == "discrete_laplace" else "l2"
        same = [item for item in exact if item.value is values]
        return float(getattr(same[0] if same else exact[0], norm))

    def _rows(self) -> int:
        """Sensitivities are those of a record, and a unit may have several."""
        return 1 if self.request is None else self.request.rows

    def _watch(self) -> Any:
        outer = self

        class Watch(self.observer.Observer):  # type: ignore[name-defined]
            def paid(self, names: Any) -> Any:
                return {}

            def opened(self, curator: Any, budget: Any, facts: Any) -> None:
                outer.charged.append(curator._data.ledger.entries[-1].cost)

            def answer(self, request: Any, draw: Callable) -> Any:
                before, outer.request = outer.request, request
                try:
                    return outer.drawn(request, draw)
                finally:
                    outer.request = before

            def parts(self, units: Any, n_parts: int, draw: Callable) -> Any:
                raise NotServed

            def sample(self, units: Any, rate: float, draw: Callable) -> Any:
                raise NotServed

            def keys(self, units: Any, draw: Callable) -> Any:
                raise NotServed

            def generator(self, make: Callable) -> Any:
                return np.random.default_rng(outer.still("generator", lambda: int(make().integers(2**63))))

            def block_seeds(self, n_blocks: int, draw: Callable) -> Any:
                return outer.still("block seeds", draw)

            def lent(self, curator: Any, parts: Any) -> None:
                outer.several_curators = True

        return Watch()

    def still(self, what: str, draw: Callable) -> Any:
        """Coins that see no record are a primitive without an input."""
        return self.whole["coins"](np.zeros(1), 0.0, what, draw)

    def drawn(self, request: Any, draw: Callable) -> Any:
        mechanism, kind = request.mechanism, type(request.mechanism).__name__
        rows = request.rows
        law = f"{kind} {mechanism.noise}"
        if kind in ("RandomisedResponse", "CommunityChoice"):
            law += str(getattr(mechanism, "rate", "")) + str(getattr(mechanism, "law", ""))
            return self.whole["pairs"](mechanism.exact.toarray(), 1.0, law, draw)
        if kind == "MatrixSums":
            trace = float(mechanism.grid) * mechanism.features.trace
            bound = trace if str(mechanism.exact.adjacency) == "add_remove" else 2 * trace
            return self.whole["nuclear"](mechanism.exact.value, rows * bound, law + str(mechanism.scale), draw)
        if kind in ("SymmetricNoise", "SolutionMatrixNoise"):
            # The diagonal and the rest have one sensitivity together, so they are one primitive.
            exact, pure = mechanism.exact, "laplace" in mechanism.plan.mechanism
            bound = rows * (exact.l1 if pure else exact.l2)
            return self.whole["l1" if pure else "frobenius"](exact.value, bound, law + str(mechanism.plan), draw)
        if kind in ("StableCells", "StableMarks"):
            cells = mechanism.cells.tolist() if kind == "StableCells" else mechanism.marks
            exact = dict(zip(map(tuple, cells), mechanism.counts.tolist(), strict=True))
            changes = 2 if kind == "StableCells" else mechanism.changes
            bound = float(np.sqrt(changes * mechanism.n_marks))
            return self.whole["cells"](exact, rows * bound, law + str(mechanism.histogram), draw)
        return draw()

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Samplers are the annotated ones, by whatever name a module has them."""
        from pgmpy_dp.private.data.units import fixed_key
        from pgmpy_dp.private.noise import samplers

        with contextlib.ExitStack() as stack:
            for name, sampler in self.primitives.items():
                true = getattr(samplers, name)
                for module in [m for m in sys.modules.values() if getattr(m, "__name__", "").startswith("pgmpy_dp")]:
                    if vars(module).get(name) is true:
                        stack.enter_context(mock.patch.object(module, name, sampler))
            stack.enter_context(fixed_key(bytes(32)))
            stack.enter_context(self.observer.observed(self.watch))
            yield


def attempt(fit: Callable, data: Any) -> bytes:
    """What a fit gives, or how it fails, as bytes."""
    try:
        result = fit(data)
    except Exception as error:
        if "Divergence @" in str(error) or "Params mismatch @" in str(error):
            raise
        result = (type(error).__name__, str(error), getattr(error, "release", None))
    return pickle.dumps(result)


def recorded(fit: Callable, data: Any, neighbour: Any) -> tuple[list[str], int]:
    """What the peer finds on one pair, and how many calls it recorded. :class:`NotServed` passes."""
    module, annotated = peer(), Annotated()
    auditor = module.Auditor()
    quiet = contextlib.redirect_stdout(io.StringIO())
    problems: list[str] = []
    with quiet, warnings.catch_warnings(), annotated.installed():
        warnings.simplefilter("ignore")
        with auditor:
            module.ensure_equality(outcome=attempt(fit, data))
        calls = len(auditor.log) - 1
        problems += _overspent(auditor, annotated)
        auditor.set_replay()
        try:
            with auditor:
                module.ensure_equality(outcome=attempt(fit, neighbour))
        except (AssertionError, RuntimeError) as error:
            problems.append(str(error)[:200])
        try:
            auditor.validate_records()
        except AssertionError as error:
            problems.append(str(error)[:200])
    return problems, calls


def _overspent(auditor: Any, annotated: Annotated) -> list[str]:
    """What noise costs together, by the declared sensitivities, beside what one ledger was charged."""
    costs = [entry for entry in auditor.log if entry.kind != "EQ"]
    untrusted = [entry for entry in costs if entry.pld_trusted is None and entry.sensitivity_val]
    if not costs or untrusted or annotated.several_curators or len(annotated.charged) != 1:
        return []
    (charge,) = annotated.charged
    found = auditor.compute_overall_pld()
    allowed = getattr(charge, "rho", getattr(charge, "epsilon", None))
    kinds = {entry.kind for entry in costs}
    pure = kinds <= {"discrete_laplace", "exponential_argmax", "coins"}
    if found is None or hasattr(charge, "rho") == pure:
        return []  # two kinds of cost do not add up
    over = found.amount > allowed * (1 + _ROUNDING)
    return [f"noise costs {found.amount:.6g}, and {allowed} was charged"] if over else []


def replayed(fit: Callable, data: Any, neighbour: Any) -> list[str]:
    """What replay finds on one pair."""
    from pgmpy_dp.auditing import replay

    return list(replay(fit, data, neighbour).problems)


def cases() -> list[Any]:
    """Those of replay, and the two front doors that are not among them."""
    from pgmpy_dp import Budget, Schema, learn
    from pgmpy_dp.linked import PrivateLinkedNetwork, made_up_families
    from tests.auditing.replay_cases import ReplayCase
    from tests.auditing.replay_catalogue import replay_catalogue
    from tests.auditing.replay_tables import STATES, table_pairs

    homes, persons, schema = made_up_families(60, random_state=3)
    without = tuple(table[table["household"] != "h7"] for table in (homes, persons))

    def linked(data: Any) -> Any:
        return PrivateLinkedNetwork(rho=0.1, schema=schema, n_rounds=3, probe_share=0.0).fit(*data).release_.values

    def learned(frame: Any) -> Any:
        return learn(frame, Budget(epsilon=1.0, delta=1e-9), Schema(STATES)).release_

    return [
        *replay_catalogue(),
        ReplayCase("learn", learned, lambda rng: table_pairs(rng, "add_remove"), 4),
        ReplayCase("learn_linked", linked, lambda rng: iter([((homes, persons), without)]), 1),
    ]


def pairs_of(names: Sequence[str] | None, n_pairs: int) -> Iterator[tuple[str, Callable, Any, Any]]:
    """The first neighbours of each case, odd ones: its name, its fit and two datasets."""
    for number, case in enumerate(cases()):
        if names is None or case.name in names:
            pairs = case.pairs(np.random.default_rng([0, number]))
            for data, neighbour in itertools.islice(pairs, min(n_pairs, case.corpus)):
                yield case.name, case.fit, data, neighbour


def whole(n_pairs: int, rows: Path) -> None:
    """The peer on the package as it is, a row for each case."""
    done = {row["case"] for row in read_rows(rows) if "case" in row}
    names = [case.name for case in cases() if case.name not in done]
    for name, pairs in itertools.groupby(pairs_of(names, n_pairs), key=lambda found: found[0]):
        row: dict[str, Any] = {"case": name, "served": True, "pairs": 0, "calls": 0, "problems": []}
        for _, fit, data, neighbour in pairs:
            try:
                problems, calls = recorded(fit, data, neighbour)
            except NotServed:
                row["served"] = False
                break
            row["pairs"] += 1
            row["calls"] += calls
            row["problems"] += problems if calls else [*problems, "nothing was recorded"]
        append(rows, row)


def read_rows(rows: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()] if rows.exists() else []


def append(rows: Path, row: dict[str, Any]) -> None:
    with rows.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(row) + "\n")


def cases_by_line(files: set[str]) -> dict[str, dict[int, list[str]]]:
    """For each line of some files of the package, cases whose first pair takes it."""
    import coverage

    watch = coverage.Coverage(include=[str(ROOT / file) for file in files], data_file=None)
    watch.start()
    for number, (name, fit, data, neighbour) in enumerate(pairs_of(None, 1)):
        if number % 3 == 0:  # the others differ in the kind of budget
            watch.switch_context(name)
            replayed(fit, data, neighbour)
    watch.stop()
    found = {file: watch.get_data().contexts_by_lineno(str(ROOT / file)) for file in files}
    return {file: {line: [n for n in names if n] for line, names in lines.items()} for file, lines in found.items()}


def reached(mutant: SourceMutant, lines: dict[str, dict[int, list[str]]], most: int) -> list[str]:
    """Some cases that take the line that the mutant breaks, as different as their names."""
    place, changed = mutant.found()
    before = (ROOT / place).read_text(encoding="utf-8").splitlines()
    blocks = difflib.SequenceMatcher(None, before, changed.splitlines(), autojunk=False).get_opcodes()
    broken = {k for tag, start, end, *_ in blocks if tag != "equal" for k in range(start + 1, max(end, start + 1) + 1)}
    names = sorted({name for line in broken for name in lines[str(place)].get(line, [])})
    return names[:: max(1, -(-len(names) // most))]


def _under(names: list[str], n_pairs: int, copy: Path, output: Path) -> None:
    """In a fork: both methods on the broken copy, until each has found something."""
    os.chdir(copy)
    sys.dont_write_bytecode = True
    sys.path[:] = [str(copy), *(folder for folder in sys.path if folder not in ("", str(ROOT)))]
    for name in [name for name in sys.modules if name.split(".")[0] in ("pgmpy_dp", "tests")]:
        del sys.modules[name]
    found = {"replay": "", "recorder": "", "served": False}
    warnings.simplefilter("ignore")
    for name, fit, data, neighbour in pairs_of(names, n_pairs):
        if not found["replay"]:
            problems = replayed(fit, data, neighbour)
            found["replay"] = f"{name}: {problems[0]}" if problems else ""
        if not found["recorder"]:
            problems = []
            with contextlib.suppress(NotServed):
                problems, _ = recorded(fit, data, neighbour)
                found["served"] = True
            found["recorder"] = f"{name}: {problems[0]}" if problems else ""
        output.write_text(json.dumps(found), encoding="utf-8")
        if found["replay"] and found["recorder"]:
            break
    os._exit(0)


def mutants(count: int, only: str, n_cases: int, n_pairs: int, rows: Path) -> None:
    """Both methods under so many mutants, drawn at random so that they are a fair sample; a row for each."""
    done = {row["mutant"] for row in read_rows(rows) if "mutant" in row}
    mixed = sorted(
        SOURCE_MUTANTS, key=lambda mutant: crc32(mutant.what.encode())
    )  # so that the first are a fair sample
    chosen = [mutant for mutant in mixed[:count] if mutant.what not in done and re.search(only, mutant.what)]
    lines = cases_by_line({str(mutant.found()[0]) for mutant in chosen})
    with copied() as copy:
        for mutant in chosen:
            names = reached(mutant, lines, n_cases)
            row: dict[str, Any] = {"mutant": mutant.what, "place": mutant.symbol, "cases": len(names)}
            place, changed = mutant.found(copy)
            before, output = (copy / place).read_text(encoding="utf-8"), copy / "found.json"
            output.write_text("{}", encoding="utf-8")
            (copy / place).write_text(changed, encoding="utf-8")
            try:
                if names:
                    run = multiprocessing.get_context("fork").Process(
                        target=_under, args=(names, n_pairs, copy, output)
                    )
                    run.start()
                    run.join(_LONGEST)
                    row["ended"] = not run.is_alive()
                    run.kill()
                    run.join()
            finally:
                (copy / place).write_text(before, encoding="utf-8")
            append(rows, row | json.loads(output.read_text(encoding="utf-8")))


def report(rows: list[dict[str, Any]], n_pairs: int) -> str:
    """Two tables of Markdown: what the peer served and found, and which method found which mutant."""
    subjects: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if "case" in row:
            parts = [part for part in row["case"].split(", ") if not part.startswith("persons")]
            subjects[parts[0].split(": ")[-1]].append(row)
    every = [row for found in subjects.values() for row in found]
    broken = [row for row in rows if "mutant" in row]
    lines = [
        "# dp-recorder beside replay",
        "",
        f"`python -m benchmarks.recorder --pairs {n_pairs}`, `--mutants`, `--report`; dp-recorder at commit 85d189e",
        "",
        describe_machine(),
        "",
        "## The package as it is",
        "",
        f"The first {n_pairs} pairs of neighbours of each case of replay, which are the odd ones.",
        "A case is served if the peer can give all of its random numbers again.",
        "",
        "| fits | cases | served | pairs | calls recorded | with problems |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *(_of_fits(name, found) for name, found in sorted(subjects.items())),
        _of_fits("all", every),
        "",
        *(f"* {row['case']}: {problem}" for row in every for problem in row["problems"]),
        "## Broken lines",
        "",
        f"{len(broken)} of the {len(SOURCE_MUTANTS)} mutants of `make mutants`, each on at most five cases that take",
        "the broken line.",
        "",
        f"{_count(broken, True, True)} found by both, {_count(broken, True, False)} by replay alone, "
        f"{_count(broken, False, True)} by the recorder alone, {_count(broken, False, False)} by neither.",
        "",
        *_WHY,
        "",
        "| broken line | place | cases | replay | recorder | tests that notice |",
        "| --- | --- | ---: | --- | --- | --- |",
        *(_of_mutant(row) for row in sorted(broken, key=lambda r: (not r.get("replay"), not r.get("recorder")))),
        "",
    ]
    return "\n".join(lines)


_WHY = [
    "Replay alone: a scale or a share is computed wrongly. The peer takes the sensitivity and the scale that a",
    "sampler is called with for true, and adds up what they cost; replay has a second table of formulas, and counts",
    "shares. Not served: coins choose records there. Neither: guards against callers that these fits are not",
    "(forks, threads, other classes, pickles, a wrong answer of a block); constants whose effect is below what a",
    "fit shows (rounding in certificates and bounds); laws of coins and noise, which both take for what they say;",
    "lines that no case takes. The tests of the module see them. Recorder alone, until replay drew answers again on",
    "the neighbour: `half of the noise that is stated` and `the place of the largest exact score`. Two more of this",
    "kind need a count at its threshold, or are not served. These four are of the list for that; 71 of the 127 others",
    "were drawn at random.",
]
"""Of the table of 26 November 2026."""


def _of_fits(name: str, found: list[dict[str, Any]]) -> str:
    served = [row for row in found if row["served"]]
    sums = [sum(row[what] for row in served) for what in ("pairs", "calls")]
    problems = sum(bool(row["problems"]) for row in served)
    return f"| {name} | {len(found)} | {len(served)} | {sums[0]} | {sums[1]} | {problems} |"


def _count(rows: list[dict[str, Any]], replay: bool, recorder: bool) -> int:
    return sum((bool(r.get("replay")), bool(r.get("recorder"))) == (replay, recorder) for r in rows)


def _of_mutant(row: dict[str, Any]) -> str:
    (mutant,) = (mutant for mutant in SOURCE_MUTANTS if mutant.what == row["mutant"])
    if not row["cases"]:
        said = ["no case takes it"] * 2
    elif not row.get("ended", True):
        said = ["it never ends"] * 2
    else:
        said = ["found" if row["replay"] else "", "found" if row["recorder"] else "" if row["served"] else "not served"]
    return f"| {row['mutant']} | `{row['place']}` | {row['cases']} | {said[0]} | {said[1]} | `{mutant.tests}` |"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rows", type=Path, required=True, help="JSON lines: what was found; what is there is not done again"
    )
    parser.add_argument("--pairs", type=int, default=3, help="neighbours of each case (default 3)")
    parser.add_argument("--cases", type=int, default=5, help="cases under each mutant (default 5)")
    parser.add_argument("--mutants", type=int, default=0, help="how many mutants; default: the package as it is")
    parser.add_argument("--only", default="", help="mutants whose description this regular expression finds")
    parser.add_argument("--report", type=Path, help="write the tables of the rows to this file, and run nothing")
    options = parser.parse_args(arguments)
    if options.report is not None:
        options.report.write_text(report(read_rows(options.rows), options.pairs), encoding="utf-8")
        return 0
    peer()
    if options.mutants:
        mutants(options.mutants, options.only, options.cases, options.pairs, options.rows)
    else:
        whole(options.pairs, options.rows)
    return int(any(row.get("problems") for row in read_rows(options.rows)))


if __name__ == "__main__":
    sys.exit(main())
