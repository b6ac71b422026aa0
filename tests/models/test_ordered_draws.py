"""Numbers that rules order, drawn together: no draw breaks a rule, and the law is that of what would be accepted."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pgmpy_dp import Budget, Number, Schema, learn
from pgmpy_dp.inference.conditioning import ImpossibleEvidence
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.evidence import counted
from pgmpy_dp.models.ordered_draws import ordered, ordered_groups
from pgmpy_dp.schema.orders import OrderRule

GAPS = (([3, 6], ("b", "a")), ([2], ("c", "b")))  # cuts of two differences, and of what


def drawn(schema, codes, rng, known=None, within=None):
    sources = {name: Values(number) for name, number in schema.numbers.items()} | (within or {})
    sources |= {name: counted(schema, name, value) for name, value in (known or {}).items()}
    numbers = {name: sources[name].drawn(codes[name], rng.random(len(codes[name])))[1] for name in sources}
    return ordered(schema.orders, sources, codes, numbers, rng)


def same(*values, n=20_000):
    return [np.full(n, value) for value in values]


@pytest.mark.parametrize("resolution", [1, None])
def test_the_law_is_that_of_independent_numbers_given_the_rules(resolution):
    a = Number(0, 20, cuts=[10], resolution=resolution)
    schema = Schema({"a": a, "b": a}, impossible=["a <= b"])
    rng = np.random.default_rng(0)
    result = drawn(schema, dict(zip("ab", same(0, 0), strict=True)), rng)
    x, y = rng.uniform(0, 10, (2, 100_000))
    x, y = (np.floor(x), np.floor(y)) if resolution else (x, y)
    kept = x <= y
    assert (result["a"] <= result["b"]).all() and (result["b"] < 10).all()
    for mine, theirs in ((result["a"], x[kept]), (result["b"], y[kept])):
        assert stats.ks_2samp(mine, theirs).statistic < 0.02


@pytest.mark.parametrize("resolution", [1, None])
def test_of_a_difference_the_second_is_the_first_and_a_value_of_its_cell(resolution):
    """A stay that goes over an edge of cells begins shortly before it: one in a hundred would be accepted."""
    how = {"resolution": resolution, "missing": "drop"}
    a, apart = Number(0, 1000, cuts=[500], **how), Number(0, 1000, cuts=[8], of=("b", "a"), **how)
    schema = Schema({"a": a, "b": a, "b - a": apart})
    weights = np.array([4.0, 2, 1, 1, 1])
    finer = Values(apart.with_cuts([2, 4, 6, 8]), np.array([0, 0, 0, 0, 1]), weights)
    rng = np.random.default_rng(1)
    codes = dict(zip(["a", "b", "b - a"], same(0, 1, 0), strict=True))
    result = drawn(schema, codes, rng, within={"b - a": finer})
    gap = rng.choice(4, 4_000_000, p=weights[:4] / 8) * 2 + (
        rng.integers(0, 2, 4_000_000) if resolution else 2 * rng.random(4_000_000)
    )
    x = rng.integers(0, 500, len(gap)) if resolution else 500 * rng.random(len(gap))
    kept = x + gap >= 500
    assert (result["a"] < 500).all() and (result["b"] >= 500).all()
    assert stats.ks_2samp(result["b"] - result["a"], gap[kept]).statistic < 0.02
    assert stats.ks_2samp(result["a"], x[kept]).statistic < 0.02


def test_missing_numbers_are_left_and_chains_are_obeyed():
    a = Number(0, 29, cuts=[10, 20], resolution=1)
    schema = Schema({"a": a, "b": a, "c": a}, impossible=["a < b", "b < c"])
    rng = np.random.default_rng(2)
    rows = [(0, 0, 0), (0, 3, 0), (3, 1, 1), (1, 1, 2), (0, 1, 1), (3, 3, 2)]
    codes = dict(zip("abc", np.repeat(np.array(rows), 300, axis=0).T, strict=True))
    result = drawn(schema, codes, rng)
    assert all((np.isnan(result[name]) == (codes[name] == 3)).all() for name in "abc")
    for low, high in ("ab", "bc"):
        both = ~np.isnan(result[low]) & ~np.isnan(result[high])
        assert (result[low][both] < result[high][both]).all()
    for name in "abc":
        assert (result[name] // 10 == codes[name])[codes[name] < 3].all()
    assert (result["a"] > result["c"])[(codes["b"] == 3) & (codes["a"] == 0)].any()  # nothing is said of these two


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_number_that_is_known_stays(name):
    how = {"resolution": 1, "missing": "drop"}
    a, apart = Number(0, 99, cuts=[50], **how), Number(0, 99, cuts=[10], of=("b", "a"), **how)
    schema = Schema({"a": a, "b": a, "b - a": apart}, impossible=["a <= b"])
    codes = dict(zip(["a", "b", "b - a"], same(0, 0, 0, n=500), strict=True))
    result = drawn(schema, codes, np.random.default_rng(3), {name: 37})
    assert (result[name] == 37).all()
    assert (result["b"] - result["a"] >= 0).all() and (result["b"] - result["a"] < 10).all()


def test_where_hardly_anything_of_the_cells_can_be_it_is_drawn_evenly():
    a, b = Number(0, 9999, cuts=[5000], resolution=1), Number(0, 9999, cuts=[1], resolution=1)
    schema = Schema({"a": a, "b": b}, impossible=["a + 4999 <= b"])
    result = drawn(schema, {"a": np.zeros(200, int), "b": np.ones(200, int)}, np.random.default_rng(4))
    assert (result["b"] >= result["a"] + 4999).all()
    schema = Schema({"a": a, "b": a}, impossible=["a + 4990 <= b"])
    result = drawn(schema, {"a": np.zeros(200, int), "b": np.zeros(200, int)}, np.random.default_rng(4))
    assert (result["b"] >= result["a"] + 4990).all() and (result["b"] < 5000).all() and len(set(result["a"])) > 5


def test_sums_are_values_of_the_resolution():
    how = {"resolution": 0.1, "missing": "drop"}
    a, apart = Number(0, 9.9, cuts=[5], **how), Number(0, 9.9, cuts=[1], of=("b", "a"), **how)
    schema = Schema({"a": a, "b": a, "b - a": apart})
    codes = dict(zip(["a", "b", "b - a"], same(0, 1, 0, n=2000), strict=True))
    result = drawn(schema, codes, np.random.default_rng(5))
    assert set(result["b"]) <= set(a.values_at(range(100)))


def test_real_numbers_are_ordered_too():
    """Their bounds, and a difference of 0, are cells of one number, of which no density tells."""
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 300, 4_000)
    high = np.minimum(low + np.where(rng.random(4_000) < 0.3, 0, rng.exponential(30, 4_000)), 500)
    schema = Schema({"low": Number(0, 500), "high": Number(0, 500)}, impossible=["low <= high"])
    model = learn(pd.DataFrame({"low": low, "high": high}), Budget(rho=0.5), schema, random_state=0).model_
    drawn = model.sample(2_000, random_state=0)
    gap = drawn["high"] - drawn["low"]
    assert (gap.dropna() >= 0).all() and gap.mean() == pytest.approx((high - low).mean(), rel=0.1)
    assert (gap == 0).mean() == pytest.approx(0.3, abs=0.03)


def test_numbers_whose_cells_do_not_go_with_their_differences_keep_the_differences():
    """Each two cells go together, all do not: a gap of 3 to 5 days would be one of a year in cells that are wide."""
    a = Number(0, 999, cuts=[500], resolution=1)
    first, second = (Number(0, 999, cuts=cuts, resolution=1, outside="state", of=of) for cuts, of in GAPS)
    schema = Schema({"a": a, "b": a, "c": a, "b - a": first, "c - b": second})
    codes = dict(zip(["a", "b", "c", "b - a", "c - b"], same(0, 0, 1, 1, 0, n=500), strict=True))
    rng = np.random.default_rng(6)
    codes["b"][:250] = 1  # a begins below 500, and b from there on, which 3 to 5 days let it do
    codes["c"][250:] = 1
    result = drawn(schema, codes, rng)
    apart, further = result["b"] - result["a"], result["c"] - result["b"]
    assert set(apart) <= {3, 4, 5} and set(further) <= {0, 1}
    assert (result["a"] < 500).all() and (result["b"][:250] >= 500).all() and (result["c"] >= 500).all()
    codes["c"][:] = 0  # no c is below 500 where b is not
    result = drawn(schema, codes, rng)
    apart, further = result["b"] - result["a"], result["c"] - result["b"]
    assert set(apart) <= {3, 4, 5} and set(further) <= {0, 1} and (result["a"] < 500).all()


def test_a_difference_that_is_known_stays_where_no_cells_go_with_it():
    a, apart = Number(0, 999, cuts=[500], resolution=1), Number(0, 999, cuts=[3, 6], resolution=1, of=("b", "a"))
    later = Number(0, 999, cuts=[504], resolution=1)  # from the last of a's cell it is 5
    schema = Schema({"a": a, "b": later, "b - a": apart})
    codes = dict(zip(["a", "b", "b - a"], same(0, 1, 1, n=300), strict=True))
    result = drawn(schema, codes, np.random.default_rng(7), {"b - a": 3})
    assert (result["b"] - result["a"] == 3).all()


def test_evidence_that_the_rules_never_let_be_true_together_is_refused():
    """As all pairs of numbers say: where none fulfils the rule, or one of several numbers does with none."""
    number = Number(0, 9, cuts=[5], resolution=1)
    schema = Schema({"a": number, "b": number}, impossible=["a + 2 <= b"])
    data = {"a": [0, 1, 6, 3] * 50, "b": [4, 8, 9, None] * 50}
    model = learn(pd.DataFrame(data), budget=Budget(5.0), schema=schema, random_state=0).model_
    ranges = {"6:8": {6, 7, 8}, "1:": set(range(1, 10)), ":3": {0, 1, 2, 3}}
    meant = {4: {4}, "2|5:": {2, 5, 6, 7, 8, 9}, "1|7": {1, 7}, "0|7|": {0, 7, None}} | ranges
    n_refused = 0
    for (first, low), (second, high) in itertools.product(meant.items(), repeat=2):
        known = {"a": first, "b": second}
        pairs = [(x, y) for x in low for y in high if None in (x, y) or x + 2 <= y]
        single = [{2} if of == "2|5:" else set() if of in ranges else meant[of] - {None} for of in (first, second)]
        alone = [(x, y) for x in single[0] for y in single[1] if x + 2 > y]
        alone += [x for x in single[0] if x not in {x for x, _ in pairs}]
        alone += [y for y in single[1] if y not in {y for _, y in pairs}]
        if not pairs:
            assert model.probability(known) == 0
        if pairs and not alone:
            sample = model.sample(30, evidence=known, random_state=0)
            fulfilled = (sample["a"] + 2 <= sample["b"]) | sample["a"].isna() | sample["b"].isna()
            assert fulfilled.all() and model.probability(known) > 0, known
            assert all(sample[name].dropna().isin(some).all() for name, some in (("a", low), ("b", high))), known
            continue
        n_refused += 1
        with pytest.raises(ImpossibleEvidence):
            model.sample(3, evidence=known)
    assert n_refused == 31
    with pytest.raises(ImpossibleEvidence, match="'a' and 'b' has values that the rules never let be together"):
        model.sample(3, evidence={"a": 4, "b": 5})


def test_numbers_of_a_whole_and_its_parts_are_even_among_all_that_obey():
    """Written out: of 0 to 3, a whole and one or two parts that are not below it; a third is in another cell."""
    number, n = Number(0, 9, cuts=[4], resolution=1), 40_000
    values, rng = Values(number), np.random.default_rng(0)
    whole = rng.integers(0, 4, n).astype(float)
    parts = rng.integers(0, 4, (n, 3)).astype(float)
    codes = np.zeros((n, 3), dtype=int)
    parts[::2, 1:] = np.nan  # one part in two of them, else a third one in the other cell
    codes[1::2, 2], parts[1::2, 2] = 1, 7.0
    rules = [OrderRule("built", "moved")]
    made = ordered_groups(rules, {"built": (values, codes[:, 0], whole)}, {"moved": (values, codes, parts)}, rng)
    assert (np.isnan(made["moved"]) == np.isnan(parts)).all() and set(made["moved"][1::2, 2]) <= set(range(4, 10))
    for rows, m in ((slice(0, None, 2), 1), (slice(1, None, 2), 2)):
        cells = np.column_stack([made["built"][rows], made["moved"][rows, :m]]).astype(int)
        possible = [cell for cell in np.ndindex((4,) * (1 + m)) if all(part >= cell[0] for part in cell[1:])]
        found = np.array([(cells == cell).all(axis=1).mean() for cell in possible])
        assert found.sum() == pytest.approx(1.0)
        assert np.abs(found - 1 / len(possible)).max() < 5 * np.sqrt(1 / len(possible) / (n / 2))
