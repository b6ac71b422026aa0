"""One run of another package's method, in an environment of its own: a script that imports nothing of this package.

    PYTHON compare_peers.py METHOD INPUT.npz OUTPUT.npz

`benchmarks.compare` calls it and has what to install (`PEERS`). Every method is called as its authors publish it:
nothing of what it computes is changed, and settings are its defaults unless its function here says otherwise.

Input: ``codes`` (n, d), ``cardinalities`` (d,), ``epsilon``, ``delta``, ``rho`` (what (epsilon, delta) is in zCDP),
``seed``; for "mbi" the noisy tables of `learn`. Output: ``synthetic`` records; the model's tables (``scopes``, as JSON,
of variables by number) and their log-potentials ``theta``; ``seconds`` of processor time, from the records to the
synthetic ones, compilation included.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import json
import math
import sys
import time
import warnings
from typing import Any

import numpy as np

TRIPLES = 3
MAX_CELLS = 10_000
"""Of a table in AIM's workload, as in its own script."""
BEST_ORDER = 8
"""Tables whose best order of products mbi looks for; of more, a greedy one."""


def main() -> None:
    method, source, result = sys.argv[1:]
    warnings.simplefilter("ignore")
    given = dict(np.load(source))
    with contextlib.suppress(ImportError):
        order_greedily()
    with contextlib.redirect_stdout(io.StringIO()):  # they print a lot
        np.savez(result, **METHODS[method](given))


def order_greedily() -> None:
    """Find the order of products of many tables greedily, for mbi: to find the best one takes it minutes."""
    from opt_einsum import paths

    best = paths.DynamicProgramming.__call__

    def order(self: Any, inputs: list, output: Any, sizes: dict, memory_limit: Any = None) -> list:
        found = paths.greedy if len(inputs) > BEST_ORDER else functools.partial(best, self)
        return found(inputs, output, sizes, memory_limit)

    paths.DynamicProgramming.__call__ = order


def aim(given: dict, degree: int, *, stable: bool = False, **settings: float) -> dict:
    """AIM of private-pgm's mechanisms/aim.py; its workload is all sets of `degree` variables.

    Nearly all of its time is preparation, so two things are done for it that change numbers by rounding alone. XLA is
    told not to optimize, and tables outside the model come from the same elimination in numpy (:func:`_eliminated`),
    not from one compilation each. If `stable`, mbi's slower way to a model's tables is taken
    (``message_passing_stable``): those of its quicker one become NaN where potentials differ by more than 700.
    """
    import jax

    jax.config.update("jax_disable_most_optimizations", True)
    import mbi
    from aim import AIM

    published = mbi.MarkovRandomField.project

    def project(model: Any, attrs: Any) -> Any:
        attrs = (attrs,) if isinstance(attrs, str) else tuple(attrs)
        if model.marginals.supports(attrs):
            return published(model, attrs)
        return mbi.Factor(model.domain.project(attrs), _eliminated(model, attrs))

    mbi.MarkovRandomField.project = project
    if stable:
        mbi.estimation.mirror_descent = functools.partial(
            mbi.estimation.mirror_descent, marginal_oracle=mbi.marginal_oracles.message_passing_stable
        )

    data = _data_frame_set(given)
    np.random.seed(int(given["seed"]))  # noqa: NPY002 - what it draws from
    workload = [(cl, 1.0) for cl in itertools.combinations(data.domain, degree) if data.domain.size(cl) <= MAX_CELLS]
    start = time.process_time()
    method = AIM(float(given["epsilon"]), float(given["delta"]), **settings)
    model, synthetic = method.run(data, workload, len(given["codes"]))
    return _result(given, synthetic.df.to_numpy(), start, model.potentials)


