"""Writes `grid.csv`: what Python's `dp-accounting` says of Poisson-subsampled Gaussian mechanisms.

    pip install dp-accounting==0.6.0
    python make.py > grid.csv

A line has one or two mechanisms (q, sigma, count), delta, and three values of epsilon: by Rényi
divergences, and by privacy-loss distributions that err upwards and downwards. The true value is
between the last two.
"""

import dp_accounting
from dp_accounting import pld, rdp

QS = [1.0, 0.5, 0.1, 0.01, 0.001]
SIGMAS = [0.6, 1.0, 2.0, 5.0, 25.0]
COUNTS = [1, 30, 1000, 20000]
DELTAS = [1e-3, 1e-5, 1e-8]
PAIRS = [
    [(0.3, 3.0, 3000), (0.7, 3.0, 2000)],
    [(0.02, 1.0, 300), (0.05, 1.5, 200)],
    [(1.0, 40.0, 500), (0.1, 4.0, 500)],
    [(0.64, 12.0, 3000), (1.0, 12.0, 2000)],
]


def event(mechanisms):
    composed = dp_accounting.ComposedDpEvent
    repeated = dp_accounting.SelfComposedDpEvent
    sampled = dp_accounting.PoissonSampledDpEvent
    gauss = dp_accounting.GaussianDpEvent
    return composed([repeated(sampled(q, gauss(s)), n) if q < 1 else repeated(gauss(s), n) for q, s, n in mechanisms])


def loss(mechanisms, upper, width):
    total = None
    for q, s, n in mechanisms:
        one = pld.privacy_loss_distribution.from_gaussian_mechanism(
            s,
            pessimistic_estimate=upper,
            value_discretization_interval=width,
            sampling_prob=q,
            use_connect_dots=True,
        ).self_compose(n)
        total = one if total is None else total.compose(one)
    return total


def lines():
    for q in QS:
        for s in SIGMAS:
            for n in COUNTS:
                # Beyond this ε is in the hundreds, and below that it is 0.
                if 0.02 < q * n**0.5 / s < 20:
                    yield [(q, s, n)]
    yield from PAIRS


print("q,sigma,count,q2,sigma2,count2,delta,renyi,above,below")
for mechanisms in lines():
    width = min(1e-4, max(q / s for q, s, _ in mechanisms) / 10)
    renyi = rdp.RdpAccountant().compose(event(mechanisms))
    above, below = (loss(mechanisms, upper, width) for upper in (True, False))
    for delta in DELTAS:
        found = [renyi.get_epsilon(delta), above.get_epsilon_for_delta(delta), below.get_epsilon_for_delta(delta)]
        if found[1] < 1e-3:
            continue
        first, second = mechanisms[0], (mechanisms + [("", "", "")])[1]
        print(*first, *second, delta, *(f"{value:.9g}" for value in found), sep=",", flush=True)
