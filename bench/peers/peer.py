"""Runs one peer on one case.

usage: peer.py PEER FOLDER check            largest relative difference from lopa's full-batch trajectory
       peer.py PEER FOLDER loss ITERATIONS  mean outer loss after ITERATIONS minibatch iterations
       peer.py PEER FOLDER rate f32|f64     iterations per second, best of many samples
"""

import importlib
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ.setdefault("JAX_ENABLE_X64", "1")
if hasattr(os, "sched_setaffinity"):  # one core, even if a library ignores the settings above
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import numpy as np

from case import Case


def main(peer, folder, what, *rest):
    with_peer = importlib.import_module(f"with_{peer}")
    if what == "check":
        case = Case(f"{folder}/few", np.float64)
        found = with_peer.full(case, case.iterations)
        gap = lambda name: np.abs(found[name] - case.outcome[name]).max() / np.abs(case.outcome[name]).max()
        print(max(gap(name) for name in case.outcome))
    elif what == "loss":
        case = Case(f"{folder}/all", np.float64)
        run, forward = with_peer.start(case, 1)
        forward(int(rest[0]))
        print(run.model.loss(run.x, run.theta))
    else:
        case = Case(f"{folder}/all", {"f32": np.float32, "f64": np.float64}[rest[0]])
        _, forward = with_peer.start(case, 1)
        print(rate(forward))


def rate(forward):
    """The best of many 2 ms samples: on a busy machine some of them are undisturbed."""

    def sample(count):
        begin = time.perf_counter()
        forward(count)
        return (time.perf_counter() - begin) / count

    forward(10)
    count = max(1, int(2e-3 / min(sample(1) for _ in range(20))))
    forward(count)
    end = time.perf_counter() + 2
    best = float("inf")
    while time.perf_counter() < end:
        best = min(best, sample(count))
    return 1 / best


main(*sys.argv[1:])
