"""Trajectories with SAGA estimates, in numpy, from the formulas and not from the Rust: saga.json.

f = mean of (a'theta - b)^2 / 2 over validation, g = mean of sigmoid(x_e) (a_e'theta - b_e)^2 / 2 over training + r |theta|^2.
Each term keeps its value on every block of an epoch, dense; the order of blocks comes from ChaCha8, written here.

usage: python3 crates/lopa/tests/golden/make_saga.py
"""

import json
import pathlib

import numpy as np

SAMPLING = 1
BATCH = 4
SEED = 5
ITERATIONS = 25
RIDGE = 0.05
ALPHA, BETA, LAMBDA, GAMMA, TAU = 0.6, 0.3, 0.2, 0.7, 0.8


def quarter(s, a, b, c, d):
    for x, y, z, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[x] = (s[x] + s[y]) & 0xFFFFFFFF
        mixed = s[z] ^ s[x]
        s[z] = ((mixed << bits) | (mixed >> (32 - bits))) & 0xFFFFFFFF


def words(seed, purpose, node, position):
    """ChaCha8's words from a position on; positions are multiples of 16."""
    key = [seed & 0xFFFFFFFF, seed >> 32, purpose, 0, 0, 0, 0, 0]
    block = position >> 4
    while True:
        start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *key]
        start += [block & 0xFFFFFFFF, block >> 32, node & 0xFFFFFFFF, node >> 32]
        s = list(start)
        for _ in range(4):
            for i in range(4):
                quarter(s, i, 4 + i, 8 + i, 12 + i)
            for i in range(4):
                quarter(s, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
        yield from ((a + b) & 0xFFFFFFFF for a, b in zip(s, start))
        block += 1


def order(blocks, epoch, slot):
    stream = words(SEED, SAMPLING, 0, epoch << 36 | slot << 24)
    found = list(range(blocks))
    for i in range(blocks - 1, 0, -1):
        low, high = next(stream), next(stream)
        j = ((high << 32 | low) * (i + 1)) >> 64
        found[i], found[j] = found[j], found[i]
    return found


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Problem:
    def __init__(self, rng):
        truth = rng.normal(size=3)
        self.rows, self.outer = rng.normal(size=(11, 3)), rng.normal(size=(7, 3))
        self.goals = self.rows @ truth + 0.5 * rng.normal(size=11)
        self.outer_goals = self.outer @ truth + 0.1 * rng.normal(size=7)

    def term(self, name, x, theta, v, batch):
        if name.endswith("f"):
            a, b = self.outer[batch], self.outer_goals[batch]
            return a.T @ (a @ theta - b) / len(batch) if name == "theta_f" else np.zeros_like(x)
        a, off, weight = self.rows[batch], self.rows[batch] @ theta - self.goals[batch], sigmoid(x[batch])
        if name == "theta_g":
            return a.T @ (weight * off) / len(batch) + 2 * RIDGE * theta
        if name == "hess_g":
            return a.T @ (weight * (a @ v)) / len(batch) + 2 * RIDGE * v
        cross = np.zeros_like(x)
        cross[batch] = weight * (1 - weight) * off * (a @ v) / len(batch)
        return cross


# The slot of each term's minibatch, where all five are drawn and where g and f have one each.
FIVE = {"theta_g": 0, "hess_g": 1, "cross_g": 2, "theta_f": 3, "x_f": 4}
TWO = {"theta_g": 0, "hess_g": 0, "cross_g": 0, "theta_f": 3, "x_f": 3}


class Saga:
    def __init__(self, problem, slots, x, theta, v):
        self.problem, self.slots = problem, slots
        samples = {name: len(problem.outer if name.endswith("f") else problem.rows) for name in slots}
        self.blocks = {
            name: [np.arange(at, min(at + BATCH, count)) for at in range(0, count, BATCH)]
            for name, count in samples.items()
        }
        self.shares = {
            name: [len(block) / samples[name] for block in blocks] for name, blocks in self.blocks.items()
        }
        self.rows = {
            name: [problem.term(name, x, theta, v, block) for block in blocks]
            for name, blocks in self.blocks.items()
        }

    def estimate(self, name, address, x, theta, v):
        blocks, rows, shares = self.blocks[name], self.rows[name], self.shares[name]
        block = order(len(blocks), address // len(blocks), self.slots[name])[address % len(blocks)]
        new = self.problem.term(name, x, theta, v, blocks[block])
        mean = sum(share * row for share, row in zip(shares, rows))  # anew each time
        found = len(blocks) * shares[block] * (new - rows[block]) + mean
        rows[block] = new
        return found

    def directions(self, address, x, theta, v):
        of = lambda name: self.estimate(name, address, x, theta, v)
        return of("theta_g"), of("hess_g") - of("theta_f"), of("x_f") - of("cross_g")


def d_soba(problem, x, theta, v):
    saga = Saga(problem, TWO, x, theta, v)
    (d, h, s), r = saga.directions(0, x, theta, v), np.zeros_like(x)
    for k in range(ITERATIONS):
        x, theta, v = x - ALPHA * r, theta - BETA * d, v - LAMBDA * h
        r = (1 - GAMMA) * r + GAMMA * s
        d, h, s = saga.directions(k + 1, x, theta, v)
        yield x, theta, v, d, h, s


def lopa_lg(problem, x, theta, v):
    saga = Saga(problem, FIVE, x, theta, v)
    d, h, s = saga.directions(0, x, theta, v)
    z = s
    for k in range(ITERATIONS):
        theta, v = theta - BETA * d, v - LAMBDA * h
        x = (1 - TAU) * x + TAU * (x - ALPHA * z)
        z = s + (1 - GAMMA) * (z - s)
        d, h, s = saga.directions(k + 1, x, theta, v)
        yield x, theta, v, d, h, s


def main():
    rng = np.random.default_rng(30)
    problem = Problem(rng)
    start = [rng.normal(size=11), rng.normal(size=3), rng.normal(size=3)]
    lists = lambda arrays: [array.tolist() for array in arrays]
    document = {
        "seed": SEED, "batch": BATCH, "ridge": RIDGE,
        "alpha": ALPHA, "beta": BETA, "lambda": LAMBDA, "gamma": GAMMA, "tau": TAU,
        "rows": problem.rows.tolist(), "goals": problem.goals.tolist(),
        "outer_rows": problem.outer.tolist(), "outer_goals": problem.outer_goals.tolist(),
        "start": lists(start),
        "d-soba": [lists(state) for state in d_soba(problem, *start)],
        "lopa-lg": [lists(state) for state in lopa_lg(problem, *start)],
    }
    path = pathlib.Path(__file__).with_name("saga.json")
    path.write_text(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
