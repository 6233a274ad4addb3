"""Selection of the least certified randomization (method: proof, choosing a link)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from evenhand._format import count, in_full, number_in_full
from evenhand._validate import (
    MIN_DISTINCT,
    Floats,
    InputError,
    Ints,
    bad_input,
    check_choice,
    check_fraction,
    check_outcomes,
    named,
    outcomes_checked,
)
from evenhand.audits import BLOCK_ROWS, PIT_DRAWS
from evenhand.calibration import Cells, over_draws, pathwise_errors
from evenhand.certificates import Certificate, Choice, EventPart, OffAtom, Thinned, certify_rows
from evenhand.distributions import NO_BINARY_RANDOMIZATION, OutcomeKind
from evenhand.draws import RandomState, fresh, generator, jittered, one_row_each
from evenhand.forecast import Forecast, check_forecast_of_times
from evenhand.forecasters import (
    SPREADS,
    Bounds,
    By,
    MixtureMLPRegressor,
    PAICRegressor,
    RandomizedRegressor,
    RecalibratedRegressor,
    SpreadKind,
    SurvivalModel,
    adapter_of,
    check_support,
    is_held_out,
    thawed,
)
from evenhand.links import Link, make_link
from evenhand.outcomes import Outcomes, Rounding, as_outcomes
from evenhand.report import worth_sentence
from evenhand.selection.chosen_link import Wrapped, affordable, choose_link, least_price
from evenhand.selection.result import (
    COMPARED_DRAWS,
    HeldOutScores,
    NotWorthItWarning,
    Selection,
    comparison_line,
    group_without_draw,
)
from evenhand.selection.target import Target
from evenhand.tables import as_table, copies_in_words, row_blocks, take_rows, unreported

# --- checks before fitting

DEFAULT_LINK = "entropic"


def check_estimator(estimator: Any) -> None:
    """Refuse models that can neither be randomized nor tested as randomized forecasters."""
    is_list = isinstance(estimator, list | tuple)
    members = list(estimator) if is_list else [estimator]
    if not members:
        raise InputError("estimator is an empty list; pass at least one fitted forecaster")
    for member in members:
        if isinstance(thawed(member), type):
            name = thawed(member).__name__
            raise InputError(f"estimator is the class {name}, not a model; pass {name}()")
    randomized = [member for member in members if _is_randomized(member)]
    # deterministic models in a list form an ensemble, randomized models a sequence of tests
    if randomized and len(randomized) < len(members):
        raise InputError(
            "estimator mixes randomized forecasters and deterministic models; pass a list of one"
            " kind"
        )
    unfitted = [type(thawed(one)).__name__ for one in randomized if not _is_fitted(one)]
    if is_list and unfitted:
        raise InputError(
            f"estimator contains an unfitted {unfitted[0]}; fit it first, on other rows than these"
        )
    if randomized and not is_list and not (unfitted and isinstance(estimator, PAICRegressor)):
        state, remedy = "a fitted", "pass [model], a list, to test it as it is"
        if unfitted:
            state, remedy = "an unfitted", "pass its base estimator instead"
        got = f"{state} {type(thawed(estimator)).__name__}, which is already randomized"
        raise bad_input("estimator", "be deterministic", got, remedy)
    # a model of unknown kind fails here, before an hour of training
    if estimator is not None and not randomized:
        for member in (estimator, *members):
            adapter_of(member)


def refuse_events(outcomes: Floats, name: str = "y") -> None:
    """Refuse outcomes with two values, whatever kind of outcome is forecast (outcomes: 3)."""
    values = np.unique(outcomes)
    if values.size == 2:
        raise InputError(
            f"{name} has only the values {values[0]:g} and {values[1]:g}, and"
            f" {NO_BINARY_RANDOMIZATION}"
        )


def check_randomized_options(target: Target, **options: tuple[Any, Any]) -> None:
    """Refuse what forecasters that are already randomized do not have: values and defaults."""
    for name, (value, default) in options.items():
        if value is not default and value != default:
            raise InputError(
                f"{name}={value!r} has no effect on forecasters that are already randomized;"
                " leave it out"
            )
    # a test proves a target that was fixed before the rows were seen
    if target.goal is None:
        raise InputError(
            f"{target.given}={target.most!r} is not available for forecasters that are already"
            " randomized; give goal"
        )


def check_options(by: By | None, alternative: bool, is_held_out: bool, is_weighted: bool) -> None:
    """Refuse options that would have no effect."""
    if by is not None and not alternative:
        raise InputError(
            f"by={by!r} has no effect with alternative=False, because it defines the groups of the"
            " alternative; leave one of the two out"
        )
    # maps by group need training rows, but here all rows certify
    if by is not None and is_held_out:
        raise InputError(
            f"by={by!r} has no effect on a model that is not fitted here; pass recalibrate=True to"
            " fit maps on some of the rows, or fit RecalibratedRegressor(model, by=...) on others"
        )
    if is_weighted and is_held_out:
        raise InputError(
            "weight has no effect on a model that is not fitted here, because certificates use no"
            f" weights; leave it out, or give the {named('largest_weight')} of the design"
        )


def _is_randomized(model: Any) -> bool:
    return not isinstance(model, type) and hasattr(model, "forecast") and hasattr(model, "alpha")


def is_model_sequence(estimator: Any) -> bool:
    """Return whether this is a list of randomized forecasters; other lists are ensembles."""
    is_list = isinstance(estimator, list | tuple)
    return is_list and bool(estimator) and all(map(_is_randomized, estimator))


def _is_fitted(model: Any) -> bool:
    try:
        with suppress(TypeError):  # not an estimator, so there is nothing to fit
            check_is_fitted(thawed(model))
    except NotFittedError:
        return False
    return True


def is_prefit(estimator: Any) -> bool:
    """Return whether the model is not fitted here, so that all rows may certify."""
    # the default estimator and a path of networks are fitted here
    if estimator is None or isinstance(estimator, PAICRegressor):
        return False
    return is_model_sequence(estimator) or is_held_out(estimator)


# --- times that may be cut off (outcomes: 5)

NO_HORIZON = (
    " is missing: without a time up to which people are followed, a time that is cut off may"
    " have any error up to the largest, and no randomization can be certified; give the horizon"
)


def check_times(estimator: Any, times: Outcomes) -> Any:
    """Check times and their model, which becomes a survival model with their horizon."""
    if times.horizon is None:
        raise InputError(named("horizon") + NO_HORIZON)
    if is_model_sequence(estimator) or not is_prefit(estimator):
        name = "a list of randomized models" if isinstance(estimator, list) else repr(estimator)
        raise InputError(
            "event is given, and models of times that may be cut off are fitted beforehand, on"
            f" other rows, and without a draw, got {name[:80]}; pass"
            " evenhand.forecasters.SurvivalModel(fitted model, horizon=...), or a function from X"
            " to Forecast.from_survival(times, survival, horizon)"
        )
    model = thawed(estimator)
    if isinstance(model, SurvivalModel) or not hasattr(model, "predict_survival_function"):
        return estimator
    return SurvivalModel(model, times.horizon)


def check_forecasts(base: Forecast, outcomes: Outcomes) -> None:
    """Refuse forecasts of times without events, and those whose atom is not the horizon."""
    if not outcomes.are_times:
        check_forecast_of_times(base, outcomes)
        check_outcomes(outcomes.value, kind=base.outcome_kind)
        return
    # the remedy is Python
    tau = f"{outcomes.horizon:.15g}"
    got = f"are of the kind {base.outcome_kind}"
    if base.atom is not None:
        if base.atom_end == "high" and base.atom == outcomes.horizon:
            return
        got = f"have their atom at {number_in_full(base.atom)}"
    raise InputError(
        f"horizon is {tau}, and forecasts must have an atom at it, whose probability is not"
        f" randomized, but these {got}; make them with Forecast.from_survival(times, survival,"
        f" horizon={tau}) or SurvivalModel(model, horizon={tau})"
    )


# --- training rows and certifying rows


@dataclass(frozen=True)
class SplitRows:
    """Training rows (none for a prefit model) and certifying rows, one per person.

    Weights are those of the training rows: certifying rows count once each.
    """

    X: Any
    outcomes: Outcomes
    learn: Ints
    certify: Ints
    share: float | None
    thinned: Thinned | None

    def learning(self) -> tuple[Any, Outcomes]:
        """Return the training rows and their outcomes."""
        return take_rows(self.X, self.learn), self.outcomes.take(self.learn)

    def certifying(self) -> tuple[Any, Outcomes]:
        """Return the certifying rows and their outcomes."""
        return take_rows(self.X, self.certify), self.outcomes.take(self.certify)


def split_rows(
    X: Any, outcomes: Outcomes, share: float | None, least: int, random: np.random.Generator
) -> SplitRows:
    """Hold out a random share of the people for the certificate; all of them if it is None.

    Of times only people certify who entered at least a horizon before the end of follow-up,
    whatever happened to them (outcomes: 5); of rows with the largest weight of a design a part that
    needs no weights (method: 12).
    """
    n, person = outcomes.n_samples, outcomes.person
    people = np.arange(n) if person is None else person
    n_people = people.max() + 1
    n_kept = n_people if share is None else math.ceil(share * n_people)
    # people are split, not rows: a person in both parts would be certified on training data
    kept = np.zeros(n_people, dtype=bool)
    kept[random.permutation(n_people)[:n_kept]] = True
    held = np.flatnonzero(kept[people])
    learn = np.flatnonzero(~kept[people])
    # too small a part of the rows could be neither trained nor certified on
    if share is not None and min(learn.size, n_kept) < least:
        several = "" if person is None else f" of {count(n_people, 'person', 'people')}"
        raise InputError(
            f"{n:,} rows{several} are split into {learn.size:,} training rows and"
            f" {count(n_kept, 'person', 'people')} to certify on, but each part needs at least"
            f" {least}; provide more people (in Python: or another certify_share than {share:g})"
        )
    # one row per person, because bounds need independent rows
    if person is not None:
        held = held[one_row_each(people[held], held.size, random)]
    held = np.sort(held)
    thinned = None
    if outcomes.weight is not None and outcomes.largest_weight is not None:
        place, thinned = Thinned.of(outcomes.weight[held], outcomes.largest_weight, random)
        held = held[place]
    if outcomes.are_times:
        held = held[outcomes.is_followed[held]]
    return SplitRows(X, outcomes, learn, held, share, thinned)


# --- choice of a link around a deterministic model


def fit_model(
    estimator: Any,
    rows: SplitRows,
    link: str,
    by: By | None,
    recalibrate: bool,
    alternative: bool,
    spread: SpreadKind,
    support: Bounds,
    random: np.random.Generator,
) -> tuple[RandomizedRegressor, RecalibratedRegressor | None]:
    """Fit a model once, with its recalibration; the link is chosen afterwards."""
    # one seed for all fits: link and alternative share their folds
    seed = int(random.integers(2**31))
    model = MixtureMLPRegressor(random_state=seed) if estimator is None else estimator
    fitted: dict[str, Any] = {"spread": spread, "support": support, "random_state": seed}
    X, known = rows.certifying() if rows.share is None else rows.learning()
    if rows.share is None or not (alternative or recalibrate):
        # fitting the wrapper of a prefit model learns nothing from the certifying rows
        weight = None if rows.share is None else known.weight
        around = RandomizedRegressor(model, 1.0, link, **fitted)
        return around.fit(X, known.value, weight), None
    recalibrated = RecalibratedRegressor(model, by=by, **fitted)
    # the model is trained on all rows of its people
    recalibrated.fit(X, Outcomes(known.y, known.event, known.horizon, weight=known.weight))
    # the base of a link is recalibrated overall only; maps by group are the alternative
    base = recalibrated.without_groups() if recalibrate and by is not None else recalibrated
    around = RandomizedRegressor.around(
        base, alpha=1.0, link=link, recalibrate=recalibrate, random_state=seed
    )
    return around, recalibrated if alternative else None


def select_around(
    model: RandomizedRegressor,
    base: Forecast,
    recalibrated: RecalibratedRegressor | None,
    rows: SplitRows,
    target: Target,
    family: Link,
    random: np.random.Generator,
) -> Selection:
    """Choose the link around a model, and compare its forecasts with those without a draw."""
    X, outcomes = rows.certifying()
    # the grid of all rows: that of a few rows may be coarser
    is_continuous = not base.has_atoms and not outcomes.are_times
    grid = Rounding.grid(rows.outcomes.value) if is_continuous else Rounding()
    step = base.rounding(outcomes).step if is_continuous else None
    held = HeldOutScores(outcomes, grid, step, random)
    wrapped = Wrapped.of(base, outcomes, random)
    cells = held.cells(base) if base.has_atoms else wrapped.cells
    chosen = choose_link(wrapped, grid, family, target, rows.share, random)
    link, costs = chosen.link, chosen.costs
    price = costs.price(link)
    # counts that are nearly always equal have intervals without a width
    wider = costs.wider(link) if costs.has_width or not base.has_atoms else math.nan
    # the fit does not depend on alpha: the link is chosen afterwards
    model.set_params(alpha=link.alpha)
    deterministic = _deterministic(model, base, recalibrated, X)
    lines = [
        held.line(name, one, cells if one is base else None) for name, one in deterministic.items()
    ]
    base_line = lines[1 if model.recalibrate else 0]
    draws = jittered(held.compared.size, COMPARED_DRAWS, random)
    served = base[held.compared].randomized(link.alpha, link, draws)
    randomized_line = comparison_line(
        "randomized",
        base_line["log_score"] + price,
        held.crps(served),
        base_line["width"] * (1 + wider),
        chosen.cells,
        chosen.certificate.group_error(target.group_mass),
    )
    without = held.without_features(rows.outcomes.value[rows.learn], base)
    worthy = None
    # what the features are worth, if it is known
    worth = without[0]["log_score"] - base_line["log_score"] if without else 0.0
    if 0 < worth < price:
        within = replace(target, goal=None, max_wider=None, max_price=worth)
        worthy = chosen.error_at(affordable(costs, family, within))
    return Selection(
        model=model,
        certificate=chosen.certificate,
        target=target,
        comparison=pd.DataFrame([*without, *lines, randomized_line]),
        n_learning=rows.learn.size,
        certifying=rows.certify,
        kind=base.outcome_kind,
        rounding_step=grid.step,
        atom=wrapped.at,
        limit=chosen.limit,
        price=price,
        wider=wider,
        alternative=recalibrated,
        plain=chosen.plain,
        search=partial(
            group_without_draw, wrapped.searched(), X, target, int(random.integers(2**31))
        ),
        worthy_error=worthy,
    )


def _deterministic(
    model: RandomizedRegressor, base: Forecast, recalibrated: RecalibratedRegressor | None, X: Any
) -> dict[str, Forecast]:
    """Return forecasts without a draw: the model as it is, recalibrated, and by group, if known."""
    found = {"as it is": base}
    if model.recalibrate:
        found = {"as it is": model.estimator_.base_forecast(X), "recalibrated": base}
    if recalibrated is not None:
        name = "recalibrated" if recalibrated.by is None else "recalibrated by group"
        if name not in found:
            found[name] = recalibrated.recalibrate(found["as it is"], X)
    return found


# --- tests of randomized models in a fixed order (method: proof)

PATH_ALPHAS = (0.05, 0.08, 0.12, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0)
"""Values of alpha for a path of trained networks, in the order of the tests."""


def fixed_sequence_test(
    estimator: Any, rows: SplitRows, target: Target, random: np.random.Generator
) -> Selection:
    """Test randomized models in a fixed order until one is not certified.

    The probability that a model with a group error above the target passes is at most one minus the
    confidence, however many models are tested (fixed-sequence testing; method: proof).
    """
    most = target.most
    if isinstance(estimator, PAICRegressor):
        params = estimator.get_params(deep=False)
        del params["alpha"]
        X, learned = rows.learning()
        models: Sequence[Any] = type(estimator).path(
            X, learned.value, PATH_ALPHAS, sample_weight=learned.weight, **params
        )
    else:
        # the caller fixed the order before seeing these rows
        models = [thawed(model) for model in estimator]
    X, outcomes = rows.certifying()
    passed: tuple[Any, Certificate, Cells] | None = None
    for model in models:
        found = _certify_model(model, X, outcomes, target, random)
        if found is None or found[0].group_error(target.group_mass) > most:
            break
        # the sequence of tests proves the target for each model that passes, not its own bound
        passed = (
            model,
            replace(found[0], choice=Choice("tested", most, target.group_mass)),
            found[1],
        )
    if passed is None:
        raise InputError(
            f"no model has a certified group error of at most {most:g} for groups"
            f" of {in_full(target.group_mass)} of people with {outcomes.n_samples:,} rows, not even"
            " the first; use more rows, allow a larger error, or put a more randomized model first"
        )
    model, proof, cells = passed
    has_atoms = proof.kind is not OutcomeKind.CONTINUOUS
    # the log score of forecasts with atoms is one of probabilities
    grid = Rounding() if has_atoms else Rounding.grid(rows.outcomes.value)
    held = HeldOutScores(outcomes, grid, None, random)
    forecast = model.forecast(X, jittered(outcomes.n_samples, COMPARED_DRAWS, random))
    randomized = held.line("randomized", forecast, cells, proof.group_error(target.group_mass))
    lines = [*held.without_features(rows.outcomes.value[rows.learn], forecast), randomized]
    return Selection(
        model=model,
        certificate=proof,
        target=target,
        comparison=pd.DataFrame(lines),
        n_learning=rows.learn.size,
        certifying=rows.certify,
        kind=proof.kind,
        rounding_step=grid.step,
        atom=forecast.atom,
        # the least price is a theorem on continuous forecasts
        limit=math.nan if has_atoms else least_price(float(pathwise_errors(cells).mean())),
    )


def _certify_model(
    model: Any, X: Any, outcomes: Outcomes, target: Target, random: np.random.Generator
) -> tuple[Certificate, Cells] | None:
    """Certify a model at the target's group size; return None if it is not randomized."""
    # each model has own draws
    n = outcomes.n_samples
    draws, ties = jittered(n, PIT_DRAWS, random), fresh(n, random)
    rounding = Rounding.of(outcomes.value)
    cells: list[Cells] = []
    off: list[Cells] = []
    chance: list[Floats] = []
    for block in row_blocks(n, BLOCK_ROWS):
        # in blocks: a forecast over many draws needs memory for each draw
        forecast = model.forecast(take_rows(X, block), draws[block])
        if not forecast.is_randomized:
            return None
        some = outcomes.take(block)
        spread = Rounding() if forecast.has_atoms else rounding
        cells.append(forecast.cells(some, rounding=spread, ties=ties[block]))
        if forecast.outcome_kind is OutcomeKind.HURDLE:
            is_off = some.value != forecast.atom
            chance.append(over_draws(forecast.event_probability()))
            if is_off.any():
                part = forecast[is_off].positive_part()
                off.append(part.cells(some.take(is_off), ties=ties[block][is_off]))
    served, off_atom, event = Cells.joined(cells), None, None
    if not forecast.has_atoms:
        # rounded outcomes have one position in their rounding cells
        served = served.at_points()
    at = forecast.atom
    if at is not None:
        # groups are shares of the people off the atom, and only their part is randomized
        is_off = outcomes.value != at
        event = EventPart.of(np.concatenate(chance), is_off)
        if is_off.any():
            off_atom = OffAtom(np.flatnonzero(is_off), Cells.joined(off), None, at)
    made = certify_rows(
        served,
        kind=forecast.outcome_kind,
        off_atom=off_atom,
        event=event,
        confidence=target.confidence,
        method="betting",
        mass=target.group_mass,
        random_state=random,
    )
    return made, served


