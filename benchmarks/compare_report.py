"""From the runs of `benchmarks.compare` to its page, and to the means that the documentation quotes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmarks.compare_tables import TABLES
from benchmarks.report import markdown_table

__all__ = ["LABELS", "MEASURES", "marked", "means", "overview", "ratios", "write", "write_docs"]

LABELS = {
    "learn": "`learn`",
    "learn-pure": "`learn`, pure epsilon",
    "learn-target": "`learn`, `target=`",
    "chow-liu": "`PrivateChowLiu`",
    "independent": "independent tables",
    "mbi": "mbi on `learn`'s tables",
    "mst": "MST (private-pgm)",
    "aim-pairs": "AIM, pairs (private-pgm)",
    "aim-triples": "AIM, triples (private-pgm)",
    "aim-small": "AIM, small (private-pgm)",
    "swift": "SWIFT (dpsynth)",
    "swift-small": "SWIFT, small (dpsynth)",
    "margnet": "MargNet, small",
    "tab-pe": "Tab-PE (DPSDA)",
    "opendp-mst": "MST (OpenDP)",
    "opendp-aim": "AIM (OpenDP)",
    "privbayes": "PrivBayes (dpmm)",
    "exact-independent": "not private: independent",
    "real": "not private: the records",
}
MEASURES = (
    "pairs", "triples", "nats", "median_nats", "records_pairs", "records_triples", "workload", "counts", "auc",
    "auc_logistic", "auc_forest", "seconds", "megabytes",
)  # fmt: skip
_ENDS = {"time": "more than {minutes:g} min", "memory": "too much memory", "failed": "failed", "absent": "absent"}
_FORMATS = {"nats": ".2f", "auc": ".3f", "seconds": ".1f"}
MARKS = ("<!-- compare: begin, written by benchmarks/compare.py -->\n\n", "\n\n<!-- compare: end -->")
PACKAGES = (
    "mst", "aim-pairs", "aim-triples", "aim-small", "swift", "swift-small", "margnet", "tab-pe", "opendp-mst",
    "opendp-aim", "privbayes",
)  # fmt: skip
RIVALS = (*PACKAGES, "mbi", "independent")


_USES = (
    ("pairs", 4, min), ("triples", 4, min), ("nats", 2, max), ("counts", 3, min), ("auc", 3, max),
    ("auc_logistic", 3, max), ("auc_forest", 3, max), ("seconds", 1, min),
)  # fmt: skip
NOT_RUN = (
    (
        "SWIFT (dpsynth) by its own settings, on Parkinson's and mushrooms at 1",
        "50 of its 10,000 steps took 23 s or more and about 40 s, in tries of minutes: more than an hour",
        "",
    ),
    (
        "AIM with GReM (arXiv 2602.05674)",
        "code of the GReM before it exists, none with AIM was found; it answers tables and makes no records or model",
        "orders of magnitude faster than the residual method before it, error competitive with AIM's (abstract)",
    ),
    (
        "GEM+",
        "no code of it was found",
        "the paper could not be read",
    ),
    (
        "PACE-GGM",
        "no code of it was found; it is for covariances of numbers, not for tables of states",
        "it spends on the most informative entries of the covariance (abstract)",
    ),
)
"""Other methods that are often asked for: why they are not here, and what of their papers could be read."""


def means(rows: Iterable[dict]) -> list[dict]:
    """One row for each table, method and epsilon: means over seeds of the latest runs, and how they ended."""
    latest = {(row["table"], row["method"], row["epsilon"], row["seed"]): row for row in rows}
    groups: dict[tuple, list[dict]] = {}
    for (table, method, epsilon, _), row in latest.items():
        groups.setdefault((table, method, epsilon), []).append(row)
    found = []
    for table, method, epsilon in sorted(groups, key=lambda key: (*_place(key), key[2] or 0.0)):
        group = groups[table, method, epsilon]
        done = [row for row in group if row["status"] == "done"]
        mean: dict = {"table": table, "method": method, "epsilon": epsilon, "seeds": len(done)}
        for name in ("made", "machine", "minutes"):
            values = [row[name] for row in group if name in row]
            mean |= {name: max(values)} if values else {}
        for name in MEASURES:
            values = [row[name] for row in done if name in row]
            if values:
                mean[name] = float(f"{np.mean(values):.5g}")
        if done:
            mean["runs"] = [
                {"seed": row["seed"], **{name: float(f"{row[name]:.5g}") for name in MEASURES if name in row}}
                for row in sorted(done, key=lambda row: row["seed"])
            ]
        ended = [row for row in group if row["status"] != "done"]
        if ended:
            mean["status"] = _ENDS[ended[-1]["status"]].format(**ended[-1])
            if "why" in ended[-1]:
                mean["why"] = ended[-1]["why"]
        found.append(mean)
    return found


def _place(key: tuple) -> tuple[int, int]:
    return list(TABLES).index(key[0]), list(LABELS).index(key[1])


def ratios(found: list[dict], rival: str, epsilon: float, measure: str) -> dict[str, float]:
    """`learn`'s error over a rival's, by table, where both ended; over the best of other packages' for "best"."""
    if rival == "best":
        every = [ratios(found, one, epsilon, measure) for one in PACKAGES]
        return {t: max(one[t] for one in every if t in one) for t in TABLES if any(t in one for one in every)}
    return {table: own / other for table, (own, other) in _both(found, rival, epsilon, measure).items()}


