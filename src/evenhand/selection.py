"""The least randomization that is certified: how a model that people have becomes one that can be proven."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from evenhand._checks import (
    MILD_ATOM,
    MIN_DISTINCT,
    Floats,
    InputError,
    OnDiscrete,
    bad_input,
    check_cluster,
    check_continuous,
    check_finite,
    check_fraction,
    largest_atom,
)
from evenhand._words import at_most, percent
from evenhand.audits._subject import BLOCK, PIT_DRAWS
from evenhand.calibration import (
    Certificate,
    calibration_error,
    certify_pit,
    crps,
    log_score,
    pathwise_errors,
    rounding_step,
)
from evenhand.calibration.any_link import LinkCertificate, certify_link
from evenhand.draws import RandomState, fresh, generator, jittered, one_row_each
from evenhand.forecast import Forecast, cell_ends
from evenhand.forecasters import MixtureMLPRegressor, PAICRegressor, RandomizedRegressor, RecalibratedRegressor
from evenhand.forecasters._bases import kind_of, thawed
from evenhand.forecasters._grouping import By
from evenhand.links import Link, make_link, price_of_proof
from evenhand.tables import take_rows

__all__ = ["Selection", "randomize"]

CERTIFY_SHARE = 0.3
"""Share of the people that the certificate is made on."""

DEFAULT_LINK = "entropic"

PRICE_DRAWS = 16
"""Draws per person that the price is averaged over."""

COMPARED = 2000
"""Most people whose CRPS and widths are compared: they are slow where forecasts have no closed form."""

COMPARED_DRAWS = 4
"""Draws of each of them."""

FAR_OFF = 0.05
"""Average error from which mending a model before it is randomized is worth a try."""

FEW_ROWS = 100
"""Fewer rows to learn from than this are named in what a model complains of."""

ALPHAS = (0.05, 0.08, 0.12, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0)
"""Of a path of trained networks, in the order in which they are tested."""


@dataclass(frozen=True, repr=False)
class Selection:
    """A model with the least randomization that is certified, what proves it and what it costs.

    Parameters
    ----------
    model : forecaster
        Fitted, with the randomization that was chosen.
    certificate : LinkCertificate or Certificate
        What is proven. Of links all bounds hold; of models tested one after the other only that the error of every
        group of `group_mass` is at most `max_group_error`.
    max_group_error, group_mass, confidence : float
        What was asked.
    price : float
        Mean log score of the randomized forecasts less that of what the link goes around (the model as it is; with
        `recalibrate`, the recalibrated one), on the certifying rows, in nats; NaN where there is no such model.
    limit : float
        The least price, over the truth, of any forecaster with the same mean error and calibrated on average
        (`price_of_proof`). The price over an imperfect model may lie below.
    wider : float
        Mean width of the randomized 80% intervals over that of what the link goes around, less 1; NaN as `price`.
    alternative : RecalibratedRegressor or None
        The model mended without randomness, by group if `by` was given; None where nothing was learned, for models
        that are randomized already, and with `alternative=False`.
    comparison : DataFrame
        One row per forecaster, from the certifying rows: `forecaster`, `log_score`, `crps` (of a random part of very
        many people), `average_error`, `certified_group_error`. The log score of the randomized forecasts is that of
        what the link goes around, and the price.
    n_learning, n_certifying : int
        Rows that the model learned from, 0 if it was not fitted here, and people that it is certified on.
    certifying : ndarray of int, shape (n_certifying,)
        The rows that it is certified on: row numbers in the `X` and `y` that were given, rising, one row per person.
        The model has not learned from them; `alpha` was chosen on them, which the certificate allows for.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
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
    certificate: LinkCertificate | Certificate
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
    certifying: NDArray[np.intp]

    @property
    def alpha(self) -> float:
        """Weight of sharpness of the model that was chosen."""
        return float(self.model.alpha)

    def summary(self) -> str:
        """Return what was chosen, what is proven and what it costs, as text."""
        learned = f", learned on {self.n_learning:,} rows"
        if self.n_learning == 0:
            learned = "; the model was not fitted here: it must not have seen these rows"
        lines = [
            f"With {percent(self.confidence)} confidence, stated chances are off by at most "
            f"{at_most(self.max_group_error)} points in every group of at least {percent(self.group_mass)} of people "
            f"(certified on {self.n_certifying:,} people{learned}).",
            *(self._without_randomization() if self.alpha == 1 else self._with_randomization()),
        ]
        is_mended = getattr(self.model, "recalibrate", True)
        if np.isfinite(self.price) and not is_mended and self._average_error(0) > FAR_OFF:
            lines.append(
                f"The model itself is off by {_points(self._average_error(0))} points on average: try recalibrate=True."
            )
        shown = self.comparison.to_string(index=False, float_format=lambda value: f"{value:.3f}", na_rep="-")
        return "\n".join([*lines, "", shown])

    def _average_error(self, row: int) -> float:
        return float(self.comparison["average_error"].iloc[row])

    def _without_randomization(self) -> list[str]:
        return [
            "No randomization was needed: alpha = 1. On average over these people, stated chances are off by "
            f"{_points(self._average_error(-1))} points."
        ]

    def _with_randomization(self) -> list[str]:
        lines = [f"The least randomization that shows it: alpha = {self.alpha:.3g}."]
        if not np.isfinite(self.price):
            return lines
        compared = "wider" if self.wider >= 0 else "narrower"
        paid = f"Price: {self.price:.2f} nats of log score on these people"
        lines.append(f"{paid}; a person's 80% interval is on average {100 * abs(self.wider):.0f}% {compared}.")
        # as printed: a difference in the third decimal is noise
        if round(self.price, 2) >= round(self.limit, 2):
            lines.append(
                "Over the true distribution no forecaster of the same mean error that is calibrated on average pays "
                f"less than {self.limit:.2f}."
            )
        else:
            # what the link goes around stands just before the randomized forecasts, or first where nothing mends it
            start = 1 if getattr(self.model, "recalibrate", False) else 0
            lines.append(
                f"Over the true distribution it would be at least {self.limit:.2f}: the model itself is off by "
                f"{_points(self._average_error(start))} points on average, so the price is measured from a bad start."
            )
        return lines

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return (
            f"Selection(alpha={self.alpha:.3g}, max_group_error={self.max_group_error:g}, "
            f"group_mass={self.group_mass:g}, confidence={self.confidence:g}, price={self.price:.2f}, "
            f"n_certifying={self.n_certifying})"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.summary())}</pre>"


