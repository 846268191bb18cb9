"""A second implementation of the algorithms, in numpy, with whole matrices in place of nodes.

Writes field_path3.json and field_ring4.json beside itself: a small heterogeneous quadratic each,
full batch, and every variable of every algorithm for k = 0, ..., 5. Row i of X is x_i, `W @ X`
mixes. Nothing here is shared with the library but the names of parameters and variables.

    python3 make_field.py
"""

import json
import pathlib

import numpy as np

COUNTED = ["grad_theta_g", "hess_g", "cross_g", "grad_theta_f", "grad_x_f", "grad_x_g"]


class Problem:
    """g = 1/2 th'A th - th'(B x + c),  f = 1/2 |D th - e|^2 + 1/2 x'R x - x'q, one of each a node."""

    def __init__(self, m, n, p, seed):
        r = np.random.default_rng(seed)
        self.m, self.n, self.p = m, n, p

        def positive(size):
            a = r.normal(size=(m, size, size))
            return 0.25 * np.einsum("iab,icb->iac", a, a) + 0.6 * np.eye(size)

        self.A, self.B, self.c = positive(p), r.normal(size=(m, p, n)), r.normal(size=(m, p))
        self.D, self.e = r.normal(size=(m, p + 1, p)), r.normal(size=(m, p + 1))
        self.R, self.q = positive(n), r.normal(size=(m, n))
        self.start = {"x": np.tile(r.normal(size=n), (m, 1)), "th": r.normal(size=(m, p)),
                      "v": r.normal(size=(m, p))}
        self.reset()

    def reset(self):
        self.counts = dict.fromkeys(COUNTED, 0)

    def Gth(self, x, th):
        self.counts["grad_theta_g"] += 1
        return np.einsum("iab,ib->ia", self.A, th) - np.einsum("iab,ib->ia", self.B, x) - self.c

    def Gx(self, x, th):
        self.counts["grad_x_g"] += 1
        return -np.einsum("iab,ia->ib", self.B, th)

    def Hv(self, x, th, v):
        self.counts["hess_g"] += 1
        return np.einsum("iab,ib->ia", self.A, v)

    def Jv(self, x, th, v):
        self.counts["cross_g"] += 1
        return -np.einsum("iab,ia->ib", self.B, v)

    def Fth(self, x, th):
        self.counts["grad_theta_f"] += 1
        return np.einsum("iab,ia->ib", self.D, np.einsum("iab,ib->ia", self.D, th) - self.e)

    def Fx(self, x, th):
        self.counts["grad_x_f"] += 1
        return np.einsum("iab,ib->ia", self.R, x) - self.q


# ---- 1. hypergradient estimators ----

def neumann(P, x, th, Q, L, k):
    u = P.Fth(x, th)
    for _ in range(k):
        u = u - P.Hv(x, th, u) / L
    return (Q / L) * u


def shia(P, x, th, Q, lam):
    u = P.Fth(x, th)
    s = u.copy()
    for _ in range(Q):
        u = u - lam * P.Hv(x, th, u)
        s = s + u
    return lam * s


def cg(P, x, th, Q):
    """Q steps of conjugate gradients from v = 0, on each node's system by itself."""
    def dot(a, b):
        return (a * b).sum(axis=1, keepdims=True)

    r = P.Fth(x, th)
    v, p = np.zeros_like(r), r
    for _ in range(Q):
        hp = P.Hv(x, th, p)
        a = dot(r, r) / dot(p, hp)
        v, r_new = v + a * p, r - a * hp
        p, r = r_new + dot(r_new, r_new) / dot(r, r) * p, r_new
    return v


