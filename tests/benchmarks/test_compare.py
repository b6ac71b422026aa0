"""The comparison with other packages: its scores against brute force, how runs end, go on and are told."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.ensemble import HistGradientBoostingClassifier

from benchmarks import compare, compare_peers, compare_report
from benchmarks.compare import PEER_METHODS, Job, jobs, main, pending, run_process
from benchmarks.compare_methods import METHODS, REFERENCES
from benchmarks.compare_report import LABELS, marked, means, merged, overview, ratios, write, write_docs
from benchmarks.compare_scores import (
    CLASSIFIERS,
    classifier_auc,
    counting_error,
    mixture_scores,
    model_of,
    model_scores,
    mutual_scopes,
    record_scores,
    workload_error,
)
from benchmarks.compare_tables import TABLES, Source, Table, held_out


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, (2, 3, 2, 4), (400, 4))
    codes[:, 2] = np.where(rng.random(400) < 0.9, codes[:, 0], codes[:, 2])
    return Table(("a", "b", "c", "d"), (2, 3, 2, 4), codes.astype(np.int32), "c")


@pytest.mark.parametrize("name", ["parkinsons", "digits", "breast", "mushrooms", "stays", "nltcs"])
def test_the_records_of_a_table_are_within_its_schema(name):
    try:
        table = TABLES[name].read()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert table.codes.shape[1] == len(table.names) == len(set(table.names)) == len(table.cardinalities)
    assert (table.codes >= 0).all() and (table.codes < table.cardinalities).all()
    assert table.target in table.names


def test_what_is_held_out_depends_on_the_seed_alone(table):
    chosen = held_out(table, 1)
    assert chosen.sum() == 100 and (chosen == held_out(table, 1)).all() and (chosen != held_out(table, 2)).any()


def test_scores_of_a_model_are_those_of_its_joint_table(table):
    rng = np.random.default_rng(1)
    scopes = [(0, 2), (1, 3), (3,), (2, 3)]
    tables = [rng.normal(size=[table.cardinalities[i] for i in scope]) for scope in scopes]
    model = model_of(table.cardinalities, scopes, np.concatenate([t.ravel() for t in tables]))
    log_joint = np.zeros(table.cardinalities)
    for cell in np.ndindex(*table.cardinalities):
        log_joint[cell] = sum(t[tuple(cell[i] for i in scope)] for t, scope in zip(tables, scopes, strict=True))
    joint = np.exp(log_joint) / np.exp(log_joint).sum()
    learned, unseen = table.codes[:300], table.codes[300:]
    empirical = np.zeros(table.cardinalities)
    np.add.at(empirical, tuple(learned.T), 1 / 300)

    def distance(degree):
        sums = [tuple(set(range(4)) - set(scope)) for scope in itertools.combinations(range(4), degree)]
        return np.mean([0.5 * np.abs(joint.sum(axis) - empirical.sum(axis)).sum() for axis in sums])

    found = model_scores(model, learned, unseen, mutual_scopes(table.cardinalities))
    assert (found["pairs"], found["triples"]) == pytest.approx((distance(2), distance(3)))
    nats = np.log([joint[tuple(record)] for record in unseen])
    assert (found["nats"], found["median_nats"]) == pytest.approx((nats.mean(), np.median(nats)))


def test_a_mixture_of_one_product_has_the_scores_of_its_model_and_of_two_the_mean_table(table):
    rng = np.random.default_rng(2)
    cards, learned, unseen = table.cardinalities, table.codes[:300], table.codes[300:]
    products = [np.concatenate([np.log(rng.dirichlet(np.ones(k))) for k in cards]) for _ in range(2)]
    scopes = mutual_scopes(cards)
    for product in products:
        expected = model_scores(model_of(cards, [(i,) for i in range(4)], product), learned, unseen, scopes)
        assert mixture_scores(product[None], cards, learned, unseen, scopes) == pytest.approx(expected)
    parts = [np.split(np.exp(product), np.cumsum(cards)[:-1]) for product in products]
    joint = np.mean([np.einsum("a,b,c,d->abcd", *part) for part in parts], axis=0)
    found = mixture_scores(np.array(products), cards, learned, unseen, ([(0, 3)], [(1, 2, 3)]))
    assert found["nats"] == pytest.approx(np.log([joint[tuple(record)] for record in unseen]).mean())
    for name, summed, columns in (("pairs", (1, 2), [0, 3]), ("triples", (0,), [1, 2, 3])):
        counts = np.zeros(joint.sum(summed).shape)
        np.add.at(counts, tuple(learned[:, columns].T), 1 / 300)
        assert found[name] == pytest.approx(0.5 * np.abs(joint.sum(summed) - counts).sum())


def test_the_workload_s_error_is_the_mean_distance_of_the_tables_that_are_small_enough(table):
    other = table.codes.copy()
    other[:, 3] = 3 - other[:, 3]
    triples = [t for t in itertools.combinations(range(4), 3) if np.prod([table.cardinalities[i] for i in t]) <= 16]
    distances = [record_scores(other, table.codes, table.cardinalities, ([t], [t]))["records_triples"] for t in triples]
    assert len(triples) == 2
    assert workload_error(other, table.codes, table.cardinalities, 16) == pytest.approx(2 * np.mean(distances))


def test_counting_queries_are_those_that_some_record_fulfils(table):
    """Records of a state that no real one has answer them all with nothing: an error of a whole."""
    assert counting_error(table.codes, table.codes, 0) == 0.0
    assert 0.5 < counting_error(np.full_like(table.codes, 9), table.codes, 0) <= 1.0


def test_records_for_a_classifier_are_chosen_apart_from_the_sampler_s_strata(monkeypatch):
    """Its first 20,000 in the sampler's own order, at the same seed, would be the first strata alone."""
    model = model_of((2, 2), [(0, 1)], np.log([0.4, 0.1, 0.1, 0.4]))
    drawn = model.sample(60_000, np.random.default_rng(0), method="stratified")
    table = Table(("a", "b"), (2, 2), drawn.astype(np.int32), "b")
    seen = []

    class Watched(HistGradientBoostingClassifier):
        def fit(self, x, y):
            seen.append((len(x), x.mean(), y.mean()))
            return super().fit(x, y)

    monkeypatch.setattr("sklearn.ensemble.HistGradientBoostingClassifier", Watched)
    classifier_auc(table.codes, table.codes[:1000], table, seed=0)
    assert seen[0][0] == 20_000 and seen[0][1:] == pytest.approx((0.5, 0.5), abs=0.02)


