"""Repeats of statistical tests: one in 24 of them in every run, all of them on demand.

A test that simulates data sets and counts failures is marked `statistics` and takes its number of
data sets from `repeats`. `make test` runs it with one in 24, `make test-statistics` with all. Its
limit is the exact binomial quantile of `most_failures` for the number that was run, so its
false-alarm rate with a fresh seed is `FALSE_ALARM` at both sizes; a short run detects gross faults.
"""

import os

import pytest
from scipy import stats

WHOLE = bool(os.environ.get("EVENHAND_STATISTICS"))
SHORTER = 24
FALSE_ALARM = 1e-6

statistical = pytest.mark.statistics


def repeats(whole, least=1, shorter=SHORTER):
    """Return `whole`, or in a short run `1 / shorter` of it, rounded up (`least` at least)."""
    return whole if WHOLE else max(-(-whole // shorter), min(least, whole))


def most_failures(n_sets, risk=0.05, false_alarm=FALSE_ALARM):
    """Return the failures, each of probability `risk`, that more than `false_alarm` exceed."""
    return int(stats.binom.isf(false_alarm, n_sets, risk))