class Hyper:
    """v and q = Fx - Jv, by `hv_steps` terms; Neumann's lengths are given, one an iteration."""

    def __init__(self, P, o):
        self.P, self.o = P, o

    def __call__(self, x, th, t):
        P, o = self.P, self.o
        if o.get("inverse") == "neumann":
            v = neumann(P, x, th, o["hv_steps"], 1 / o["lambda"], o["lengths"][t])
        elif o.get("inverse") == "cg":
            v = cg(P, x, th, o["hv_steps"] - 1)
        else:
            v = shia(P, x, th, o["hv_steps"] - 1, o["lambda"])
        return v, P.Fx(x, th) - P.Jv(x, th, v)


# ---- the algorithms; Wi mixes the inner level: W in the global scope, I in the personal one ----

def lopa(P, W, Wi, o, gt):
    x, th, v = (P.start[k] for k in ("x", "th", "v"))

    def directions():
        return (P.Gth(x, th), P.Hv(x, th, v) - P.Fth(x, th), P.Fx(x, th) - P.Jv(x, th, v))

    d, h, s = directions()
    z = y = s
    yth, yv = d, h
    while True:
        yield dict(x=x, theta=th, v=v, d=d, h=h, s=s, z=z, y=y, y_theta=yth, y_v=yv)
        th, v = Wi @ th - o["beta"] * yth, Wi @ v - o["lambda"] * yv
        x = (1 - o["tau"]) * x + o["tau"] * (W @ x - o["alpha"] * y)
        z_new = s + (1 - o["gamma"]) * (z - s)
        y = W @ y + z_new - z if gt else z_new
        z = z_new
        d_old, h_old = d, h
        d, h, s = directions()
        yth = Wi @ yth + d - d_old if gt else d
        yv = Wi @ yv + h - h_old if gt else h


def ma_dsbo(P, W, Wi, o):
    x, th = P.start["x"], P.start["th"]
    r = np.zeros_like(x)
    out = dict(x=x, theta=th, r=r)
    while True:
        yield out
        for _ in range(o["inner_steps"]):
            th = Wi @ th - o["beta"] * P.Gth(x, th)
        z, s = np.zeros_like(th), -P.Fth(x, th)
        d = s
        for _ in range(o["hv_steps"]):
            z = Wi @ z - o["lambda"] * d
            s_new = P.Hv(x, th, z) - P.Fth(x, th)
            d = Wi @ d + s_new - s
            s = s_new
        u = P.Fx(x, th) - P.Jv(x, th, z)
        x, r = W @ x - o["alpha"] * r, (1 - o["gamma"]) * r + o["gamma"] * u
        out = dict(x=x, theta=th, r=r, u=u, v=z, d=d)


def d_soba(P, W, Wi, o):
    x, th, v = (P.start[k] for k in ("x", "th", "v"))
    r = np.zeros_like(x)
    first, delta = o.get("order") == "first", o.get("delta")

    def directions():
        if first:
            up, down = th + delta * v, th - delta * v
            PH = (P.Gth(x, up) - P.Gth(x, down)) / (2 * delta)
            PJ = (P.Gx(x, up) - P.Gx(x, down)) / (2 * delta)
        else:
            PH, PJ = P.Hv(x, th, v), P.Jv(x, th, v)
        return P.Gth(x, th), PH - P.Fth(x, th), P.Fx(x, th) - PJ

    while True:
        d, h, s = directions()
        yield dict(x=x, theta=th, v=v, d=d, h=h, s=s, r=r)
        x = W @ (x - o["alpha"] * r)
        th, v = Wi @ (th - o["beta"] * d), Wi @ (v - o["lambda"] * h)
        r = (1 - o["gamma"]) * r + o["gamma"] * s


def sldbo(P, W, Wi, o):
    x, th, v = (P.start[k] for k in ("x", "th", "v"))

    def directions():
        return P.Fx(x, th) - P.Jv(x, th, v), P.Gth(x, th), P.Hv(x, th, v) - P.Fth(x, th)

    dx, dth, dv = directions()
    tx, tth, tv = dx, dth, dv
    while True:
        yield dict(x=x, theta=th, v=v, s=dx, d=dth, h=dv, tx=tx, t_theta=tth, tv=tv)
        x, th, v = W @ x - o["alpha"] * tx, Wi @ th - o["beta"] * tth, Wi @ v - o["lambda"] * tv
        if "radius" in o:
            length = np.linalg.norm(v, axis=1, keepdims=True)
            v = np.where(length > o["radius"], v * o["radius"] / length, v)
        ox, oth, ov = dx, dth, dv
        dx, dth, dv = directions()
        tx, tth, tv = W @ tx + dx - ox, Wi @ tth + dth - oth, Wi @ tv + dv - ov