def test_scores_of_records_are_those_of_their_tables(table):
    scopes = mutual_scopes(table.cardinalities)
    assert scopes[1] == list(itertools.combinations(range(4), 3))
    same = record_scores(table.codes, table.codes[::-1], table.cardinalities, scopes)
    assert same == {"records_pairs": 0.0, "records_triples": 0.0}
    other = table.codes.copy()
    other[:, 3] = 3 - other[:, 3]
    found = record_scores(other, table.codes, table.cardinalities, ([(0, 3)], [(0, 1, 2)]))
    counts = np.bincount(table.codes[:, 0] * 4 + table.codes[:, 3], minlength=8).reshape(2, 4) / 400
    assert found["records_pairs"] == pytest.approx(0.5 * np.abs(counts - counts[:, ::-1]).sum())
    assert found["records_triples"] == 0.0


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_classifier_learns_what_the_records_say(table, kind):
    assert classifier_auc(table.codes[:300], table.codes[300:], table, kind=kind) > 0.85
    assert classifier_auc(np.zeros_like(table.codes), table.codes, table, kind=kind) == 0.5  # one state of the target


def test_states_that_a_method_merged_share_its_probability(table):
    """Two of the four states of d are one to the model, which writes them as equally likely."""

    class Factor:
        domain = type("Domain", (), {"attrs": ("v0003", "v0000"), "shape": (3, 2)})
        values = np.log([[0.1, 0.1], [0.2, 0.2], [0.1, 0.3]])

    given = {"cardinalities": np.array(table.cardinalities), "codes": table.codes}
    supports = {3: np.array([True, False, True, False]), 0: np.array([True, True])}
    written = compare_peers._result(given, table.codes, 0.0, {("v0003", "v0000"): Factor()}, supports)
    model = model_of(table.cardinalities, json.loads(written["scopes"]), written["theta"])
    assert model.marginal([3, 0]) == pytest.approx(np.array([[0.1, 0.1], [0.05, 0.15], [0.2, 0.2], [0.05, 0.15]]))