# --- `randomize`

CERTIFY_SHARE = 0.3
"""Share of people held out for the certificate."""


@unreported()  # unseen values are not reported for a split of the same table
def randomize(
    estimator: Any,
    X: Any,
    y: ArrayLike | Outcomes,
    *,
    goal: float | None = None,
    max_wider: float | None = None,
    max_price: float | None = None,
    group_mass: float = 0.2,
    confidence: float = 0.95,
    link: str = DEFAULT_LINK,
    by: By | None = None,
    recalibrate: bool = False,
    alternative: bool = True,
    certify_share: float = CERTIFY_SHARE,
    spread: SpreadKind = "learned",
    support: Bounds = None,
    random_state: RandomState = None,
) -> Selection:
    """Fit a model and choose the least randomization that certifies every group of a given size.

    The rows are split: the model is trained on one part, and the other part selects the largest
    `alpha` whose certificate meets the target. Around a deterministic model the link may be chosen
    on the certifying rows, because simultaneous bands bound all links. Randomized models
    (`PAICRegressor`, or a list of fitted models) are tested in a fixed order, from the most
    randomized on, until one fails; so are links around forecasts of counts and ordinal scores, at
    40 values of alpha from 0.01 to 1, each 12.5% larger than the one before. For outcomes with an
    atom at an end of their range the guarantee is for groups of the people whose outcome is not
    the atom: `group_mass` is a share of them.

    Instead of the error that must be certified, what may be paid can be given: `max_wider` or
    `max_price`. The smallest `alpha` that costs no more is then chosen, and the certificate gives
    the most that can be proven for it. For counts it is the smallest of the 40 values, whose bounds
    then hold simultaneously (Bonferroni). Give one of the three.

    Models that are not fitted here are certified on all rows: a fitted model that predicts a
    distribution, in a `FrozenEstimator`; a function; a list of these; fitted randomized
    forecasters. They must never have seen these rows, or the certificate is invalid; this cannot
    be checked.

    Parameters
    ----------
    estimator : estimator, function or sequence of forecasters
        A deterministic model of any kind that `RandomizedRegressor` accepts, None for its default.
        Or an unfitted `PAICRegressor`, which is trained along a path of alphas. Or a list of fitted
        randomized forecasters (`RandomizedRegressor`, `PAICRegressor`) in the order of the tests;
        `[model]` for one.
    X : DataFrame or array-like of shape (n, n_features)
        Rows.
    y : array-like of shape (n,) or Outcomes
        Outcomes of the kind that the model predicts: continuous; counts or ordinal scores; or with
        an atom at an end of their range, such as money with zeros, of which only the continuous
        part is randomized. Outcomes 0 and 1 are refused: no randomization improves their forecasts.
        Times that may be cut off are `Outcomes` with events and a horizon. Their model is fitted
        beforehand, on other rows: `evenhand.forecasters.SurvivalModel`, or a function that returns
        `Forecast.from_survival` with the horizon. Only the time of an event is randomized, given
        that it happens by the horizon, and `group_mass` is a share of the people with the event by
        then. Who was lost before the horizon may be one of them and counts with the worst time.
        Weights of `Outcomes` are for the fits; with the largest weight of the design the certifying
        rows are thinned as well, otherwise each certifying person counts once. With persons nobody
        is in both parts, and one row per person certifies; cross-fitting folds of the training rows
        may split a person's rows, which makes more randomization necessary.
    goal : float, optional
        Largest W1 error that a group may have, between 0 and 1/2; 0.25 if neither of the other two
        is given.
    max_wider : float, optional
        Largest relative increase of the mean width of 80% prediction intervals on the certifying
        people (on at most 2,000 of them): 0.1 for intervals at most 10% wider. At most 2.
    max_price : float, optional
        Largest loss of log score on the certifying people, in nats.
    group_mass : float, default 0.2
        Smallest group size, as a share of the people.
    confidence : float, default 0.95
        Confidence level of the certificate.
    link : {"entropic", "laplace", "gaussian"}, default "entropic"
        The family of links around a deterministic model.
    by : str, list of str or callable, optional
        Groups of the deterministic alternative, as for `RecalibratedRegressor`; only for models
        that are fitted here.
    recalibrate : bool, default False
        Whether a deterministic model is first recalibrated with cross-fitted PITs of the training
        rows; a badly calibrated model needs much randomization otherwise. The link then wraps the
        recalibrated model, and the price is relative to it. A model that is not refitted is
        recalibrated on the training rows and certified on the others.
    alternative : bool, default True
        Whether to fit the deterministic alternative. For a model that predicts a distribution it
        takes five more fits, for out-of-fold PITs, unless `recalibrate` needs them anyway; for a
        plain regressor none.
    certify_share : float, default 0.3
        Share of people held out for the certificate, if the model is fitted here.
    spread : {"learned", "constant"}, default "learned"
        Spread of the residuals of a plain regressor, as for `RandomizedRegressor`.
    support : tuple of (float or None, float or None), optional
        Bounds `(low, high)` of the outcome around a deterministic model, as for
        `RandomizedRegressor`: `(0, None)` for money or durations.
    random_state : int, generator or None
        Seed of the split, the training and the draws.

    Returns
    -------
    Selection

    Raises
    ------
    InputError
        If the inputs do not match, the split leaves too few rows in a part, the estimator does not
        accept weights, or the target cannot be met with so few rows; the message names the number
        of rows needed.

    Warns
    -----
    UserWarning
        If rows are exact copies of others, so that they are not independent.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = X[:, 0] + rng.normal(size=1000)
    >>> chosen = randomize(BayesianRidge(), X, y, goal=0.35, random_state=0)
    >>> chosen.certificate.group_error(0.2) <= 0.35
    True
    >>> chosen.model.forecast(X[:2], r=[0.3, 0.8]).interval(0.8)[0].shape
    (2,)

    The most that can be proven with prediction intervals that are at most 20% wider:

    >>> chosen = randomize(BayesianRidge(), X, y, max_wider=0.2, random_state=0)
    >>> chosen.wider <= 0.2, 0.35 < chosen.group_error < 0.4
    (True, True)
    """
    target = Target(goal, max_wider, max_price, group_mass, confidence)
    family = make_link(link, 1.0)
    check_fraction("certify_share", certify_share)
    check_choice("spread", spread, SPREADS)
    check_estimator(estimator)
    is_randomized = isinstance(estimator, PAICRegressor) or is_model_sequence(estimator)
    outcomes = as_outcomes(y, X)
    if outcomes.are_times:
        estimator = check_times(estimator, outcomes)
    # recalibration fits maps, which needs training rows
    is_held_out = not recalibrate and is_prefit(estimator)
    if is_randomized:
        check_randomized_options(
            target,
            link=(link, DEFAULT_LINK),
            by=(by, None),
            recalibrate=(recalibrate, False),
            spread=(spread, "learned"),
            support=(support, None),
        )
    is_weighted = outcomes.weight is not None and outcomes.largest_weight is None
    check_options(by, alternative, is_held_out, is_weighted)
    table = X if hasattr(X, "columns") else np.asarray(X)
    n = outcomes.n_samples
    if len(table) != n:
        raise bad_input("y", f"have one outcome per row of X ({len(table)})", f"{n} outcomes")
    check_support(outcomes.value, support)
    if not outcomes.are_times:  # the forecasts show the kind of outcome, later
        check_outcomes(outcomes.value, kind=None)
        refuse_events(outcomes.value)
    random = generator(random_state)
    share = None if is_held_out else certify_share
    rows = split_rows(table, outcomes, share, MIN_DISTINCT, random)
    if outcomes.person is None:
        warning = copies_in_words(as_table(table), outcomes.value)
        if warning:
            warnings.warn(warning, UserWarning, stacklevel=3)
    # how continuous outcomes must be is checked once, when the kind of forecast is known
    with outcomes_checked():
        if is_randomized:
            selection = fixed_sequence_test(estimator, rows, target, random)
        else:
            model, recalibrated = fit_model(
                estimator, rows, family.name, by, recalibrate, alternative, spread, support, random
            )
    if is_randomized:
        check_outcomes(outcomes.value, kind=selection.kind)
    else:
        # computed once for PITs, scores, widths and the price
        base = model.base_forecast(rows.certifying()[0])
        check_forecasts(base, outcomes)
        selection = select_around(model, base, recalibrated, rows, target, family, random)
    is_one = outcomes.person is not None
    proof = replace(selection.certificate, one_row_each=is_one, thinned=rows.thinned)
    selection = replace(selection, certificate=proof)
    if reason := worth_sentence(selection):
        warnings.warn(reason, NotWorthItWarning, stacklevel=3)
    return selection
