"""Distributed stochastic bilevel optimisation with personal inner problems.

    min_x 1/m sum_i f_i(x, theta_i*(x)),   theta_i*(x) = argmin_theta g_i(x, theta)

m nodes, each with its own data, agree on a shared x while each keeps a personal theta; no server.

    run = lopa.run("experiment.toml", set={"run.seeds": [1]})
    print(run.table())
"""

from ._arrays import Arrays
from ._errors import (
    ConfigError,
    DataError,
    DivergedError,
    DivergenceWarning,
    Error,
    LabelWarning,
    LeftError,
    MismatchError,
    NetworkError,
    PeerError,
    RefusedError,
    RunError,
    StorageError,
)
from ._executor import Executor
from ._experiment import check, run, schema
from ._lopa import __version__
from ._network import Network, Partition, graph, partition
from ._problem import Node, Problem
from ._registries import Entry, algorithms, data_sources, graphs, partitions, problems, weights
from ._results import Model, Models, Result, Run, Table
from ._work import Trial, Tuned, compare, ranges, suggest, trial, tune

__all__ = [
    "Arrays",
    "ConfigError",
    "DataError",
    "DivergedError",
    "DivergenceWarning",
    "Entry",
    "Error",
    "Executor",
    "LabelWarning",
    "LeftError",
    "MismatchError",
    "Model",
    "Models",
    "Network",
    "NetworkError",
    "Node",
    "Partition",
    "PeerError",
    "Problem",
    "RefusedError",
    "Result",
    "Run",
    "RunError",
    "StorageError",
    "Table",
    "Trial",
    "Tuned",
    "__version__",
    "algorithms",
    "check",
    "compare",
    "data_sources",
    "graph",
    "graphs",
    "partition",
    "partitions",
    "problems",
    "ranges",
    "run",
    "schema",
    "suggest",
    "trial",
    "tune",
    "weights",
]
