"""Result of `randomize`: the chosen model, its certificate, and scores beside other forecasters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from evenhand._format import Summarized, digits_of, one_line
from evenhand._validate import Floats, InputError, Ints
from evenhand.audits import Audit
from evenhand.calibration import Cells, estimated_error
from evenhand.certificates import Certificate, PlainInterval, Promise
from evenhand.distributions import LocationScale, OutcomeKind, Quantiles, Samples, as_hurdle
from evenhand.draws import RandomState, fresh, nodes, sampled_rows
from evenhand.forecast import Forecast
from evenhand.forecasters import RecalibratedRegressor, n_cells
from evenhand.outcomes import Outcomes, Rounding
from evenhand.report import caveat, guarantee, selection_text
from evenhand.scoring import censored_log_score, crps, interval_width, log_score_on
from evenhand.search import FoundGroup, GroupSearch
from evenhand.selection.plans import planned_unions
from evenhand.selection.target import LEAST_ALPHA, LEVEL, Target, mean_width

# --- forecast that ignores every feature

WITHOUT_FEATURES = "without features"
"""Name of the forecast that ignores every feature in `Selection.comparison`."""

FOLDS = 5
"""Folds of the certifying rows, if there are no training outcomes."""

MOST_KERNELS = 2000
"""Most outcomes in the kernel estimate; more are replaced by as many of their quantiles."""


def without_features(
    learned: Floats, held_out: Floats, like: Forecast, random: np.random.Generator
) -> list[tuple[Ints, Forecast]]:
    """Return a forecast of the held-out outcomes that ignores every feature, by parts of rows.

    For continuous outcomes, the distribution is a histogram of equal probabilities with exponential
    tails, `Quantiles`, at the quantiles of a kernel estimate, `Samples`: the quantiles are smoothed
    so that values that occur often have a finite density, and the tails are exponential so that
    outcomes beyond those of training have a finite score. For counts, it is the share of each value
    among the outcomes, with half an occurrence added to each value. For outcomes with an atom at an
    end of their range, the share of the atom and the distribution of the other outcomes.

    Without learned outcomes, those of the other four fifths of the held-out rows take their place,
    in a part for each fold. There are no parts if all or nearly all continuous outcomes are equal,
    which have no density. `like` is a forecast that shows the kind of outcome and the place of an
    atom.
    """
    if learned.size:
        parts = [(np.arange(held_out.size), learned)]
    else:
        folds = random.permutation(held_out.size) % FOLDS
        each = [(np.flatnonzero(folds == k), held_out[folds != k]) for k in range(FOLDS)]
        parts = [(rows, others) for rows, others in each if rows.size]
    values = np.union1d(learned, held_out)
    made = [(rows, _of_kind(like, others, rows.size, values)) for rows, others in parts]
    found = [(rows, forecast) for rows, forecast in made if forecast is not None]
    return found if len(found) == len(made) else []


def _of_kind(like: Forecast, outcomes: Floats, n: int, values: Floats) -> Forecast | None:
    """Return the same distribution for n people, of the kind of a forecast; None without one."""
    match like.outcome_kind:
        case OutcomeKind.COUNT:
            return _shares(values, outcomes, n)
        case OutcomeKind.HURDLE:
            hurdle = as_hurdle(like.distribution)
            is_off = outcomes != hurdle.at
            chance = np.full(n, (np.sum(~is_off) + 0.5) / (outcomes.size + 1))
            part = _smoothed(outcomes[is_off], n)
            if part is None:
                return None
            return Forecast.from_hurdle(chance, part, at=hurdle.at, end=hurdle.end)
        case _:
            return _smoothed(outcomes, n)


def _shares(support: Floats, outcomes: Floats, n: int) -> Forecast:
    """Return the shares of values of a count, for n people."""
    counts = np.bincount(np.searchsorted(support, outcomes), minlength=support.size)
    # half an occurrence for each value: those of the held-out rows have a finite score
    shares = (counts + 0.5) / (outcomes.size + support.size / 2)
    return Forecast.from_pmf(support, np.broadcast_to(shares, (n, support.size)))


def _smoothed(outcomes: Floats, n: int) -> Forecast | None:
    """Return the same continuous distribution for n people; None if outcomes differ too little."""
    kernels = outcomes
    if outcomes.size > MOST_KERNELS:
        kernels = np.quantile(outcomes, nodes(MOST_KERNELS)[0])
    if not kernels.size or kernels.min() == kernels.max() or kernels.std() == 0:
        return None
    levels = nodes(n_cells(outcomes.size))[0]
    smoothed = Quantiles(levels, Samples(kernels).ppf(levels)[None, :])
    # shared by all people: a batch of its own for each would take hundreds of numbers per person
    return Forecast(LocationScale(smoothed, np.zeros(n)))


# --- scores


def log_scores(forecast: Forecast, outcomes: Outcomes, grid: Rounding) -> Floats:
    """Return each person's log score; over cells of a grid, or right-censored for times."""
    if outcomes.are_times:
        return censored_log_score(forecast, outcomes)
    return log_score_on(forecast, outcomes.value, grid)