@pytest.mark.parametrize("largest", [1.0, 2000.0])
def test_a_table_outside_a_model_of_mbi_is_that_of_its_joint_table(largest):
    """Also where the exponentials of its potentials are 0 in float64, as AIM's are after some rounds."""
    shape, scopes = (2, 3, 2, 4, 2, 3), [(0, 1), (3, 1), (4, 3), (2,), (1, 5), (0, 3)]
    names = [f"v{i}" for i in range(len(shape))]
    rng = np.random.default_rng(3)
    tables = [rng.uniform(-largest, largest, [shape[i] for i in scope]) for scope in scopes]
    cliques = [tuple(names[i] for i in scope) for scope in scopes]
    parts = zip(cliques, [SimpleNamespace(values=one) for one in tables], strict=True)
    domain = SimpleNamespace(size=lambda attrs: int(np.prod([shape[names.index(name)] for name in attrs])))
    model = SimpleNamespace(domain=domain, potentials=SimpleNamespace(arrays=dict(parts)), total=70.0)
    joint = np.zeros(shape)
    for scope, one in zip(scopes, tables, strict=True):
        order = np.argsort(scope)
        joint = joint + np.expand_dims(one.transpose(order), [i for i in range(len(shape)) if i not in scope])
    joint = 70 * np.exp(joint - logsumexp(joint))
    for kept in itertools.permutations(range(len(shape)), 2):
        expected = joint.sum(axis=tuple(i for i in range(len(shape)) if i not in kept))
        found = compare_peers._eliminated(model, tuple(names[i] for i in kept))
        assert found == pytest.approx(expected if kept[0] < kept[1] else expected.T, abs=1e-9)


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("pass", "done"),
        ("import sys; print('no such thing', file=sys.stderr); sys.exit(3)", "failed"),
        ("while True: pass", "time"),
        ("x = bytearray(2**28); x[::4096] = b'1' * 2**16\nimport time; time.sleep(30)", "memory"),
    ],
)
def test_how_a_run_ends(tmp_path, script, status):
    row = run_process([sys.executable, "-S", "-c", script], {}, seconds=1, memory=2**27, folder=tmp_path)
    assert row["status"] == status and row["megabytes"] > 0
    assert row.get("why", "no such thing") == "no such thing"


def _row(table, method, epsilon, seed=0, status="done", version=None, **scores):
    return {
        "table": table, "method": method, "epsilon": epsilon, "seed": seed, "status": status, "version": version,
        "minutes": 10.0, **scores,
    }  # fmt: skip


def test_a_run_is_made_once_and_again_when_the_package_is_another():
    rows = [_row("adult", "learn", 1.0, version="old"), _row("adult", "mst", 1.0)]
    assert pending(Job("adult", "learn", 1.0, 0), rows, "new")
    assert not pending(Job("adult", "learn", 1.0, 0), rows, "old")
    assert not pending(Job("adult", "learn", 1.0, 0), rows, "new", keep=True)
    assert pending(Job("adult", "learn", 1.0, 1), rows, "old")
    assert not pending(Job("adult", "mst", 1.0, 0), rows, "new")
    assert pending(Job("nltcs", "mst", 1.0, 0), rows, "new")


def test_what_did_not_end_is_not_tried_with_more():
    rows = [_row("adult", "mst", 1.0, status="time")]
    asked = [Job("adult", "mst", epsilon, seed) for epsilon in (0.1, 1.0, 10.0) for seed in (0, 1)]
    assert [pending(job, rows, "") for job in asked] == [True, True, False, False, False, False]
    assert [pending(job, rows, "", minutes=10.0) for job in asked] == [True, True, False, False, False, False]
    assert all(pending(job, rows, "", minutes=30.0) for job in asked)


def test_ctrl_c_ends_the_run_too(tmp_path, table, monkeypatch, capsys):
    """No row is written of it, and the same command makes it again."""
    monkeypatch.setitem(TABLES, "tiny", Source(lambda: table, "tiny", "made up"))
    compare.load.cache_clear()
    ids = []

    def interrupted(pid):
        ids.append(pid)
        raise KeyboardInterrupt

    monkeypatch.setattr(compare, "_resident", interrupted)
    with pytest.raises(SystemExit) as ended:
        main(["--tables", "tiny", "--methods", "real", "--work", str(tmp_path), "--out", str(tmp_path)])
    assert ended.value.code == 130 and "goes on here" in capsys.readouterr().err
    assert not Path(f"/proc/{ids[0]}").exists() and list(tmp_path.iterdir()) == []


