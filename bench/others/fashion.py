"""Runs both files and writes the tables of docs/others.md between its marks `fashion-…`."""

import argparse
import json
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "others.md"
NAMES = {
    "fedrep": "FedRep",
    "fedper": "FedPer",
    "ditto": "Ditto",
    "fedavg": "FedAvg",
    "dgd": "DGD",
    "lopa-gt": "LoPA-GT",
    "lopa-lg": "LoPA-LG",
    "alone": "each client alone (the same network)",
}
PUBLISHED = {
    "two": {"fedrep": "99.56 ± .03", "fedper": "99.47", "ditto": "99.44", "fedavg": "80.41 ± .08"},
    "dirichlet": {"fedrep": "97.56 ± .04", "fedper": "97.44", "ditto": "97.47", "fedavg": "85.85 ± .19"},
}


def measured(lopa, split, data, out):
    """The rows of all runs: {(algorithm, seed): [row, …]} in order."""
    file = ROOT / "experiments" / "others" / f"fashion-{split}.toml"
    command = [lopa, "run", file, "--out", out, "--format", "json"]
    done = subprocess.run(command + (["--data", data] if data else []), stdout=subprocess.PIPE, check=True)
    folders = sorted(Path(out).glob(f"fashion-{split}-*"), key=lambda folder: folder.stat().st_mtime)
    assert json.loads(done.stdout), "the run has results"
    rows = {}
    for line in (folders[-1] / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        rows.setdefault((row["algorithm"], row["seed"]), []).append(row)
    return rows


def spread(values):
    mean = f"{100 * statistics.mean(values):.2f}"
    return f"{mean} ± {100 * statistics.stdev(values):.2f}" if len(values) > 1 else mean


def table(rows, published):
    algorithms = list(dict.fromkeys(algorithm for algorithm, _ in rows))
    seeds = sorted({seed for _, seed in rows})
    sent = [rows[algorithm, seeds[0]][-1]["bytes"] for algorithm in algorithms]
    budget = min(count for count in sent if count > 0)

    def at_bytes(trace):
        """The last row that has sent no more than the method that sends least, but for two hundredths."""
        return [row for row in trace if row["bytes"] <= 1.02 * budget][-1]

    lines = []
    for algorithm, count in zip(algorithms, sent):
        traces = [rows[algorithm, seed] for seed in seeds]
        last = [trace[-1]["holdout_accuracy"] for trace in traces]
        equal = [at_bytes(trace)["holdout_accuracy"] for trace in traces]
        same = last == equal
        lines.append(
            (
                -statistics.mean(last),
                f"| {NAMES[algorithm]} | {spread(last)} | {'the same' if same else spread(equal)} | "
                f"{count / 2**30:.1f} GiB | {published.get(algorithm, '–')} |",
            )
        )
    majority = statistics.mean(rows[algorithms[0], seed][-1]["holdout_majority"] for seed in seeds)
    head = [
        f"| | own held-out images, {rows[algorithms[0], seeds[0]][-1]['exchanges']} rounds | at {budget / 2**30:.1f} GiB | "
        "sent by all | PFLlib |",
        "|---|---|---|---|---|",
    ]
    end = [f"| always a client's most frequent class | {100 * majority:.2f} | the same | 0 GiB | – |"]
    return "\n".join(head + [line for _, line in sorted(lines)] + end)


def between(page, mark, text):
    """The page with this text between the marks."""
    start, end = f"<!-- {mark} -->", f"<!-- end {mark} -->"
    before, rest = page.split(start)
    return f"{before}{start}\n{text}\n{end}{rest.split(end)[1]}"


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("lopa")
    arguments.add_argument("--data")
    arguments.add_argument("--out", default="runs")
    given = arguments.parse_args()
    page = PAGE.read_text()
    for split, published in PUBLISHED.items():
        text = table(measured(given.lopa, split, given.data, given.out), published)
        page = between(page, f"fashion-{split}", text)
        print(text, "\n")
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