def sparkle(P, W, Wi, o):
    """In the paper's form, with the square roots that no node could apply."""
    start = {"x": P.start["x"], "theta": P.start["th"], "v": P.start["v"]}
    eye = np.eye(P.m)

    def matrices(w, strategy):
        values, vectors = np.linalg.eigh(eye - w)
        root = vectors @ np.diag(np.sqrt(np.maximum(values, 0))) @ vectors.T
        return {"ed": (w, root, w), "extra": (eye, root, w), "gt": (w, eye - w, w @ w),
                "atc": (w @ w, eye - w, w @ w)}[strategy]

    ABC = {"x": matrices(W, o["upper"]), "theta": matrices(Wi, o["lower"]),
           "v": matrices(Wi, o["lower"])}
    w = dict(start)
    # Tracking that starts from different values: B p cancels W^2 w - W w in the first step.
    tracked = {"x": o["upper"], "theta": o["lower"], "v": o["lower"]}
    dual = {k: -(W if k == "x" else Wi) @ w[k] if tracked[k] in ("gt", "atc") else np.zeros_like(w[k])
            for k in w}

    def move(k, step, q):
        A, B, C = ABC[k]
        w[k] = C @ w[k] - A @ (step * q) - B @ dual[k]
        dual[k] = dual[k] + B @ w[k]

    def upper(r):
        s = P.Fx(w["x"], w["theta"]) - P.Jv(w["x"], w["theta"], w["v"])
        return (1 - o["gamma"]) * r + o["gamma"] * s

    r = upper(np.zeros_like(w["x"]))
    while True:
        yield dict(w, r=r)
        move("x", o["alpha"], r)
        move("theta", o["beta"], P.Gth(w["x"], w["theta"]))
        move("v", o["lambda"], P.Hv(w["x"], w["theta"], w["v"]) - P.Fth(w["x"], w["theta"]))
        r = upper(r)


def c2dfb(P, W, Wi, o):
    x, y, z = P.start["x"], P.start["th"], P.start["th"]
    sigma, tau = o["penalty"], o["tau"]
    inner = o.get("tau_inner", tau)
    G, Gi = (1 - tau) * np.eye(P.m) + tau * W, (1 - inner) * np.eye(P.m) + inner * Wi

    def penalised():
        return P.Fx(x, y) + sigma * (P.Gx(x, y) - P.Gx(x, z))

    u = penalised()
    t, ty, tz, q, d = u, 0 * y, 0 * y, 0 * y, 0 * y
    while True:
        yield dict(x=x, theta=z, y=y, u=u, t=t, q=q, d=d, t_y=ty, t_theta=tz)
        x = G @ x - o["alpha"] * t
        for _ in range(o["inner_steps"]):
            qn, dn = P.Gth(x, y) + P.Fth(x, y) / sigma, P.Gth(x, z)
            ty, tz = Gi @ ty + qn - q, Gi @ tz + dn - d
            q, d = qn, dn
            y, z = Gi @ y - o["beta"] * ty, Gi @ z - o["beta"] * tz
        un = penalised()
        t, u = G @ t + un - u, un


def slam(P, W, Wi, o):
    x, th = P.start["x"], P.start["th"]
    Mx, Mth = np.zeros_like(x), np.zeros_like(th)
    hyper, t, out = Hyper(P, o), 0, dict(x=x, theta=th, M_x=Mx, M_theta=Mth)
    while True:
        yield out
        th = Wi @ th - o["beta"] * P.Gth(x, th) - Mth
        Mth = Mth + th - Wi @ th
        v, u = hyper(x, th, t)
        x = W @ x - o["alpha"] * u - Mx
        Mx = Mx + x - W @ x
        t += 1
        out = dict(x=x, theta=th, v=v, u=u, M_x=Mx, M_theta=Mth)