def randomize(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    max_group_error: float = 0.3,
    group_mass: float = 0.2,
    confidence: float = 0.95,
    link: str = DEFAULT_LINK,
    by: By | None = None,
    recalibrate: bool = False,
    alternative: bool = True,
    certify_share: float = CERTIFY_SHARE,
    cluster: ArrayLike | None = None,
    on_discrete: OnDiscrete = "raise",
    random_state: RandomState = None,
) -> Selection:
    """Give a model the least randomization with which every group, named or not, is certified.

    The rows are split: the model learns from one part, and on the other the largest `alpha` is taken whose certificate
    meets the target. Around a deterministic model any link may be chosen on the certifying rows, since one band bounds
    them all. Randomized models (`PAICRegressor`, or a list of fitted ones) are tested in a fixed order, from the most
    randomized on, until one fails.

    A model that learns nothing here is certified on all rows: a fitted one that says its own distribution, in a
    `FrozenEstimator`; a function; a list of such; fitted randomized forecasters. It must not have seen these rows, or
    the certificate is false: that is your word, and nothing here can check it.

    Parameters
    ----------
    estimator : estimator, function or sequence of forecasters
        A deterministic model of any kind that `RandomizedRegressor` takes, None for its default. Or an unfitted
        `PAICRegressor`, of which a path of alphas is trained. Or fitted randomized forecasters (`RandomizedRegressor`,
        `PAICRegressor`) in the order in which they are to be tested; `[model]` for one.
    X : DataFrame or array-like of shape (n, n_features)
        Rows.
    y : array-like of shape (n,)
        Continuous outcomes.
    max_group_error : float, default 0.3
        Largest W1 error that a group may have, between 0 and 1/2.
    group_mass : float, default 0.2
        Least share of people in a group.
    confidence : float, default 0.95
        Probability that what is certified is true.
    link : {"entropic", "laplace", "gaussian"}, default "entropic"
        The family of laws around a deterministic model.
    by : str, list of str or callable, optional
        Groups for the deterministic alternative, as for `RecalibratedRegressor`; only where something is learned.
    recalibrate : bool, default False
        Whether a deterministic model is first mended with PITs from the rows that it learns on, cross-fitted; a model
        that is far off needs much randomization otherwise. The link goes around the mended model, and the price
        counts from it. A model that is not fitted again is mended on the learning rows, and certified on the others.
    alternative : bool, default True
        Whether the deterministic alternative is made. Around a model that says its own distribution it takes five
        more fits, for PITs on rows not learned from, unless `recalibrate` asks for them anyway; around a plain
        regressor none.
    certify_share : float, default 0.3
        Share of the people that are kept for certifying, where something is learned.
    cluster : array-like of shape (n,), optional
        Labels of people who have several rows: no person is on both sides, and one row of each certifies. Folds within
        the learning rows may part a person: residuals, and PITs for mending, then look smaller than those of new
        people are, for which the randomization makes up; the certificate holds all the same.
    on_discrete : {"raise", "warn", "ignore"}, default "raise"
        What to do about an outcome that is not continuous: fewer than 20 values, or one in over 10% of rows. All rows
        are looked at once, and the models inside do not look again; with "raise", each side needs 20 rows, too.
    random_state : int, generator or None
        Of the split, the training and the draws.

    Returns
    -------
    Selection

    Raises
    ------
    InputError
        If the input does not fit, the split leaves too few rows on a side, or the target cannot be met on so few rows;
        the message says how many will do.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = X[:, 0] + rng.normal(size=1000)
    >>> chosen = randomize(BayesianRidge(), X, y, max_group_error=0.35, random_state=0)
    >>> chosen.certificate.group_error(0.2) <= 0.35
    True
    >>> chosen.model.forecast(X[:2], r=[0.3, 0.8]).interval(0.8)[0].shape
    (2,)
    """
    check_fraction("max_group_error", max_group_error)
    if max_group_error >= 0.5:
        raise bad_input("max_group_error", "be below 0.5, the worst there is", max_group_error)
    check_fraction("group_mass", group_mass, high_open=False)
    check_fraction("confidence", confidence)
    check_fraction("certify_share", certify_share)
    family = make_link(link, 1.0)
    _check_estimator(estimator)
    is_tested = isinstance(estimator, PAICRegressor) or _is_ordered(estimator)
    is_held_out = not recalibrate and _is_held_out(estimator)
    _check_options(link, by, recalibrate, alternative, is_tested, is_held_out)
    outcomes = check_finite("y", y)
    table = X if hasattr(X, "columns") else np.asarray(X)
    if len(table) != outcomes.size:
        raise bad_input("y", f"have one outcome per row of X ({len(table)})", f"{outcomes.size} outcomes")
    check_continuous(outcomes, on_discrete=on_discrete)
    random = generator(random_state)
    share = None if is_held_out else certify_share
    rows = _split(table, outcomes, cluster, share, MIN_DISTINCT if on_discrete == "raise" else 1, random)
    target = _Target(float(max_group_error), float(group_mass), float(confidence), family)
    if is_tested:
        found = _in_order(estimator, rows, target, random)
        if isinstance(estimator, PAICRegressor):
            found.model.set_params(on_discrete=on_discrete)
        return found
    model, mended = _fit(estimator, rows, family.name, by, recalibrate, alternative, random)
    for fitted in (model, mended):
        if fitted is not None:
            fitted.set_params(on_discrete=on_discrete)
    return _around(model, mended, rows, target, alternative, random)