def test_records_outside_of_the_schema_are_a_failure_of_the_method(table):
    row = compare.scores({"synthetic": table.codes + 1}, table, held_out(table, 0))
    assert row["status"] == "failed" and "schema" in row["why"]


def test_references_are_run_once_and_all_labels_are_known():
    asked = jobs(["adult"], [*METHODS, *REFERENCES, *PEER_METHODS], [0.1, 1.0], 2)
    assert len(asked) == len(set(asked)) == 2 * (2 * (len(METHODS) + len(PEER_METHODS)) + len(REFERENCES))
    assert set(LABELS) == {*METHODS, *REFERENCES, *PEER_METHODS}
    assert set(compare_peers.METHODS) == set(PEER_METHODS)


def test_the_command_goes_on_where_it_was_stopped_and_says_what_is_absent(tmp_path, table, monkeypatch, capsys):
    absent = Source(lambda: (_ for _ in ()).throw(FileNotFoundError("x.csv not in data")), "absent one", "nowhere")
    monkeypatch.setitem(TABLES, "tiny", Source(lambda: table, "tiny", "made up"))
    monkeypatch.setitem(TABLES, "gone", absent)
    monkeypatch.delenv("PRIVATE_PGM", raising=False)
    compare.load.cache_clear()
    compare.environment.cache_clear()
    asked = ["--tables", "tiny", "gone", "--methods", "real", "mst", "--epsilons", "1", "--work", str(tmp_path)]

    def ran(command, settings, seconds, memory, folder):
        with np.load(command[-2]) as given:
            np.savez(command[-1], synthetic=given["codes"], seconds=0.0)
        return {"status": "done", "megabytes": 100, "process_seconds": 1.0}

    monkeypatch.setattr(compare, "run_process", ran)
    monkeypatch.setattr(compare_report, "TABLES", {name: TABLES[name] for name in ("tiny", "gone")})
    for expected in (4, 0):
        main([*asked, "--out", str(tmp_path / "out")])
        assert capsys.readouterr().out.count("seed 0") == expected
    found = json.loads((tmp_path / "out" / "compare.json").read_text())
    assert {(row["table"], row["method"], row.get("status")) for row in found} == {
        ("tiny", "real", None), ("gone", "real", "absent"), ("tiny", "mst", "absent"), ("gone", "mst", "absent"),
    }  # fmt: skip
    page = (tmp_path / "out" / "compare.md").read_text()
    assert "x.csv not in data" in page and "PRIVATE_PGM names no folder" in page


def test_means_are_of_the_latest_runs_and_unfinished_ones_are_listed():
    rows = [
        _row("adult", "learn", 1.0, 0, pairs=0.9, nats=-3.0),
        _row("adult", "learn", 1.0, 0, pairs=0.1, nats=-2.0),
        _row("adult", "learn", 1.0, 1, pairs=0.3, nats=-2.0),
        _row("nltcs", "learn", 1.0, 0, pairs=0.1, nats=-2.0),
        *(_row("adult", "mst", 1.0, seed, pairs=0.4, nats=-1.0) for seed in (0, 1)),
        _row("nltcs", "mst", 1.0, 0, pairs=0.8, nats=-3.0),
        _row("adult", "mst", 10.0, 0, status="time"),
    ]
    found = means(rows)
    assert [(r["table"], r["epsilon"], r["seeds"], r.get("status")) for r in found if r["method"] == "mst"] == [
        ("nltcs", 1.0, 1, None), ("adult", 1.0, 2, None), ("adult", 10.0, 0, "more than 10 min"),
    ]  # fmt: skip
    assert ratios(found, "mst", 1.0, "pairs") == pytest.approx({"nltcs": 0.125, "adult": 0.5})
    assert "| MST (private-pgm) | 0.25 (0.50 Adult); 1 of 2 |" in overview(found)
    rows += [_row("adult", "swift", 1.0, seed, pairs=0.1, nats=-4.0) for seed in (0, 1)]
    assert "| the best of these on each table | 0.50 (2.00 Adult); 1 of 2 |" in overview(means(rows))


