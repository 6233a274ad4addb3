"""Questions that held-out rows can and cannot answer about a forecaster (method: proof)."""

from __future__ import annotations

import pandas as pd

__all__ = ["questions"]


def questions(n_draws: int, is_randomized: bool) -> pd.DataFrame:
    """Return what rows can answer about this kind of forecaster: `question`, `answered`, `why`."""
    single = n_draws == 1
    proof = "with several draws per person the error of each person's own forecasts is seen"
    if not is_randomized:
        proof = (
            "one forecast per person: even the true distribution has pathwise error 1/4 or more,"
            " and whatever is calibrated for one population is off by as much for another with the"
            " same rows (1/8 in the paper)"
        )
    elif single:
        proof = (
            "only one draw per person is known: give PITs over several draws of the same forecaster"
        )
    rows = [
        ("is it calibrated on average", True, "one PIT per person suffices, for any forecaster"),
        ("is it calibrated for groups named beforehand", True, "the same, group by group"),
        ("is it calibrated for every group of a given size", not single, proof),
        ("do intervals hold as often as stated in every group of a given size", not single, proof),
        (
            "is it calibrated for groups formed after the draws",
            False,
            "such groups can single out lucky draws",
        ),
    ]
    return pd.DataFrame(rows, columns=["question", "answered", "why"])