def epsilons(found: list[dict]) -> list[float]:
    return sorted({row["epsilon"] for row in found if row["epsilon"] is not None})


def overview(found: list[dict]) -> str:
    """`learn` over each of the others: geometric means over tables, the worst table, and how often it is likelier."""
    labels = {name: source.label for name, source in TABLES.items()}
    body = []
    for rival in (*PACKAGES, "best", *RIVALS[len(PACKAGES) :]):
        cells = []
        for epsilon in epsilons(found):
            parts = []
            for measure in ("pairs", "triples"):
                by_table = ratios(found, rival, epsilon, measure)
                if by_table:
                    worst = max(by_table, key=by_table.__getitem__)
                    mean = math.exp(np.mean(np.log(list(by_table.values()))))
                    parts.append(f"{mean:.2f} ({by_table[worst]:.2f} {labels[worst]})")
            likelier: dict[str, bool] = {}
            for one in PACKAGES if rival == "best" else (rival,):
                for table, (own, other) in _both(found, one, epsilon, "nats").items():
                    likelier[table] = likelier.get(table, True) and own > other
            if parts:
                cells.append(f"{'; '.join(parts)}; {sum(likelier.values())} of {len(likelier)}")
            else:
                cells.append("")
        if any(cells):
            body.append(["the best of these on each table" if rival == "best" else LABELS[rival], *cells])
    return markdown_table(["`learn` over", *(f"epsilon = {e:g}" for e in epsilons(found))], body)


def _both(found: list[dict], rival: str, epsilon: float, measure: str) -> dict[str, tuple[float, float]]:
    """A measure of `learn` and of a rival, by table: means over the seeds that both have, where these are known."""
    own, other = (
        {row["table"]: row for row in found if (row["method"], row["epsilon"]) == (m, epsilon) and measure in row}
        for m in ("learn", rival)
    )
    both = {}
    for table in (table for table in own if table in other):
        pair = (own[table], other[table])
        runs = [{run["seed"]: run[measure] for run in row.get("runs", ()) if measure in run} for row in pair]
        seeds = runs[0].keys() & runs[1].keys()
        pairs_of_means = (
            [np.mean([run[seed] for seed in seeds]) for run in runs] if seeds else [row[measure] for row in pair]
        )
        both[table] = (float(pairs_of_means[0]), float(pairs_of_means[1]))
    return both


def errors_of(found: list[dict], measure: str, methods: Iterable[str]) -> str:
    """One row for each table and epsilon, one column for each method, the best with privacy in bold."""
    chosen = [m for m in methods if any(r["method"] == m and (measure in r or "status" in r) for r in found)]
    body = []
    for table in dict.fromkeys(row["table"] for row in found):
        for epsilon in epsilons(found):
            at = {r["method"]: r for r in found if r["table"] == table and r["epsilon"] in (epsilon, None)}
            values = {m: at[m][measure] for m in chosen if m in at and measure in at[m]}
            if "learn" not in values:
                continue
            private = {m: v for m, v in values.items() if at[m]["epsilon"] is not None}
            best = (max if measure in ("nats", "auc") else min)(private.values())
            cells = []
            for m in chosen:
                if m in values:
                    text = f"{values[m]:{_FORMATS.get(measure, '.4f')}}"
                    cells.append(f"**{text}**" if values[m] == best and m in private else text)
                else:
                    cells.append(at[m].get("status", "") if m in at else "")
            body.append([TABLES[table].label, f"{epsilon:g}", *cells])
    return markdown_table(["table", "epsilon", *(LABELS[m] for m in chosen)], body)


def write(rows: list[dict], out: Path, machine: str) -> None:
    """Write ``compare.md`` and ``compare.json``; of what was not run, what the latter had stays."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / "compare.json"
    found = merged(json.loads(file.read_text()) if file.exists() else [], means(rows))
    file.write_text("[\n" + ",\n".join(json.dumps(row) for row in found) + "\n]\n")
    (out / "compare.md").write_text(_page(found, machine))


def merged(earlier: list[dict], found: list[dict]) -> list[dict]:
    """Rows of both, in the page's order; of the same table, method and epsilon the later one."""
    rows = {(row["table"], row["method"], row["epsilon"]): row for row in (*earlier, *found)}
    return [rows[key] for key in sorted(rows, key=lambda key: (*_place(key), key[2] or 0.0))]


