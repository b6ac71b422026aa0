"""Levels of a variable: how they are declared, read and refused; counting by them is in tests/private."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgmpy_dp import Levels, LinkedSchema, Number, Schema

COUNTY = {"t1": "Kern", "t2": "Kern", "t3": "Clark", "t4": "Clark", "t5": "Storey"}
STATE = {"Kern": "CA", "Clark": "NV", "Storey": "NV"}
TRACTS = Levels(["t1", "t2", "t3"], county=COUNTY, state=STATE)
CODES = ["E119", "E110", "E65", "I10"]


def places_of(schema, name, cells, reading="code"):
    """The level's state of each cell by the reader's rule; None for a record that is dropped."""
    level = schema.levels[name]
    code = schema.coder(level.variable)
    read = [code(schema.reading(level.variable).key(cell)) for cell in cells]
    return [None if k < 0 else level.states[level.places[k]] for k in read]


class TestTheTree:
    def test_unlisted_leaves_count_in_the_rest_of_their_parent(self):
        schema = Schema({"tract": TRACTS})
        assert schema["tract"] == ("t1", "t2", "t3", "rest of Clark", "rest of Storey")
        assert places_of(schema, "county", ["t1", "t4", "t5", "?", None]) == ["Kern", "Clark", "Storey", None, None]
        assert places_of(schema, "state", ["t2", "t4", "t5"]) == ["CA", "NV", "NV"]

    def test_what_cannot_be_read_is_a_state_of_its_own_at_every_level(self):
        schema = Schema({"tract": TRACTS}, other={"tract": "unknown"})
        for level in schema.levels:
            assert places_of(schema, level, ["t9", None, 3.5]) == ["unknown"] * 3
            assert [schema.levels[level].places.count(k) for k in (len(schema.levels[level].states) - 1,)] == [1]

    def test_missing_is_a_leaf_where_it_is_declared(self):
        schema = Schema({"tract": Levels(["t1", "t2", None], county={"t1": "a", "t2": "a"})})
        assert places_of(schema, "county", ["t2", None, float("nan")]) == ["a", None, None]
        assert schema.levels["county"].states == ("a", None)

    def test_a_map_may_be_from_the_leaves_at_every_level(self):
        of_leaves = {tract: STATE[county] for tract, county in COUNTY.items()}
        assert Levels(["t1", "t2", "t3"], county=COUNTY, state=of_leaves).parents == TRACTS.parents

    def test_a_name_that_is_taken_is_made_unlike(self):
        tree = Levels(["a", "rest of x"], up={"a": "x", "rest of x": "y", "b": "x"})
        assert tree[2] == "rest of x_"
        assert tree.rests == {0: {"b": "rest of x_"}}

    @pytest.mark.parametrize(
        ("leaves", "levels", "message"),
        [
            (["t1"], {}, "has no level"),
            (["t1"], {"county": ["x"]}, "county=.* is not a mapping"),
            (["t1", "t2", "t9"], {"county": COUNTY}, "no state for 't9'"),
            (["t1", "t2", "t3"], {"county": COUNTY, "state": {"Kern": "CA", "Clark": "NV"}}, "no state for 'Storey'"),
            (["t1", "t2"], {"county": {"t1": "a", "t2": "a"}}, "'county' has 1 states where 2"),
            (["t1", "t2"], {"county": {"t1": "a", "t2": "b"}}, "'county' has 2 states where 2"),
            (
                ["a", "b", "c", "d"],
                {"up": {"a": "x", "b": "x", "c": "y", "d": "z"}, "top": {"a": "p", "b": "q", "c": "q", "d": "q"}},
                "'top' has 'p' and 'q' above 'x'",
            ),
            (["t1", "t2"], {"county": {"t1": "a", "t2": None}}, "no state for 't2'"),
        ],
    )
    def test_no_tree(self, leaves, levels, message):
        with pytest.raises((TypeError, ValueError), match=message):
            Levels(leaves, **levels)

    @given(st.data())
    def test_every_cell_of_any_ragged_map_is_in_the_state_that_the_map_says(self, data):
        cells = [f"c{k}" for k in range(data.draw(st.integers(3, 12)))]
        fine = {cell: f"f{data.draw(st.integers(0, 3))}" for cell in cells}
        coarse = {state: f"g{data.draw(st.integers(0, 1))}" for state in fine.values()}
        leaves = data.draw(st.lists(st.sampled_from(cells), unique=True))
        try:
            schema = Schema({"x": Levels(leaves, fine=fine, coarse=coarse)})
        except ValueError:  # too few states
            return
        assert places_of(schema, "fine", cells) == [fine[cell] for cell in cells]
        assert places_of(schema, "coarse", cells) == [coarse[fine[cell]] for cell in cells]


class TestPrefixes:
    def test_codes_that_are_not_listed_count_in_the_rest_of_the_finest_state_that_is_known(self):
        schema = Schema({"icd": Levels.from_prefix(CODES, {"chapter": 1, "group": 3})})
        cells = ["E119", "E112", "E66", "E", "I99", "Z10", "", None]
        rests = ["E119", "rest of E11", "rest of E", "rest of E", "rest of I"]
        code = schema.coder("icd")
        read = [code(schema.reading("icd").key(cell)) for cell in cells]
        assert [schema.states["icd"][k] for k in read[:5]] == rests
        assert read[5:] == [-1, -1, -1]
        assert places_of(schema, "group", cells[:5]) == ["E11", "E11", "rest of E", "rest of E", "rest of I"]
        assert places_of(schema, "chapter", cells[:5]) == ["E", "E", "E", "E", "I"]

    def test_whole_lists_need_no_rest(self):
        schema = Schema({"icd": Levels.from_prefix(CODES, {"chapter": 1}, rest=False)})
        assert schema["icd"] == tuple(CODES)
        assert places_of(schema, "chapter", ["E119", "E112"]) == ["E", None]

    def test_codes_are_compared_as_they_are_written(self):
        schema = Schema({"soc": Levels.from_prefix(["010", 11, 12], {"major": 1})})
        assert places_of(schema, "major", ["010", 10, 11, "12", 12.0]) == ["0", "1", "1", "1", "1"]
        assert schema.reading("soc").codes

    def test_discovered_codes_keep_what_they_cost_and_the_state_of_all_others(self):
        found = Schema({"icd": [*CODES, "other"], "sex": ["F", "M"]}, other={"icd": "other"}, codes=["icd"])
        found = found.discovered_under([{"paid": "rho 1"}])
        schema = found.replaced({"icd": Levels.from_prefix(found["icd"], {"chapter": 1, "group": 3})})
        assert schema.discovered == found.discovered
        assert Schema({"icd": schema["icd"]}).discovered == found.discovered
        assert schema.levels["chapter"].states == ("E", "I", "other")
        assert places_of(schema, "group", ["?", "oth", "E7"]) == ["other", "other", "rest of E"]

    @pytest.mark.parametrize("widths", [{"chapter": 0}, {"chapter": "1"}, 3])
    def test_widths(self, widths):
        with pytest.raises(TypeError, match="first signs"):
            Levels.from_prefix(CODES, widths)


class TestFiles:
    def test_a_file_of_the_tree(self, tmp_path):
        path = tmp_path / "tree.csv"
        path.write_text("\ufefftract,county,state\n" + "".join(f"{t},{c},{STATE[c]}\n" for t, c in COUNTY.items()))
        assert Levels.from_csv(path, ["t1", "t2", "t3"]).parents == TRACTS.parents
        assert list(Levels.from_csv(path)) == [*COUNTY]
        assert Levels.from_csv(path).codes

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "no tree"),
            ("tract\na\n", "no tree"),
            ("tract,county\na,x\nb\n", "no tree"),
            ("tract,county\na,x\na,y\n", "two states of 'county' for the leaf 'a'"),
            ("tract,county\na,x\nb,\nc,x\n", "no state for 'b'"),
        ],
    )
    def test_no_tree(self, tmp_path, text, message):
        (path := tmp_path / "tree.csv").write_text(text)
        with pytest.raises(ValueError, match=message):
            Levels.from_csv(path)

    @pytest.mark.parametrize("tree", [TRACTS, Levels.from_prefix(CODES, {"chapter": 1, "group": 3})])
    @pytest.mark.parametrize("other", [{}, {"x": "unknown"}])
    def test_files_keep_the_tree(self, tmp_path, tree, other):
        schema = Schema({"x": tree, "sex": ["F", "M"]}, other=other, impossible=[])
        schema.to_json(tmp_path / "schema.json")
        cells = ["t1", "t4", "E119", "E112", "E66", "?"]
        for read in (
            Schema.from_json(tmp_path / "schema.json"),
            Schema.from_dict(json.loads(json.dumps(schema.to_dict()))),
            pickle.loads(pickle.dumps(schema)),
            copy.deepcopy(schema),
            schema.subset(["x", "sex"]),
            schema.replaced({}),
            schema.discovered_under([{"a": 1}]).as_public(),
        ):
            assert read == schema
            assert dict(read.levels) == dict(schema.levels)
            for level in schema.levels:
                assert places_of(read, level, cells) == places_of(schema, level, cells)
        assert schema.to_dict()["version"] == 5
        assert pickle.loads(pickle.dumps(tree)).parents == tree.parents

    def test_people_write_maps_beside_a_domain(self):
        content = {"domain": {"tract": ["t1", "t2", "t3"]}, "levels": {"tract": {"county": COUNTY, "state": STATE}}}
        assert Schema.from_dict(content) == Schema({"tract": TRACTS})

    @pytest.mark.parametrize(
        "change",
        [
            lambda entry: entry["levels"][0]["of"].pop(),
            lambda entry: entry["levels"].clear(),
            lambda entry: entry["levels"][1]["of"].__setitem__(0, "NV"),
            lambda entry: entry["rests"][0][1].append(["t7", "no leaf"]),
        ],
    )
    def test_a_file_of_no_tree_is_refused(self, change):
        content = json.loads(json.dumps(Schema({"tract": TRACTS}).to_dict()))
        change(content["variables"][0])
        with pytest.raises(ValueError, match=r"level|tree"):
            Schema.from_dict(content)


class TestSchemas:
    def test_levels_are_no_variables(self):
        schema = Schema({"tract": TRACTS, "age": Number(0, 99)})
        assert schema.variables == ("tract", "age")
        assert "county" not in schema
        assert [*schema.levels] == ["county", "state"]
        assert schema.cardinality("state") == 2
        schema.require_discrete(["state"])
        with pytest.raises(KeyError, match="not a variable"):
            schema["county"]

    @pytest.mark.parametrize(
        ("variables", "message"),
        [
            ({"tract": TRACTS, "state": ["a", "b"]}, "'state' of 'tract' is named like"),
            ({"tract": TRACTS, "state": ["a"]}, "'state' of 'tract' is named like"),
            ({"tract": TRACTS, "home": TRACTS}, "'county' of 'home' is named like"),
        ],
    )
    def test_names_that_are_taken(self, variables, message):
        with pytest.raises(ValueError, match=message):
            Schema(variables)

    def test_leaves_that_are_the_same(self):
        tree = Levels(["t1", "t1", "t2", "t3"], county={"t1": "a", "t2": "a", "t3": "b"})
        with pytest.raises(ValueError, match="counted as the same value"):
            Schema({"tract": tree})

    def test_the_other_state_is_no_state_of_a_level(self):
        with pytest.raises(ValueError, match=r"other='CA' is a state of the level 'state'"):
            Schema({"tract": TRACTS}, other={"tract": "CA"})

    def test_scopes(self):
        schema = Schema({"tract": TRACTS, "sex": ["F", "M"]})
        assert schema.leaf_scope(["sex", "county"]) == {"sex": None, "tract": schema.levels["county"]}
        for names in (["county", "state"], ["tract", "state"], ["state", "tract"]):
            with pytest.raises(ValueError, match="has 'tract' twice"):
                schema.leaf_scope(names)

    def test_rules_about_levels_are_about_sets_of_leaves(self):
        schema = Schema({"tract": TRACTS, "sex": ["F", "M"]}, impossible=["state = NV -> sex = F"])
        assert schema.zeros == [{"tract": frozenset({2, 3, 4}), "sex": frozenset({1})}]
        assert schema.ruled == {"tract", "sex"}
        assert schema.subset(["sex", "tract"]).impossible == schema.impossible
        assert schema.subset(["tract"]).impossible == ()

    def test_the_tree_is_a_part_of_what_a_variable_is(self):
        plain = Schema({"tract": list(TRACTS)})
        assert plain != Schema({"tract": TRACTS})
        assert Schema({"tract": TRACTS}).matches(plain) == ["tract"]

    def test_linked_tables_refuse_them(self):
        plain = Schema({"sex": ["F", "M"]})
        with pytest.raises(ValueError, match=r"child has \['county', 'state'\], levels"):
            LinkedSchema(parent=plain, child=Schema({"tract": TRACTS}), key="house", most=3)


class TestRareLeaves:
    @given(st.data())
    def test_they_merge_within_their_finest_state_alone(self, data):
        cells = [f"c{k}" for k in range(data.draw(st.integers(4, 12)))]
        fine = {cell: f"f{data.draw(st.integers(0, 3))}" for cell in cells}
        coarse = {state: f"g{data.draw(st.integers(0, 1))}" for state in fine.values()}
        try:
            tree = Levels(cells[:-1], fine=fine, coarse=coarse)
        except ValueError:  # too few states
            return
        rare = data.draw(st.lists(st.booleans(), min_size=len(tree), max_size=len(tree)))
        merged, places = tree.with_rare(rare)
        assert sorted(set(places)) == list(range(len(merged)))
        for name, of in tree.parents.items():
            assert [merged.parents[name][place] for place in places] == list(of)
        several = {
            f
            for f in tree.parents["fine"]
            if sum(r and f == g for r, g in zip(rare, tree.parents["fine"], strict=True)) > 1
        }
        assert len(merged) == len(tree) - sum(
            sum(r and f == g for r, g in zip(rare, tree.parents["fine"], strict=True)) - 1 for f in several
        )
        schema = Schema({"x": merged})
        assert places_of(schema, "coarse", cells[-1:]) == [coarse[fine[cells[-1]]]]
        assert Schema.from_dict(schema.to_dict()) == schema

    def test_a_level_may_come_to_have_as_many_states_as_there_are_leaves(self):
        merged, places = Levels(["a", "b", "c"], up={"a": "x", "b": "x", "c": "y"}).with_rare([True, True, False])
        assert (list(merged), places) == (["rest of x", "c"], (0, 0, 1))
        assert Schema.from_dict(Schema({"x": merged}).to_dict()).levels["up"].places == (0, 1)