def mdbo(P, W, Wi, o, variance_reduced):
    x, th = P.start["x"], P.start["th"]
    hyper, t, out = Hyper(P, o), 0, dict(x=x, theta=th)
    eta = o["eta"]
    while True:
        yield out
        v, F = hyper(x, th, t)
        G = P.Gth(x, th)
        if t == 0:
            u = Zf = F
            e = Zg = G
        else:
            if variance_reduced:
                _, Fold = hyper(xold, thold, t)
                Gold = P.Gth(xold, thold)
                a = o["gamma"]
                un, en = (1 - a) * (u + F - Fold) + a * F, (1 - a) * (e + G - Gold) + a * G
            else:
                a = o["gamma"]
                un, en = (1 - a) * u + a * F, (1 - a) * e + a * G
            Zf, Zg = W @ Zf + un - u, Wi @ Zg + en - e
            u, e = un, en
        xold, thold = x, th
        x = x - eta * (x - W @ x) - o["alpha"] * eta * Zf
        th = th - eta * (th - Wi @ th) - o["beta"] * eta * Zg
        t += 1
        out = dict(x=x, theta=th, v=v, u=u, e=e, Zf=Zf, Zg=Zg)


def zhang_simultaneous(P, W, Wi, o):
    x, th, v = (P.start[k] for k in ("x", "th", "v"))

    def D(x, th, v):
        return P.Fx(x, th) - P.Jv(x, th, v), P.Gth(x, th), P.Hv(x, th, v) - P.Fth(x, th)

    u, e, c = D(x, th, v)
    Zx, Zth, Zv = u, e, c
    eta, keep = o["eta"], 1 - o["gamma"]
    while True:
        yield dict(x=x, theta=th, v=v, u=u, e=e, c=c, Zu=Zx, Ze=Zth, Zc=Zv)
        old = x, th, v
        x = x - eta * (x - W @ x) - eta * o["alpha"] * Zx
        th = th - eta * (th - Wi @ th) - eta * o["beta"] * Zth
        v = v - eta * (v - Wi @ v) - eta * o["lambda"] * Zv
        Do, Dn = D(*old), D(x, th, v)
        un, en, cn = (keep * (E - a) + b for E, a, b in zip((u, e, c), Do, Dn))
        Zx, Zth, Zv = W @ Zx + un - u, Wi @ Zth + en - e, Wi @ Zv + cn - c
        u, e, c = un, en, cn


def zhang_alternating(P, W, Wi, o):
    x, th, v = (P.start[k] for k in ("x", "th", "v"))
    eta, keep = o["eta"], 1 - o["gamma"]
    D = {"e": lambda x, th, v: P.Gth(x, th),
         "c": lambda x, th, v: P.Hv(x, th, v) - P.Fth(x, th),
         "u": lambda x, th, v: P.Fx(x, th) - P.Jv(x, th, v)}
    last, E, Z = {}, {}, {}

    def refresh(name, mix, *point):
        new = D[name](*point)
        if name not in last:
            E[name] = Z[name] = new
        else:
            storm = keep * (E[name] - D[name](*last[name])) + new
            Z[name] = mix @ Z[name] + storm - E[name]
            E[name] = storm
        last[name] = point

    out = dict(x=x, theta=th, v=v)
    while True:
        yield out
        refresh("e", Wi, x, th, v)
        th = th - eta * (th - Wi @ th) - eta * o["beta"] * Z["e"]
        refresh("c", Wi, x, th, v)
        v = v - eta * (v - Wi @ v) - eta * o["lambda"] * Z["c"]
        refresh("u", W, x, th, v)
        x = x - eta * (x - W @ x) - eta * o["alpha"] * Z["u"]
        out = dict(x=x, theta=th, v=v, **E, **{"Z" + k: z for k, z in Z.items()})


