"""Values of scipy and statsmodels that the tests of `statistics` compare with.

    usage: python statistics.py > statistics.json      (needs numpy, scipy, statsmodels)
"""

import json

import numpy
import scipy
import statsmodels
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import DescrStatsW

random = numpy.random.default_rng(7)


def paired(pairs, shift):
    differences = shift + random.standard_normal(pairs)
    margin = abs(shift) + 0.5
    t = stats.ttest_1samp(differences, 0.0)
    intervals = {str(level): list(t.confidence_interval(level)) for level in (0.9, 0.95, 0.99)}
    equivalent, *_ = DescrStatsW(differences).ttost_mean(-margin, margin)
    return {
        "differences": differences.tolist(),
        "p": t.pvalue,
        "intervals": intervals,
        "margin": margin,
        "p_equivalent": equivalent,
    }


def holm(tests):
    p = random.random(tests) ** 4
    return {"p": p.tolist(), "adjusted": multipletests(p, method="holm")[1].tolist()}


values = {
    "versions": {"scipy": scipy.__version__, "statsmodels": statsmodels.__version__},
    "paired": [
        paired(pairs, shift) for pairs in (2, 3, 5, 10, 32, 33, 100) for shift in (0.0, -0.4, 3.0)
    ],
    "holm": [holm(tests) for tests in (1, 2, 7, 40)],
}
print(json.dumps(values))
