"""scikit-learn's own checks of estimators: all of them, and none skipped silently."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("sklearn")
from lopa.sklearn import (  # noqa: E402
    PersonalizedClassifier,
    PersonalizedRegressor,
    RegularizedClassifier,
    RegularizedRegressor,
)
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

# Checks that are expected to fail, and why.
EXPECTED: dict[str, str] = {}

# Checks that skip themselves, and why.
SKIPPED = {"check_array_api_input": "it needs SCIPY_ARRAY_API=1, and the estimators take NumPy and SciPy alone"}

# Fewer would mean that scikit-learn no longer recognises them as classifiers and regressors.
LEAST = 45

ALL = [PersonalizedClassifier(), RegularizedClassifier(), PersonalizedRegressor(), RegularizedRegressor()]

done: dict[str, list[str]] = {}


@parametrize_with_checks(ALL, expected_failed_checks=lambda _: EXPECTED)
def test_scikit_learn_is_content(estimator: Any, check: Any, request: Any) -> None:
    own = done.setdefault(type(estimator).__name__, [])
    check(estimator)
    own.append(request.node.name)


def test_no_check_was_skipped(request: pytest.FixtureRequest) -> None:
    """A skipped check looks like one that passed."""
    items = [item for item in request.session.items if item.name.startswith("test_scikit_learn_is_content")]
    passed = sum(map(len, done.values()))
    assert passed == len(items) - len(ALL) * (len(EXPECTED) + len(SKIPPED))
    assert len(done) == len(ALL) and min(map(len, done.values())) >= LEAST, {name: len(own) for name, own in done.items()}
