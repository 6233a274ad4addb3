"""True coverage of intervals, which only a generated table has."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from evenhand._validate import Floats
from evenhand.demo.models import Part
from evenhand.draws import nodes

N_DRAWS = 64
"""Draws per patient in the expectation over draws."""


def true_coverage(model: Any, patients: Part, level: float) -> Floats:
    """Return the probability with which each patient's interval covers the dose.

    Parameters
    ----------
    model : forecaster
        A fitted model, deterministic or randomized.
    patients : Part of n rows
        Patients with the truth about them.
    level : float
        Level of the intervals.

    Returns
    -------
    ndarray of shape (n,)
        In expectation over draws. Doses are rounded to 0.1 mg, which is neglected.
    """
    forecast = model.forecast(patients.X, nodes(N_DRAWS))
    mean, std = (patients.truth[[name]].to_numpy() for name in ("mean", "std"))
    # one column per draw; a deterministic forecast has one
    ends = (forecast.ppf(at).reshape(len(mean), -1) for at in ((1 - level) / 2, (1 + level) / 2))
    low, high = (stats.norm.cdf((end - mean) / std) for end in ends)
    covered: Floats = np.mean(high - low, axis=-1)
    return covered


def variant_coverage(model: Any, patients: Part, level: float) -> float:
    """Return the true coverage for the patients with the variant that no column records."""
    covered = true_coverage(model, patients, level)
    return float(covered[patients.truth["variant"].to_numpy()].mean())
