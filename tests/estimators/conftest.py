"""Fixtures of the estimators' tests."""

from __future__ import annotations

import networkx as nx
import pytest
from pgmpy import config

from pgmpy_dp.estimators.markov_network import MarkovNetwork
from tests.estimators.shapes import GRAPHS, make_network


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
    before = config.get_show_progress()
    config.set_show_progress(False)
    yield
    config.set_show_progress(before)