@dataclass(frozen=True)
class _Target:
    max_group_error: float
    group_mass: float
    confidence: float
    family: Link


@dataclass(frozen=True)
class _Rows:
    """Rows to learn from, none for a model that is not fitted here, and rows, one per person, to certify on."""

    X: Any
    y: Floats
    learn: NDArray[np.intp]
    certify: NDArray[np.intp]
    share: float | None

    def learning(self) -> tuple[Any, Floats]:
        return take_rows(self.X, self.learn), self.y[self.learn]

    def certifying(self) -> tuple[Any, Floats]:
        return take_rows(self.X, self.certify), self.y[self.certify]


def _split(
    X: Any, y: Floats, cluster: ArrayLike | None, share: float | None, least: int, random: np.random.Generator
) -> _Rows:
    people = np.arange(y.size) if cluster is None else check_cluster(cluster, y.size)
    n_people = int(people.max()) + 1
    n_kept = n_people if share is None else int(np.ceil(share * n_people))
    kept = np.zeros(n_people, dtype=np.bool_)
    kept[random.permutation(n_people)[:n_kept]] = True
    held, learn = np.flatnonzero(kept[people]), np.flatnonzero(~kept[people])
    # a model fitted on rows that certify it would be certified falsely
    if share is not None and min(learn.size, n_kept) < least:
        several = "" if cluster is None else f" of {n_people:,} people in cluster"
        rule = f"leave at least {least} row{'s' * (least > 1)} to learn from and as many people to certify on"
        got = f"{learn.size:,} and {n_kept:,} at certify_share={share:g} of {y.size:,} rows{several}"
        raise bad_input("certify_share", rule, got, "choose another share, or bring more people")
    if cluster is not None:
        held = held[one_row_each(people[held], held.size, random)]
    return _Rows(X, y, learn, np.sort(held), share)


