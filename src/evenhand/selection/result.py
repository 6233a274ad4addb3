"""Result of `randomize`: the chosen model, its certificate and its price."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand._format import (
    Summarized,
    at_least,
    at_most,
    confidence_in_full,
    count,
    four_digits,
    in_full,
    nats,
    number,
    one_line,
    percent,
    points,
)
from evenhand._table import Column, Table, numeric
from evenhand._validate import Ints
from evenhand.certificates import ONE_ROW_EACH, Certificate, LinkCertificate, PITCertificate
from evenhand.forecasters import RecalibratedRegressor

if TYPE_CHECKING:
    from evenhand.audits import Audit


@dataclass(frozen=True, eq=False, repr=False)
class Selection(Summarized):
    """Model with the least certified randomization, its certificate and its price.

    Parameters
    ----------
    model : forecaster
        The fitted model with the chosen randomization.
    certificate : LinkCertificate or PITCertificate
        Certificate that accounts for the choice. For links all its bounds are valid. For models
        tested in sequence it has a single bound: the error of every group of `group_mass` is at
        most `max_group_error`.
    max_group_error, group_mass, confidence : float
        The requested target.
    price : float
        Mean log score of the randomized forecasts minus that of the model inside the link (with
        `recalibrate`, the recalibrated model), on the certifying rows, in nats; NaN if there is no
        such model.
    limit : float
        Minimum price, relative to the true distribution, of any forecaster that has the same mean
        error and is calibrated on average (`price_of_proof`). The price relative to an imperfect
        model may be smaller.
    wider : float
        Mean width of the randomized 80% prediction intervals divided by that of the model inside
        the link, minus 1; NaN as `price`.
    alternative : RecalibratedRegressor or None
        The model recalibrated without randomness, by group if `by` was given; None for models that
        were not fitted here or are already randomized, and with `alternative=False`.
    comparison : DataFrame
        One row per forecaster, from the certifying rows: `forecaster`, `log_score`, `crps` (on at
        most 250 people), `average_error`, `certified_group_error`. The log score of the randomized
        forecasts is that of the model inside the link plus the price.
    n_learning, n_certifying : int
        Number of training rows, 0 if the model was not fitted here, and number of people that it is
        certified on.
    certifying : ndarray of int, shape (n_certifying,)
        The certifying rows: increasing row numbers in the given `X` and `y`, one row per person.
        The model was not trained on them; `alpha` was chosen on them, which the certificate
        accounts for.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> from evenhand import randomize
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(600, 2)), rng.normal(size=600)
    >>> chosen = randomize(BayesianRidge(), X, y, max_group_error=0.4, random_state=0)
    >>> chosen.n_learning, chosen.n_certifying, chosen.price > 0
    (420, 180, True)
    >>> held = chosen.certifying  # held-out rows: an audit may use them
    >>> held.shape, chosen.model.forecast(X[held], r=0.5).pit(y[held]).shape
    ((180,), (180,))
    """

    model: Any
    certificate: LinkCertificate | PITCertificate
    max_group_error: float
    group_mass: float
    confidence: float
    price: float
    limit: float
    wider: float
    alternative: RecalibratedRegressor | None
    comparison: pd.DataFrame
    n_learning: int
    n_certifying: int
    certifying: Ints

    @property
    def alpha(self) -> float:
        """Weight of sharpness of the chosen model."""
        return float(self.model.alpha)

    @property
    def group_error(self) -> float:
        """Certified bound on the W1 error of every group of `group_mass`, given the choice."""
        return self.certificate.group_error(self.group_mass)

    @property
    def caveat(self) -> str:
        """Caveat for an audit of the certifying rows, on which the randomization was chosen."""
        return (
            "Alpha was chosen on these same people. Accounting for that: at most"
            f" {at_most(self.group_error)} points in every group of at least"
            f" {in_full(self.group_mass)} of people, with {confidence_in_full(self.confidence)}"
            " confidence. Bounds for named groups, 95% intervals and p-values do not account for"
            " it."
        )

    def audited(self, found: Audit) -> Audit:
        """Return an audit of the certifying rows with bounds that account for the choice of alpha.

        Parameters
        ----------
        found : Audit
            Audit of the chosen model on the rows in `certifying`, at the same confidence level.

        Returns
        -------
        Audit
            The audit with its bounds replaced and `caveat` added.
        """
        if found.certificate is None:
            return replace(found, caveat=self.caveat)
        proof = found.certificate.accounting_for(self._bounds)
        certified = [proof.group_error(mass) for mass in found.worst_groups["mass"]]
        worst = found.worst_groups.assign(certified=certified)
        return replace(found, certificate=proof, worst_groups=worst, caveat=self.caveat)

    @property
    def _bounds(self) -> Certificate:
        """Bounds that account for the choice."""
        if isinstance(self.certificate, PITCertificate) and self.certificate.bounds is not None:
            return self.certificate.bounds
        return self.certificate

    @property
    def statement(self) -> str:
        """Guarantee in one sentence: the bound, the groups and the number of people."""
        learned = f", trained on {count(self.n_learning, 'row')}"
        if self.n_learning == 0:
            learned = "; the model was fitted elsewhere and must not have seen these rows"
        return (
            f"With {confidence_in_full(self.confidence)} confidence, predicted probabilities are"
            f" off by at most {at_most(self.group_error)} points in every group of at least"
            f" {in_full(self.group_mass)} of people (certified on"
            f" {count(self.n_certifying, 'person', 'people')}{learned})."
        )

    @property
    def sentences(self) -> list[str]:
        """Guarantee, choice of the randomization and price, one sentence each."""
        lines = [
            self.statement,
            *([ONE_ROW_EACH] if self.certificate.one_row_each else []),
            *(self._without_randomization() if self.alpha == 1 else self._with_randomization()),
        ]
        # recalibration is no advice for a recalibrated base or a model that is randomized already
        is_recalibrated = getattr(self.model, "recalibrate", True)
        is_far_off = self._average_error(0) > 0.05
        if np.isfinite(self.price) and not is_recalibrated and is_far_off:
            lines.append(
                f"Overall, the model itself is off by an estimated {points(self._average_error(0))}"
                " points; try recalibrate=True."
            )
        return lines

    def summary(self) -> str:
        """Return `sentences` and the comparison of forecasters as text."""
        titles = ("log score", "CRPS", "average error (points)", "certified group error (points)")
        columns = [Column("forecaster"), *map(numeric, titles)]
        rows = [
            [
                row["forecaster"],
                number(row["log_score"]),
                number(row["crps"]),
                points(row["average_error"]),
                at_most(row["certified_group_error"]),
            ]
            for row in self.comparison.to_dict("records")
        ]
        shown = Table("Forecasters on the certifying rows", columns, rows)
        return "\n".join([*self.sentences, "", shown.text()])

    def _average_error(self, row: int) -> float:
        return float(self.comparison["average_error"].iloc[row])

    def _without_randomization(self) -> list[str]:
        return [
            "No randomization was needed: alpha = 1. Overall, predicted probabilities are off by an"
            f" estimated {points(self._average_error(-1))} points."
        ]

    def _with_randomization(self) -> list[str]:
        lines = [f"This is the least randomization with this guarantee: alpha = {self.alpha:.3g}."]
        if not np.isfinite(self.price):
            return lines
        # a link around a model whose intervals are too wide can narrow them
        compared = "wider" if self.wider >= 0 else "narrower"
        lines.append(
            f"Price: {nats(self.price)} of log score on these people; 80% prediction intervals"
            f" are {percent(abs(self.wider), decimals=0)} {compared} on average."
        )
        limit = at_least(self.limit, nats)
        # both as printed, the limit rounded down: a difference in the third decimal is noise
        if round(self.price, 2) >= math.floor(100 * self.limit) / 100:
            lines.append(
                "Around the true distribution, no forecaster that has the same mean error and is"
                f" calibrated on average pays less than {limit}."
            )
        else:
            # the base of the link is the second row if it was recalibrated, else the first
            start = 1 if getattr(self.model, "recalibrate", False) else 0
            off_by = f"off by an estimated {points(self._average_error(start))} points overall"
            lines.append(
                f"Around the true distribution the price would be at least {limit}; it is"
                f" lower here because the model itself is {off_by}."
            )
        return lines

    def __repr__(self) -> str:
        return one_line(
            self,
            alpha=self.alpha,
            max_group_error=four_digits(self.max_group_error, "up"),
            group_mass=four_digits(self.group_mass, "up"),
            confidence=four_digits(self.confidence, "down"),
            group_error=four_digits(self.group_error, "up"),
            price=self.price,
            n_certifying=self.n_certifying,
        )