COMPARED_DRAWS = 2
"""Draws per person in the comparison of CRPS."""

# a randomized forecast of 4,500 people takes 2 to 17 s; the standard error beside it shows the
# noise
COMPARED = 250
"""Most people in the comparison of CRPS, which is slow without a closed form."""


@dataclass(eq=False)
class HeldOutScores:
    """Scores that compare forecasters on the outcomes of the certifying people.

    Parameters
    ----------
    outcomes : Outcomes
        Of times that may be cut off the log score is the right-censored one, and
        a CRPS is not known.
    grid : Rounding
        Grid of all outcomes, which makes the log score a cell log score.
    step : float or None
        Rounding step over whose cells PITs are spread.
    random : Generator
        Source of draws.
    """

    outcomes: Outcomes
    grid: Rounding
    step: float | None
    random: np.random.Generator

    def __post_init__(self) -> None:
        self.y = self.outcomes.value
        # one random sample for all forecasters
        self.compared = sampled_rows(self.y.size, COMPARED, self.random)

    def cells(
        self, forecast: Forecast, rows: Any = slice(None), random: RandomState = None
    ) -> Cells:
        """Return the cells of some outcomes, rounded ones at one position in their cells."""
        outcomes = self.outcomes.take(rows)
        # positions in atoms are averaged over
        needs_ties = self.step is not None or outcomes.are_times
        n = outcomes.n_samples
        cells = forecast.cells(
            outcomes,
            rounding=Rounding(None if forecast.has_atoms else self.step),
            ties=fresh(n, random or self.random) if needs_ties else np.full(n, 0.5),
        )
        return cells if forecast.has_atoms else cells.at_points(~cells.unknown)

    def crps(self, part: Forecast) -> Floats:
        """Return the CRPS of each compared person, averaged over draws; NaN for times."""
        if self.outcomes.are_times:
            return np.full(self.compared.size, np.nan)
        return crps(part, self.y[self.compared])

    def line(
        self, name: str, forecast: Forecast, cells: Cells | None = None, certified: float = np.nan
    ) -> dict[str, Any]:
        """Return the row of a forecaster in `Selection.comparison`."""
        return comparison_line(
            name,
            float(log_scores(forecast, self.outcomes, self.grid).mean()),
            self.crps(forecast[self.compared]),
            mean_width(forecast),
            self.cells(forecast) if cells is None else cells,
            certified,
        )

    def without_features(self, learned: Floats, like: Forecast) -> list[dict[str, Any]]:
        """Return the row of the forecast that ignores every feature, if it has a density.

        `learned` are the training outcomes, of which there may be none; `like` is a forecast of the
        same kind of outcome.
        """
        if self.outcomes.are_times:
            return []
        # draws of its own: those of the other forecasts must not depend on it
        random = self.random.spawn(1)[0]
        parts = without_features(learned, self.y, like, random)
        if not parts:
            return []
        losses, scores, widths = np.empty((3, self.y.size))
        cells = []
        is_compared = np.isin(np.arange(self.y.size), self.compared)
        for rows, forecast in parts:
            y = self.y[rows]
            losses[rows] = log_score_on(forecast, y, self.grid)
            widths[rows] = interval_width(forecast, LEVEL)
            cells.append(self.cells(forecast, rows, random))
            some = np.flatnonzero(is_compared[rows])
            if some.size:
                scores[rows[some]] = crps(forecast[some], y[some])
        log_score, width = float(losses.mean()), float(widths.mean())
        joined, found = Cells.joined(cells), scores[self.compared]
        return [comparison_line(WITHOUT_FEATURES, log_score, found, width, joined)]


def comparison_line(
    name: str, log_score: float, crps: Floats, width: float, cells: Cells, certified: float = np.nan
) -> dict[str, Any]:
    """Return a row of `Selection.comparison`; `crps` is that of each compared person."""
    return {
        "forecaster": name,
        "log_score": log_score,
        "crps": float(crps.mean()),
        "crps_error": float(crps.std(ddof=1) / np.sqrt(crps.size)),
        "width": width,
        "average_error": estimated_error(cells),
        "certified_group_error": certified,
    }


# --- the learned group in which a deterministic model is off the most

SEARCH_FOLDS = 3
"""Folds of a search: the models of the last two are trained, which takes 0.2 s at 1,000 rows."""

