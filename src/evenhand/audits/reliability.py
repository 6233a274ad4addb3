"""Reliability of announced probabilities, for everyone and for named groups."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from evenhand._validate import Floats, Mask
from evenhand.audits.outcomes import Events
from evenhand.calibration import reliability
from evenhand.columns import EVERYONE, Groups

RELIABILITY_COLUMNS = ("group", "bin", "n", "probability", "rate", "low", "high")


def reliability_table(events: Events | None, weights: Floats | None, groups: Groups) -> pd.DataFrame:
    """Return the rate of an event among people with similar announced probabilities.

    Parameters
    ----------
    events : Events or None
        Events and their probabilities; None for outcomes without events.
    weights : ndarray of shape (n,) or None
        Weights of the rows.
    groups : Groups
        Named groups; those known by probability are left out.

    Returns
    -------
    DataFrame
        One row per group and bin of probabilities, see `Audit.reliability`.
    """
    if events is None:
        return pd.DataFrame(columns=list(RELIABILITY_COLUMNS))
    rows = []
    for name, mask in _masks(events.happened.size, groups):
        weight = None if weights is None else weights[mask]
        bins = reliability(events.probability[mask], events.happened[mask], weight)
        rows += [(name, i, *bin_) for i, bin_ in enumerate(bins)]
    return pd.DataFrame(rows, columns=list(RELIABILITY_COLUMNS))


def _masks(n: int, groups: Groups) -> Iterator[tuple[str, Mask]]:
    yield EVERYONE, np.ones(n, dtype=np.bool_)
    for group, mask in groups.known().pairs():
        if mask.any():
            yield group.name, mask
