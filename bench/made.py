"""Data sets that are made here, the same on every machine; bench/steps and bench/silos use them.

Each function writes a file into a folder and returns its name. Tables have the label first, in column `y`.
"""

import math
import random
from pathlib import Path


def classes(rng, rows, features, count, separation, shares=None):
    """Gaussian classes of unit variance: (label, row), one after the other."""
    centres = [[rng.gauss(0, separation) for _ in range(features)] for _ in range(count)]
    for _ in range(rows):
        label = rng.choices(range(count), shares)[0]
        yield label, [centre + rng.gauss(0, 1) for centre in centres[label]]


def table(path, rows):
    with path.open("w") as out:
        for at, (label, row) in enumerate(rows):
            if at == 0:
                print("y", *(f"f{j}" for j in range(len(row))), sep=",", file=out)
            print(f"c{label}", *(f"{value:.6g}" for value in row), sep=",", file=out)


def decades(path):
    """Columns over four decades."""
    scales = [10 ** (4 * j / 15 - 2) for j in range(16)]
    rows = classes(random.Random(1), 1600, 16, 2, 0.5)
    table(path, ((label, [s * v for s, v in zip(scales, row)]) for label, row in rows))


def rare(path):
    """Classes 95 to 5."""
    table(path, classes(random.Random(2), 2000, 20, 2, 0.6, [95, 5]))


def many(path):
    """Twenty classes."""
    table(path, classes(random.Random(3), 3000, 30, 20, 1.0))


def shifted(path):
    """Columns with large means, and a large common scale."""
    rows = classes(random.Random(4), 1200, 10, 3, 0.8)
    table(path, ((label, [50 + 20 * v for v in row]) for label, row in rows))


def words(path):
    """Sparse rows of words: two topics over 2000 words, 25 words a row."""
    rng = random.Random(5)
    count = 2000
    topics = [[rng.random() ** 6 for _ in range(count)] for _ in range(2)]
    with path.open("w") as out:
        for _ in range(3000):
            label = rng.randrange(2)
            found = sorted(set(rng.choices(range(1, count + 1), topics[label], k=25)))
            print(label, *(f"{word}:1" for word in found), file=out)


# The fourteen variables of Adult (a9a), by their numbers of categories: 123 features, of which each row has 14.
CATEGORIES = [5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41]


def adults(path):
    """Sparse rows of zeros and ones like a9a's, a quarter of them positive."""
    rng = random.Random(6)
    shares = [[rng.gammavariate(0.7, 1) for _ in range(count)] for count in CATEGORIES]
    weights = [[rng.gauss(0, 1) for _ in range(count)] for count in CATEGORIES]
    rows, scores = [], []
    for _ in range(4000):
        row = [rng.choices(range(count), share)[0] for count, share in zip(CATEGORIES, shares)]
        u = rng.random()
        rows.append(row)
        scores.append(sum(weight[at] for weight, at in zip(weights, row)) + math.log(u / (1 - u)))
    limit = sorted(scores)[int(0.76 * len(scores))]
    starts = [1 + sum(CATEGORIES[:at]) for at in range(len(CATEGORIES))]
    with path.open("w") as out:
        for row, score in zip(rows, scores):
            print(int(score > limit), *(f"{start + at}:1" for start, at in zip(starts, row)), file=out)


def noisy(path):
    """Three of ten labels are wrong."""
    rng = random.Random(7)
    rows = classes(rng, 1600, 12, 2, 0.6)
    table(path, ((1 - label if rng.random() < 0.3 else label, row) for label, row in rows))


def tangled(path):
    """Thirty columns made of four: their correlation matrix has a condition of some thousands."""
    rng = random.Random(8)
    mixture = [[rng.gauss(0, 1) for _ in range(30)] for _ in range(4)]
    rows = classes(rng, 1600, 4, 2, 0.9)
    table(path, (
        (label, [sum(f * m[j] for f, m in zip(row, mixture)) + 0.1 * rng.gauss(0, 1) for j in range(30)])
        for label, row in rows
    ))


def tails(path):
    """Columns with long tails, as incomes or concentrations have."""
    rows = classes(random.Random(9), 1600, 12, 3, 0.7)
    table(path, ((label, [math.exp(v) for v in row]) for label, row in rows))


def counts(path):
    """Small counts, most of them zero."""
    rng = random.Random(10)
    rates = [[rng.gammavariate(0.5, 0.8) for _ in range(25)] for _ in range(4)]

    def poisson(rate):
        count, left = 0, rng.random()
        limit = math.exp(-rate)
        while left > limit:
            count, left = count + 1, left * rng.random()
        return count

    def rows():
        for _ in range(2000):
            label = rng.randrange(4)
            yield label, [poisson(rate) for rate in rates[label]]

    table(path, rows())


def shells(path):
    """Three shells around one centre: no linear classifier separates them."""
    rng = random.Random(11)

    def rows():
        for _ in range(1800):
            label = rng.randrange(3)
            row = [rng.gauss(0, 1) for _ in range(5)]
            size = (1 + label + 0.15 * rng.gauss(0, 1)) / math.sqrt(sum(v * v for v in row))
            yield label, [size * v for v in row]

    table(path, rows())


def few(path):
    """Few rows: ten for each of thirty nodes, with as many features."""
    table(path, classes(random.Random(12), 300, 10, 2, 0.7))


def drawn(path, seed):
    """A table whose size, classes, overlap, wrong labels, scales and curvature are drawn from a seed."""
    rng = random.Random(seed)
    rows, features = round(10 ** rng.uniform(2.9, 3.5)), round(10 ** rng.uniform(0.6, 1.7))
    count, separation = rng.choice([2, 2, 3, 5, 8]), rng.uniform(0.3, 1.2)
    shares = [rng.uniform(0.15, 1) for _ in range(count)]
    wrong, width, bends = rng.choice([0, 0.05, 0.2]), rng.choice([0, 1, 2, 3]), rng.random() < 0.4
    scales = [10 ** rng.uniform(-width / 2, width / 2) for _ in range(features)]
    means = [rng.choice([0, 0, 3]) * rng.gauss(0, 1) for _ in range(features)]

    def cell(value, scale, mean):
        return scale * (mean + (value * value if bends else value))

    table(path, (
        (rng.randrange(count) if rng.random() < wrong else label, list(map(cell, row, scales, means)))
        for label, row in classes(rng, rows, features, count, separation, shares)
    ))


MADE = {
    "decades.csv": decades, "rare.csv": rare, "many.csv": many, "shifted.csv": shifted, "words.svm": words,
    "adults.svm": adults, "noisy.csv": noisy, "tangled.csv": tangled, "tails.csv": tails, "counts.csv": counts,
    "shells.csv": shells, "few.csv": few,
}


def make(name, folder):
    """Writes a data set into a folder, and returns its path."""
    path = Path(folder) / name
    if name in MADE:
        MADE[name](path)
    else:
        drawn(path, name)
    return path