def _eliminated(model: Any, attrs: tuple) -> np.ndarray:
    """The table of `attrs` in a model of mbi: variable elimination, the variable of the smallest product first.

    In logarithms, as in mbi: potentials of AIM's models differ by more than 1,000, and their exponentials are 0.
    """
    domain = model.domain
    factors = [(tuple(cl), np.asarray(one.values, dtype=np.float64)) for cl, one in model.potentials.arrays.items()]
    factors += [((name,), np.zeros(domain.size((name,)))) for name in attrs]  # of no potential: uniform
    left = {name for cl, _ in factors for name in cl} - set(attrs)

    def scope(name: str) -> list:
        return sorted({other for cl, _ in factors if name in cl for other in cl})

    while left:
        name = min(left, key=lambda name: domain.size(tuple(scope(name))))
        left.remove(name)
        kept = tuple(other for other in scope(name) if other != name)
        summed = _log_product([one for one in factors if name in one[0]], kept)
        factors = [one for one in factors if name not in one[0]] + [(kept, summed)]
    table = _log_product(factors, attrs)
    table = np.exp(table - table.max())
    return table * (float(model.total) / table.sum())


def _log_product(factors: list, kept: tuple) -> np.ndarray:
    """The logarithm of the product of tables, summed over all variables but `kept`; tables are logarithms too."""
    from scipy.special import logsumexp

    names = [*kept, *sorted({name for cl, _ in factors for name in cl} - set(kept))]
    total = np.zeros((1,) * len(names))
    for cl, table in factors:
        order = sorted(range(len(cl)), key=lambda k: names.index(cl[k]))
        others = [k for k, name in enumerate(names) if name not in cl]
        total = total + np.expand_dims(np.transpose(table, order), others)
    summed = tuple(range(len(kept), len(names)))
    return logsumexp(total, axis=summed) if summed else total


def mst(given: dict) -> dict:
    """MST of private-pgm's mechanisms/mst.py; its model and its merged states are caught where they are made."""
    import mst as published

    data = _data_frame_set(given)
    np.random.seed(int(given["seed"]))  # noqa: NPY002 - what it draws from
    caught: dict = {"models": []}
    fit, merge = published.estimation.mirror_descent, published.transform_data

    def fitted(*arguments, **options):
        caught["models"].append(fit(*arguments, **options))
        return caught["models"][-1]

    def merged(data, supports):
        caught["supports"] = supports
        return merge(data, supports)

    published.estimation.mirror_descent, published.transform_data = fitted, merged
    start = time.process_time()
    synthetic = published.MST(data, float(given["epsilon"]), float(given["delta"]))
    supports = {_number(name): np.asarray(kept) for name, kept in caught["supports"].items()}
    return _result(given, synthetic.df.to_numpy(), start, caught["models"][-1].potentials, supports)


def swift(given: dict, degree: int | None = None, *, optimize: bool = True, **settings: float) -> dict:
    """dpsynth's SWIFT within its DiscreteConfig, in float64, as mbi recommends for many records.

    What it prints while it fits is left out: to compile that takes more time than all else. XLA does not `optimize`
    where iterations are few; the 10,000 of its own settings take five times as long without. It never does for the
    synthetic records. For these mbi computes every table beside the messages it needs, one compilation each, and drops
    them: more than 8 GB. They are left out.
    """
    import jax

    jax.config.update("jax_disable_most_optimizations", not optimize)
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    import mbi

    mbi.callbacks.default = lambda *_, **__: None
    drawn = mbi.extensions.synthetic_data

    def draw(*arguments: Any) -> Any:
        jax.config.update("jax_disable_most_optimizations", True)
        mbi.marginal_oracles._fold_constraints = lambda potentials, _: (potentials, [])  # no tables of its cliques
        return drawn(*arguments)

    mbi.extensions.synthetic_data = draw
    from dpsynth.discrete_mechanisms.discrete import DiscreteConfig
    from dpsynth.discrete_mechanisms.swift import SWIFTConfig

    names, codes = _names(given), given["codes"]
    domain = mbi.Domain(names, tuple(int(k) for k in given["cardinalities"]))
    data = mbi.Dataset({name: codes[:, i] for i, name in enumerate(names)}, domain)
    workload = None if degree is None else list(itertools.combinations(names, degree))
    start = time.process_time()
    mechanism = DiscreteConfig(mechanism=SWIFTConfig(workload=workload, **settings)).configure(
        zcdp_rho=float(given["rho"])
    )
    found = mechanism(np.random.default_rng(int(given["seed"])), data)
    records = found.synthetic_data.to_dict()
    return _result(given, np.column_stack([records[name] for name in names]), start, found.model.potentials)


