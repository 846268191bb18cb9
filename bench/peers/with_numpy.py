"""LoPA-GT in numpy: all nodes in stacked arrays, derivatives by hand, batched products."""

import numpy as np


class Hyperparameter:
    """g = mean loss + sum_q e^x_q theta_q^2, f = mean loss; theta is (m, cols, columns)."""

    def __init__(self, case):
        self.case = case
        self.shape = (case.nodes, case.cols, case.columns)

    def _slopes(self, rows, scores):
        labels = self.case.labels[rows]
        if self.case.columns == 1:
            sign = np.where(labels == 0, 1.0, -1.0).astype(scores.dtype)[..., None]
            return -sign / (1 + np.exp(sign * scores))
        p = _softmax(scores)
        np.put_along_axis(p, labels[..., None], np.take_along_axis(p, labels[..., None], 2) - 1, 2)
        return p

    def _gradient(self, rows, theta):
        a = self.case.features[rows]
        slopes = self._slopes(rows, a @ theta)
        return a.transpose(0, 2, 1) @ (slopes / rows.shape[1])

    def grad_theta_g(self, rows, x, theta):
        theta = theta.reshape(self.shape)
        return (self._gradient(rows, theta) + 2 * np.exp(x)[..., None] * theta).reshape(x.shape[0], -1)

    def grad_theta_f(self, rows, x, theta):
        return self._gradient(rows, theta.reshape(self.shape)).reshape(x.shape[0], -1)

    def hess_g(self, rows, x, theta, v):
        theta, v = theta.reshape(self.shape), v.reshape(self.shape)
        a = self.case.features[rows]
        z, t = a @ theta, a @ v
        if self.case.columns == 1:
            p = 1 / (1 + np.exp(-z))
            t *= p * (1 - p)
        else:
            p = _softmax(z)
            t = p * (t - (p * t).sum(2, keepdims=True))
        hess = a.transpose(0, 2, 1) @ (t / rows.shape[1])
        return (hess + 2 * np.exp(x)[..., None] * v).reshape(x.shape[0], -1)

    def grad_x_f(self, rows, x, theta):
        return np.zeros_like(x)

    def cross_g(self, rows, x, theta, v):
        return 2 * np.exp(x) * (theta * v).reshape(self.shape).sum(2)

    def loss(self, x, theta):
        return mean_loss(self.case, lambda rows: self.case.features[rows] @ theta.reshape(self.shape))


class Representation:
    """Shared hidden layer x, personal heads theta; f and g on the same samples, ridge on theta."""

    def __init__(self, case):
        self.case = case
        self.units = case.n // (case.cols + 1)

    def _split(self, x, inputs, outputs):
        cut = inputs * outputs
        return x[:, :cut].reshape(-1, inputs, outputs), x[:, None, cut:]

    def _forward(self, rows, x, theta):
        a = self.case.features[rows]
        w, b = self._split(x, self.case.cols, self.units)
        h = 1 / (1 + np.exp(-(a @ w + b)))
        w, b = self._split(theta, self.units, self.case.classes)
        return a, h, w, h @ w + b

    def _slopes(self, rows, z):
        p = _softmax(z)
        at = self.case.labels[rows][..., None]
        np.put_along_axis(p, at, np.take_along_axis(p, at, 2) - 1, 2)
        return p / rows.shape[1]

    def _join(self, a, delta):
        w = a.transpose(0, 2, 1) @ delta
        return np.concatenate([w.reshape(w.shape[0], -1), delta.sum(1)], 1)

    def grad_theta_f(self, rows, x, theta):
        _, h, _, z = self._forward(rows, x, theta)
        return self._join(h, self._slopes(rows, z))

    def grad_theta_g(self, rows, x, theta):
        return self.grad_theta_f(rows, x, theta) + self.case.ridge * theta

    def _curves(self, rows, h, z, v):
        w, b = self._split(v, self.units, self.case.classes)
        p, t = _softmax(z), h @ w + b
        return p * (t - (p * t).sum(2, keepdims=True)) / rows.shape[1], w

    def hess_g(self, rows, x, theta, v):
        _, h, _, z = self._forward(rows, x, theta)
        return self._join(h, self._curves(rows, h, z, v)[0]) + self.case.ridge * v

    def grad_x_f(self, rows, x, theta):
        a, h, w, z = self._forward(rows, x, theta)
        back = self._slopes(rows, z) @ w.transpose(0, 2, 1)
        return self._join(a, back * h * (1 - h))

    def cross_g(self, rows, x, theta, v):
        a, h, w, z = self._forward(rows, x, theta)
        curves, vw = self._curves(rows, h, z, v)
        back = self._slopes(rows, z) @ vw.transpose(0, 2, 1) + curves @ w.transpose(0, 2, 1)
        return self._join(a, back * h * (1 - h))

    def loss(self, x, theta):
        return mean_loss(self.case, lambda rows: self._forward(rows, x, theta)[3])


def _softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def mean_loss(case, scores):
    """The mean outer loss over all nodes."""
    total = 0.0
    pieces = max(1, case.validation.shape[1] // 500)
    for rows in np.array_split(case.validation, pieces, axis=1):
        z, labels = np.float64(scores(rows)), case.labels[rows]
        if case.columns == 1:
            total += np.logaddexp(0, np.where(labels == 0, -1, 1) * z[..., 0]).sum()
        else:
            top = z.max(-1, keepdims=True)
            lse = np.log(np.exp(z - top).sum(-1)) + top[..., 0]
            total += (lse - np.take_along_axis(z, labels[..., None], 2)[..., 0]).sum()
    return total / case.validation.size


def model(case):
    return {"hyperparameter": Hyperparameter, "representation": Representation}[case.problem](case)


class Run:
    """The state of all nodes."""

    def __init__(self, case, batches):
        self.case, self.model = case, model(case)
        self.x = np.tile(case.start, (case.nodes, 1))
        self.theta = np.zeros((case.nodes, case.p), case.dtype)
        self.v = np.zeros_like(self.theta)
        self._estimate(batches)
        self.y, self.z = self.s.copy(), self.s.copy()

    def _estimate(self, batches):
        at, m = (self.x, self.theta), self.model
        self.d = m.grad_theta_g(batches[0], *at)
        self.h = m.hess_g(batches[1], *at, self.v) - m.grad_theta_f(batches[3], *at)
        self.s = m.grad_x_f(batches[4], *at) - m.cross_g(batches[2], *at, self.v)

    def step(self, batches):
        c = self.case
        self.theta -= c.beta * self.d
        self.v -= c.__dict__["lambda"] * self.h
        self.x = (1 - c.tau) * self.x + c.tau * (c.mixing @ self.x - c.alpha * self.y)
        z = self.s + (1 - c.gamma) * (self.z - self.s)
        self.y = c.mixing @ self.y + z - self.z
        self.z = z
        self._estimate(batches)


def start(case, seed):
    random = np.random.default_rng(seed)
    run = Run(case, case.batches(random))
    return run, lambda count: [run.step(case.batches(random)) for _ in range(count)]


def full(case, iterations):
    run = Run(case, case.full())
    for _ in range(iterations):
        run.step(case.full())
    return {"x": run.x, "theta": run.theta, "v": run.v}
