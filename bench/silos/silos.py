"""Models of silos by lopa and by scikit-learn, judged on rows that neither has seen."""

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.datasets import (
    dump_svmlight_file, load_breast_cancer, load_digits, load_iris, load_svmlight_file, load_wine,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from made import CATEGORIES, MADE, make  # noqa: E402

try:
    from lopa.sklearn import PersonalizedClassifier, RegularizedClassifier

    ESTIMATORS = [PersonalizedClassifier, RegularizedClassifier]
except ImportError:
    ESTIMATORS = []  # the package is not installed

SILOS = 5
DRAWS = 3

MARITAL = 5  # among the variables of Adult
ADULTS = 4000


def at_random(y, rng):
    return rng.integers(0, SILOS, len(y))


def by_class(y, rng):
    """Each class is spread over the silos by a draw of Dirichlet's distribution."""
    silo = np.empty(len(y), int)
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        silo[rows] = rng.choice(SILOS, len(rows), p=rng.dirichlet([0.5] * SILOS))
    return silo


def adults(seed):
    """Sparse rows of zeros and ones like a9a's; the silos are the marital states, and differ in some weights."""
    rng = np.random.default_rng(seed)
    columns, start = [], 0
    for count in CATEGORIES:
        share = rng.dirichlet(np.full(count, 0.7))
        columns.append(start + rng.choice(count, ADULTS, p=share))
        start += count
    rows = np.repeat(np.arange(ADULTS), len(CATEGORIES))
    X = sp.csr_matrix((np.ones(len(rows)), (rows, np.stack(columns, 1).ravel())), shape=(ADULTS, start))
    silo = columns[MARITAL] - sum(CATEGORIES[:MARITAL])
    common, own = rng.normal(size=start), 0.7 * rng.normal(size=(CATEGORIES[MARITAL], start))
    score = X @ common + np.asarray(X.multiply(own[silo]).sum(axis=1)).ravel()
    y = (score + rng.logistic(size=ADULTS) > np.quantile(score, 0.76)).astype(int)
    return X, y, silo


def tables(load, split):
    """Draws of a data set of scikit-learn."""

    def draw(seed):
        X, y = load(return_X_y=True)
        return X, y, split(y, np.random.default_rng(seed))

    return draw


def made(name):
    """Draws of silos of a data set of bench/steps."""

    def draw(seed):
        with tempfile.TemporaryDirectory() as folder:
            path = make(name, folder)
            if path.suffix == ".svm":
                X, y = load_svmlight_file(str(path), zero_based=False)
            else:
                rows = pd.read_csv(path)
                X, y = rows.drop(columns="y").to_numpy(), rows["y"].str[1:].astype(int).to_numpy()
        return X, y.astype(int), at_random(y, np.random.default_rng(seed))

    return draw


def run(program, folder, *args):
    done = subprocess.run([program, *args], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"lopa {' '.join(args)}: {done.stderr}")
    return done.stdout


def command_line(program, train, test):
    """The share of rows that is right, by algorithm: each row by the model of its silo."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if sp.issparse(train[0]):
            for part, (X, y, silo) in [("train", train), ("test", test)]:
                (folder / part).mkdir()
                for at in np.unique(train[2]):
                    own = silo == at
                    dump_svmlight_file(X[own], y[own], str(folder / part / f"s{at}.libsvm"), zero_based=False)
            data, judged = ["train"], "test/{node}.libsvm"
        else:
            for part, (X, y, silo) in [("train", train), ("test", test)]:
                rows = pd.DataFrame(X, columns=[f"f{at}" for at in range(X.shape[1])])
                rows["silo"] = [f"s{at}" for at in silo]
                rows["target"] = [f"c{label}" for label in y]
                rows.to_csv(folder / f"{part}.csv", index=False)
            data, judged = ["train.csv", "--nodes-from", "silo", "--label", "target"], "test.csv"
        run(program, folder, "init", "--data", *data, "-o", "e.toml", "--jobs", "1")
        run(program, folder, "run", "e.toml", "--out", "runs", "--jobs", "1")
        (path,) = (folder / "runs").iterdir()
        found = json.loads(run(program, folder, "evaluate", str(path), "--input", judged, "--format", "json"))
    return {model["algorithm"]: model["accuracy_of_all_rows"] for model in found}


def estimated(kind, train, test):
    X, y, silo = train
    return kind(random_state=0).fit(X, y, groups=silo).score(test[0], test[1], groups=test[2])


def alone(train, test):
    """The same of a logistic regression for each silo, on standardised features."""
    right = 0
    for at in np.unique(test[2]):
        (X, y), (rows, truth) = ((part[0][part[2] == at], part[1][part[2] == at]) for part in (train, test))
        if len(np.unique(y)) < 2:
            right += (truth == y[0]).sum()
            continue
        scaler = StandardScaler(with_mean=not sp.issparse(X))
        model = make_pipeline(scaler, LogisticRegression(max_iter=5000))
        right += (model.fit(X, y).predict(rows) == truth).sum()
    return right / len(test[1])


def parted(X, y, silo, seed):
    """Three quarters to train on and one to judge; silos with fewer than four rows are left out."""
    both = train_test_split(np.arange(len(y)), test_size=0.25, random_state=seed, stratify=y)
    names, sizes = np.unique(silo[both[0]], return_counts=True)
    large = names[sizes >= 4]
    both = [rows[np.isin(silo[rows], large)] for rows in both]
    return [(X[rows], y[rows], silo[rows]) for rows in both]


SETS = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
CASES = [
    (name, words, tables(load, split))
    for split, words in [(at_random, "at random"), (by_class, "by class")]
    for name, load in SETS.items()
]
CASES.append(("like a9a, sparse", "marital state", adults))
CASES += [(MADE[name].__doc__.split(": ")[0].split("\n")[0].rstrip("."), "at random", made(name)) for name in MADE]


def one(job):
    """The accuracies of a case on one draw."""
    program, case, seed = job
    train, test = parted(*CASES[case][2](seed), seed)
    ours = command_line(program, train, test)
    estimators = [estimated(kind, train, test) for kind in ESTIMATORS]
    return [ours["lopa-gt"], ours["local"], *estimators, alone(train, test)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lopa")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=None)
    asked = parser.parse_args()
    chosen = [at for at, (name, words, _) in enumerate(CASES) if asked.only in f"{name}, {words}"]
    heads = ["data", "silos", "lopa-gt", "local", *[kind.__name__ for kind in ESTIMATORS], "logistic regression"]
    print("|" + "|".join(f" {head} " for head in heads) + "|\n|" + "---|" * len(heads))
    behind = []
    with ProcessPoolExecutor(asked.jobs) as pool:
        found = pool.map(one, [(asked.lopa, at, seed) for at in chosen for seed in range(DRAWS)])
        for at in chosen:
            draws = [next(found) for _ in range(DRAWS)]
            (name, words, _), means = CASES[at], np.mean(draws, axis=0)
            cells = " | ".join(f"{value:.3f}" for value in means)
            print(f"| {name} | {words} | {cells} |", flush=True)
            if means[0] < means[-1]:
                behind.append(f"{name}, {words}: {means[0] - means[-1]:+.3f}")
    print(f"\nlopa-gt is behind in {len(behind)} of {len(chosen)} cases. " + "; ".join(behind))


if __name__ == "__main__":
    main()