def test_a_rival_is_compared_on_the_seeds_that_both_ran_and_the_best_is_the_worst_ratio():
    rows = [_row("adult", "learn", 1.0, seed, pairs=pairs, nats=-1.0) for seed, pairs in enumerate((0.1, 0.4))]
    rows += [_row("adult", "mst", 1.0, 1, pairs=0.8, nats=-2.0), _row("adult", "swift", 1.0, 0, pairs=0.05, nats=-3.0)]
    found = means(rows)
    assert ratios(found, "mst", 1.0, "pairs") == pytest.approx({"adult": 0.5})
    assert ratios(found, "best", 1.0, "pairs") == pytest.approx({"adult": 2.0})
    del found[0]["runs"]  # as earlier runs have it
    assert ratios(found, "mst", 1.0, "pairs") == pytest.approx({"adult": 0.25 / 0.8})
    assert "| the best of these on each table | 5.00 (5.00 Adult); 1 of 1 |" in overview(found)


def test_rows_that_were_not_run_again_stay(tmp_path):
    earlier = [_row("adult", "mst", 1.0, triples=0.4), _row("adult", "learn", 1.0, triples=0.3)]
    write(earlier, tmp_path, "a machine")
    write([_row("adult", "learn", 1.0, 1, triples=0.2)], tmp_path, "a machine")
    found = json.loads((tmp_path / "compare.json").read_text())
    assert found == merged(means(earlier), means([_row("adult", "learn", 1.0, 1, triples=0.2)]))
    assert [(row["method"], row["triples"]) for row in found] == [("learn", 0.2), ("mst", 0.4)]


def test_what_users_choose_by_has_the_best_private_score_in_bold():
    scores = {"counts": 0.2, "auc": 0.8, "auc_logistic": 0.8, "auc_forest": 0.8, "records_pairs": 0.1}
    rows = [
        _row("adult", "learn", 1.0, **scores, seconds=2.0),
        _row("adult", "mst", 1.0, **{**scores, "counts": 0.1, "auc": 0.7}, seconds=9.0),
        _row("adult", "real", None, **{**scores, "counts": 0.0}, seconds=0.0),
    ]
    text = "\n".join(compare_report._uses(means(rows)))
    assert (
        "| Adult | 1 | `learn` | 1 | **0.1000** |  |  | 0.200 | **0.800** | **0.800** | **0.800** | **2.0** |" in text
    )
    assert "| **0.100** | 0.700 |" in text and "| not private: the records | 1 | 0.1000 |  |  | 0.000 |" in text


def test_the_table_of_the_documentation_is_that_of_the_results():
    root = Path(__file__).parents[2]
    found = json.loads((root / "benchmarks" / "results" / "compare.json").read_text())
    there = {path.name: parts[1] for path in (root / "docs").glob("*.md") if (parts := marked(path.read_text()))}
    assert there == {"choosing.md": overview(found)}


def test_a_table_is_written_between_its_marks(tmp_path):
    rows = [_row("adult", "learn", 1.0, triples=0.1, pairs=0.1), _row("adult", "mst", 1.0, triples=0.25, pairs=0.2)]
    (tmp_path / "compare.json").write_text(json.dumps(means(rows)))
    begin, end = ("<!-- compare: begin, written by benchmarks/compare.py -->", "<!-- compare: end -->")
    (tmp_path / "page.md").write_text(f"Before.\n\n{begin}\n\nold\n\n{end}\n\nAfter.\n")
    write_docs(tmp_path, tmp_path)
    before, table, after = (tmp_path / "page.md").read_text().partition(begin)[2].partition(end)
    assert "| MST (private-pgm) | 0.50 (0.50 Adult); 0.40 (0.40 Adult)" in before
    assert table == end and after == "\n\nAfter.\n"


def test_the_readme_quotes_the_results():
    root = Path(__file__).parents[2]
    found = json.loads((root / "benchmarks" / "results" / "compare.json").read_text())
    mean = np.exp(np.mean(np.log(list(ratios(found, "mst", 1.0, "pairs").values()))))
    assert f"{mean:.2f}".removeprefix("0") + " times the error of MST**" in (root / "README.md").read_text()
