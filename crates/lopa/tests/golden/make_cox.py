"""Golden numbers of ridge-penalised Cox regression: coefficients and concordance.

    python3 -m venv venv && venv/bin/pip install scikit-survival lifelines
    venv/bin/python crates/lopa/tests/golden/make_cox.py

scikit-survival fits the coefficients (Breslow's rule for ties), and both it and lifelines count the
concordance. The objective is mean loss + strength |theta|^2, with the loss of a row that has an event,
log(sum of e^z over rows at risk) - z; a Newton method written here from that definition must agree.
"""

import json
from pathlib import Path

import numpy as np
from lifelines.utils import concordance_index
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.metrics import concordance_index_censored


def newton(x, time, event, strength):
    """The minimiser, by the definition: a risk set for each event."""
    rows, features = x.shape
    theta = np.zeros(features)
    for _ in range(50):
        slope, curve = 2 * strength * theta, 2 * strength * np.eye(features)
        for i in np.flatnonzero(event):
            at_risk = x[time >= time[i]]
            share = np.exp(at_risk @ theta)
            share /= share.sum()
            mean = share @ at_risk
            slope = slope + (mean - x[i]) / rows
            off = at_risk - mean
            curve = curve + (off.T * share) @ off / rows
        step = np.linalg.solve(curve, slope)
        theta = theta - step
    assert np.abs(step).max() < 1e-14
    return theta


random = np.random.default_rng(11)
rows, features = 60, 4
x = np.round(random.normal(size=(rows, features)), 3)
truth = np.array([0.8, -0.6, 0.0, 0.4])
lasting = random.exponential(np.exp(-x @ truth) * 10)
leaving = random.exponential(14.0, size=rows)
time = np.ceil(np.minimum(lasting, leaving))  # whole days: several rows have the same
event = lasting <= leaving
assert len(np.unique(time)) < rows and len(np.unique(time[event])) < event.sum()

fits = []
for strength in (0.5, 0.05, 0.002):
    # scikit-survival minimises the mean loss + alpha / (2 rows) |theta|^2.
    fit = CoxPHSurvivalAnalysis(alpha=2 * rows * strength, ties="breslow", n_iter=200, tol=1e-15)
    fit.fit(x, np.array(list(zip(event, time)), dtype=[("event", bool), ("time", float)]))
    own = newton(x, time, event, strength)
    print(strength, fit.coef_, np.abs(fit.coef_ - own).max())
    assert np.abs(fit.coef_ - own).max() < 1e-6
    risk = x @ own
    theirs = concordance_index_censored(event, time, risk)[0]
    assert abs(theirs - concordance_index(time, -risk, event)) < 1e-12
    fits.append(
        {
            "strength": strength,
            "theta": list(own),
            "scikit_survival": list(fit.coef_),
            "concordance": theirs,
        }
    )

# Few different risks, so that many pairs are equal.
coarse = np.round(x[:, 0])
found = {
    "features": x.tolist(),
    "time": time.tolist(),
    "event": event.astype(int).tolist(),
    "fits": fits,
    "coarse_concordance": concordance_index_censored(event, time, coarse)[0],
}
assert abs(found["coarse_concordance"] - concordance_index(time, -coarse, event)) < 1e-12
path = Path(__file__).with_name("cox.json")
path.write_text(json.dumps(found, indent=1) + "\n")