def prometheus(P, W, Wi, o):
    x, th = P.start["x"], P.start["th"]
    tau, l1 = o.get("tau", 1.0), o.get("l1", 0.0)
    low, high = o.get("low", -np.inf), o.get("high", np.inf)
    hyper, t = Hyper(P, o), 0
    v, p = hyper(x, th, t)
    d, y = P.Gth(x, th), p
    while True:
        yield dict(x=x, theta=th, v=v, u=p, d=d, y=y)
        there = x - y / tau
        xt = np.clip(np.sign(there) * np.maximum(np.abs(there) - l1 / tau, 0), low, high)
        xold, thold = x, th
        x, th = W @ x + o["alpha"] * (xt - x), th - o["beta"] * d
        t += 1
        v, F = hyper(x, th, t)
        G = P.Gth(x, th)
        if o["period"] and t % o["period"] == 0:
            pn, d = F, G
        else:
            pn, d = p + F - hyper(xold, thold, t)[1], d + G - P.Gth(xold, thold)
        y, p = W @ y + pn - p, pn


def gossip(P, W, Wi, o):
    x, th = P.start["x"], P.start["th"]
    m, n, p, b, L, a = P.m, P.n, P.p, o["hv_steps"], 1 / o["lambda"], o["gamma"]
    s, hh, U = np.zeros((m, n)), np.zeros((m, p)), np.zeros((m, n, p))
    V = np.tile(L * np.eye(p), (m, b, 1, 1))
    Qinv = np.tile(np.eye(p) / L, (m, 1, 1))

    def mix(w, a):
        return np.tensordot(w, a, axes=1)

    while True:
        # U column by column: its transpose, flattened.
        yield dict(x=x, theta=th, s=s, h=hh, U=U.transpose(0, 2, 1).reshape(m, -1),
                   V=V.reshape(m, -1), Y=Qinv.reshape(m, -1))
        P.counts["hess_g"] += b * p
        P.counts["cross_g"] += p
        hess, jac = P.A, -P.B.transpose(0, 2, 1)
        xn = W @ x - o["alpha"] * (s - np.einsum("inp,ipr,ir->in", U, Qinv, hh))
        thn = Wi @ th - o["beta"] * P.Gth(x, th)
        s = (1 - a) * (Wi @ s) + a * P.Fx(x, th)
        hh = (1 - a) * (Wi @ hh) + a * P.Fth(x, th)
        U = (1 - a) * mix(Wi, U) + a * jac
        V = (1 - a) * mix(Wi, V) + a * hess[:, None]
        R = np.tile(np.eye(p), (m, 1, 1))
        for r in range(b):
            R = np.eye(p) + np.einsum("iab,ibc->iac", np.eye(p) - V[:, r] / L, R)
        Qinv = R / L
        x, th = xn, thn


def gossip_mf(P, W, Wi, o):
    x, th = P.start["x"], P.start["th"]
    r = np.zeros_like(x)
    hyper, t, out = Hyper(P, o), 0, dict(x=x, theta=th, r=r)
    while True:
        yield out
        v, u = hyper(x, th, t)
        G = P.Gth(x, th)
        x, r = W @ x - o["alpha"] * r, (1 - o["gamma"]) * (Wi @ r) + o["gamma"] * u
        th = Wi @ th - o["beta"] * G
        t += 1
        out = dict(x=x, theta=th, r=r, u=u, v=v)


# ---- single level: theta at a fixed x ----

def dgd(P, W, Wi, o):
    x, th = P.start["x"], P.start["th"]
    while True:
        yield dict(x=x, theta=th)
        th = W @ th - o["alpha"] * P.Gth(x, th)


