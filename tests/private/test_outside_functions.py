"""Block functions: which are taken, what they are handed, and what their errors change."""

from __future__ import annotations

import functools
import math
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_info

from pgmpy_dp import Budget, PrivateTable
from pgmpy_dp.fields.operators.vote_operators import AgreedGraph, EdgeVotes, agreement_test, vote_sensitivity
from pgmpy_dp.fields.votes.block_graphs import block_graph
from pgmpy_dp.private.curator import outside_functions
from pgmpy_dp.private.curator.observer import Observer, observed
from pgmpy_dp.private.curator.outside_functions import named_function, outside_function, plain_arguments, run_blocks
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.operators.tables import Tables

STATES = {"a": [0, 1], "b": [0, 1], "c": [0, 1]}
FRAME = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (200, 3)), columns=list(STATES))
KEPT: list = []
NUMBER = 0


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    monkeypatch.setattr(outside_functions, "_FUNCTIONS", dict(outside_functions._FUNCTIONS))


def opened(budget=None, **facts):
    budget = budget or Budget(epsilon=1.0, delta=1e-2)
    table = PrivateTable(FRAME, STATES, ledger=budget)
    return TableCurator(table, budget, **{"what": "", "columns": [], "reserve": 1e-2, "pure": True, **facts})


def ask(curator, function, share=1, **request):
    request = {"n_blocks": 5, "max_edges": 2, "vouched_for": callable(function), **request}
    return curator.ask(EdgeVotes(function, {}, **request), share)


def two_edges(codes, rng):
    return (0, 2)


def helper(codes):
    KEPT.append(len(codes))


def calls_a_helper(codes, rng):
    helper(codes)
    return ()


def reads_a_list(codes, rng):
    return tuple(KEPT)


def counts_globally(codes, rng):
    global NUMBER
    NUMBER += 1
    return (NUMBER,)


def has_attributes(codes, rng):
    has_attributes.seen = len(codes)
    return ()


@functools.lru_cache
def cached(n):
    return (n,)


def uses_a_cache(codes, rng):
    return cached(len(codes))


class Keeper:
    seen = KEPT

    def graph(self, codes):
        return tuple(self.seen)


def uses_a_class(codes, rng):
    return Keeper().graph(codes)


APPEND = KEPT.append


def uses_a_method(codes, rng):
    APPEND(len(codes))
    return ()


def with_a_default(codes, rng, seen=[]):  # noqa: B006
    return tuple(seen)


def remembers(n, seen=[], *, more={}):  # noqa: B006
    seen.append(n)
    return tuple(seen)


def uses_a_default_of_a_helper(codes, rng):
    return remembers(len(codes))


def _counter():
    seen = 0

    def count(n):
        nonlocal seen
        seen += n
        return (seen,)

    return count


COUNT = _counter()


def uses_a_closure_of_a_helper(codes, rng):
    return COUNT(len(codes))


