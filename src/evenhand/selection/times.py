"""Links around forecasts of times that may be cut off, with a horizon (outcomes: 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand._format import count, number_in_full
from evenhand._validate import Floats, InputError, about
from evenhand.audits import censored_log_score, spread_step
from evenhand.calibration import Cells, CensoredTimes, KaplanMeier, Reading, given_times
from evenhand.certificates import certify_hurdle_times
from evenhand.distributions import OutcomeKind, as_hurdle
from evenhand.draws import fresh
from evenhand.forecast import Forecast, check_forecast_of_times
from evenhand.forecasters import SurvivalModel, thawed
from evenhand.links import Link
from evenhand.selection.chosen_link import ChosenLink, Costs, Widths, certified
from evenhand.selection.comparison import Ends, HeldOutScores
from evenhand.selection.estimators import is_model_sequence, is_prefit
from evenhand.selection.hurdles import LEAST_ROWS, served_pits
from evenhand.selection.rows import SplitRows, least_price
from evenhand.selection.target import Target

NO_HORIZON = (
    "horizon is missing: without a time up to which people are followed, a time that is cut off may"
    " have any error up to the largest, and no randomization can be certified; pass horizon="
)


def check_times(
    estimator: Any,
    y: ArrayLike,
    event: ArrayLike | None,
    horizon: float | None,
    entered: Any,
    sample_weight: ArrayLike | None,
) -> CensoredTimes | None:
    """Return times that may be cut off, or None if there is no `event`.

    Raises
    ------
    InputError
        If an input is invalid, there is no horizon, or the model would be fitted to the times.
    """
    times = given_times(y, event, horizon, entered)
    if times is None:
        return None
    if horizon is None:
        raise InputError(NO_HORIZON)
    if is_model_sequence(estimator) or not is_prefit(estimator):
        name = "a list of randomized models" if isinstance(estimator, list) else repr(estimator)
        raise InputError(
            "event is given, and models of times that may be cut off are fitted beforehand, on"
            f" other rows, and without a draw, got {name[:80]}; pass"
            " evenhand.forecasters.SurvivalModel(fitted model, horizon=...), or a function from X"
            " to Forecast.from_survival(times, survival, horizon)"
        )
    if sample_weight is not None:
        raise InputError(
            "sample_weight is not used for times that may be cut off, whose model is not fitted"
            " here; leave it out"
        )
    return times


def with_horizon(estimator: Any, times: CensoredTimes | None) -> Any:
    """Return a survival model of another library with its horizon; other models as they are."""
    model = thawed(estimator)
    is_given = isinstance(model, SurvivalModel) or not hasattr(model, "predict_survival_function")
    return estimator if times is None or is_given else SurvivalModel(model, times.horizon)


def check_forecasts(base: Forecast, times: CensoredTimes | None) -> None:
    """Refuse forecasts of times without `event`, and those whose atom is not the horizon."""
    if times is None:
        check_forecast_of_times(base, times)
        return
    # the remedy is Python
    tau = f"{times.horizon:.15g}"
    got = f"are of the kind {base.outcome_kind}"
    if base.outcome_kind is OutcomeKind.HURDLE:
        hurdle = as_hurdle(base.distribution)
        if hurdle.end == "high" and hurdle.at == times.horizon:
            return
        got = f"have their atom at {number_in_full(hurdle.at)}"
    raise InputError(
        f"horizon is {tau}, and forecasts must have an atom at it, whose probability is not"
        f" randomized, but these {got}; make them with Forecast.from_survival(times, survival,"
        f" horizon={tau}) or SurvivalModel(model, horizon={tau})"
    )


class TimesScores(HeldOutScores):
    """Scores that compare forecasters on times of which some are cut off.

    The log score is the right-censored one; a CRPS is not known.

    Parameters
    ----------
    times : CensoredTimes of n people
        Times with a horizon.
    random : Generator
        Source of draws.
    """

    def __init__(self, times: CensoredTimes, random: np.random.Generator) -> None:
        super().__init__(times.time, None, None, random)
        self.times = times

    def pit(self, forecast: Forecast) -> Floats | Ends:
        return _cells(forecast, self.times)

    def crps(self, part: Forecast) -> Floats:
        return np.full(self.compared.size, np.nan)

    def losses(self, forecast: Forecast) -> Floats:
        return censored_log_score(forecast, self.y, self.times)

    def average_error(self, pit: Floats | Ends) -> float:
        low, high = pit
        lost = self.times.is_lost
        # people whose outcome is known at random positions in its cell
        ties = self.random.random(lost.size)
        at = ties if np.ndim(low) == 1 else ties[:, None]
        known = low + at * (high - low)
        value = np.where(lost if np.ndim(low) == 1 else lost[:, None], low, known)
        seen = np.repeat(~lost, value.size // lost.size)
        return min(KaplanMeier.of(value.ravel(), seen).error(), 0.5)

    def without_features(self, learned: Floats, like: Forecast) -> list[dict[str, Any]]:
        return []


@dataclass(frozen=True, eq=False)
class TimesCosts:
    """Costs of links around the time of an event before the horizon, as means over all people.

    Parameters
    ----------
    inside : Costs
        Costs for the people with the event by the horizon.
    widths : Widths
        Widths of the intervals of the whole forecasts.
    n_people : int
        Number of people.
    lost : ndarray of shape (k,)
        CDF at their last time, given the event by the horizon, of people who were lost.
    chance : ndarray of shape (k,)
        Their probability of the event by the horizon.
    draws : ndarray of shape (k, m)
        Their draws.
    """

    inside: Costs
    widths: Widths
    n_people: int
    lost: Floats
    chance: Floats
    draws: Floats

    def price(self, link: Link) -> float:
        """Return the mean loss of the right-censored log score through a link, in nats."""
        # the probability of later times changes for who was lost; that of the horizon does not
        served = link.ppf(self.lost[:, None], self.draws)
        with np.errstate(divide="ignore"):
            after = np.log1p(-self.chance * self.lost)
            through = np.log1p(-self.chance[:, None] * served).mean(axis=-1)
        events = self.inside.pit.size * self.inside.price(link)
        return float(events + (after - through).sum()) / self.n_people

    def wider(self, link: Link) -> float:
        """Return the relative increase of the mean width of 80% intervals through a link."""
        return self.widths.wider(link)


def times_choice(
    base: Forecast,
    times: CensoredTimes,
    family: Link,
    target: Target,
    rows: SplitRows,
    random: np.random.Generator,
) -> ChosenLink:
    """Choose a link around the time of an event, given that it happens by the horizon.

    People who were lost before the horizon may belong to those with the event, at any PIT: they
    count with the largest error in all bounds.
    """
    belongs = times.happened | times.is_lost
    lost = times.is_lost[belongs]
    n = int(times.happened.sum())
    tau = number_in_full(times.horizon)
    if n < LEAST_ROWS:
        raise InputError(
            f"{count(n, 'certifying row has', 'certifying rows have')} the event by {tau}, and at"
            f" least {LEAST_ROWS} are needed; use more rows or a later horizon"
        )
    part = base[belongs].positive_part()
    at = times.time[belongs]
    known = part[~lost].pit(at[~lost], step=spread_step(at[~lost]), random_state=random)
    pit = part.cdf(at)
    pit[~lost] = known
    inside = Costs(part[~lost], known, at[~lost], None, random)
    draws = inside.draws.shape[1]
    costs = TimesCosts(
        inside,
        Widths(base, random),
        times.n_samples,
        pit[lost],
        base.event_probability()[times.is_lost],
        fresh((int(lost.sum()), draws), random),
    )
    with about(f"people with the event by {tau}"):
        proof = certified(pit, costs, family, target, replace(rows, share=None), lost=lost)
    pits, served = served_pits(base, times.time, pit, proof.link, random, times)
    certificate = certify_hurdle_times(
        pits,
        served,
        base.event_probability(),
        times,
        confidence=target.confidence,
        random_state=random,
    )
    ties = fresh(times.n_samples, random)
    reading = times.is_lost * Reading.UNKNOWN
    searched = Cells.between(*_cells(base, times), ties, reading=reading)
    return ChosenLink(
        proof.link,
        certificate.accounting_for(proof),
        costs.price(proof.link),
        (n / times.n_samples) * least_price(proof.mean_error()),
        costs.wider(proof.link) if costs.widths.is_positive else np.nan,
        (pits.low, pits.high),
        searched,
        costs,
        lambda link: proof.with_link(link).group_error(target.group_mass),
    )


def _cells(forecast: Forecast, times: CensoredTimes) -> Ends:
    """Return the ends of what is known of PITs."""
    low, high = forecast.pit_interval(times.time)
    lost = times.is_lost if low.ndim == 1 else times.is_lost[:, None]
    return low, np.where(lost, 1.0, high)