def fedavg(P, W, Wi, o):
    x, th = P.start["x"], P.start["th"]
    y, phi = x, th
    while True:
        yield dict(x=x, theta=th, local_x=y, local_theta=phi)
        x, th = W @ y, W @ phi
        y, phi = x, th
        for _ in range(o["local_steps"]):
            y, phi = y - o["alpha"] * P.Gx(y, phi), phi - o["alpha"] * P.Gth(y, phi)


def fedper(P, W, Wi, o):
    x, th = P.start["x"], P.start["th"]
    y = x
    while True:
        yield dict(x=x, theta=th, local_x=y)
        x = W @ y
        y = x
        for _ in range(o["local_steps"]):
            y, th = y - o["alpha"] * P.Gx(y, th), th - o["alpha"] * P.Gth(y, th)


def fedrep(P, W, Wi, o):
    x, th = P.start["x"], P.start["th"]
    y = x
    while True:
        yield dict(x=x, theta=th, local_x=y)
        x = W @ y
        for _ in range(o["head_steps"]):
            th = th - o["beta"] * P.Gth(x, th)
        y = x
        for _ in range(o["body_steps"]):
            y = y - o["alpha"] * P.Gx(y, th)


def ditto(P, W, Wi, o):
    x, th = P.start["x"], P.start["th"]
    cx, cth, y, phi = x, th, x, th
    while True:
        yield dict(x=x, theta=th, common_x=cx, common_theta=cth, local_x=y, local_theta=phi)
        cx, cth = W @ y, W @ phi
        for _ in range(o["local_steps"]):
            gx, gth = P.Gx(x, th) + o["pull"] * (x - cx), P.Gth(x, th) + o["pull"] * (th - cth)
            x, th = x - o["beta"] * gx, th - o["beta"] * gth
        y, phi = cx, cth
        for _ in range(o["local_steps"]):
            y, phi = y - o["alpha"] * P.Gx(y, phi), phi - o["alpha"] * P.Gth(y, phi)


def gt_sgd(P, W, Wi, o):
    x, th = P.start["x"], P.start["th"]
    q = P.Gth(x, th)
    y = q
    while True:
        yield dict(x=x, theta=th, y=y)
        th = W @ th - o["alpha"] * y
        old, q = q, P.Gth(x, th)
        y = W @ y + q - old


def extra(P, W, Wi, o):
    x, th = P.start["x"], P.start["th"]
    half = (np.eye(P.m) + W) / 2
    yield dict(x=x, theta=th)
    q = P.Gth(x, th)
    old_th, th = th, W @ th - o["alpha"] * q
    while True:
        yield dict(x=x, theta=th)
        old_q, q = q, P.Gth(x, th)
        old_th, th = th, 2 * half @ th - half @ old_th - o["alpha"] * (q - old_q)


def exact_diffusion(P, W, Wi, o):
    x, th = P.start["x"], P.start["th"]
    half = (np.eye(P.m) + W) / 2
    psi = th
    while True:
        yield dict(x=x, theta=th)
        psi_new = th - o["alpha"] * P.Gth(x, th)
        th, psi = half @ (psi_new + th - psi), psi_new


# ---- what is run: name in the library, scopes, parameters, rounds and floats a neighbour ----

STEPS = {"alpha": 0.07, "beta": 0.3, "lambda": 0.25}
SHIA = {"hv_steps": 4, "inverse": "shia"}
CG = {"hv_steps": 3, "inverse": "cg"}
NEUMANN = {"hv_steps": 4, "inverse": "neumann", "lengths": [2, 0, 3, 1, 2, 3]}
LOPA = STEPS | {"gamma": 0.4, "tau": 0.6}
MA = STEPS | {"gamma": 0.3, "inner_steps": 2, "hv_steps": 3}
STORM = STEPS | {"eta": 0.5, "gamma": 0.3}
ALPHA = {"alpha": 0.2}
SPARKLE = STEPS | {"gamma": 0.3, "upper": "ed", "lower": "ed"}
C2DFB = {"alpha": 0.07, "beta": 0.3, "penalty": 4.0, "inner_steps": 3, "tau": 0.7}


