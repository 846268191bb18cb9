"""The overhead of Python. Everything is a ratio within one run, of parts that take turns; the best round
counts.

usage: measure.py PROGRAM WHEEL [SECTION…]
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROUNDS = int(os.environ.get("ROUNDS", "5"))
FRAMEWORKS = [name for name in ("jax", "torch") if importlib.util.find_spec(name)]


def table(head, rows):
    for row in [head, ["---"] * len(head), *rows]:
        print("| " + " | ".join(map(str, row)) + " |")
    print(flush=True)


def python(*args):
    done = subprocess.run([sys.executable, *map(str, args)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, args))}\n{done.stderr}")
    return done.stdout


def wheel(_, path):
    timed = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    seconds = {of: min(float(python("-c", timed.format(of))) for _ in range(3 * ROUNDS)) for of in ("numpy", "lopa")}
    size = pathlib.Path(path).stat().st_size / 1e6
    rows = [
        ["size of the wheel", f"{size:.1f} MB", "15 MB"],
        ["`import lopa`", f"{1e3 * seconds['lopa']:.0f} ms", "100 ms"],
        ["`import numpy`, which it leaves for later", f"{1e3 * seconds['numpy']:.0f} ms", ""],
    ]
    table(["", "measured", "at most"], rows)


def loops(*_):
    """Each case in a process of its own, pinned to one core."""
    rows = []
    for framework in FRAMEWORKS:
        for case in ("readme", "mnist"):
            for precision in ("f32", "f64"):
                found = json.loads(python(HERE / "loops.py", framework, case, precision, ROUNDS))
                hand = found.pop("hand-written")
                for name, seconds in found.items():
                    row = [framework, case, precision, name]
                    row += [f"{1e6 * hand:.0f}", f"{1e6 * seconds:.0f}", f"{seconds / hand:.2f}"]
                    rows.append(row)
                    print("  " + " ".join(row), flush=True)
    head = ["framework", "case", "precision", "functions of", "hand-written, µs", "lopa, µs", "ratio, at most 1.15"]
    table(head, rows)


def overhead(program, _):
    """A built-in problem: by the command line, by the same program in the wheel, by `lopa.run`."""
    import lopa

    text = """
name = "overhead"
problem = { name = "representation", hidden = [20] }
data = { name = "digits" }
network = { nodes = 8, graph = "ring" }
run = { seeds = [1], iterations = 20000, evaluations = 1, batch = 32, exact = "never" }
[[algorithm]]
name = "lopa-gt"
alpha = 0.1
beta = 0.1
lambda = 0.1
"""
    best, clocks, digests = {}, {}, set()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("overhead.toml").write_text(text)

        def by_command(*command):
            out = tempfile.mkdtemp(dir=folder)
            subprocess.run([*command, "run", "overhead.toml", "-j", "1", "--out", out], capture_output=True, check=True)
            return lopa.Run.load(next(pathlib.Path(out).iterdir()))

        ways = {
            "`lopa run`, the program": lambda: by_command(program),
            "`python -m lopa run`": lambda: by_command(sys.executable, "-m", "lopa"),
            "`lopa.run(…)`": lambda: lopa.run("overhead.toml", threads=1, out=tempfile.mkdtemp(dir=folder), progress=False),
        }
        for _ in range(ROUNDS):
            for name, run in ways.items():
                begin = time.perf_counter()
                found = run()
                seconds = time.perf_counter() - begin
                best[name] = min(best.get(name, seconds), seconds)
                clock = found.rows[-1]["seconds"]
                clocks[name] = min(clocks.get(name, clock), clock)
                digests.add(found.digest)
    assert len(digests) == 1, f"digests differ: {digests}"
    first, clock = next(iter(best.values())), next(iter(clocks.values()))
    rows = [
        [name, f"{best[name]:.3f}", f"{best[name] / first:.3f}", f"{clocks[name]:.3f}", f"{clocks[name] / clock:.3f}"]
        for name in ways
    ]
    table(["built-in problem, one digest", "seconds", "ratio", "of iterations", "ratio"], rows)


def memory(*_):
    """Resident memory after a tenth of 100 000 iterations and after all of them."""
    rows = []
    for framework in FRAMEWORKS:
        early, late = json.loads(python(HERE / "memory.py", framework, 100_000))
        rows.append([framework, f"{early / 1024:.0f}", f"{late / 1024:.0f}", f"{late - early} kB"])
    table(["framework", "MB after 10 000 iterations", "after 100 000", "more"], rows)


def card(*_):
    """`device = "framework"` against loops by hand, on the card if the framework has one."""
    found = [json.loads(python(HERE / "card.py", framework).splitlines()[-1]) for framework in FRAMEWORKS]
    table(list(found[0]), [row.values() for row in found])


SECTIONS = {"wheel": wheel, "loops": loops, "overhead": overhead, "memory": memory, "card": card}


def main(program, path, *chosen):
    missing = {"jax", "torch"} - set(FRAMEWORKS)
    if missing:
        print(f"not measured, because not installed: {', '.join(missing)}\n")
    for name in chosen or SECTIONS:
        SECTIONS[name](program, path)


main(*sys.argv[1:])