def margnet(given: dict) -> dict:
    """MargNet's network on a processor, with the smallest sizes and the fewest steps of its authors' settings.

    Without their preparation of columns, as these are discrete: the network gets the whole budget. What it learns is a
    mixture of 256 products, which is what `main` writes of it.
    """
    import tempfile
    from types import SimpleNamespace

    import pandas as pd
    import torch

    torch.set_num_threads(1)
    torch.cuda.reset_peak_memory_stats = lambda *_: None  # on a processor there are none
    torch.cuda.max_memory_allocated = lambda **_: 0
    from method.MargDL.main import MargDLGen

    names, codes = _names(given), given["codes"].astype(np.int64)
    np.random.seed(int(given["seed"]))  # noqa: NPY002 - what it draws from
    torch.manual_seed(int(given["seed"]))
    settings = {
        "train": {"selection_iterations": 100, "final_iterations": 100, "lr": 0.001, "batch_size": 256},
        "model_params": {"d_layers": [128, 128], "dropout": 0.0},
    }
    options = SimpleNamespace(iter=None, lr=None, batch=None, test=False, resample=False)
    domain = {name: int(k) for name, k in zip(names, given["cardinalities"], strict=True)}
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        frame = pd.DataFrame(codes, columns=list(names))
        made = MargDLGen(options, frame, domain, "cpu", settings, folder, "gan")
        made.fit_adaptive(float(given["rho"]))
        synthetic = made.model.sample(len(codes))
    seconds = time.process_time() - start
    with torch.no_grad():
        mixture = made.model._sample_logits().double().numpy()
    return {"synthetic": np.asarray(synthetic).astype(np.int32), "mixture": mixture, "seconds": seconds}


def tab_pe(given: dict) -> dict:
    """Tab-PE of Microsoft's DPSDA, as its example for Adult: 1,000 records, in 29 rounds.

    Every column is a category, with the states of the schema. The label is the target; how often each label occurs it
    takes as public, which it is not.
    """
    from unittest.mock import MagicMock

    import pandas as pd

    for name in (  # what it imports for pictures and texts
        *("torchvision", "torchvision.transforms", "torchvision.datasets", "torchvision.utils", "openai", "tenacity"),
        *("azure", "azure.identity", "cleanfid", "cleanfid.fid", "cleanfid.resize", "cleanfid.clip_features"),
        *("cleanfid.inception_torchscript", "fld", "fld.metrics", "fld.metrics.PrecisionRecall", "fld.features"),
        "fld.features.InceptionFeatureExtractor",
    ):
        sys.modules[name] = MagicMock()
    from pe.api.tabular.tabular_api import TabularAPI
    from pe.constant.data import (
        LABEL_ID_COLUMN_NAME,
        TABULAR_DATA_COLUMN_NAME,
        VARIATION_API_FOLD_ID_COLUMN_NAME,
    )
    from pe.data import Data, TabularColumnType
    from pe.embedding.tabular.tabular_embedding import TabularEmbedding
    from pe.histogram import NearestNeighbors
    from pe.population import CompositePopulation, PEPopulation
    from pe.runner import PE

    records, rounds = 1000, 30
    codes, label = given["codes"].astype(int), int(given["target"])
    others = [i for i in range(codes.shape[1]) if i != label]
    info = {
        str(i): {"categories": list(range(int(given["cardinalities"][i]))), "type": TabularColumnType.CATEGORICAL}
        for i in others
    }
    columns = list(info)
    labels = np.unique(codes[:, label])
    metadata = {
        "label_columns": ["label"],
        "label_info": [{"name": f"label: {k}", "column_values": {"label": int(k)}} for k in labels],
        "cat_columns": columns,
        "int_columns": [],
        "float_columns": [],
        "feature_columns": columns,
    }
    frame = pd.DataFrame(
        {
            TABULAR_DATA_COLUMN_NAME: codes[:, others].tolist(),
            LABEL_ID_COLUMN_NAME: np.searchsorted(labels, codes[:, label]),
        }
    )
    np.random.seed(int(given["seed"]))  # noqa: NPY002 - what it draws from
    start = time.process_time()
    api = TabularAPI(info, mutation_rate_init=0.5, mutation_rate_final=0.01, gamma=0.2, num_iterations=rounds)
    first = PEPopulation(
        api,
        initial_variation_api_fold=0,
        next_variation_api_fold=1,
        keep_selected=False,
        selection_mode="sample",
        histogram_threshold=0,
    )
    later = PEPopulation(
        api, initial_variation_api_fold=3, next_variation_api_fold=3, keep_selected=True, selection_mode="rank"
    )
    made = PE(
        Data(data_frame=frame, metadata=metadata),
        CompositePopulation([first] * 5 + [later] * (rounds - 5)),
        NearestNeighbors(TabularEmbedding(info), mode="L2", lookahead_degree=0, backend="torch"),
    ).run([records] * rounds, float(given["delta"]), float(given["epsilon"]), save_checkpoint=False)
    kept = made.data_frame[made.data_frame[VARIATION_API_FOLD_ID_COLUMN_NAME] == -1]
    synthetic = np.empty((len(kept), codes.shape[1]), dtype=np.int32)
    synthetic[:, others] = np.array(kept[TABULAR_DATA_COLUMN_NAME].tolist())
    synthetic[:, label] = labels[kept[LABEL_ID_COLUMN_NAME].to_numpy().astype(int)]
    return {"synthetic": synthetic, "seconds": time.process_time() - start}


