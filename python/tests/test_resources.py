"""The resources of a long run."""

from __future__ import annotations

from typing import Any

import lopa
from experiments import experiment


def resident() -> int:
    """Kilobytes."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def test_memory_is_flat(kit: Any) -> None:
    problem = kit.ridge()

    def after(iterations: int) -> int:
        run = {"iterations": iterations, "evaluations": 1, "exact": "never", "batch": 4}
        lopa.run(experiment(problem, run=run), out=f"runs-{iterations}")
        return resident()

    after(300)
    before = after(301)
    # A kilobyte kept in each iteration would be four megabytes.
    assert after(4000) - before < 2000