def cases(n, p):
    """(label, name, function, parameters, {scope: (rounds, floats)})"""
    def both(personal, both, rounds=1):
        return {"personal": (1, personal), "global": (rounds, both)}

    def lopa_of(gt):
        return lambda *a: lopa(*a, gt)

    def mdbo_of(vr):
        return lambda *a: mdbo(*a, vr)

    only = {"global": (1, n + p)}
    t, q = MA["inner_steps"], MA["hv_steps"]
    personal = {"personal": (1, 2 * n)}
    gossip_floats = 2 * n + 2 * p + n * p + 3 * p * p
    single, tracked = both(p, p), both(2 * p, 2 * p)
    return [
        ("lopa-lg", "lopa-lg", lopa_of(False), LOPA, both(n, n + 2 * p)),
        ("lopa-gt", "lopa-gt", lopa_of(True), LOPA, both(2 * n, 2 * n + 4 * p)),
        ("ma-dsbo", "ma-dsbo", ma_dsbo, MA, {"global": (t + q + 1, n + t * p + 2 * q * p)}),
        ("d-soba", "d-soba", d_soba, STEPS | {"gamma": 0.3}, both(n, n + 2 * p)),
        ("d-soba first order", "d-soba", d_soba,
         STEPS | {"gamma": 0.3, "order": "first", "delta": 0.01}, both(n, n + 2 * p)),
        ("sldbo", "sldbo", sldbo, STEPS, both(2 * n, 2 * n + 4 * p)),
        ("sldbo projected", "sldbo", sldbo, STEPS | {"radius": 0.8}, both(2 * n, 2 * n + 4 * p)),
        ("sparkle", "sparkle", sparkle, SPARKLE, both(n, n + 2 * p, 3)),
        ("sparkle extra", "sparkle", sparkle, SPARKLE | {"upper": "extra", "lower": "extra"},
         both(n, n + 2 * p, 3)),
        ("sparkle gt", "sparkle", sparkle, SPARKLE | {"upper": "gt", "lower": "gt"},
         both(2 * n, 2 * n + 4 * p, 3)),
        ("sparkle ed gt", "sparkle", sparkle, SPARKLE | {"lower": "gt"},
         both(n, n + 4 * p, 3)),
        ("sparkle atc", "sparkle", sparkle, SPARKLE | {"upper": "atc", "lower": "atc"},
         {"personal": (2, 2 * n), "global": (6, 2 * n + 4 * p)}),
        ("sparkle atc ed", "sparkle", sparkle, SPARKLE | {"upper": "atc"},
         {"personal": (2, 2 * n), "global": (4, 2 * n + 2 * p)}),
        ("c2dfb", "c2dfb", c2dfb, C2DFB, both(2 * n, 2 * n + 3 * 4 * p, 4)),
        ("c2dfb two mixings", "c2dfb", c2dfb, C2DFB | {"tau_inner": 0.35},
         {"global": (4, 2 * n + 3 * 4 * p)}),
        ("slam", "slam", slam, STEPS | SHIA, only),
        ("slam neumann", "slam", slam, STEPS | NEUMANN, only),
        ("mdbo", "mdbo", mdbo_of(False), STORM | SHIA, both(2 * n, 2 * n + 2 * p)),
        ("mdbo neumann", "mdbo", mdbo_of(False), STORM | NEUMANN, both(2 * n, 2 * n + 2 * p)),
        ("mdbo cg", "mdbo", mdbo_of(False), STORM | CG, both(2 * n, 2 * n + 2 * p)),
        ("vrdbo", "vrdbo", mdbo_of(True), STORM | SHIA, both(2 * n, 2 * n + 2 * p)),
        ("vrdbo neumann", "vrdbo", mdbo_of(True), STORM | NEUMANN, both(2 * n, 2 * n + 2 * p)),
        ("zhang", "zhang", zhang_simultaneous, STORM, both(2 * n, 2 * n + 4 * p)),
        ("zhang alternating", "zhang", zhang_alternating, STORM | {"order": "alternating"},
         both(2 * n, 2 * n + 4 * p, 3)),
        ("prometheus", "prometheus", prometheus,
         STEPS | SHIA | {"period": 3, "tau": 1.5, "l1": 0.2, "low": -0.9, "high": 0.7}, personal),
        ("interact", "interact", prometheus, STEPS | SHIA | {"period": 3}, personal),
        ("gossip-dsbo", "gossip-dsbo", gossip, STEPS | {"gamma": 0.3, "hv_steps": 3},
         both(n, gossip_floats)),
        ("gossip-dsbo-mf", "gossip-dsbo-mf", gossip_mf, STEPS | SHIA | {"gamma": 0.3},
         both(n, 2 * n + p)),
        ("gossip-dsbo-mf cg", "gossip-dsbo-mf", gossip_mf, STEPS | CG | {"gamma": 0.3},
         both(n, 2 * n + p)),
        ("dgd", "dgd", dgd, ALPHA, single),
        ("gt-sgd", "gt-sgd", gt_sgd, ALPHA, tracked),
        ("extra", "extra", extra, ALPHA, single),
        ("exact-diffusion", "exact-diffusion", exact_diffusion, ALPHA, single),
        ("fedavg", "fedavg", fedavg, ALPHA | {"local_steps": 3}, both(n + p, n + p)),
        ("fedper", "fedper", fedper, ALPHA | {"local_steps": 3}, {"personal": (1, n)}),
        ("fedrep", "fedrep", fedrep, ALPHA | {"beta": 0.2, "head_steps": 3, "body_steps": 2},
         {"personal": (1, n)}),
        ("ditto", "ditto", ditto, ALPHA | {"beta": 0.2, "pull": 0.3, "local_steps": 2},
         {"personal": (1, n + p)}),
    ]


