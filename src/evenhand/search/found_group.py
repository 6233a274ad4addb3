"""Result of a search for a learned group."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand._format import at_least, confidence_in_full, four_digits, number, one_line
from evenhand._validate import Ints
from evenhand.columns import Condition
from evenhand.search.directions import Direction


@dataclass(frozen=True, eq=False, repr=False)
class FoundGroup:
    """Group of rows defined by features, evaluated on rows from which it was not learned.

    Parameters
    ----------
    mass : float
        Requested size of the group as a share of the rows.
    n : int
        Number of rows in the group, over all folds.
    n_judged : int
        Number of rows that were evaluated, from which the group was selected: all but the first
        fold.
    n_rows : int
        Number of rows used in total, at most `max_rows`.
    rows : ndarray of shape (n,)
        Row numbers of the group, increasing.
    error : float
        Estimated calibration error (W1) of the group: an unbiased estimate of a lower bound for
        the error. Not clipped, so it may be slightly negative for calibrated forecasts.
    low : float
        Lower confidence bound for the error, 0 to 1/2, by betting: valid at any number of rows. It
        is also a lower bound for the error of the worst group of this size defined by features.
    confidence : float
        Probability that `low` holds.
    p_value : float
        P-value of the detection test, for the hypothesis that the forecasts are calibrated given
        the features. The test is asymptotic and more powerful than the bound: mostly `low` is 0
        unless the p-value is far below `1 - confidence`, but neither implies the other. Each is
        valid at its own level.
    direction : str
        Direction of the error in most folds: `"outcomes lower than forecast"`, `"outcomes higher
        than forecast"`, `"intervals too narrow"`, `"intervals too wide"` or `"mixed"`.
    bias : float
        Mean residual of the rows, in units of the residuals; NaN if no residuals were given.
    coverage_80 : float
        Share of the group's draws whose central 80% interval covers the outcome.
    conditions : tuple of Condition
        Rule of up to four conditions that defines a group of nearly this mass with at least 0.8 of
        the error on the same rows; empty if there is no such rule, or if the group is not
        significant.
    description_share : float
        Share of the evaluated rows that meet the rule, between 2/3 and 3/2 of the mass; NaN without
        a rule.
    features : tuple of str
        Up to three features with the largest effect on the score of rows, largest first.
    """

    mass: float
    n: int
    n_judged: int
    n_rows: int
    rows: Ints
    error: float
    low: float
    confidence: float
    p_value: float
    direction: Direction
    bias: float
    coverage_80: float
    conditions: tuple[Condition, ...]
    description_share: float
    features: tuple[str, ...]

    @property
    def description(self) -> str | None:
        """The conditions as text, such as `"bmi > 0.03 and age <= 50"`; None without a rule."""
        return " and ".join(map(str, self.conditions)) if self.conditions else None

    @property
    def is_significant(self) -> bool:
        """Whether the detection test rejects at the level `1 - confidence`."""
        # as a difference, 1 - 0.95 is above 0.05
        return self.p_value + self.confidence < 1

    def __repr__(self) -> str:
        return one_line(
            self,
            mass=self.mass,
            n=self.n,
            n_judged=self.n_judged,
            error=self.error,
            low=four_digits(self.low, "down"),
            p_value=four_digits(self.p_value, "up"),
            direction=self.direction,
            description=self.description,
        )

    def __str__(self) -> str:
        """Return the result as a sentence."""
        is_off = self.is_significant
        result = f"{self.direction}: " if is_off else "no significantly miscalibrated group: "
        where = f" (approximately: {self.description})" if self.description else ""
        return (
            f"{result}calibration error {number(self.error)}, at least {at_least(self.low, number)}"
            f" with {confidence_in_full(self.confidence)} confidence, in {self.n} of"
            f" {self.n_judged} rows{where}"
        )
