"""A small CNN on 28 × 28 images, one per node with a head of its own: `device = "framework"` against a loop of LoPA-GT
written by hand in the same framework, on the device that the framework computes on.

usage: card.py jax|torch [NODES [ITERATIONS [ROUNDS]]]      a line of JSON: milliseconds per iteration and ratios
By default 100 nodes on a graphics card and 4 on a processor.
"""

import json
import os
import sys
import tempfile
import time

# On a processor: one core for each.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import lopa
import numpy as np

ROWS, BATCH, CLASSES, RIDGE = 96, 32, 10, 0.02
ALPHA, BETA, LAMBDA, GAMMA, TAU = 0.02, 0.01, 0.01, 0.4, 0.4


class Case:
    """Images of ten shapes with noise, the weights at the start, and W of a ring."""

    def __init__(self, nodes):
        random = np.random.default_rng(1)
        shapes = random.normal(size=(CLASSES, 28, 28))
        self.labels = random.integers(0, CLASSES, (nodes, ROWS)).astype(np.int32)
        self.images = (shapes[self.labels] + random.normal(size=(nodes, ROWS, 28, 28))).astype(np.float32)
        self.x = {
            "first": 0.2 * random.normal(size=(8, 1, 5, 5)),
            "of_first": np.zeros(8),
            "second": 0.07 * random.normal(size=(16, 8, 5, 5)),
            "of_second": np.zeros(16),
        }
        self.theta = {"V": np.zeros((256, CLASSES)), "c": np.zeros(CLASSES)}
        self.nodes = nodes
        self.mixing = np.asarray(lopa.graph("ring", nodes=nodes).weights, np.float32)

    def problem(self, outer, inner, backend):
        nodes = [lopa.Node(data) for data in zip(self.images, self.labels, strict=True)]
        return lopa.Problem(outer, inner, self.x, self.theta, nodes, check=False, backend=backend)


