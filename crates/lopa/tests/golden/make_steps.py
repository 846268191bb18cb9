"""Trajectories of the rule that finds step sizes, by a program of its own: steps-quadratic.json and steps-logistic.json.

The problems, starts and graphs are those of the files; states and constants are made anew. With `--before` the rule has
no lag and a SPREAD of 6, as it was first written down: this gives the files that were made then.
Plain Python, full batches, f64. Usage: python3 make_steps.py [--before] [--check]
"""

import argparse
import json
import math
from pathlib import Path

HERE = Path(__file__).resolve().parent


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def norm(a):
    return math.sqrt(dot(a, a))


def times(matrix, v):
    return [dot(row, v) for row in matrix]


def turned(matrix, v):
    return [sum(row[j] * at for row, at in zip(matrix, v)) for j in range(len(matrix[0]))]


def plus(a, b, factor=1.0):
    return [x + factor * y for x, y in zip(a, b)]


class Quadratic:
    def __init__(self, data, i):
        self.A, self.B, self.c, self.D, self.e, self.R, self.q = (data[key][i] for key in "ABcDeRq")

    def d(self, x, th):
        return plus(plus(times(self.A, th), times(self.B, x), -1), self.c, -1)

    def hess(self, x, th, v):
        return times(self.A, v)

    def grad_f(self, x, th):
        return turned(self.D, plus(times(self.D, th), self.e, -1))

    def s(self, x, th, v):
        return plus(plus(times(self.R, x), self.q, -1), turned(self.B, v))


class Logistic:
    """f and g are means over the validation and the training rows; the regulariser is sum of e^x_q th_q^2."""

    def __init__(self, data, i):
        self.train, self.val = ((data[f"S_{of}"][i], data[f"b_{of}"][i]) for of in ("train", "val"))

    def slope(self, rows, th):
        S, b = rows
        out = [0.0] * len(th)
        for s, sign in zip(S, b):
            weight = -sign / (1 + math.exp(sign * dot(s, th)))
            out = plus(out, s, weight / len(S))
        return out

    def d(self, x, th):
        return plus(self.slope(self.train, th), [2 * math.exp(at) * t for at, t in zip(x, th)])

    def hess(self, x, th, v):
        S, b = self.train
        out = [2 * math.exp(at) * u for at, u in zip(x, v)]
        for s, sign in zip(S, b):
            share = 1 / (1 + math.exp(sign * dot(s, th)))
            out = plus(out, s, share * (1 - share) * dot(s, v) / len(S))
        return out

    def grad_f(self, x, th):
        return self.slope(self.val, th)

    def s(self, x, th, v):
        return [-2 * math.exp(at) * t * u for at, t, u in zip(x, th, v)]