def _check_estimator(estimator: Any) -> None:
    """Refuse what is no model, before anything is fitted."""
    members = list(estimator) if isinstance(estimator, list | tuple) else [estimator]
    if not members:
        raise bad_input("estimator", "hold at least one fitted forecaster", "none")
    for member in members:
        if isinstance(thawed(member), type):
            name = thawed(member).__name__
            raise bad_input("estimator", "be a model, not a class", name, f"write {name}()")
    is_randomized = [_is_randomized(member) for member in members]
    if isinstance(estimator, list | tuple):
        if any(is_randomized) and not all(is_randomized):
            raise bad_input("estimator", "hold randomized forecasters only, or deterministic models only", "both")
        unfitted = [type(one).__name__ for one in members if _is_randomized(one) and not _is_fitted(one)]
        if unfitted:
            remedy = "fit it first, on rows that do not certify"
            raise bad_input("estimator", "hold fitted forecasters", f"an unfitted {unfitted[0]}", remedy)
    elif is_randomized[0] and (_is_fitted(estimator) or not isinstance(estimator, PAICRegressor)):
        name = type(thawed(estimator)).__name__
        got = f"{'a fitted' if _is_fitted(estimator) else 'an unfitted'} {name}, which is randomized already"
        remedy = "[model], in a list, tests it as it is" if _is_fitted(estimator) else "give the model inside it"
        raise bad_input("estimator", "be deterministic", got, remedy)
    if estimator is not None and not any(is_randomized):
        for member in (estimator, *members):
            kind_of(member)


def _check_options(
    link: str, by: By | None, recalibrate: bool, alternative: bool, is_tested: bool, is_held_out: bool
) -> None:
    """Refuse options that would be of no effect."""
    if is_tested:
        given: list[tuple[str, Any, bool]] = [("link", link, link != DEFAULT_LINK), ("by", by, by is not None)]
        for name, value, is_given in [*given, ("recalibrate", recalibrate, recalibrate)]:
            if is_given:
                raise bad_input(name, "be left out for forecasters that are randomized already", repr(value))
    if by is not None and not alternative:
        raise bad_input("by", "be left out with alternative=False", by, "its groups are those of the alternative")
    if by is not None and is_held_out:
        remedy = (
            "recalibrate=True learns maps on some of the rows, or fit RecalibratedRegressor(model, by=...) on others"
        )
        raise bad_input("by", "be left out for a model that learns nothing here", repr(by), remedy)


def _is_randomized(model: Any) -> bool:
    return not isinstance(model, type) and hasattr(model, "forecast") and hasattr(model, "alpha")


def _is_ordered(estimator: Any) -> bool:
    """Whether this is a list of randomized forecasters; a list of other models is one ensemble."""
    return isinstance(estimator, list | tuple) and bool(estimator) and all(map(_is_randomized, estimator))


def _is_fitted(model: Any) -> bool:
    try:
        check_is_fitted(thawed(model))
    except NotFittedError:
        return False
    except TypeError:  # no estimator, so there is nothing to fit
        return True
    return True


def _is_held_out(estimator: Any) -> bool:
    """Whether nothing is learned here, so that all rows may certify."""
    if estimator is None or isinstance(estimator, PAICRegressor):
        return False
    return _is_ordered(estimator) or kind_of(estimator).is_held_out(estimator)