def in_jax(case):
    """The problem, a function that iterates by hand, and the device."""
    import jax
    import jax.numpy as jnp

    def layer(images, weights, bias):
        images = jax.lax.conv(images, weights, (1, 1), "VALID") + bias[:, None, None]
        a, b, c, d = images.shape
        return jax.nn.relu(images.reshape(a, b, c // 2, 2, d // 2, 2).max((3, 5)))

    def outer(x, theta, batch):
        images, labels = batch
        hidden = layer(layer(images[:, None], x["first"], x["of_first"]), x["second"], x["of_second"])
        z = hidden.reshape(len(labels), -1) @ theta["V"] + theta["c"]
        return jnp.mean(jax.nn.logsumexp(z, 1) - jnp.take_along_axis(z, labels[:, None], 1)[:, 0])

    def inner(x, theta, batch):
        return outer(x, theta, batch) + RIDGE / 2 * sum(jnp.sum(leaf**2) for leaf in theta.values())

    tree = jax.tree.map
    images, labels, mixing = (jnp.asarray(of) for of in (case.images, case.labels, case.mixing))

    def directions(x, theta, v, images, labels, key):
        rows = jax.random.randint(key, (5, BATCH), 0, ROWS)
        xi1, xi2, xi3, sigma1, sigma2 = [(images[at], labels[at]) for at in rows]
        along = lambda argnum, on: jax.jvp(lambda t: jax.grad(inner, argnum)(x, t, on), (theta,), (v,))[1]
        d = jax.grad(inner, 1)(x, theta, xi1)
        h = tree(jnp.subtract, along(1, xi2), jax.grad(outer, 1)(x, theta, sigma1))
        s = tree(jnp.subtract, jax.grad(outer, 0)(x, theta, sigma2), along(0, xi3))
        return d, h, s

    mix = lambda of: tree(lambda a: jnp.tensordot(mixing, a, 1), of)

    def step(state, _):
        x, theta, v, d, h, s, z, y, key = state
        theta = tree(lambda w, q: w - BETA * q, theta, d)
        v = tree(lambda w, q: w - LAMBDA * q, v, h)
        x = tree(lambda w, ww, y: (1 - TAU) * w + TAU * (ww - ALPHA * y), x, mix(x), y)
        new = tree(lambda s, z: s + (1 - GAMMA) * (z - s), s, z)
        y = tree(lambda wy, new, z: wy + new - z, mix(y), new, z)
        key, own = jax.random.split(key)
        d, h, s = jax.vmap(directions)(x, theta, v, images, labels, jax.random.split(own, case.nodes))
        return (x, theta, v, d, h, s, new, y, key), None

    loop = jax.jit(lambda state, length: jax.lax.scan(step, state, None, length)[0], static_argnums=1)
    many = lambda of: tree(lambda a: jnp.tile(jnp.asarray(a, jnp.float32), (case.nodes,) + (1,) * np.ndim(a)), of)
    x, theta = many(case.x), many(case.theta)
    zero_x, zero = tree(jnp.zeros_like, x), tree(jnp.zeros_like, theta)
    state = (x, theta, zero, zero, zero, zero_x, zero_x, zero_x, jax.random.key(1))

    def forward(count):
        nonlocal state
        state = jax.block_until_ready(loop(state, count))

    return case.problem(outer, inner, "jax"), forward, jax.devices()[0].device_kind


def in_torch(case):
    """The same in PyTorch."""
    import torch
    from torch.func import grad, vmap
    from torch.nn import functional

    where = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def layer(images, weights, bias):
        return functional.relu(functional.max_pool2d(functional.conv2d(images, weights, bias), 2))

    def outer(x, theta, batch):
        images, labels = batch
        hidden = layer(layer(images[:, None], x["first"], x["of_first"]), x["second"], x["of_second"])
        return functional.cross_entropy(hidden.flatten(1) @ theta["V"] + theta["c"], labels.long())

    def inner(x, theta, batch):
        return outer(x, theta, batch) + RIDGE / 2 * sum((leaf**2).sum() for leaf in theta.values())

    def dot(a, b):
        return sum((a[key] * b[key]).sum() for key in a)

    slope = grad(inner, 1)
    grad_g, grad_theta_f, grad_x_f = vmap(slope), vmap(grad(outer, 1)), vmap(grad(outer, 0))
    hess = vmap(grad(lambda theta, x, v, batch: dot(slope(x, theta, batch), v)))
    cross = vmap(grad(lambda x, theta, v, batch: dot(slope(x, theta, batch), v)))
    images, labels = (torch.from_numpy(of).to(where) for of in (case.images, case.labels))
    mixing = torch.from_numpy(case.mixing).to(where)
    own = torch.arange(case.nodes, device=where)[:, None]
    mix = lambda of: {key: torch.tensordot(mixing, a, 1) for key, a in of.items()}

    def many(of):
        tiled = {key: np.tile(a, (case.nodes,) + (1,) * np.ndim(a)).astype(np.float32) for key, a in of.items()}
        return {key: torch.from_numpy(a).to(where) for key, a in tiled.items()}

    x, theta, v = many(case.x), many(case.theta), many(case.theta)
    d, h, s, z, y = theta, theta, *({key: torch.zeros_like(a) for key, a in x.items()} for _ in range(3))

    def step():
        nonlocal x, theta, v, d, h, s, z, y
        theta = {key: theta[key] - BETA * d[key] for key in theta}
        v = {key: v[key] - LAMBDA * h[key] for key in v}
        wx, wy = mix(x), mix(y)
        x = {key: (1 - TAU) * x[key] + TAU * (wx[key] - ALPHA * y[key]) for key in x}
        new = {key: s[key] + (1 - GAMMA) * (z[key] - s[key]) for key in x}
        y, z = {key: wy[key] + new[key] - z[key] for key in x}, new
        rows = torch.randint(ROWS, (5, case.nodes, BATCH), device=where)
        xi1, xi2, xi3, sigma1, sigma2 = [(images[own, at], labels[own, at]) for at in rows]
        d = grad_g(x, theta, xi1)
        hess_v, of_f = hess(theta, x, v, xi2), grad_theta_f(x, theta, sigma1)
        h = {key: hess_v[key] - of_f[key] for key in theta}
        of_f, cross_v = grad_x_f(x, theta, sigma2), cross(x, theta, v, xi3)
        s = {key: of_f[key] - cross_v[key] for key in x}

    def forward(count):
        for _ in range(count):
            step()
        if where.type == "cuda":
            torch.cuda.synchronize()

    name = torch.cuda.get_device_name() if where.type == "cuda" else "cpu"
    return case.problem(outer, inner, "torch"), forward, name


def on_a_card(framework):
    if framework == "jax":
        import jax

        return jax.default_backend() != "cpu"
    import torch

    return torch.cuda.is_available()


def main(framework, nodes=None, iterations=None, rounds=3):
    card = on_a_card(framework)
    nodes = int(nodes or (100 if card else 4))
    iterations = int(iterations or (200 if card else 20))
    problem, forward, where = {"jax": in_jax, "torch": in_torch}[framework](Case(nodes))
    best = {"hand-written": np.inf, "framework": np.inf, "cpu": np.inf}
    digests = set()
    forward(iterations)
    with tempfile.TemporaryDirectory() as folder:
        for at in range(int(rounds)):
            begin = time.perf_counter()
            forward(iterations)
            best["hand-written"] = min(best["hand-written"], (time.perf_counter() - begin) / iterations)
            # The processor's engine, which copies in every iteration, once: it is here for comparison.
            for device in ("framework", "cpu") if at == 0 else ("framework",):
                run = lopa.run(
                    {
                        "name": "card",
                        "problem": problem,
                        "network": {"nodes": nodes, "graph": "ring"},
                        "run": {"iterations": 2 * iterations, "evaluations": 2, "batch": BATCH, "precision": "f32", "exact": "never"},
                        "algorithm": [{"name": "lopa-gt", "alpha": ALPHA, "beta": BETA, "lambda": LAMBDA, "gamma": GAMMA, "tau": TAU}],
                    },
                    device=device,
                    out=f"{folder}/{device}{at}",
                    progress=False,
                )
                if device == "framework":
                    digests.add(run.digest)
                middle, last = run.rows[-2:]
                seconds = (last["seconds"] - middle["seconds"]) / (last["iteration"] - middle["iteration"])
                best[device] = min(best[device], seconds)
    hand = best["hand-written"]
    found = {"framework": framework, "on": where, "nodes": nodes, "iterations": iterations}
    found |= {f"{name}, ms": round(1e3 * seconds, 3) for name, seconds in best.items()}
    found |= {"ratio": round(best["framework"] / hand, 3), "ratio of cpu": round(best["cpu"] / hand, 3)}
    print(json.dumps({**found, "same bits": len(digests) == 1}))


main(*sys.argv[1:])