def opendp(given: dict, algorithm: str) -> dict:
    """OpenDP's AIM (all tables of up to three variables) or MST, from opendp.extras.mbi; its noise has no seed."""
    import mbi as published
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    names, codes = _names(given), given["codes"].astype(np.int64)
    frame = pl.LazyFrame({name: codes[:, i] for i, name in enumerate(names)})
    keys = {name: list(range(int(k))) for name, k in zip(names, given["cardinalities"], strict=True)}
    # Of few binary digits: with others its own sums of parts come out larger than the whole, and it refuses. With some
    # of few, too: then the next smaller number is tried.
    mantissa, exponent = math.frexp(float(given["rho"]))
    start = time.process_time()
    for less in range(4):
        rho = math.ldexp((math.floor(mantissa * 2**10) - less) / 2**10, exponent)
        try:
            table = (
                dp.Context.compositor(
                    data=frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=rho)
                )
                .query(rho=rho)
                .select(*names)
                .contingency_table(keys=keys, algorithm=getattr(dp.mbi, algorithm)())
                .release()
            )
            break
        except dp.OpenDPException as error:
            if less == 3 or "insufficient budget" not in str(error):
                raise
    # It adds a null state to every variable, for records outside of the keys. There are none, so its model is
    # conditioned on that.
    order = {name: {key: k for k, key in enumerate(table.keys[name])} for name in names}
    assert all(order[name].get(k) == k for name, known in keys.items() for k in known)
    domain = published.Domain(names, tuple(map(len, keys.values())))
    factors = {}
    for clique, factor in table.model.potentials.arrays.items():
        part = domain.project(clique)
        factors[clique] = published.Factor(part, factor.values[tuple(slice(k) for k in part.shape)])
    potentials = published.CliqueVector(domain, list(factors), factors)
    marginals = published.marginal_oracles.message_passing_stable(potentials, len(codes))
    model = published.MarkovRandomField(potentials=potentials, marginals=marginals, total=len(codes))
    records = model.synthetic_data(len(codes)).df[list(names)].to_numpy()
    return _result(given, records, start, potentials)


def privbayes(given: dict) -> dict:
    """dpmm's PrivBayes."""
    import pandas as pd
    from dpmm.models.priv_bayes import PrivBayesGM

    names = _names(given)
    frame = pd.DataFrame(given["codes"].astype(np.int64), columns=names)
    domain = {name: int(k) for name, k in zip(names, given["cardinalities"], strict=True)}
    start = time.process_time()
    model = PrivBayesGM(
        domain=domain,
        epsilon=float(given["epsilon"]),
        delta=float(given["delta"]),
        random_state=np.random.RandomState(int(given["seed"])),
        n_jobs=1,
    )
    model.fit(frame)
    synthetic = model.generate(n_records=len(frame))[list(names)].to_numpy()
    made = model.generator
    supports = {_number(name): np.asarray(kept) for name, kept in made.compressor.supports.items()}
    return _result(given, synthetic, start, made.model.potentials, supports)