def plain_helper(n, step=2):
    return (n // step,)


plain_helper.seen = []


def uses_an_attribute_of_a_helper(codes, rng):
    plain_helper.seen.append(len(codes))
    return tuple(plain_helper.seen)


class Base:
    def graph(self, codes):
        return tuple(KEPT)


class Inherits(Base):
    def __init__(self, n):
        self.n = n


def uses_an_inherited_method(codes, rng):
    return Inherits(len(codes)).graph(codes)


class Made:
    def __init__(self, n):
        self.n = n
        KEPT.append(n)


def uses_what_is_done_at_making(codes, rng):
    return (Made(len(codes)).n,)


class Fresh:
    def __init__(self, n, most=3):
        self.n = min(n, most)


def uses_a_fresh_object(codes, rng):
    def edge(k, step=1):
        return k * step

    return (edge(Fresh(len(codes)).n) % 3,)


def closure():
    seen = []

    def inner(codes, rng):
        return tuple(seen)

    return inner


class Ended(BaseException):
    pass


class TestRegistry:
    def test_functions_of_modules_go_by_name(self):
        assert outside_function(two_edges) is two_edges
        name = f"{__name__}.two_edges"
        assert named_function(name) is two_edges
        noisy = ask(opened(Budget(rho=1e8), reserve=0.0, pure=False), name, n_workers=1)
        assert noisy.tolist() == [5, 0, 5]
        assert named_function("pgmpy_dp.fields.votes.block_graphs.block_graph") is block_graph

    @pytest.mark.parametrize(
        "function",
        [closure(), lambda codes, rng: (), functools.partial(two_edges), Keeper().graph, Keeper, with_a_default, "len"],
    )
    def test_others_are_not_registered(self, function):
        with pytest.raises(TypeError, match=r"not a function of a module|has a closure or default values"):
            outside_function(function)

    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (calls_a_helper, "helper names what can be changed in place, KEPT"),
            (reads_a_list, "KEPT"),
            (counts_globally, "counts_globally assigns NUMBER"),
            (has_attributes, "assigns seen"),
            (uses_a_cache, "_lru_cache_wrapper"),
            (uses_a_class, r"Keeper\.seen can be changed in place"),
            (uses_a_method, "APPEND"),
            (uses_a_default_of_a_helper, "remembers keeps what can be changed in place, (more|default 0)"),
            (uses_a_closure_of_a_helper, "count assigns seen"),
            (uses_an_attribute_of_a_helper, "plain_helper keeps what can be changed in place, seen"),
            (uses_an_inherited_method, "graph names what can be changed in place, KEPT"),
            (uses_what_is_done_at_making, "__init__ names what can be changed in place, KEPT"),
        ],
    )
    def test_state_in_the_module_is_refused(self, function, message):
        outside_function(function)
        curator = opened()
        with pytest.raises(TypeError, match=message):
            ask(curator, f"{__name__}.{function.__name__}")
        assert curator.left == 1

    def test_new_objects_of_classes_of_the_module_are_no_state(self):
        outside_function(uses_a_fresh_object)
        assert ask(opened(), f"{__name__}.uses_a_fresh_object").shape == (3,)

    def test_a_function_that_was_replaced_is_refused(self, monkeypatch):
        outside_function(two_edges)
        monkeypatch.setitem(globals(), "two_edges", lambda codes, rng: ())
        with pytest.raises(ValueError, match="not what its module has"):
            named_function(f"{__name__}.two_edges")

    def test_a_callable_is_taken_if_the_user_vouches_for_it_and_the_release_says_so(self):
        curator = opened()
        with pytest.raises(TypeError, match="vouch for your own with vouched_for=True"):
            ask(curator, two_edges, vouched_for=False)
        with pytest.raises(ValueError, match=r"not registered; use one of .*block_graph"):
            ask(curator, "two_edges")
        ask(curator, two_edges)
        public = curator.release("edge_votes", {"vouched_for": None}).public
        assert public["vouched_for"] == [f"{__name__}.two_edges"]
        curator = opened()
        outside_function(two_edges)
        ask(curator, f"{__name__}.two_edges", vouched_for=True)
        assert "vouched_for" not in curator.release("edge_votes", {}).public

    @pytest.mark.parametrize("value", [[1], {"a": 1}, np.ones(2), (1, [2]), np.float64(1.0), object(), STATES])
    def test_arguments_are_plain(self, value):
        with pytest.raises(TypeError, match="arguments has 'x'"):
            plain_arguments({"x": value})
        assert plain_arguments({"x": (1, ("a", None, 0.5, True))}) == {"x": (1, ("a", None, 0.5, True))}


