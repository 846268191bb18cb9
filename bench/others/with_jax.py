"""SOBA and SABA in JAX on MNIST cleaning: derivatives by jax, jit and scan over time, tables updated in place.

f = mean loss on validation, g = mean sigmoid(x_e) loss_e on training + ridge |theta|^2, a linear softmax without bias.
"""

import functools
import time

import jax
import jax.numpy as jnp
import numpy as np

BATCH = 64
CLASSES = 10
RIDGE = 0.2


def losses(theta, rows, labels):
    z = rows @ theta
    return jax.nn.logsumexp(z, 1) - jnp.take_along_axis(z, labels[:, None], 1)[:, 0]


def f(theta, rows, labels):
    return jnp.mean(losses(theta, rows, labels))


def g(theta, x, rows, labels):
    return jnp.mean(jax.nn.sigmoid(x) * losses(theta, rows, labels)) + RIDGE * jnp.sum(theta**2)


def terms(theta, v, x, data, start_g, start_f):
    """The five terms on a block of g and a block of f; those in x for the samples of the block (that of f is zero)."""
    cut = lambda array, start: jax.lax.dynamic_slice_in_dim(array, start, BATCH)
    rows, labels, own = cut(data["rows"], start_g), cut(data["labels"], start_g), cut(x, start_g)
    grad = lambda theta, own: jax.grad(g)(theta, own, rows, labels)
    d, hess_v = jax.jvp(lambda theta: grad(theta, own), (theta,), (v,))
    cross_v = jax.grad(lambda own: jnp.vdot(grad(theta, own), v))(own)
    grad_f = jax.grad(f)(theta, cut(data["outer_rows"], start_f), cut(data["outer_labels"], start_f))
    return d, hess_v, cross_v, grad_f


def starts(key, samples, iterations, number):
    """Where the blocks of iterations number, number + 1, ... start: an order of its own for each epoch."""
    blocks = -(-samples // BATCH)
    first, last = number // blocks, (number + iterations - 1) // blocks
    orders = [
        np.random.default_rng([key, samples, epoch]).permutation(blocks) for epoch in range(first, last + 1)
    ]
    order = np.concatenate(orders)[number - first * blocks:][:iterations]
    return np.minimum(order * BATCH, samples - BATCH).astype(np.int32), order.astype(np.int32)


def add_block(x, change, start):
    own = jax.lax.dynamic_slice_in_dim(x, start, BATCH)
    return jax.lax.dynamic_update_slice_in_dim(x, own + change, start, 0)


@functools.partial(jax.jit, donate_argnums=0)
def soba(state, data, steps, blocks):
    def step(state, at):
        theta, v, x, k = state
        d, hess_v, cross_v, grad_f = terms(theta, v, x, data, at[0], at[2])
        inner, outer = steps / jnp.sqrt(k + 1.0)
        x = add_block(x, outer * cross_v, at[0])  # the direction of x is -cross_v
        return (theta - inner * d, v - inner * (hess_v - grad_f), x, k + 1.0), None

    return jax.lax.scan(step, state, blocks)[0]


@functools.partial(jax.jit, donate_argnums=0)
def saba(state, data, steps, blocks):
    """Each table has a row for each block; its mean is kept beside it."""

    def step(state, at):
        theta, v, x, tables, means = state
        start_g, block_g, start_f, block_f = at
        new = terms(theta, v, x, data, start_g, start_f)
        rows = [block_g, block_g, block_g, block_f]
        corrected, kept, moved = [], [], []
        for term, (new, row, table, mean) in enumerate(zip(new, rows, tables, means)):
            change = new - jax.lax.dynamic_index_in_dim(table, row, keepdims=False)
            kept.append(jax.lax.dynamic_update_index_in_dim(table, new, row, 0))
            share = 1.0 / table.shape[0]
            if term == 2:  # in x: the term of a block is zero outside it
                estimate = add_block(mean, change, start_g)
                moved.append(add_block(mean, share * change, start_g))
            else:
                estimate = change + mean
                moved.append(mean + share * change)
            corrected.append(estimate)
        d, hess_v, cross_v, grad_f = corrected
        inner, outer = steps
        theta, v = theta - inner * d, v - inner * (hess_v - grad_f)
        return (theta, v, x + outer * cross_v, tuple(kept), tuple(moved)), None

    return jax.lax.scan(step, state, blocks)[0]


def start(solver, data, x0):
    theta, v = jnp.zeros((data["rows"].shape[1], CLASSES)), jnp.zeros((data["rows"].shape[1], CLASSES))
    samples, outer = data["rows"].shape[0], data["outer_rows"].shape[0]
    x = jnp.full(samples, x0, jnp.float32)
    if solver == "soba":
        return theta, v, x, jnp.float32(0)
    blocks, outer_blocks = -(-samples // BATCH), -(-outer // BATCH)
    one = jax.jit(terms)
    tables = [np.zeros((count, *shape), np.float32) for count, shape in (
        (blocks, theta.shape), (blocks, theta.shape), (blocks, (BATCH,)), (outer_blocks, theta.shape))]
    means = [np.zeros(theta.shape, np.float32), np.zeros(theta.shape, np.float32), np.zeros(samples, np.float32),
             np.zeros(theta.shape, np.float32)]
    for block in range(blocks):
        at_g = min(block * BATCH, samples - BATCH)
        at_f = min(block % outer_blocks * BATCH, outer - BATCH)
        found = [np.asarray(term) for term in one(theta, v, x, data, at_g, at_f)]
        for term in range(3):
            tables[term][block] = found[term]
        tables[3][block % outer_blocks] = found[3]
        means[2][at_g:at_g + BATCH] += found[2] / blocks
    for term in (0, 1, 3):
        means[term] = tables[term].mean(0)
    return theta, v, x, tuple(map(jnp.asarray, tables)), tuple(map(jnp.asarray, means))


def run(solver, data, steps, x0, seconds, seed, test, evaluations, clock=time.perf_counter):
    """[(iterations, seconds, test error)], the clock stopped while the error is measured."""
    chunk = {"soba": 200, "saba": 10}[solver]
    data = {name: jnp.asarray(array) for name, array in data.items()}
    advance = {"soba": soba, "saba": saba}[solver]
    samples, outer = data["rows"].shape[0], data["outer_rows"].shape[0]
    steps = jnp.asarray(steps, jnp.float32)
    rows, labels = (jnp.asarray(array) for array in test)
    error = jax.jit(lambda theta: jnp.mean(jnp.argmax(rows @ theta, 1) != labels))

    def blocks(number):
        at_g, block_g = starts(seed, samples, chunk, number)
        at_f, block_f = starts(seed + 1, outer, chunk, number)
        columns = (at_g, block_g, at_f, block_f)
        return jnp.asarray(np.stack(columns, 1))

    # Compiled before the clock starts, also for a state that it made itself.
    state = start(solver, data, x0)
    for _ in range(2):
        state = jax.block_until_ready(advance(state, data, steps, blocks(0)))
    state = jax.block_until_ready(start(solver, data, x0))
    done, spent, found = 0, 0.0, [(0, 0.0, float(error(state[0])))]
    while spent < seconds:
        at = blocks(done)
        begun = clock()
        state = jax.block_until_ready(advance(state, data, steps, at))
        spent += clock() - begun
        done += chunk
        if spent >= seconds * len(found) / evaluations or spent >= seconds:
            found.append((done, spent, float(error(state[0]))))
    return found