def mbi(given: dict) -> dict:
    """mbi's mirror descent (squared loss, 1,000 iterations, noise declared) on the tables that `learn` released."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    import mbi as published

    names = _names(given)
    domain = published.Domain(names, tuple(int(k) for k in given["cardinalities"]))
    scopes = json.loads(str(given["release_scopes"]))
    sizes = [int(np.prod([given["cardinalities"][i] for i in scope])) for scope in scopes]
    tables = np.split(given["release_counts"], np.cumsum(sizes)[:-1])
    measurements = [
        published.LinearMeasurement(table, tuple(names[i] for i in scope), stddev=float(deviation))
        for table, scope, deviation in zip(tables, scopes, given["release_deviations"], strict=True)
    ]
    start = time.process_time()
    model = published.estimation.MirrorDescent().estimate(domain, measurements, iters=1000)
    records = model.synthetic_data(len(given["codes"])).to_dict()
    return _result(given, np.column_stack([records[name] for name in names]), start, model.potentials)


METHODS = {
    "aim-pairs": lambda given: aim(given, 2),
    "aim-triples": lambda given: aim(given, TRIPLES),
    "mst": mst,
    "swift": swift,
    "aim-small": lambda given: aim(given, 2, stable=True, max_model_size=1.0),
    "swift-small": lambda given: swift(given, 2, optimize=False, max_clique_size=1e4, pgm_iters=1000),
    "margnet": margnet,
    "tab-pe": tab_pe,
    "opendp-aim": lambda given: opendp(given, "AIM"),
    "opendp-mst": lambda given: opendp(given, "MST"),
    "privbayes": privbayes,
    "mbi": mbi,
}


def _names(given: dict) -> tuple[str, ...]:
    return tuple(f"v{i:04d}" for i in range(len(given["cardinalities"])))  # their order is that of the variables


def _number(name: str) -> int:
    return int(name[1:])


def _data_frame_set(given: dict):
    """The records as the version of mbi takes them whose mechanisms these are."""
    import pandas as pd
    from mbi import Dataset, Domain

    names = _names(given)
    frame = pd.DataFrame(given["codes"].astype(np.int64), columns=names)
    return Dataset(frame, Domain(names, tuple(int(k) for k in given["cardinalities"])))


def _result(given: dict, synthetic: np.ndarray, start: float, potentials, supports: dict | None = None) -> dict:
    """What `main` writes; `supports` says for each variable which states are not merged to one, the last."""
    seconds = time.process_time() - start
    scopes, tables = [], []
    supports = {i: kept for i, kept in (supports or {}).items() if not kept.all()}
    for clique in potentials.cliques if hasattr(potentials, "cliques") else potentials:
        factor = potentials[clique]
        attributes = factor.domain.attrs if hasattr(factor.domain, "attrs") else factor.domain.attributes
        scope = [_number(name) for name in attributes]
        table = np.asarray(factor.values, dtype=np.float64).reshape(tuple(factor.domain.shape))
        for axis, i in enumerate(scope):
            if i in supports:
                place = np.where(supports[i], np.cumsum(supports[i]) - 1, supports[i].sum())
                table = np.take(table, place, axis=axis)
        scopes.append(scope)
        tables.append(table.ravel())
    for i, kept in supports.items():  # merged states are equally likely
        scopes.append([i])
        tables.append(np.where(kept, 0.0, -np.log((~kept).sum())))
    theta = np.maximum(np.concatenate(tables), -1e6)
    return {
        "synthetic": np.asarray(synthetic).astype(np.int32),
        "scopes": json.dumps(scopes),
        "theta": theta,
        "seconds": seconds,
    }


if __name__ == "__main__":
    main()
