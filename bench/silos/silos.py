"""Models of silos by lopa and by scikit-learn, judged on rows that neither has seen."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

SILOS = 5
DRAWS = 3
SETS = {"wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}


def at_random(y, rng):
    return rng.integers(0, SILOS, len(y))


def by_class(y, rng):
    """Each class is spread over the silos by a draw of Dirichlet's distribution."""
    silo = np.empty(len(y), int)
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        silo[rows] = rng.choice(SILOS, len(rows), p=rng.dirichlet([0.5] * SILOS))
    return silo


def lopa(program, folder, train, test):
    """The share of rows that is right, by algorithm: each row by the model of its silo."""

    def run(*args):
        done = subprocess.run([program, *args], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        return done.stdout

    train.to_csv(folder / "train.csv", index=False)
    test.to_csv(folder / "test.csv", index=False)
    run("init", "--data", "train.csv", "--nodes-from", "silo", "--label", "target", "-o", "e.toml")
    run("run", "e.toml", "--out", "runs")
    (path,) = (folder / "runs").iterdir()
    found = json.loads(run("evaluate", str(path), "--input", "test.csv", "--format", "json"))
    return {model["algorithm"]: model["accuracy_of_all_rows"] for model in found}


def alone(train, test):
    """The same of a logistic regression for each silo, on standardised features."""
    right = 0
    features = [name for name in train if name.startswith("f")]
    for silo, rows in test.groupby("silo"):
        own = train[train.silo == silo]
        if own.target.nunique() < 2:
            right += (rows.target == own.target.iloc[0]).sum()
            continue
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))
        right += (model.fit(own[features], own.target).predict(rows[features]) == rows.target).sum()
    return right / len(test)


def draw(load, split, seed):
    X, y = load(return_X_y=True)
    rows = pd.DataFrame(X, columns=[f"f{at}" for at in range(X.shape[1])])
    rows["silo"] = [f"s{silo}" for silo in split(y, np.random.default_rng(seed))]
    rows["target"] = [f"c{label}" for label in y]
    train, test = train_test_split(rows, test_size=0.25, random_state=seed, stratify=y)
    sizes = train.silo.value_counts()
    large = sizes.index[sizes >= 4]
    return train[train.silo.isin(large)], test[test.silo.isin(large)]


def main(program):
    print("| data | silos | lopa-gt | local | logistic regression |\n|---|---|---|---|---|")
    for split, words in [(at_random, "at random"), (by_class, "by class")]:
        for name, load in SETS.items():
            found = []
            for seed in range(DRAWS):
                train, test = draw(load, split, seed)
                with tempfile.TemporaryDirectory() as folder:
                    ours = lopa(program, Path(folder), train, test)
                found.append([ours["lopa-gt"], ours["local"], alone(train, test)])
            cells = " | ".join(f"{value:.3f}" for value in np.mean(found, axis=0))
            print(f"| {name} | {words} | {cells} |", flush=True)


main(sys.argv[1])
