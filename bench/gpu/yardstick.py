"""LoPA-GT, all nodes on one card, as a researcher writes it in JAX: vmap, scan, gathers.

usage: yardstick.py PROBLEM NODES[,NODES…] [FEATURES CLASSES bytes|numbers [UNITS[,UNITS…] BATCH [ACTIVATION [LOSS]]]]
       yardstick.py rows FILE FEATURES CLASSES bytes|numbers [LOSS]
       yardstick.py draw SEED COUNT PROBLEM
PROBLEM is `representation` (MNIST's shape), `hyperparameter` or `hyper-cleaning` (one class stands for a binary loss). ACTIVATION is sigmoid, tanh
or relu, LOSS softmax or squared (of as many numbers as there are classes). `rows` writes the samples that such a problem is run on. `draw` prints drawn shapes, FEATURES CLASSES KIND UNITS BATCH ACTIVATION NODES
in a line; `hyperparameter` leaves out UNITS and ACTIVATION. JAX_SECONDS: how long each measurement takes, if not 3.
"""

import os
import sys
import time

import numpy as np

if sys.argv[1] == "draw":
    # Sizes whose logarithms are uniform; fewer nodes where they would take long, or too much memory.
    random = np.random.default_rng(int(sys.argv[2]))
    size = lambda low, high: round(float(np.exp(random.uniform(np.log(low), np.log(high)))))
    for _ in range(int(sys.argv[3])):
        features, classes, units, batch, nodes = size(54, 3072), size(2, 64), [size(1, 512)], size(16, 1024), size(8, 1000)
        kind = random.choice(["bytes", "numbers"])
        linear = sys.argv[4] == "hyperparameter"
        if linear:
            classes, units = classes if random.random() < 0.75 else 1, [classes]
        elif random.random() < 0.5:
            units.append(size(1, 512))
        while nodes > 8 and features * nodes * max(units[0] * 8, batch * 2, units[0] * batch / 64) > 1 << 30:
            nodes = max(8, nodes // 2)
        if linear:
            print(features, classes, kind, batch, nodes)
        else:
            print(features, classes, kind, ",".join(map(str, units)), batch, random.choice(["sigmoid", "tanh", "relu"]), nodes)
    sys.exit()

import jax
import jax.numpy as jnp

UNITS, BATCH = ([int(units) for units in sys.argv[6].split(",")], int(sys.argv[7])) if len(sys.argv) > 7 else ([28], 50)
ACTIVATE = {"sigmoid": jax.nn.sigmoid, "tanh": jnp.tanh, "relu": jax.nn.relu}[(sys.argv[8:] or ["sigmoid"])[0]]
LOSS = (sys.argv[6 if sys.argv[1] == "rows" else 9 :] or ["softmax"])[0]
RIDGE = 0.52
# With ReLU, steps for which it does not diverge.
ALPHA, BETA, LAMBDA = (0.005, 0.01, 0.01) if sys.argv[8:9] == ["relu"] else (0.02, 0.1, 0.1)
GAMMA, TAU = 0.4, 0.4
STEPS = 20  # iterations in a call


def data(features, classes, kind):
    random = np.random.default_rng(0)
    rows = 60_000 if features < 1000 else 20_000
    inked = random.random((rows, features)) < 0.19
    table = random.random((rows, features)) * inked
    table = (table * 255).astype(np.uint8) if kind == "bytes" else table.astype(np.float32)
    if LOSS == "squared":
        return table, random.standard_normal((rows, classes)).astype(np.float32)
    return table, random.integers(0, max(classes, 2), rows).astype(np.int32)


def losses(problem, features, classes, samples):
    """f and g of a minibatch, and the lengths of x (of `hyper-cleaning`, all samples) and theta; e: the entries of x that belong to the rows."""

    def of_each(z, y):
        if LOSS == "squared":
            return ((z - y) ** 2).sum(-1) / 2
        if classes == 1:
            return jnp.logaddexp(0, jnp.where(y == 1, -1, 1) * z[:, 0])
        return jax.nn.logsumexp(z, -1) - jnp.take_along_axis(z, y[:, None], 1)[:, 0]

    def affine(theta, rows):
        return rows @ theta[:-classes].reshape(-1, classes) + theta[-classes:]

    lengths = [(below + 1) * units for below, units in zip([features] + UNITS, UNITS)]

    def layers(x, theta, rows, y, e):
        at = 0
        for units, length in zip(UNITS, lengths):
            weights = x[at : at + length]
            rows = ACTIVATE(rows @ weights[:-units].reshape(-1, units) + weights[-units:])
            at += length
        return of_each(affine(theta, rows), y).mean()

    def linear(x, theta, rows, y, e):
        return of_each(rows @ theta.reshape(features, classes), y).mean()

    if problem == "representation":
        return layers, lambda x, theta, *of: layers(x, theta, *of) + RIDGE / 2 * (theta @ theta), (
            sum(lengths),
            (UNITS[-1] + 1) * classes,
        )
    if problem == "hyper-cleaning":
        f = lambda x, theta, rows, y, e: of_each(affine(theta, rows), y).mean()
        weighted = lambda x, theta, rows, y, e: (jax.nn.sigmoid(x[e]) * of_each(affine(theta, rows), y)).mean()
        return f, lambda x, theta, *of: weighted(x, theta, *of) + 0.001 * (theta @ theta), (samples, (features + 1) * classes)
    strength = lambda x, theta: jnp.exp(x) @ (theta.reshape(features, classes) ** 2).sum(-1)
    return linear, lambda x, theta, *of: linear(x, theta, *of) + strength(x, theta), (features, features * classes)


def build(m, problem, features, classes, kind):
    table, labels = map(jnp.asarray, data(features, classes, kind))
    random = np.random.default_rng(1)
    # Of `hyper-cleaning`, a fifth of the samples have no entry of x.
    each = (len(table) * 4 // 5 if problem == "hyper-cleaning" else len(table)) // m
    own = jnp.asarray(random.integers(0, len(table), (m, each)).astype(np.int32))
    ring = jnp.asarray(np.stack([(np.arange(m) + by) % m for by in (1, -1)], 1).astype(np.int32))
    f, g, (n, p) = losses(problem, features, classes, own.size)
    grad_g = jax.grad(g, 1)

    def directions(x, theta, v, key, own, node):
        drawn = jax.random.randint(key, (5, BATCH), 0, each)
        picks, entries = own[drawn], node * each + drawn
        numbers = lambda rows: rows.astype(jnp.float32) / 255 if kind == "bytes" else rows
        on = [(numbers(table[picks[j]]), labels[picks[j]], entries[j]) for j in range(5)]
        d = grad_g(x, theta, *on[0])
        hess_v = jax.jvp(lambda theta: grad_g(x, theta, *on[1]), (theta,), (v,))[1]
        cross_v = jax.grad(lambda x: grad_g(x, theta, *on[2]) @ v)(x)
        return d, hess_v - jax.grad(f, 1)(x, theta, *on[3]), jax.grad(f, 0)(x, theta, *on[4]) - cross_v

    def mix(a):
        return (a + a[ring[:, 0]] + a[ring[:, 1]]) / 3

    def iteration(state, key):
        x, theta, v, z, y, d, h, s = state
        x = (1 - TAU) * x + TAU * (mix(x) - ALPHA * y)
        theta, v = theta - BETA * d, v - LAMBDA * h
        new_z = s + (1 - GAMMA) * (z - s)
        y = mix(y) + new_z - z
        return (x, theta, v, new_z, y) + every(x, theta, v, jax.random.split(key, m), own, jnp.arange(m)), None

    every = jax.vmap(directions)
    some = lambda state, key: jax.lax.scan(iteration, state, jax.random.split(key, STEPS))[0]
    x = jnp.asarray(np.repeat(random.standard_normal((1, n)) * 0.03 - 3 * (problem == "hyperparameter"), m, 0), jnp.float32)
    theta = jnp.zeros((m, p))
    now = jax.jit(every)(x, theta, theta, jax.random.split(jax.random.key(0), m), own, jnp.arange(m))
    return jax.jit(some, donate_argnums=0), (x, theta, theta + 0, now[2] + 0, now[2] * 1) + tuple(now)


if sys.argv[1] == "rows":
    table, labels = data(int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    np.savez(sys.argv[2], X=table, y=labels)
    sys.exit()
problem, shape = sys.argv[1], sys.argv[3:] or ["784", "10", "bytes"]
for m in map(int, sys.argv[2].split(",")):
    for precision in ("highest", "tf32"):
        jax.config.update("jax_default_matmul_precision", "highest" if precision == "highest" else None)
        jax.clear_caches()
        some, state = build(m, problem, int(shape[0]), int(shape[1]), shape[2])
        state = jax.block_until_ready(some(state, jax.random.key(1)))  # compiles
        best, calls, until = float("inf"), 0, time.time() + float(os.environ.get("JAX_SECONDS", 3))
        while time.time() < until or calls < 4:
            began = time.perf_counter()
            state = jax.block_until_ready(some(state, jax.random.key(calls)))
            best = min(best, time.perf_counter() - began)
            calls += 1
        diverged = "" if jnp.isfinite(state[0]).all() else ", and diverged"
        print(f"JAX {jax.__version__}, {precision}, {problem} {' '.join(shape)}, {m} nodes: {STEPS / best:.1f} it/s (best of {calls}){diverged}", flush=True)
