"""LoPA-GT in PyTorch: losses of one node, derivatives by torch.func, vmap over nodes."""

import numpy as np
import torch
from torch.func import grad, jvp, vmap

import with_numpy


def losses(case):
    """(f, g) of one node: functions of (x, theta, features, labels)."""

    def of_scores(z, labels):
        if case.columns == 1:
            sign = torch.where(labels == 0, 1.0, -1.0).to(z.dtype)
            return torch.nn.functional.softplus(-sign * z[:, 0]).mean()
        return (torch.logsumexp(z, 1) - z.gather(1, labels[:, None])[:, 0]).mean()

    if case.problem == "hyperparameter":

        def f(x, theta, a, labels):
            return of_scores(a @ theta.reshape(case.cols, case.columns), labels)

        def g(x, theta, a, labels):
            ridge = (x.exp()[:, None] * theta.reshape(case.cols, case.columns) ** 2).sum()
            return f(x, theta, a, labels) + ridge
    else:
        units = case.n // (case.cols + 1)

        def f(x, theta, a, labels):
            cut, last = case.cols * units, units * case.classes
            h = torch.sigmoid(a @ x[:cut].reshape(case.cols, units) + x[cut:])
            return of_scores(h @ theta[:last].reshape(units, case.classes) + theta[last:], labels)

        def g(x, theta, a, labels):
            return f(x, theta, a, labels) + 0.5 * case.ridge * (theta**2).sum()

    return f, g


class Run:
    def __init__(self, case, batches):
        self.case, self.net = case, with_numpy.model(case)
        self.features, self.labels = torch.from_numpy(case.features), torch.from_numpy(case.labels).long()
        self.mixing = torch.from_numpy(case.mixing)
        f, g = losses(case)
        theta_g = grad(g, 1)
        hess = lambda x, theta, v, a, b: jvp(lambda t: theta_g(x, t, a, b), (theta,), (v,))[1]
        cross = grad(lambda x, theta, v, a, b: torch.dot(theta_g(x, theta, a, b), v), 0)
        self.grad_theta_g, self.grad_theta_f = vmap(theta_g), vmap(grad(f, 1))
        self.hess_g, self.cross_g, self.grad_x_f = vmap(hess), vmap(cross), vmap(grad(f, 0))
        self.xs = torch.from_numpy(case.start).tile((case.nodes, 1))
        self.thetas = torch.zeros((case.nodes, case.p), dtype=self.xs.dtype)
        self.v = torch.zeros_like(self.thetas)
        self.estimate(batches)
        self.y, self.z = self.s.clone(), self.s.clone()

    def estimate(self, batches):
        at = (self.xs, self.thetas)
        on = lambda rows: (self.features[torch.from_numpy(rows)], self.labels[torch.from_numpy(rows)])
        self.d = self.grad_theta_g(*at, *on(batches[0]))
        self.h = self.hess_g(*at, self.v, *on(batches[1])) - self.grad_theta_f(*at, *on(batches[3]))
        if self.case.problem == "hyperparameter":  # neither f nor the data part of g depends on x
            own = (self.thetas * self.v).reshape(self.case.nodes, self.case.cols, -1).sum(2)
            self.s = -2 * self.xs.exp() * own
        else:
            cross = self.cross_g(*at, self.v, *on(batches[2]))
            self.s = self.grad_x_f(*at, *on(batches[4])) - cross

    def step(self, batches):
        c = self.case
        self.thetas = self.thetas - c.beta * self.d
        self.v = self.v - c.__dict__["lambda"] * self.h
        self.xs = (1 - c.tau) * self.xs + c.tau * (self.mixing @ self.xs - c.alpha * self.y)
        z = self.s + (1 - c.gamma) * (self.z - self.s)
        self.y = self.mixing @ self.y + z - self.z
        self.z = z
        self.estimate(batches)

    x = property(lambda self: self.xs.numpy())
    theta = property(lambda self: self.thetas.numpy())
    model = property(lambda self: self.net)


def start(case, seed):
    torch.set_num_threads(1)
    random = np.random.default_rng(seed)
    run = Run(case, case.batches(random))
    return run, lambda count: [run.step(case.batches(random)) for _ in range(count)]


def full(case, iterations):
    run = Run(case, case.full())
    for _ in range(iterations):
        run.step(case.full())
    return {"x": run.x, "theta": run.theta, "v": run.v.numpy()}
