"""Result of `randomize`: the model chosen, its certificate and its price."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand._format import (
    Summarized,
    at_most,
    bound,
    confidence_in_full,
    in_full,
    one_line,
    points,
    whole_percent,
)
from evenhand._validate import Ints
from evenhand.certificates import ONE_ROW_EACH, Certificate, LinkCertificate, PITCertificate
from evenhand.forecasters import RecalibratedRegressor

if TYPE_CHECKING:
    from evenhand.audits import Audit


@dataclass(frozen=True, eq=False, repr=False)
class Selection(Summarized):
    """A model with the least randomization that is certified, what proves it and what it costs.

    Parameters
    ----------
    model : forecaster
        Fitted, with the randomization that was chosen.
    certificate : LinkCertificate or PITCertificate
        What is proven, with the choice accounted for. Of links all bounds hold; of models tested
        one after the other only that the error of every group of `group_mass` is at most
        `max_group_error`, which is what it then gives.
    max_group_error, group_mass, confidence : float
        What was asked.
    price : float
        Mean log score of the randomized forecasts less that of what the link goes around (the model
        as it is; with `recalibrate`, the recalibrated one), on the certifying rows, in nats; NaN
        where there is no such model.
    limit : float
        The least price, over the truth, of any forecaster with the same mean error and calibrated
        on average (`price_of_proof`). The price over an imperfect model may lie below.
    wider : float
        Mean width of the randomized 80% intervals over that of what the link goes around, less 1;
        NaN as `price`.
    alternative : RecalibratedRegressor or None
        The model recalibrated without randomness, by group if `by` was given; None where nothing
        was learned, for models that are randomized already, and with `alternative=False`.
    comparison : DataFrame
        One row per forecaster, from the certifying rows: `forecaster`, `log_score`, `crps` (of 250
        people at most), `average_error`, `certified_group_error`. The log score of the randomized
        forecasts is that of what the link goes around, and the price.
    n_learning, n_certifying : int
        Rows that the model learned from, 0 if it was not fitted here, and people that it is
        certified on.
    certifying : ndarray of int, shape (n_certifying,)
        The rows that it is certified on: row numbers in the `X` and `y` that were given, rising,
        one row per person. The model has not learned from them; `alpha` was chosen on them, which
        the certificate allows for.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> from evenhand import randomize
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(600, 2)), rng.normal(size=600)
    >>> chosen = randomize(BayesianRidge(), X, y, max_group_error=0.4, random_state=0)
    >>> chosen.n_learning, chosen.n_certifying, chosen.price > 0
    (420, 180, True)
    >>> held = chosen.certifying  # an audit of these rows is an audit of rows not learned from
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
        """Weight of sharpness of the model that was chosen."""
        return float(self.model.alpha)

    @property
    def group_error(self) -> float:
        """Certified W1 error of every group of `group_mass`, with the choice accounted for."""
        return self.certificate.group_error(self.group_mass)

    @property
    def caveat(self) -> str:
        """Statement for an audit of the certifying rows, on which the randomization was chosen."""
        return (
            "Alpha was chosen on these same people. Accounting for that: at most"
            f" {at_most(self.group_error)} points in every group of at least"
            f" {in_full(self.group_mass)} of people, with {confidence_in_full(self.confidence)}"
            " confidence. Bounds for named groups, 95% bands and p-values do not account for it."
        )

    def audited(self, found: Audit) -> Audit:
        """Replace the bounds in an audit of the certifying rows by those that allow for the choice.

        Parameters
        ----------
        found : Audit
            Of the model that was chosen, on the rows in `certifying`, at the same confidence.

        Returns
        -------
        Audit
            With one bound for each statement: the one that accounts for the choice.
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
        if isinstance(self.certificate, PITCertificate) and self.certificate.choice is not None:
            return self.certificate.choice
        return self.certificate

    @property
    def statement(self) -> str:
        """What is proven, for whom and from how many people, in one sentence."""
        learned = f", learned on {self.n_learning:,} rows"
        if self.n_learning == 0:
            learned = "; the model was not fitted here: it must not have seen these rows"
        return (
            f"With {confidence_in_full(self.confidence)} confidence, stated chances are off by at"
            f" most {at_most(self.group_error)} points in every group of at least"
            f" {in_full(self.group_mass)} of people (certified on {self.n_certifying:,}"
            f" people{learned})."
        )

    @property
    def sentences(self) -> list[str]:
        """What was chosen, what is proven and what it costs, sentence by sentence."""
        lines = [
            self.statement,
            *([ONE_ROW_EACH] if self.certificate.one_row_each else []),
            *(self._without_randomization() if self.alpha == 1 else self._with_randomization()),
        ]
        # a recalibrated base, and models that are randomized already, have nothing to try
        is_recalibrated = getattr(self.model, "recalibrate", True)
        is_far_off = self._average_error(0) > 0.05
        if np.isfinite(self.price) and not is_recalibrated and is_far_off:
            lines.append(
                f"The model itself is off by {points(self._average_error(0))} points on average:"
                " try recalibrate=True."
            )
        return lines

    def summary(self) -> str:
        """Return `sentences` and the comparison of forecasters as text."""

        def rounded_up(share: float) -> str:
            return at_most(share, 3, unit=1)

        shown = self.comparison.to_string(
            index=False,
            float_format=lambda value: f"{value:.3f}",
            formatters={"certified_group_error": lambda value: bound(rounded_up, value)},
            na_rep="-",
        )
        return "\n".join([*self.sentences, "", shown])

    def _average_error(self, row: int) -> float:
        return float(self.comparison["average_error"].iloc[row])

    def _without_randomization(self) -> list[str]:
        return [
            "No randomization was needed: alpha = 1. On average over these people, stated chances"
            f" are off by {points(self._average_error(-1))} points."
        ]

    def _with_randomization(self) -> list[str]:
        lines = [f"The least randomization that shows it: alpha = {self.alpha:.3g}."]
        if not np.isfinite(self.price):
            return lines
        # around a model with too wide intervals a link can narrow them
        compared = "wider" if self.wider >= 0 else "narrower"
        paid = f"Price: {self.price:.2f} nats of log score on these people"
        lines.append(
            f"{paid}; a person's 80% interval is on average {whole_percent(abs(self.wider))}"
            f" {compared}."
        )
        # as printed: a difference in the third decimal is noise
        if round(self.price, 2) >= round(self.limit, 2):
            lines.append(
                "Over the true distribution no forecaster of the same mean error that is"
                f" calibrated on average pays less than {self.limit:.2f}."
            )
        else:
            # what the link goes around stands just before the randomized forecasts, or first where
            # nothing recalibrates it
            start = 1 if getattr(self.model, "recalibrate", False) else 0
            lines.append(
                f"Over the true distribution it would be at least {self.limit:.2f}: the model"
                f" itself is off by {points(self._average_error(start))} points on average, so the"
                " price is measured from a bad start."
            )
        return lines

    def __repr__(self) -> str:
        return one_line(
            self,
            alpha=self.alpha,
            max_group_error=self.max_group_error,
            group_mass=self.group_mass,
            confidence=self.confidence,
            group_error=self.group_error,
            price=self.price,
            n_certifying=self.n_certifying,
        )