class TestPublicArguments:
    @pytest.mark.parametrize(
        ("request_", "error", "message"),
        [
            ({"n_blocks": 0}, ValueError, "n_blocks=0"),
            ({"n_blocks": 65537}, ValueError, "more than 65536 blocks"),
            ({"n_blocks": 2.0}, TypeError, "n_blocks=2.0"),
            ({"max_edges": 0}, ValueError, "max_edges=0"),
            ({"n_workers": 0}, ValueError, "n_workers=0"),
            ({"share": 0}, ValueError, "share=0 is not positive"),
            ({"share": 2}, BudgetExceeded, "a share of 2"),
            ({"share": 1e-40}, ValueError, "beyond"),
        ],
    )
    def test_wrong_ones_cost_nothing(self, request_, error, message):
        curator = opened()
        with pytest.raises(error, match=message):
            ask(curator, two_edges, **request_)
        assert curator.left == 1 and curator.answers == ()

    @pytest.mark.parametrize("eta", [0, 1, -1e-3, 0.011])
    def test_etas_come_out_of_the_reserve(self, eta):
        curator = opened()
        request = {"n_blocks": 5, "max_edges": 2, "vouched_for": True}
        with pytest.raises(ValueError, match="eta="):
            curator.ask(AgreedGraph(two_edges, {}, **request), 0.5, eta)
        assert curator.left == 1
        curator.ask(AgreedGraph(two_edges, {}, **request), 0.5, 0.006)
        with pytest.raises(ValueError, match="reserve"):
            curator.ask(AgreedGraph(two_edges, {}, **request), 0.5, 0.006)

    @pytest.mark.parametrize("most", [np.uint8(128), np.uint8(200), np.int8(100), np.uint16(1 << 15)])
    def test_a_bound_in_few_bits_is_the_same_bound(self, most):
        """Twice numpy's uint8(128) is 0: the sensitivity of a vote would be nothing, and so would the noise."""
        n_pairs = math.comb(60, 2)
        assert vote_sensitivity(n_pairs, most) == vote_sensitivity(n_pairs, int(most))
        curator = opened(Budget(rho=1.0), reserve=0.0, pure=False)
        ask(curator, two_edges, max_edges=most)
        (noise,) = curator.answers[0].noise
        assert noise == EdgeVotes.noise_of(3, int(most), ZCDP(1.0), 1)

    def test_noise_is_that_of_the_share(self):
        assert EdgeVotes.noise_of(4, 2, PureDP(1.0), 0.5).scale == 8.0
        assert EdgeVotes.noise_of(4, 5, ZCDP(0.5), 1).scale == pytest.approx(6**0.5)
        assert agreement_test(PureDP(1.0), 0.5, 1e-2) == agreement_test(PureDP(0.5), 1, 1e-2)
        test = agreement_test(ZCDP(0.08), 0.5, 1e-2)
        assert test.scale == pytest.approx(1 / 0.08**0.5) and test.threshold == 17  # floor(4.605/.2828) + 1

    def test_one_variable_has_no_pairs(self):
        table = PrivateTable(FRAME, {"a": [0, 1]}, ledger=Budget(rho=1.0))
        curator = TableCurator(table, Budget(rho=1.0), what="", columns=[])
        with pytest.raises(ValueError, match="needs at least two"):
            ask(curator, two_edges)


