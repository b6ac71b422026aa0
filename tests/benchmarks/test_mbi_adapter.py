"""mbi's models come back as the same distribution in our layout; only where mbi is installed."""

import networkx as nx
import numpy as np
import pytest

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals

pytest.importorskip("mbi", reason="the bench extra is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # what mbi and JAX warn of is not ours to judge

from benchmarks.mbi_adapter import fit_mbi  # noqa: E402


@pytest.mark.parametrize("loss", ["l1", "l2"])
@pytest.mark.parametrize("total", [500.0, None])
def test_potentials_and_stated_marginals_agree(loss: str, total: float | None) -> None:
    # Scopes against the variables' order, a nested and a repeated one: mbi keeps maximal cliques only.
    graph = nx.cycle_graph(["d", "a", "c", "b"])
    scopes = [("c", "a"), ("a", "d"), ("b", "c"), ("b", "d"), ("c",), ("a", "c")]
    cliques = Cliques.from_graph(graph, {"a": 2, "b": 3, "c": 4, "d": 2}, scopes)
    rng = np.random.default_rng(0)
    truth = LogLinearModel(cliques, rng.normal(size=cliques.n_cells))
    noisy = NoisyMarginals(cliques, np.rint(500 * truth.marginals()), "laplace", np.full(6, 2.0), total)
    fit = fit_mbi(noisy, loss=loss, iterations=1000)
    ours = LogLinearModel(cliques, fit.theta).marginals()
    np.testing.assert_allclose(ours, fit.marginals, atol=1e-12)
    assert fit.total == pytest.approx(500, abs=0 if total else 3)
    # The tables are nearly exact, so the fit must be near them, and far from the uniform model.
    assert np.abs(ours - truth.marginals()).max() < 0.02
