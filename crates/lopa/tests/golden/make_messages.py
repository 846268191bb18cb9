"""Golden vectors of compressed messages: LoPA with top-k differences against replicas, in numpy.

    python make_messages.py        writes messages_path3.json beside this file

It takes the problem, network and start of quadratic_path3.json and shares nothing with the library
but names. In every iteration node i, for each of its vectors u in (x, y) or (x):

    d   = u_i - r_i                          r_i: what everybody holds of u_i, 0 at first
    q   = d with all but the k largest entries (by size; of equals the first) set to 0
    r_i = r_i + q
    mixed u_i = u_i + step * sum_j W_ij (r_j - r_i)

and LoPA goes on with the mixed vectors. With feedback = false, r_i = q with d = u_i instead.
"""

import json
import math
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).parent
GIVEN = json.loads((HERE / "quadratic_path3.json").read_text())
M, N = GIVEN["m"], GIVEN["n"]
W = np.array(GIVEN["graph"]["W"])
A, B, C, D, E, R, Q = (np.array(GIVEN["data"][name]) for name in "ABcDeRq")
ITERATIONS = 12
PARAMS = {"alpha": 0.05, "beta": 0.1, "lambda": 0.08, "gamma": 0.4, "tau": 0.6}


def directions(x, theta, v):
    """d, h, s of all nodes: g = theta'A theta/2 - theta'(Bx + c), f = |D theta - e|^2/2 + x'Rx/2 - x'q."""
    d = np.stack([A[i] @ theta[i] - B[i] @ x[i] - C[i] for i in range(M)])
    h = np.stack([A[i] @ v[i] - D[i].T @ (D[i] @ theta[i] - E[i]) for i in range(M)])
    # The mixed derivative of g is -B', so that s = grad_x f + B'v.
    s = np.stack([R[i] @ x[i] - Q[i] + B[i].T @ v[i] for i in range(M)])
    return d, h, s


def largest(d, k):
    keep = sorted(range(len(d)), key=lambda at: (-abs(d[at]), at))[:k]
    q = np.zeros_like(d)
    q[keep] = d[keep]
    return q


class Messages:
    def __init__(self, share, step, feedback):
        self.k = max(1, math.ceil(share * N))
        self.step, self.feedback = step, feedback
        self.held = {}

    def mix(self, name, u):
        held = self.held.setdefault(name, np.zeros_like(u))
        for i in range(M):
            if self.feedback:
                held[i] = held[i] + largest(u[i] - held[i], self.k)
            else:
                held[i] = largest(u[i], self.k)
        return np.stack([
            u[i] + self.step * sum(W[i, j] * (held[j] - held[i]) for j in range(M) if j != i)
            for i in range(M)
        ])


def lopa(tracks, share, step, feedback):
    x, theta, v = (np.array(GIVEN["init"][name]) for name in ("x", "th", "v"))
    d, h, s = directions(x, theta, v)
    z, y = s.copy(), s.copy()
    messages = Messages(share, step, feedback)
    p = PARAMS
    states = []
    for _ in range(ITERATIONS + 1):
        states.append({"x": x.tolist(), "y": y.tolist(), "z": z.tolist(), "theta": theta.tolist()})
        wx = messages.mix("x", x)
        wy = messages.mix("y", y) if tracks else None
        new_x = (1 - p["tau"]) * x + p["tau"] * (wx - p["alpha"] * y)
        new_z = s + (1 - p["gamma"]) * (z - s)
        y = wy + new_z - z if tracks else new_z
        x, z = new_x, new_z
        theta, v = theta - p["beta"] * d, v - p["lambda"] * h
        d, h, s = directions(x, theta, v)
    return states


CASES = [
    ("lopa-gt", 0.3, 0.4, True),
    ("lopa-gt", 0.5, 0.7, True),
    ("lopa-lg", 0.3, 0.4, True),
    ("lopa-gt", 0.5, 0.4, False),
]
made = [
    {
        "algorithm": name, "share": share, "consensus_step": step, "feedback": feedback,
        "params": PARAMS, "states": lopa(name == "lopa-gt", share, step, feedback),
    }
    for name, share, step, feedback in CASES
]
(HERE / "messages_path3.json").write_text(json.dumps(made, separators=(",", ":")) + "\n")