def run(P, W, function, options, scope):
    Wi = W if scope == "global" else np.eye(P.m)
    P.reset()
    steps = function(P, W, Wi, options)
    states, counts = [], []
    for _ in range(6):
        state = next(steps)
        states.append({name: np.asarray(value).tolist() for name, value in state.items()})
        counts.append(dict(P.counts))
    # What the last iteration asked for.
    cost = {name: counts[5][name] - counts[4][name] for name in COUNTED}
    return states, cost


def metropolis(edges, m):
    degree = [sum(i in edge for edge in edges) for i in range(m)]
    W = np.zeros((m, m))
    for i, j in edges:
        W[i, j] = W[j, i] = 1 / (1 + max(degree[i], degree[j]))
    return W + np.diag(1 - W.sum(axis=1))


def write(name, W, n, p, seed):
    P = Problem(len(W), n, p, seed)
    start = {"x": P.start["x"].tolist(), "theta": P.start["th"].tolist(),
             "v": P.start["v"].tolist()}
    data = {key: getattr(P, key).tolist() for key in "ABcDeRq"}
    entries = []
    for label, ours, function, options, scopes in cases(n, p):
        for scope, (rounds, floats) in scopes.items():
            states, cost = run(P, W, function, options, scope)
            params = {k: v for k, v in options.items() if k != "lengths"}
            entries.append({"label": label, "name": ours, "scope": scope, "params": params,
                            "lengths": options.get("lengths", []), "rounds": rounds,
                            "floats": floats, "cost": cost, "states": states})
    golden = {"W": W.tolist(), "data": data, "init": start, "algorithms": entries}
    path = pathlib.Path(__file__).parent / f"field_{name}.json"
    path.write_text(json.dumps(golden, separators=(",", ":")) + "\n")


write("path3", metropolis([(0, 1), (1, 2)], 3), 3, 2, 11)
ring = metropolis([(0, 1), (1, 2), (2, 3), (0, 3)], 4)
write("ring4", (ring + np.eye(4)) / 2, 2, 3, 12)