def marked(page: str) -> tuple[str, str, str] | None:
    """What is before the table of a page, the table, and what is after; None if the page has no marks for it."""
    head, begin, rest = page.partition(MARKS[0])
    table, end, tail = rest.partition(MARKS[1])
    return (head + begin, table, end + tail) if end else None


def write_docs(results: Path, docs: Path) -> None:
    """Write the overview between the marks of all pages."""
    table = overview(json.loads((results / "compare.json").read_text()))
    for path in sorted(docs.glob("*.md")):
        parts = marked(path.read_text())
        if parts is not None and parts[1] != table:
            path.write_text(parts[0] + table + parts[2])
            print(f"wrote {path}")


def _page(found: list[dict], machine: str) -> str:
    tables = list(dict.fromkeys(row["table"] for row in found))
    sizes = _sizes(tables)
    body = [[TABLES[t].label, *sizes.get(t, ("", "", "", "")), TABLES[t].source] for t in tables]
    minutes = _range([row["minutes"] for row in found if "minutes" in row] or [0.0])
    machines = "; ".join(sorted({f"{row['made']} {row['machine']}" for row in found if "machine" in row}))
    parts = [
        "# `learn` beside other packages, on real tables",
        "Made by `python -m benchmarks.compare` (`make compare`), in parts: it goes on where it was stopped,",
        f"on {machine}; each run on one thread, seconds of processor time, without imports but with compilation, "
        "peak memory of the whole process. delta = 1e-9 throughout, or 0 where it says pure; means over "
        f"{_range([row['seeds'] for row in found if row['seeds']] or [0])} runs. The limit was "
        f"{minutes} minutes of processor time a run; what takes longer is not tried "
        "at a larger epsilon. An empty cell was not run. Under seconds stands the day of a run: `learn` is as it was "
        f"then. Machines: {machines}. Means alone: [compare.json](compare.json).",
        "What the scores are, how every method is called and how a run is limited: `benchmarks/compare.py` and "
        "`benchmarks/compare_peers.py`. Small are: AIM for pairs with a model of 1 MB, by mbi's stable message "
        "passing, as its quicker one's tables became NaN; SWIFT for pairs with cliques of at most 10,000 cells and "
        "1,000 steps; MargNet with the smallest sizes and fewest steps of its authors' settings. AIM's records are "
        "less like the records than its model: private-pgm draws a variable given its neighbours alone, which loses "
        "what a cycle of pairs says. Tab-PE makes 1,000 records, as in its example, and knows the target's shares. "
        "AIM and SWIFT draw in the order of a set: before 2026-11-27 another in each run, by which small SWIFT has "
        ".254 to .289 on pairs of breast cancer at 1 (four runs).",
        markdown_table(["table", "records", "columns", "states", "target", "source"], body),
        "## Overview",
        "`learn`'s error over another method's, on the tables where both ended: geometric mean over pairs (worst "
        "table); over triples (worst table); on how many of the tables `learn` has the larger mean log-likelihood of a "
        "held-out record. Below 1 is better.",
        overview(found),
        "Model to records, mean total variation over 300 random triples:",
        errors_of(found, "triples", ("learn", *RIVALS, "exact-independent")),
        "The same over all pairs:",
        errors_of(found, "pairs", ("learn", *RIVALS, "exact-independent")),
        *_uses(found),
        "## Each table",
        "Model: mean total variation of pairs / of triples / mean log-likelihood of a held-out record in nats. A model "
        "without smoothing gives next to nothing to a few records: in brackets the median, where it is more than one "
        "nat above. Synthetic records: pairs / triples / AUC of a classifier.",
    ]
    for table in tables:
        parts.append(f"### {TABLES[table].label}")
        own = [row for row in found if row["table"] == table]
        for heading, cell in (("model", _of_model), ("synthetic records", _of_records), ("seconds; MB; day", _of_time)):
            body = []
            for method in (m for m in LABELS if any(row["method"] == m for row in own)):
                at = {row["epsilon"]: row for row in own if row["method"] == method}
                cells = [cell(at.get(e, at.get(None))) for e in epsilons(found)]
                if any(cells):
                    body.append([LABELS[method], *cells])
            parts.append(markdown_table([heading, *(f"epsilon = {e:g}" for e in epsilons(found))], body))
    parts.append("## What could not be run")
    absent = {(LABELS[row["method"]], row["why"], "") for row in found if "why" in row}
    parts.append(
        markdown_table(["method", "why", "what its paper says"], [list(row) for row in (*NOT_RUN, *sorted(absent))])
    )
    return "\n\n".join(parts) + "\n"


