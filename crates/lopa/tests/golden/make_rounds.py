"""A second implementation of LoPA on the one-peer exponential graph, in numpy, with whole matrices in place
of nodes.

Writes rounds_4.json (pairs i, i xor 2^t) and rounds_5.json (node i hears node i - 2^t) beside
itself: a small heterogeneous quadratic each, full batch, the W of every round, and every variable
of LoPA for k = 0, ..., 7. Nothing here is shared with the library but names.

    python3 make_rounds.py
"""

import json
import pathlib

import numpy as np


class Problem:
    """g = 1/2 th'A th - th'(B x + c),  f = 1/2 |D th - e|^2 + 1/2 x'R x - x'q, one of each a node."""

    def __init__(self, m, n, p, seed):
        r = np.random.default_rng(seed)

        def positive(size):
            a = r.normal(size=(m, size, size))
            return 0.25 * np.einsum("iab,icb->iac", a, a) + 0.6 * np.eye(size)

        self.A, self.B, self.c = positive(p), r.normal(size=(m, p, n)), r.normal(size=(m, p))
        self.D, self.e = r.normal(size=(m, p + 1, p)), r.normal(size=(m, p + 1))
        self.R, self.q = positive(n), r.normal(size=(m, n))
        self.start = np.tile(r.normal(size=n), (m, 1)), r.normal(size=(m, p)), r.normal(size=(m, p))

    def directions(self, x, th, v):
        """d, h and s of (6) to (8)."""
        def times(a, b):
            return np.einsum("iab,ib->ia", a, b)

        def transposed(a, b):
            return np.einsum("iab,ia->ib", a, b)

        d = times(self.A, th) - times(self.B, x) - self.c
        h = times(self.A, v) - transposed(self.D, times(self.D, th) - self.e)
        s = times(self.R, x) - self.q + transposed(self.B, v)
        return d, h, s


def one_peer(m, k):
    """W of round k, written down from the definition, entry by entry."""
    distances = [1]
    while 2 * distances[-1] < m:
        distances.append(2 * distances[-1])
    far = distances[k % len(distances)]
    W = np.zeros((m, m))
    for i in range(m):
        other = i ^ far if m in (2, 4, 8, 16) else (i - far) % m
        W[i, i] += 0.5
        W[i, other] += 0.5
    assert np.allclose(W.sum(axis=0), 1) and np.allclose(W.sum(axis=1), 1)
    return W


def lopa(P, m, o, gt, steps):
    x, th, v = P.start
    d, h, s = P.directions(x, th, v)
    z = y = s
    for k in range(steps):
        yield dict(x=x, theta=th, v=v, d=d, h=h, s=s, z=z, y=y)
        W = one_peer(m, k)
        th, v = th - o["beta"] * d, v - o["lambda"] * h
        x = (1 - o["tau"]) * x + o["tau"] * (W @ x - o["alpha"] * y)
        z_new = s + (1 - o["gamma"]) * (z - s)
        y = W @ y + z_new - z if gt else z_new
        z = z_new
        d, h, s = P.directions(x, th, v)


def write(m, n, p, seed):
    P = Problem(m, n, p, seed)
    o = {"alpha": 0.07, "beta": 0.3, "lambda": 0.25, "gamma": 0.4, "tau": 0.6}
    x, th, v = P.start
    cases = [{"name": name, "params": o,
              "states": [{key: value.tolist() for key, value in state.items()}
                         for state in lopa(P, m, o, gt, 8)]}
             for name, gt in (("lopa-gt", True), ("lopa-lg", False))]
    golden = {"W": [one_peer(m, k).tolist() for k in range(8)],
              "data": {key: getattr(P, key).tolist() for key in "ABcDeRq"},
              "init": {"x": x.tolist(), "theta": th.tolist(), "v": v.tolist()},
              "algorithms": cases}
    path = pathlib.Path(__file__).parent / f"rounds_{m}.json"
    path.write_text(json.dumps(golden, separators=(",", ":")) + "\n")


write(4, 3, 2, 21)
write(5, 2, 3, 22)
