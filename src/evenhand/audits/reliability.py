"""Reliability of predicted probabilities, for everyone and for named groups."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from evenhand import calibration
from evenhand._validate import Floats, Mask
from evenhand.audits.group_tests import TestedGroups
from evenhand.audits.outcomes import Events
from evenhand.columns import EVERYONE, Groups

RELIABILITY_COLUMNS = ("group", "bin", "n", "probability", "rate", "low", "high")


def reliability_table(
    events: Events | None, weights: Floats | None, groups: Groups, confidence: float
) -> pd.DataFrame:
    """Return the rate of an event among people with similar predicted probabilities.

    Parameters
    ----------
    events : Events or None
        Events and their probabilities; None for outcomes without events.
    weights : ndarray of shape (n,) or None
        Weights of the rows.
    groups : Groups
        Named groups; those known by probability are left out.
    confidence : float
        Confidence that the intervals of all bins of a group contain its rates.

    Returns
    -------
    DataFrame
        One row per group and bin of probabilities, see `Audit.reliability`.
    """
    tables = [pd.DataFrame(columns=list(RELIABILITY_COLUMNS))]
    if events is not None:
        tables = [
            _of_group(name, mask, events, weights, confidence)
            for name, mask in known_masks(events.happened.size, groups)
        ]
    return pd.concat(tables, ignore_index=True)


def own_reliability(tested: TestedGroups) -> pd.DataFrame:
    """Return the rates of 0/1 outcomes by predicted probability, as the family of the audit has it.

    There are as many bins as groups by the forecast; with few rows everyone is one bin.
    """
    table = tested.groups.iloc[:1] if tested.by_forecast.empty else tested.by_forecast
    columns = {
        "group": EVERYONE,
        "bin": np.arange(len(table)),
        "n": table["n"].to_numpy(),
        "probability": table["predicted"].to_numpy(),
        "rate": table["rate"].to_numpy(),
        "low": rate_ends(table, "low"),
        "high": rate_ends(table, "high"),
    }
    return pd.DataFrame(columns)[list(RELIABILITY_COLUMNS)]


def rate_ends(table: pd.DataFrame, end: str) -> Floats:
    """Return an end of the intervals of the event rates of groups."""
    ends = (table["predicted"] + table[f"bias_{end}"]).to_numpy(dtype=np.float64)
    return np.asarray(np.clip(ends, 0.0, 1.0))


def _of_group(
    name: str, mask: Mask, events: Events, weights: Floats | None, confidence: float
) -> pd.DataFrame:
    some = None if weights is None else weights[mask]
    found = calibration.reliability(
        events.probability[mask], events.happened[mask], some, confidence=confidence
    )
    table: pd.DataFrame = found.table().assign(group=name)
    return table[list(RELIABILITY_COLUMNS)]


def known_masks(n: int, groups: Groups) -> Iterator[tuple[str, Mask]]:
    """Yield everyone and the named groups of known members that have any."""
    yield EVERYONE, np.ones(n, dtype=np.bool_)
    for group, mask in groups.known().pairs():
        if mask.any():
            yield group.name, mask
