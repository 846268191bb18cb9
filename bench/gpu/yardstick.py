"""LoPA-GT on `representation`, all nodes on one card, as a researcher writes it in JAX: vmap, scan, gathers."""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

ROWS, FEATURES, UNITS, CLASSES, BATCH, RIDGE = 60_000, 784, 28, 10, 50, 0.52
ALPHA, BETA, LAMBDA, GAMMA, TAU = 0.1, 0.1, 0.1, 0.4, 0.4
STEPS = 20  # iterations in a call
N, P = (FEATURES + 1) * UNITS, (UNITS + 1) * CLASSES


def build(m):
    random = np.random.default_rng(0)
    inked = random.random((ROWS, FEATURES)) < 0.19
    table = jnp.asarray((random.random((ROWS, FEATURES)) * 255 * inked).astype(np.uint8))
    labels = jnp.asarray(random.integers(0, CLASSES, ROWS).astype(np.int32))
    own = jnp.asarray(random.integers(0, ROWS, (m, ROWS // m)).astype(np.int32))
    ring = jnp.asarray(np.stack([(np.arange(m) + by) % m for by in (1, -1)], 1).astype(np.int32))

    def f(x, theta, rows, y):
        hidden = jax.nn.sigmoid(rows @ x[: FEATURES * UNITS].reshape(FEATURES, UNITS) + x[FEATURES * UNITS :])
        z = hidden @ theta[: UNITS * CLASSES].reshape(UNITS, CLASSES) + theta[UNITS * CLASSES :]
        return (jax.nn.logsumexp(z, -1) - jnp.take_along_axis(z, y[:, None], 1)[:, 0]).mean()

    def g(x, theta, rows, y):
        return f(x, theta, rows, y) + RIDGE / 2 * (theta @ theta)

    grad_g = jax.grad(g, 1)

    def directions(x, theta, v, key, own):
        picks = own[jax.random.randint(key, (5, BATCH), 0, own.shape[0])]
        on = [(table[picks[j]].astype(jnp.float32) / 255, labels[picks[j]]) for j in range(5)]
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
        return (x, theta, v, new_z, y) + every(x, theta, v, jax.random.split(key, m), own), None

    every = jax.vmap(directions)
    some = lambda state, key: jax.lax.scan(iteration, state, jax.random.split(key, STEPS))[0]
    x = jnp.asarray(np.repeat(random.standard_normal((1, N)) * 0.03, m, 0), jnp.float32)
    theta = jnp.zeros((m, P))
    now = jax.jit(every)(x, theta, theta, jax.random.split(jax.random.key(0), m), own)
    return jax.jit(some, donate_argnums=0), (x, theta, theta + 0, now[2] + 0, now[2] * 1) + tuple(now)


m = int(sys.argv[1])
for precision in ("highest", "tf32"):
    jax.config.update("jax_default_matmul_precision", "highest" if precision == "highest" else None)
    jax.clear_caches()
    some, state = build(m)
    best, calls, until = float("inf"), 0, time.time() + 4
    while time.time() < until or calls < 5:
        began = time.perf_counter()
        state = jax.block_until_ready(some(state, jax.random.key(calls)))
        best = min(best, time.perf_counter() - began)
        calls += 1
    assert jnp.isfinite(state[0]).all()
    print(f"JAX {jax.__version__}, {precision}, {m} nodes: {STEPS / best:.1f} it/s (best of {calls})", flush=True)
