"""Intervals of a deterministic forecaster: certified floors without a draw, and widths."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from evenhand._validate import Floats
from evenhand.certificates import MASSES, WIDER_LEVELS, PITCertificate
from evenhand.distributions import Distribution

PLAIN_COLUMNS = ("level", "mass", "floor", "covered", "width")


def plain_widths(base: Distribution | None, n: int) -> Floats:
    """Return the widths of the intervals without a draw of `n` people at each level, shape (n, 4).

    `base` holds one distribution per person, shape (n,) or (n, 1), or one for everybody; without
    one the widths are NaN.
    """
    if base is None:
        return np.full((n, len(WIDER_LEVELS)), np.nan)
    tails = (1 - np.array(WIDER_LEVELS)) / 2
    ends = base.expand().ppf(np.concatenate((tails, 1 - tails)))
    low, high = np.split(ends.reshape(-1, 2 * tails.size), 2, axis=-1)
    return np.broadcast_to(high - low, (n, tails.size))


def relative_widths(plain: Floats, served_80: Floats | None) -> dict[float, float]:
    """Return mean widths without a draw by level, divided by that of the served 80% intervals.

    The widths have shapes (n, 4) and (n,). Empty if the served intervals have no width, or if
    widths are not scored.
    """
    if served_80 is None:
        return {}
    served = float(served_80.mean())
    if not 0 < served < np.inf:
        return {}
    return dict(zip(WIDER_LEVELS, (plain.mean(axis=0) / served).tolist(), strict=True))


def plain_table(
    proof: PITCertificate | None, widths: Mapping[float, float] | None = None
) -> pd.DataFrame:
    """Return the floors of intervals without a draw, by level and group size.

    Parameters
    ----------
    proof : PITCertificate or None
        Certificate of a deterministic forecaster or of a link around one.
    widths : mapping of float to float, optional
        Relative width by level, from `relative_widths`.

    Returns
    -------
    DataFrame
        Columns: `level`, `mass`, `floor` (lower bound for the coverage in every group), `covered`
        (estimated coverage of all people) and `width` (NaN if unknown). Empty without a certificate
        and for other forecasters.
    """
    ratios = widths or {}
    rows = [
        (one.level, one.mass, one.floor, one.covered, ratios.get(one.level, np.nan))
        for mass in MASSES
        for one in ([] if proof is None else proof.plain_intervals(mass))
    ]
    return pd.DataFrame(rows, columns=list(PLAIN_COLUMNS))