SEARCH_ROWS = 10_000
"""Most rows of a search."""


def group_without_draw(pit: Cells, X: Any, target: Target, seed: int) -> FoundGroup | None:
    """Return the learned group with the largest error; None with too few rows or unusable features.

    `pit` are cells of the deterministic model on rows that it has not seen; of outcomes with atoms
    the search averages over their positions.
    """
    try:
        search = GroupSearch(pit, X, n_folds=SEARCH_FOLDS, max_rows=SEARCH_ROWS, random_state=seed)
        return search.find(target.group_mass, confidence=target.confidence)
    except InputError:
        # too few rows, or features that only the model can read
        return None


# --- the result

UNION_CELLS = 20
"""Most cells of named columns, of whose unions a bound without a draw is shown."""


class NotWorthItWarning(UserWarning):
    """The randomized forecast is worse than one that ignores every feature."""


@dataclass(frozen=True, eq=False, repr=False)
class Selection(Summarized):
    """Model with the least certified randomization, its certificate and its price.

    Parameters
    ----------
    model : forecaster
        The fitted model with the chosen randomization.
    certificate : Certificate
        Certificate that accounts for the choice. For links all its bounds are valid. For models
        tested in sequence it has a single bound: the error of every group of `group_mass` is at
        most `goal`. With an `atom` its `event_rate` and `bias` bound errors of the
        probability of the atom.
    target : Target
        The request: the group error to certify or what may be paid, the group size and the
        confidence.
    comparison : DataFrame
        One row per forecaster, from the certifying rows: `forecaster`, `log_score`, `crps` (on at
        most 250 people) with its standard error `crps_error`, `width` (mean width of 80% prediction
        intervals, in units of y),
        `average_error`, `certified_group_error`. The log score is `scoring.cell_log_score` if
        there is a `rounding_step`. The log score of the randomized forecasts is that
        of the model inside the link plus the price, and their width is its width times one plus
        `wider`. "without features" is the smoothed distribution of the training outcomes for
        everybody, a histogram of equal probabilities with exponential tails; for models that were
        not fitted here, of the outcomes of the other four fifths of the rows.
    n_learning : int
        Number of training rows, 0 if the model was not fitted here.
    certifying : ndarray of int, shape (n_certifying,)
        The certifying rows: increasing row numbers in the given `X` and `y`, one row per person.
        The model was not trained on them; `alpha` was chosen on them, which the certificate
        accounts for.
    kind : OutcomeKind
        Kind of outcome that the model predicts. The log score of counts is that of the outcome's
        probability, and `limit` is NaN.
    rounding_step : float or None
        Step of the grid that the outcomes of all rows lie on; None if they look continuous, and for
        forecasts of outcomes with atoms. With a step, log scores, the price and its limit are about
        the rounding cell of each outcome.
    atom : float or None
        Outcome with a positive probability beside the continuous part of the forecasts, which alone
        is randomized; None for other kinds. `group_mass` is then a share of the people whose
        outcome is not the atom, and the certificate is theirs; `price`, `limit` and `wider` are
        means over all people.
    limit : float
        Minimum price, relative to the true distribution, of any forecaster that has the same mean
        pathwise error and is calibrated on average (`price_of_proof`). It is about that mean error,
        not about groups; the price relative to an imperfect model may be smaller.
    price : float
        Mean log score of the randomized forecasts minus that of the model inside the link (with
        `recalibrate`, the recalibrated model), on the certifying rows, in nats; NaN if there is no
        such model.
    wider : float
        Mean width of the randomized 80% prediction intervals divided by that of the model inside
        the link, minus 1, on at most 2,000 of the certifying people; NaN as `price`.
    alternative : RecalibratedRegressor or None
        The model recalibrated without randomness, by group if `by` was given; None for models that
        were not fitted here or are already randomized, and with `alternative=False`.
    plain : PlainInterval or None
        The prediction interval without a draw that covers at least as many outcomes in every group
        as the randomized 80% interval, or the widest if none does. None if intervals have no width,
        or no randomized model was chosen by a link.
    search : callable or None
        Search for the learned group; None for models that were already randomized.
    worthy_error : float or None
        If a link is not worth its price (`is_worth_it`): the smallest group error whose promise
        would be, on these people. It is an estimate, because prices are. None otherwise, and if the
        model is worse without a draw, too.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> from evenhand import randomize
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(600, 2)), rng.normal(size=600)
    >>> chosen = randomize(BayesianRidge(), X, y, goal=0.4, random_state=0)
    >>> chosen.n_learning, chosen.n_certifying, chosen.price > 0
    (420, 180, True)
    >>> held = chosen.certifying  # held-out rows: an audit may use them
    >>> held.shape, chosen.model.forecast(X[held], r=0.5).pit(y[held]).shape
    ((180,), (180,))
    """

    model: Any
    certificate: Certificate
    target: Target
    comparison: pd.DataFrame
    n_learning: int
    certifying: Ints
    kind: OutcomeKind
    rounding_step: float | None
    atom: float | None
    limit: float
    price: float = np.nan
    wider: float = np.nan
    alternative: RecalibratedRegressor | None = None
    plain: PlainInterval | None = None
    search: Callable[[], FoundGroup | None] | None = None
    worthy_error: float | None = None

    @property
    def n_certifying(self) -> int:
        """Number of people on whom the model is certified."""
        return self.certifying.size

    @property
    def goal(self) -> float | None:
        """Requested largest group error; None if a cost was given instead."""
        return self.target.goal

    @property
    def group_mass(self) -> float:
        """Requested smallest group size, as a share of the people."""
        return self.target.group_mass

    @property
    def confidence(self) -> float:
        """Requested confidence level."""
        return self.target.confidence

    @property
    def alpha(self) -> float:
        """Weight of sharpness of the chosen model."""
        return float(self.model.alpha)

    @property
    def group_error(self) -> float:
        """Certified bound on the W1 error of every group of `group_mass`, given the choice."""
        return self.certificate.group_error(self.group_mass)

    def promise(self) -> Promise:
        """Return what is promised for every group of `group_mass`, in the form that a watch tests.

        Raises
        ------
        InputError
            If nothing is promised that served forecasts can show; the message gives the reason.
        """
        return self.certificate.promise(self.group_mass)

    @property
    def n_off_atom(self) -> int | None:
        """Number of certifying people whose outcome is not the atom; None without an atom."""
        return self.certificate.n_positive

    def audited(self, found: Audit) -> Audit:
        """Return an audit of the certifying rows with bounds that account for the choice of alpha.

        Parameters
        ----------
        found : Audit
            Audit of the chosen model on the rows in `certifying`, at the same confidence level.

        Returns
        -------
        Audit
            The audit with its bounds replaced, and a caveat added.
        """
        chosen = caveat(self)
        found = found.with_rows(caveat=f"{found.caveat} {chosen}" if found.caveat else chosen)
        if found.certificate is None:
            return found
        return found.certified_by(found.certificate.accounting_for(self.certificate))

    @cached_property
    def learned_group(self) -> FoundGroup | None:
        """Learned group of `group_mass` with the largest error without a draw.

        That of the model inside the link, learned and evaluated on different certifying rows;
        `error` and its lower bound `low` show from which errors the draw protects at the least. It
        is computed when it is first read, which takes about 0.2 s at 1,000 rows. None with too few
        rows, and for models that were already randomized.
        """
        return None if self.search is None else self.search()

    @property
    def is_worth_it(self) -> bool:
        """Whether the log score is at least that of a forecast that ignores every feature.

        Otherwise the promise costs more than the features are worth: `randomize` warns, and the
        command writes nothing. True if that forecast has no log score, as for times.
        """
        # a NaN compares as False
        return not self.lost_without_features > 0

    @property
    def lost_without_features(self) -> float:
        """Log score minus that of a forecast that ignores every feature, in nats; NaN if none."""
        scores = self.comparison.set_index("forecaster")["log_score"]
        return float(scores["randomized"] - scores.get(WITHOUT_FEATURES, np.nan))

    @property
    def coverage_80(self) -> tuple[float, float]:
        """Certified bounds of the coverage of 80% intervals in every group of `group_mass`."""
        return self.certificate.coverage(LEVEL, self.group_mass)

    @property
    def is_least(self) -> bool:
        """Whether alpha is the smallest that is tried."""
        return self.alpha == LEAST_ALPHA

    def planned_unions(self) -> tuple[int, float]:
        """Return a number of equal cells of named columns, and the error that rows prove there."""
        return planned_unions(self.n_certifying, UNION_CELLS, self.confidence)

    @property
    def statement(self) -> str:
        """Guarantee in one sentence: the bound, the groups and the number of people."""
        return guarantee(self)

    def summary(self) -> str:
        """Return what decides, intervals with and without a draw, and the guarantee as text."""
        return selection_text(self)

    def __repr__(self) -> str:
        return one_line(
            self,
            alpha=self.alpha,
            **{self.target.given: digits_of(self.target.most, 4, "up")},
            group_mass=digits_of(self.group_mass, 4, "up"),
            confidence=digits_of(self.confidence, 4, "down"),
            group_error=digits_of(self.group_error, 4, "up"),
            price=self.price,
            n_certifying=self.n_certifying,
        )