class TestCalls:
    @pytest.mark.parametrize("n_workers", [1, 3])
    def test_a_block_has_its_own_rows_and_generator(self, n_workers):
        whole, handed = np.arange(24, dtype=np.uint8).reshape(12, 2), []

        def function(codes, rng, **arguments):
            assert codes.base is None and codes.flags.c_contiguous and codes.flags.owndata
            handed.append((codes.tolist(), rng.random()))
            codes[:] = 0
            return arguments["place"], codes.shape[0]

        parts = np.split(whole, [5, 5, 9])
        answers = run_blocks(function, parts, [7, 8, 9, 7], {"place": 3}, lambda a: a, n_workers)
        assert answers == [(3, 5), (3, 0), (3, 4), (3, 3)]
        assert sorted(rows for rows, _ in handed) == sorted(
            part.tolist() for part in np.split(np.arange(24).reshape(12, 2), [5, 5, 9])
        )
        drawn = {len(rows): draw for rows, draw in handed}
        assert drawn[5] == drawn[3] == np.random.default_rng(7).random() != drawn[4]

    def test_seeds_of_blocks_leave_the_draws_of_noise_as_they_are(self):
        class Seeds(Observer):
            found: tuple = ()

            def block_seeds(self, n_blocks, draw):
                seeds = draw()
                self.found += (seeds,)
                return seeds

        with observed(seen := Seeds()):
            for _ in range(2):
                ask(opened(), two_edges)
            for _ in range(2):
                with pytest.warns(UserWarning, match="NOT private"):
                    ask(opened(random_state=1), two_edges)
        first, second, third, fourth = seen.found
        assert len(set(first + second)) == 10 and third == fourth and len(set(third)) == 5

    @pytest.mark.parametrize("n_workers", [1, 3])
    def test_memory_errors_end_the_request_and_tell_nothing(self, n_workers):
        def function(codes, rng):
            raise MemoryError(f"of {codes.tolist()}")

        curator = opened()
        with pytest.raises(MemoryError, match=r"^memory ran out .* the share is spent$") as caught:
            ask(curator, function, n_workers=n_workers)
        assert caught.value.__context__ is None and caught.value.__cause__ is None
        assert curator.left == 0 and curator.answers == ()

    @pytest.mark.parametrize("n_workers", [1, 3])
    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, Ended])
    def test_interrupts_end_the_request(self, n_workers, error):
        def function(codes, rng):
            raise error(codes.tolist())

        curator = opened()
        with pytest.raises(
            SystemExit if error is Ended else error, match=r"^a block function was interrupted, .*is spent$"
        ) as caught:
            ask(curator, function, share=0.5, n_workers=n_workers)
        # Whom it reaches is told nothing of a block, in its text or by what it came from.
        assert caught.value.__context__ is None and caught.value.__cause__ is None
        assert float(curator.left) == 0.5 and curator.answers == ()
        ask(curator, two_edges, share=0.5)  # the data are back

    @pytest.mark.parametrize("n_workers", [1, 3])
    def test_a_block_function_that_asks_is_refused_and_does_not_wait(self, n_workers):
        curator, refused = opened(), []

        def function(codes, rng):
            with pytest.raises(RuntimeError, match="sees these records now"):
                curator.ask(Tables([("a",)]), 0.1)
            refused.append(1)
            return ()

        asking = threading.Thread(
            target=ask, args=(curator, function, 0.5), kwargs={"n_workers": n_workers}, daemon=True
        )
        asking.start()
        asking.join(60)
        assert not asking.is_alive() and len(refused) == 5 and float(curator.left) == 0.5

    def test_calls_in_two_threads_come_one_after_the_other(self):
        """Limits of threads belong to the process: the end of one call would lift those of another, in its middle."""
        inside, last, begun, seen = threading.Event(), threading.Event(), threading.Event(), []

        def first(codes, rng):
            inside.set()
            last.wait(60)
            seen.append(threads())
            return ()

        def second(codes, rng):
            begun.set()
            seen.append(threads())
            return ()

        def threads():
            return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

        def call(function):
            run_blocks(function, [FRAME.to_numpy()], [0], {}, lambda a: a, 1)

        calls = [threading.Thread(target=call, args=(function,)) for function in (first, second)]
        calls[0].start()
        inside.wait(60)
        calls[1].start()
        together = begun.wait(0.3)  # long enough for one that does not wait
        last.set()
        for thread in calls:
            thread.join()
        assert not together and begun.is_set() and seen == [{1}, {1}]

    @pytest.mark.parametrize("n_workers", [1, 3])
    def test_a_block_function_that_calls_blocks_does_not_wait_for_itself(self, n_workers):
        def function(codes, rng):
            return run_blocks(two_edges, [codes], [0], {}, lambda a: a, 1)

        assert run_blocks(function, [FRAME.to_numpy()] * 3, range(3), {}, lambda a: a, n_workers) == [None] * 3
        assert run_blocks(two_edges, [FRAME.to_numpy()], [0], {}, lambda a: a, n_workers) == [(0, 2)]

    def test_filters_of_warnings_are_as_before(self):
        def function(codes, rng):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                warnings.warn("seen", stacklevel=1)
            warnings.filterwarnings("error", message="left behind")
            warnings.showwarning = print
            return () if not caught else None

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            before = type(warnings), warnings.filters, list(warnings.filters), warnings.showwarning
            answers = run_blocks(function, [FRAME.to_numpy()] * 8, range(8), {}, lambda a: a, 4)
            assert (type(warnings), warnings.filters, list(warnings.filters), warnings.showwarning) == before
            assert answers == [()] * 8
            warnings.warn("left behind, after", stacklevel=1)
        assert [str(item.message) for item in caught] == ["left behind, after"]


@pytest.mark.parametrize(
    ("answer", "counts"),
    [
        ((0, 2), [5, 0, 5]),
        ((), [0, 0, 0]),
        ((1,) * 8, [0, 0, 0]),
        ((0, 0), [0, 0, 0]),
        ((0, 1, 2), [0, 0, 0]),  # three edges where two are the most
        ([0], [0, 0, 0]),
        ((True,), [0, 0, 0]),
        ((1.0,), [0, 0, 0]),
        ((3,), [0, 0, 0]),
        ((-1,), [0, 0, 0]),
        ((np.int64(1),), [0, 0, 0]),
        (None, [0, 0, 0]),
    ],
    ids=repr,
)
def test_a_block_has_one_vote_for_each_edge_whatever_it_answers(answer, counts):
    """Noise of scale .004: another count has a chance of exp(-250)."""
    curator = opened(Budget(epsilon=1000.0, delta=1e-2))
    assert ask(curator, lambda codes, rng: answer).tolist() == counts
