"""Compressed messages on a graph that changes: LoPA with top-k differences on one-peer rounds, in numpy.

    python make_rounds_messages.py        writes messages_rounds4.json beside this file

It takes the problem, the W of every round and the start of rounds_4.json and shares nothing with the library
but names. In round k nodes i and j = i xor 2^(k mod 2) meet. A replica belongs to a link and a direction:
r[i, j] is what both i and j hold of node i, 0 at first. For each of its vectors u in (x, y) or (x):

    d       = u_i - r[i, j]
    q       = d with all but the largest entries (by size; of equals the first) set to 0
    r[i, j] = r[i, j] + q
    mixed u_i = u_i + step * W_ij (r[j, i] - r[i, j])

Replicas of links that are not used stay as they are.
"""

import json
import math
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).parent
GIVEN = json.loads((HERE / "rounds_4.json").read_text())
A, B, C, D, E, R, Q = (np.array(GIVEN["data"][name]) for name in "ABcDeRq")
ROUNDS = [np.array(W) for W in GIVEN["W"]]
M, N = len(ROUNDS[0]), B.shape[2]
ITERATIONS = 20
PARAMS = GIVEN["algorithms"][0]["params"]


def directions(x, theta, v):
    d = np.stack([A[i] @ theta[i] - B[i] @ x[i] - C[i] for i in range(M)])
    h = np.stack([A[i] @ v[i] - D[i].T @ (D[i] @ theta[i] - E[i]) for i in range(M)])
    s = np.stack([R[i] @ x[i] - Q[i] + B[i].T @ v[i] for i in range(M)])
    return d, h, s


def mix(u, held, k, count, step):
    W = ROUNDS[k % 2]
    met = [(i, i ^ (1 << k % 2)) for i in range(M)]
    for i, j in met:
        d = u[i] - held.setdefault((i, j), np.zeros(N))
        keep = sorted(range(N), key=lambda at: (-abs(d[at]), at))[:count]
        for at in keep:
            held[i, j][at] += d[at]
    return np.stack([u[i] + step * W[i, j] * (held[j, i] - held[i, j]) for i, j in met])


def lopa(tracks, share, step):
    x, theta, v = (np.array(GIVEN["init"][name]) for name in ("x", "theta", "v"))
    d, h, s = directions(x, theta, v)
    z, y = s.copy(), s.copy()
    of_x, of_y, count, p = {}, {}, max(1, math.ceil(share * N)), PARAMS
    states = []
    for k in range(ITERATIONS + 1):
        states.append({"x": x.tolist(), "y": y.tolist(), "z": z.tolist(), "theta": theta.tolist()})
        mixed_x = mix(x, of_x, k, count, step)
        mixed_y = mix(y, of_y, k, count, step) if tracks else None
        new_x = (1 - p["tau"]) * x + p["tau"] * (mixed_x - p["alpha"] * y)
        new_z = s + (1 - p["gamma"]) * (z - s)
        y = mixed_y + new_z - z if tracks else new_z
        x, z = new_x, new_z
        theta, v = theta - p["beta"] * d, v - p["lambda"] * h
        d, h, s = directions(x, theta, v)
    return states


CASES = [("lopa-gt", 0.3, 0.4), ("lopa-gt", 0.6, 0.7), ("lopa-lg", 0.3, 0.4)]
made = [
    {
        "algorithm": name, "share": share, "consensus_step": step, "feedback": True,
        "params": PARAMS, "states": lopa(name == "lopa-gt", share, step),
    }
    for name, share, step in CASES
]
(HERE / "messages_rounds4.json").write_text(json.dumps(made, separators=(",", ":")) + "\n")
