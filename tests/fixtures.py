"""The same noise and the same examples of hypothesis in every run, and no clock: luck and load fail no test.

NOISE=real draws noise as users do (`repeatable_noise.py`); HYPOTHESIS_PROFILE=thorough looks at ten times as many
examples, other ones each time.
"""

import functools
import logging
import os
import sys

import networkx as nx
import pytest
import typer.testing
from hypothesis import HealthCheck, settings
from pgmpy import config as pgmpy_config
from threadpoolctl import ThreadpoolController

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.models.markov_network import MarkovNetwork
from pgmpy_dp.private.mathematics import one_thread
from pgmpy_dp.private.operators import regressions
from tests.estimators.shapes import GRAPHS, make_network
from tests.repeatable_noise import RepeatableNoise
from tests.small_models import layouts

settings.register_profile(
    "repeatable", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("all", settings.get_profile("repeatable"), max_examples=100)  # `make test-all`
settings.register_profile(
    "thorough", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


# At each of a test's three stages pytest puts handlers on every logger that does not propagate. Torch, which pgmpy
# imports, has forty of them, and that took more time than most tests do. They are heard at the root as well.
for name in list(logging.root.manager.loggerDict):
    if name.partition(".")[0] == "torch":
        logging.getLogger(name).propagate = True


def pytest_configure(config: pytest.Config):
    if (run := os.environ.get("NOISE", "0")) != "real":
        config.pluginmanager.register(RepeatableNoise(int(run)), "repeatable noise")  # for docstrings' examples too


@functools.cache
def libraries(n_modules: int) -> ThreadpoolController:
    """A search for libraries of BLAS takes six milliseconds: there is one for as long as nothing is imported."""
    return ThreadpoolController()


for module in (one_thread, regressions):
    module.ThreadpoolController = lambda: libraries(len(sys.modules))


# Making the tree of commands anew for each command line of a test takes twenty milliseconds.
typer.testing._get_command = functools.cache(typer.testing._get_command)


@pytest.fixture(params=list(layouts()))
def cliques(request) -> Cliques:
    """Scopes of every awkward shape."""
    return layouts()[request.param]


@pytest.fixture(params=GRAPHS, ids=lambda name: name.replace(" ", "_"))
def shape(request) -> tuple[nx.Graph, dict]:
    """A graph and the cardinality of each of its nodes."""
    return GRAPHS[request.param]


@pytest.fixture
def network(shape) -> MarkovNetwork:
    """A model on the shape with random potentials, far from uniform."""
    return make_network(*shape)


@pytest.fixture(autouse=True)
def no_progress_bars():
    before = pgmpy_config.get_show_progress()
    pgmpy_config.set_show_progress(False)
    yield
    pgmpy_config.set_show_progress(before)