def _unchecking(estimator: Any) -> Any:
    """Return a clone of a model that does not look at outcomes again: they were looked at here."""
    if isinstance(estimator, list | tuple):
        return [_unchecking(member) for member in estimator]
    if isinstance(estimator, FrozenEstimator) or not hasattr(estimator, "get_params"):
        return estimator
    names = [name for name in estimator.get_params() if name.rpartition("__")[2] == "on_discrete"]
    return clone(estimator).set_params(**dict.fromkeys(names, "ignore")) if names else estimator


@contextmanager
def _learning(rows: _Rows) -> Iterator[None]:
    """Name the split in what a model complains of, where it left few rows."""
    try:
        yield
    except InputError as error:
        if rows.share is None or rows.learn.size >= FEW_ROWS:
            raise
        split = f"{rows.learn.size} of {rows.y.size:,} rows at certify_share={rows.share:g}"
        raise InputError(f"learning from {split}: {error}") from error


def _fit(
    estimator: Any,
    rows: _Rows,
    link: str,
    by: By | None,
    recalibrate: bool,
    alternative: bool,
    random: np.random.Generator,
) -> tuple[RandomizedRegressor, RecalibratedRegressor | None]:
    """Fit a model once, and what mends it; the link around it is still to be chosen."""
    seed = int(random.integers(2**31))
    inner = _unchecking(MixtureMLPRegressor(random_state=seed) if estimator is None else estimator)
    params: dict[str, Any] = {"alpha": 1.0, "link": link, "on_discrete": "ignore", "random_state": seed}
    if rows.share is None:
        # it learns nothing from the rows that it is given
        return RandomizedRegressor(inner, **params).fit(*rows.certifying()), None
    with _learning(rows):
        if not (alternative or recalibrate):
            return RandomizedRegressor(inner, **params).fit(*rows.learning()), None
        mended = RecalibratedRegressor(inner, by=by, on_discrete="ignore", random_state=seed).fit(*rows.learning())
    around = mended._pooled() if recalibrate and by is not None else mended
    return RandomizedRegressor._sharing(around, recalibrate=recalibrate, **params), mended


def _around(
    model: RandomizedRegressor,
    mended: RecalibratedRegressor | None,
    rows: _Rows,
    target: _Target,
    alternative: bool,
    random: np.random.Generator,
) -> Selection:
    """Choose the link around a deterministic model."""
    X, y = rows.certifying()
    stated = model.base_forecast(X)
    held = _Held(y, _spread_step(y), random)
    pit = held.pit(stated)
    proof = certify_link(pit, target.family, confidence=target.confidence)
    proof = proof.least_randomized(target.max_group_error, target.group_mass, certify_share=rows.share)
    model.set_params(alpha=proof.link.alpha)
    draws = jittered(y.size, PRICE_DRAWS, random)
    turned = proof.link.ppf(pit[:, None], draws)
    # log h = log g - log k at the base's PIT: the price needs no second look at the forecasts
    paid = float(proof.link.logpdf(turned, draws).mean())
    if model.recalibrate:
        assert mended is not None
        as_it_is = mended.base_forecast(X)
        lines = [held.line("as it is", as_it_is), held.line("recalibrated", stated, pit)]
        if alternative and mended.by is not None:
            lines.append(held.line("recalibrated by group", mended._mend(as_it_is, X)))
        around = lines[1]
    else:
        lines = [held.line("as it is", stated, pit)]
        if mended is not None:
            name = "recalibrated" if mended.by is None else "recalibrated by group"
            lines.append(held.line(name, mended._mend(stated, X)))
        around = lines[0]
    part = stated.take(held.compared)
    served = part.randomized(proof.link.alpha, proof.link, jittered(held.compared.size, COMPARED_DRAWS, random))
    last = {"forecaster": "randomized", "log_score": around["log_score"] + paid, "crps": held.crps(served)}
    last |= {"average_error": calibration_error(turned)}
    last |= {"certified_group_error": proof.group_error(target.group_mass)}
    return Selection(
        model=model,
        certificate=proof,
        max_group_error=target.max_group_error,
        group_mass=target.group_mass,
        confidence=target.confidence,
        price=paid,
        limit=_limit(proof.mean_error()),
        wider=_width(served) / _width(part) - 1,
        alternative=mended if alternative else None,
        comparison=pd.DataFrame([*lines, last]),
        n_learning=int(rows.learn.size),
        n_certifying=proof.n_samples,
        certifying=rows.certify,
    )


