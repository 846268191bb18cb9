"""LoPA-GT in JAX: losses of one node, derivatives by jax, vmap over nodes, jit and scan over time."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import with_numpy


def losses(case):
    """(f, g) of one node: functions of (x, theta, features, labels)."""

    def of_scores(z, labels):
        if case.columns == 1:
            sign = jnp.where(labels == 0, 1.0, -1.0).astype(z.dtype)
            return jnp.mean(jax.nn.softplus(-sign * z[:, 0]))
        return jnp.mean(jax.nn.logsumexp(z, 1) - jnp.take_along_axis(z, labels[:, None], 1)[:, 0])

    if case.problem == "hyperparameter":

        def f(x, theta, a, labels):
            return of_scores(a @ theta.reshape(case.cols, case.columns), labels)

        def g(x, theta, a, labels):
            ridge = jnp.sum(jnp.exp(x)[:, None] * theta.reshape(case.cols, case.columns) ** 2)
            return f(x, theta, a, labels) + ridge
    else:
        units = case.n // (case.cols + 1)

        def f(x, theta, a, labels):
            cut, last = case.cols * units, units * case.classes
            h = jax.nn.sigmoid(a @ x[:cut].reshape(case.cols, units) + x[cut:])
            return of_scores(h @ theta[:last].reshape(units, case.classes) + theta[last:], labels)

        def g(x, theta, a, labels):
            return f(x, theta, a, labels) + 0.5 * case.ridge * jnp.sum(theta**2)

    return f, g


def estimates(case, features, labels):
    f, g = losses(case)
    grad_theta_g = jax.grad(g, 1)
    grad_theta_f, grad_x_f = jax.grad(f, 1), jax.grad(f, 0)

    def node(x, theta, v, rows):
        on = lambda rows: (features[rows], labels[rows])
        d = grad_theta_g(x, theta, *on(rows[0]))
        along = lambda theta: grad_theta_g(x, theta, *on(rows[1]))
        h = jax.jvp(along, (theta,), (v,))[1] - grad_theta_f(x, theta, *on(rows[3]))
        if case.problem == "hyperparameter":  # neither f nor the data part of g depends on x
            own = (theta * v).reshape(case.cols, case.columns).sum(1)
            return d, h, -2 * jnp.exp(x) * own
        slope = lambda x: jnp.vdot(grad_theta_g(x, theta, *on(rows[2])), v)
        return d, h, grad_x_f(x, theta, *on(rows[4])) - jax.grad(slope)(x)

    return jax.vmap(node, in_axes=(0, 0, 0, 0))


def functions(case):
    features, labels = jnp.asarray(case.features), jnp.asarray(case.labels)
    train, validation = jnp.asarray(case.train), jnp.asarray(case.validation)
    mixing, estimate = jnp.asarray(case.mixing), estimates(case, features, labels)

    def first(rows):
        x = jnp.tile(jnp.asarray(case.start), (case.nodes, 1))
        theta = jnp.zeros((case.nodes, case.p), case.dtype)
        d, h, s = estimate(x, theta, theta, rows)
        return x, theta, theta, d, h, s, s, s

    def step(state, rows):
        x, theta, v, d, h, s, z, y = state
        theta, v = theta - case.beta * d, v - case.__dict__["lambda"] * h
        x = (1 - case.tau) * x + case.tau * (mixing @ x - case.alpha * y)
        new = s + (1 - case.gamma) * (z - s)
        y = mixing @ y + new - z
        d, h, s = estimate(x, theta, v, rows)
        return x, theta, v, d, h, s, new, y

    def draw(key):
        keys = jax.random.split(key, 5)
        pick = lambda key, rows: jnp.take_along_axis(
            rows, jax.random.randint(key, (case.nodes, case.batch), 0, rows.shape[1]), 1
        )
        sets = [train, train, train, validation, validation]
        return jnp.stack([pick(k, rows) for k, rows in zip(keys, sets)], 1)

    @functools.partial(jax.jit, static_argnums=2)
    def many(state, key, count):
        turn = lambda state, key: (step(state, draw(key)), None)
        return jax.lax.scan(turn, state, jax.random.split(key, count))[0]

    return first, step, draw, many


class Run:
    def __init__(self, case, seed):
        self.case = case
        first, _, draw, self.many = functions(case)
        self.key = jax.random.key(seed)
        self.state = jax.jit(first)(draw(self.key))
        self.model = with_numpy.model(case)

    def forward(self, count):
        self.key, key = jax.random.split(self.key)
        self.state = jax.block_until_ready(self.many(self.state, key, count))

    x = property(lambda self: np.asarray(self.state[0]))
    theta = property(lambda self: np.asarray(self.state[1]))


def start(case, seed):
    run = Run(case, seed)
    return run, run.forward


def full(case, iterations):
    first, step, _, _ = functions(case)
    sets = case.full()
    size = sets[0].shape[1]
    assert all(rows.shape[1] == size for rows in sets), "full batches must have the same size"
    rows = jnp.stack([jnp.asarray(rows) for rows in sets], 1)
    state = jax.jit(first)(rows)
    for _ in range(iterations):
        state = jax.jit(step)(state, rows)
    return dict(zip(("x", "theta", "v"), map(np.asarray, state)))