def _uses(found: list[dict]) -> list[str]:
    """What users choose by, of the runs that have it: counting queries and three classifiers; and AIM's own measure."""
    chosen = [row for row in found if "auc_forest" in row]
    for n, row in enumerate(chosen):
        beside = [r for r in chosen if r["table"] == row["table"] and r["epsilon"] in (row["epsilon"], None)]
        seeds = set.intersection(*({run["seed"] for run in r["runs"]} for r in beside))
        runs = [run for run in row["runs"] if run["seed"] in seeds] or row["runs"]
        shared = {name: float(np.mean([run[name] for run in runs])) for name in MEASURES if name in runs[0]}
        chosen[n] = {**{key: row[key] for key in ("table", "method", "epsilon", "runs")}, **shared, "seeds": len(runs)}
    body = []
    for table, epsilon in dict.fromkeys((row["table"], row["epsilon"]) for row in chosen if row["epsilon"] is not None):
        at = [row for row in chosen if row["table"] == table and row["epsilon"] in (epsilon, None)]
        private = [row for row in at if row["epsilon"] is not None]
        for row in at:
            cells = []
            for name, digits, best in _USES:
                values = [r.get(name, r.get(f"records_{name}")) for r in (row, *private)]
                text = "" if values[0] is None else f"{values[0]:.{digits}f}"
                top = text and row in private and values[0] == best(v for v in values if v is not None)
                cells.append(f"**{text}**" if top else text)
            body.append([TABLES[table].label, f"{epsilon:g}", LABELS[row["method"]], str(row["seeds"]), *cells])
    parts = [
        "## What users choose by",
        "Same records and seeds for all methods of a table. Pairs, triples and the log-likelihood of a held-out record "
        "are the model's, or for a method without a model (no likelihood) those of its records. Counts: mean relative "
        "error of 500 counting queries of three or four conditions, each of which a random record fulfils (of what is "
        "rarer than 1 %, the error is divided by 1 %). AUC on held-out records of boosting, logistic regression and a "
        "forest that learned from synthetic ones.",
        markdown_table(["table", "epsilon", "method", "seeds", *(name.replace("_", " ") for name, *_ in _USES)], body),
    ]
    own = [row for row in found if "workload" in row]
    if own:
        at = {(row["method"], row["epsilon"]): f"{row['workload']:.4f}" for row in own}
        methods = [method for method in LABELS if any(row["method"] == method for row in own)]
        body = [[LABELS[m], *(at.get((m, e), at.get((m, None), "")) for e in epsilons(own))] for m in methods]
        parts += [
            "AIM's own measure on its own table, Adult cut into 15 columns: mean absolute distance (twice the total "
            "variation) of all tables of three variables that have at most 10,000 cells, synthetic records to those "
            "learned from. What AIM's paper (arXiv 2201.12677) has there could not be read: its abstract says that it "
            "is better than what there was.",
            markdown_table(["method", *(f"epsilon = {e:g}" for e in epsilons(own))], body),
        ]
    return parts


def _of_model(row: dict | None) -> str:
    if row is None or "pairs" not in row:
        return row.get("status", "") if row else ""
    median = f" ({row['median_nats']:.2f})" if row["median_nats"] > row["nats"] + 1 else ""
    triples = f"{row['triples']:.4f}" if "triples" in row else "too large"
    return f"{row['pairs']:.4f} / {triples} / {row['nats']:.3f}{median}"


def _of_records(row: dict | None) -> str:
    if row is None or "records_pairs" not in row:
        return ""
    auc = f"{row['auc']:.3f}" if "auc" in row else ""
    return f"{row['records_pairs']:.4f} / {row['records_triples']:.4f} / {auc}"


def _of_time(row: dict | None) -> str:
    if row is None or "seconds" not in row:
        return ""
    return "; ".join([f"{row['seconds']:.1f}", f"{row['megabytes']:.0f}", *([row["made"]] if "made" in row else [])])


def _range(values: list[float]) -> str:
    return f"{min(values):g}" if min(values) == max(values) else f"{min(values):g} to {max(values):g}"


def _sizes(tables: Iterable[str]) -> dict[str, tuple[str, str, str, str]]:
    found = {}
    for name in tables:
        try:
            table = TABLES[name].read()
        except FileNotFoundError:
            continue
        low, high = min(table.cardinalities), max(table.cardinalities)
        states = f"{low}" if low == high else f"{low} to {high}"
        found[name] = (f"{len(table.codes):,}", str(len(table.names)), states, table.target)
    return found