def _in_order(estimator: Any, rows: _Rows, target: _Target, random: np.random.Generator) -> Selection:
    """Test randomized models one after the other; the first that fails ends it (fixed-sequence testing)."""
    if isinstance(estimator, PAICRegressor):
        params = estimator.get_params(deep=False) | {"on_discrete": "ignore"}
        del params["alpha"]
        with _learning(rows):
            models: Sequence[Any] = type(estimator).path(*rows.learning(), ALPHAS, **params)
    else:
        models = [thawed(model) for model in estimator]
    X, y = rows.certifying()
    passed: tuple[Any, Certificate] | None = None
    for model in models:
        proof = _tested(model, X, y, target, random)
        if proof is None or proof.group_error(target.group_mass) > target.max_group_error:
            break
        passed = model, proof
    if passed is None:
        raise InputError(
            f"a group error of at most {target.max_group_error:g} is not certified for mass {target.group_mass:g} on "
            f"{y.size:,} rows, not even for the most randomized of the models: bring more rows, allow a larger error, "
            "or put a more randomized model first"
        )
    model, proof = passed
    held = _Held(y, None, random)
    forecast = model.forecast(X, jittered(y.size, COMPARED_DRAWS, random))
    line = held.line("randomized", forecast, proof.pit) | {"certified_group_error": target.max_group_error}
    return Selection(
        model=model,
        certificate=proof,
        max_group_error=target.max_group_error,
        group_mass=target.group_mass,
        confidence=target.confidence,
        price=np.nan,
        limit=_limit(float(pathwise_errors(proof.pit).mean())),
        wider=np.nan,
        alternative=None,
        comparison=pd.DataFrame([line]),
        n_learning=int(rows.learn.size),
        n_certifying=proof.n_samples,
        certifying=rows.certify,
    )


def _tested(model: Any, X: Any, y: Floats, target: _Target, random: np.random.Generator) -> Certificate | None:
    """What a model's PITs prove for the one mass that is asked; None if it takes no draw."""
    draws, share, step = jittered(y.size, PIT_DRAWS, random), fresh((y.size, 1), random), _spread_step(y)
    low, high = (y, y) if step is None else cell_ends(y, step)
    pit = np.empty_like(draws)
    for start in range(0, y.size, BLOCK):
        block = slice(start, min(start + BLOCK, y.size))
        forecast = model.forecast(take_rows(X, block), draws[block])
        if not forecast.is_randomized:
            return None
        pit[block] = forecast.cdf(low[block])
        if step is not None:
            pit[block] += share[block] * (forecast.cdf(high[block]) - pit[block])
    return certify_pit(
        pit, draws, confidence=target.confidence, method="betting", mass=target.group_mass, random_state=random
    )


class _Held:
    """The outcomes of the certifying people, and what forecasters are compared by on them."""

    def __init__(self, y: Floats, step: float | None, random: np.random.Generator) -> None:
        self.y, self.step, self.random = y, step, random
        self.compared = np.arange(y.size)
        if y.size > COMPARED:
            self.compared = np.sort(random.choice(y.size, COMPARED, replace=False))

    def pit(self, forecast: Forecast) -> Floats:
        return forecast.pit(self.y, step=self.step, random_state=self.random)

    def crps(self, part: Forecast) -> float:
        """Mean CRPS of the people who are compared."""
        return float(np.mean(crps(part, self.y[self.compared])))

    def line(self, name: str, forecast: Forecast, pit: Floats | None = None) -> dict[str, Any]:
        return {
            "forecaster": name,
            "log_score": float(np.mean(log_score(forecast, self.y))),
            "crps": self.crps(forecast.take(self.compared)),
            "average_error": calibration_error(self.pit(forecast) if pit is None else pit),
            "certified_group_error": np.nan,
        }


def _spread_step(y: Floats) -> float | None:
    """Rounding step of outcomes that pile up PITs, which are then spread over the cell; None for others."""
    return rounding_step(y) if largest_atom(y)[1] > MILD_ATOM else None


def _width(forecast: Forecast) -> float:
    """Mean width of the 80% intervals."""
    low, high = forecast.interval(0.8)
    return float(np.mean(high - low))


def _limit(error: float) -> float:
    return float(price_of_proof(min(error, 1 / 3)))


def _points(share: float) -> str:
    return f"{100 * share:.1f}"