class Rule:
    """The rule at a node."""

    def __init__(self, constants, scope, x):
        self.of, self.scope = constants, scope
        mean = sum(x) / len(x)
        spread = constants["spread"] * math.sqrt(sum((at - mean) ** 2 for at in x) / len(x))
        self.u = 1.0 if all(at == x[0] for at in x) else spread
        self.L = self.E = 0.0
        self.wait = self.gap = 1
        self.since = self.probes = 0
        self.left = [0.0, 0.0]
        self.along_v = 0.0

    def start(self, part, x, th, d, h):
        w = d if norm(d) > 0 else h if norm(h) > 0 else [1.0] * len(d)
        for _ in range(self.of["power"]):
            size = norm(w)
            if size == 0:
                break
            w = part.hess(x, th, [at / size for at in w])
            self.probes += 1
            self.L = max(self.L, norm(w))

    def note(self, part, x, th, v):
        if norm(v) > 0:
            self.along_v = norm(part.hess(x, th, v)) / norm(v)
            self.L = max(self.L, self.along_v)

    def measure(self, part, x, th, new, old):
        """With d and h of a new point and of the one before."""
        cosines, constants = [], self.of
        for at, (a, b) in enumerate(zip(new, old)):
            sizes = norm(a) * norm(b)
            cosines.append(dot(a, b) / sizes if sizes > 0 else 0.0)
            if "lately" in constants:
                left = dot(a, b) / dot(b, b) if norm(b) > 0 else 0.0
                self.left[at] += constants["lately"] * (min(max(left, 0.0), 1.0) - self.left[at])
        self.since += 1
        triggered = min(cosines) < constants["swing"] and self.since >= self.gap
        scheduled = self.since >= self.wait
        if triggered or scheduled:
            at = 0 if cosines[0] < cosines[1] else 1
            w = plus(new[at], old[at], -1)
            size = norm(w)
            found = norm(part.hess(x, th, [entry / size for entry in w])) if size > 0 else 0.0
            self.probes += size > 0
            if found > constants["rise"] * self.L:
                self.wait, self.gap = max(1, self.wait // 2), 1
            else:
                self.wait = min(2 * self.wait, constants["longest"]) if scheduled else self.wait
                self.gap = min(2 * self.gap, constants["longest"]) if triggered else self.gap
            self.L, self.since = max(self.L, found), 0

    def inner(self):
        c = self.of["personal" if self.scope == "personal" else "global_"]
        return c / self.L if self.L > 0 else 1.0

    def lag(self, k):
        if "lately" not in self.of:
            return 1.0
        of_v = self.L / (self.of["personal"] * self.along_v) if self.along_v > 0 else 1.0
        left = max(self.left)
        return max(1.0, min(1 / (1 - left) if left < 1 else math.inf, of_v, self.of["longest_lag"] * (k + 1)))

    def outer(self, k, y, mixed, tau):
        r = (self.lag(k) * max(abs(at) for at in y)) ** 2
        self.E = mixed + (r - mixed) / (k + 1)
        size = math.sqrt(max(self.E, self.of["clip"] * r)) * math.sqrt(k + 1)
        unit = self.u * min(1.0, (k + 1) / self.of["ramp"])
        return unit / size / tau if size > 0 else 0.0


def run(golden, scheme, scope, W):
    constants, init, m = golden["constants"], golden["init"], golden["m"]
    kind = Quadratic if golden["problem"] == "quadratic" else Logistic
    parts = [kind(golden["data"], i) for i in range(m)]
    x, th, v = ([list(map(float, row)) for row in init[key]] for key in ("x", "theta", "v"))
    gamma, tau, tracks = constants["gamma"], constants["tau"], scheme == "lopa-gt"

    def directions():
        d = [part.d(*at) for part, *at in zip(parts, x, th)]
        h = [plus(part.hess(*at), part.grad_f(*at[:2]), -1) for part, *at in zip(parts, x, th, v)]
        return d, h, [part.s(*at) for part, *at in zip(parts, x, th, v)]

    def mix(rows):
        return [[sum(w * row[j] for w, row in zip(W[i], rows)) for j in range(len(rows[0]))] for i in range(m)]

    d, h, s = directions()
    z = [list(row) for row in s]
    y = [list(row) for row in z]
    y_th, y_v = [list(row) for row in d], [list(row) for row in h]
    rules = [Rule(constants, scope, x[i]) for i in range(m)]
    for i, rule in enumerate(rules):
        rule.start(parts[i], x[i], th[i], d[i], h[i])
        rule.note(parts[i], x[i], th[i], v[i])
    states = [{"x": x, "theta": th, "v": v, "L": [rule.L for rule in rules]}]
    for k in range(50):
        probes = [rule.probes for rule in rules]
        if scope == "global":
            most = [max(rules[j].L for j in range(m) if j == i or W[i][j] != 0) for i in range(m)]
            for rule, largest in zip(rules, most):
                rule.L = largest
        mixed = [sum(w * rule.E for w, rule in zip(W[i], rules)) for i in range(m)]
        beta = [rule.inner() for rule in rules]
        alpha = [rule.outer(k, y[i], mixed[i], tau) for i, rule in enumerate(rules)]
        wx, wy = mix(x), mix(y)
        x = [
            [(1 - tau) * a + tau * (b - alpha[i] * c) for a, b, c in zip(x[i], wx[i], y[i])] for i in range(m)
        ]
        z_new = [[b + (1 - gamma) * (a - b) for a, b in zip(z[i], s[i])] for i in range(m)]
        y = [plus(plus(wy[i], z_new[i]), z[i], -1) if tracks else list(z_new[i]) for i in range(m)]
        z = z_new
        if scope == "personal":
            th = [plus(th[i], d[i], -beta[i]) for i in range(m)]
            v = [plus(v[i], h[i], -beta[i]) for i in range(m)]
        else:
            th, v, y_th, y_v = (
                [plus(row, t, -beta[i]) for i, (row, t) in enumerate(zip(mix(th), y_th))],
                [plus(row, t, -beta[i]) for i, (row, t) in enumerate(zip(mix(v), y_v))],
                mix(y_th), mix(y_v),
            )
        old_d, old_h = d, h
        d, h, s = directions()
        if scope == "global":
            y_th = [plus(plus(y_th[i], d[i]), old_d[i], -1) if tracks else d[i] for i in range(m)]
            y_v = [plus(plus(y_v[i], h[i]), old_h[i], -1) if tracks else h[i] for i in range(m)]
        steps = {
            "alpha": alpha, "beta": beta, "L": [rule.L for rule in rules], "E": [rule.E for rule in rules],
            "probes": probes,
        }
        states.append({"steps": steps, "x": x, "theta": th, "v": v})
        for i, rule in enumerate(rules):
            rule.note(parts[i], x[i], th[i], v[i])
            rule.measure(parts[i], x[i], th[i], (d[i], h[i]), (old_d[i], old_h[i]))
    return states


NEW = {"spread": 24.0, "lately": 1 / 16, "longest_lag": 0.25}


def differs(new, old):
    """The largest difference of two trajectories, relative to the vectors' sizes."""
    worst = 0.0
    for a, b in zip(new, old):
        for key in ("x", "theta", "v"):
            for row, other in zip(a[key], b[key]):
                size = max(1e-3, max(map(abs, other)))
                worst = max(worst, max(abs(p - q) for p, q in zip(row, other)) / size)
        for key in ("alpha", "beta", "E"):
            for p, q in zip(a.get("steps", {}).get(key, []), b.get("steps", {}).get(key, [])):
                worst = max(worst, abs(p - q) / max(1e-3, abs(q)))
    return worst


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", action="store_true")
    parser.add_argument("--check", action="store_true", help="compare with the files, and write nothing")
    asked = parser.parse_args()
    for file in ("steps-quadratic", "steps-logistic"):
        path = HERE / f"{file}.json"
        golden = json.loads(path.read_text())
        for key in NEW:
            golden["constants"].pop(key, None)
        golden["constants"] |= {"spread": 6.0} if asked.before else NEW
        for name, known in golden["runs"].items():
            states = run(golden, name[:7], name[8:], known["W"])
            if asked.check:
                print(f"{file}, {name}: {differs(states, known['states']):.1e}")
            known["states"] = states
        if not asked.check:
            path.write_text(json.dumps(golden, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
