"""The least randomization that is certified: how a model that people have becomes one that can be proven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.frozen import FrozenEstimator

from evenhand._checks import Floats, InputError, bad_input, check_cluster, check_finite, check_fraction
from evenhand._words import at_most, percent
from evenhand.audits import certify
from evenhand.audits._subject import check_rows, read_subject
from evenhand.calibration import Certificate, calibration_error, crps, log_score, pathwise_errors
from evenhand.calibration.any_link import LinkCertificate, certify_link
from evenhand.draws import RandomState, generator, jittered, one_row_each
from evenhand.forecasters import MixtureMLPRegressor, PAICRegressor, RandomizedRegressor, RecalibratedRegressor
from evenhand.forecasters._bases import kind_of
from evenhand.forecasters._grouping import By
from evenhand.links import Link, make_link, price_of_proof
from evenhand.tables import take_rows

__all__ = ["Selection", "randomize"]

CERTIFY_SHARE = 0.3
"""Share of the people that the certificate is made on."""

PRICE_DRAWS = 16
"""Draws per person that the price is averaged over."""

COMPARED = 2000
"""Most rows on which CRPS is compared: it is slow where forecasts have no closed form."""

ALPHAS = (0.05, 0.08, 0.12, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0)
"""Of a path of trained networks, in the order in which they are tested."""


@dataclass(frozen=True)
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
        Mean log score of the randomized forecasts less that of the model as it is, on the certifying rows, in nats;
        NaN where there is no such model.
    limit : float
        The least price, over the truth, of any forecaster with the same mean error and calibrated on average
        (`price_of_proof`). The price over an imperfect model may lie below.
    alternative : RecalibratedRegressor or None
        The model mended without randomness, by group if `by` was given; None where nothing was learned, for models
        that are randomized already, and with `alternative=False`.
    comparison : DataFrame
        One row per forecaster, from the certifying rows: `forecaster`, `log_score`, `crps`, `average_error`,
        `certified_group_error`.
    n_learning, n_certifying : int
        Rows that the model learned from, and people that it is certified on.
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
        lines = [
            f"With {percent(self.confidence)} confidence, stated chances are off by at most "
            f"{at_most(self.max_group_error)} points in every group of at least {percent(self.group_mass)} of people "
            f"(certified on {self.n_certifying:,} people, learned on {self.n_learning:,} rows).",
            f"The least randomization that shows it: alpha = {self.alpha:.3g}.",
        ]
        if np.isfinite(self.price):
            lines.append(
                f"Price: {self.price:.2f} nats of log score on these people; over the true distribution no forecaster "
                f"of the same mean error that is calibrated on average pays less than {self.limit:.2f}."
            )
        shown = self.comparison.to_string(index=False, float_format=lambda value: f"{value:.3f}", na_rep="-")
        return "\n".join([*lines, "", shown])


def randomize(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    max_group_error: float = 0.3,
    group_mass: float = 0.2,
    confidence: float = 0.95,
    link: str = "entropic",
    by: By | None = None,
    recalibrate: bool = False,
    alternative: bool = True,
    certify_share: float = CERTIFY_SHARE,
    cluster: ArrayLike | None = None,
    random_state: RandomState = None,
) -> Selection:
    """Give a model the least randomization with which every group, named or not, is certified.

    The rows are split: the model learns from one part, and on the other the largest `alpha` is taken whose certificate
    meets the target. Around a deterministic model any link may be chosen on the certifying rows, since one band bounds
    them all. Randomized models (`PAICRegressor`, or a list of fitted ones) are tested in a fixed order, from the most
    randomized on, until one fails.

    Parameters
    ----------
    estimator : estimator or sequence of forecasters
        A deterministic model of any kind that `RandomizedRegressor` takes, None for its default; one in a
        `FrozenEstimator` that says a distribution is not fitted again, and all rows certify it. A `PAICRegressor`, of
        which a path of alphas is trained. Or fitted randomized forecasters (`RandomizedRegressor`, `PAICRegressor`) in
        the order in which they are to be tested.
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
        Groups for the deterministic alternative, as for `RecalibratedRegressor`.
    recalibrate : bool, default False
        Whether a deterministic model is first mended with PITs from the rows that it learns on, cross-fitted; a model
        that is far off needs much randomization otherwise.
    alternative : bool, default True
        Whether the deterministic alternative is made. Around a model that says its own distribution it takes five
        more fits, for PITs on rows not learned from; around a plain regressor none.
    certify_share : float, default 0.3
        Share of the people that are kept for certifying.
    cluster : array-like of shape (n,), optional
        Labels of people who have several rows: no person is on both sides, and one row of each certifies.
    random_state : int, generator or None
        Of the split, the training and the draws.

    Returns
    -------
    Selection

    Raises
    ------
    InputError
        If the input does not fit, or the target cannot be met on so few rows; the message says how many it takes.

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
    if by is not None and not alternative:
        raise bad_input("by", "be left out with alternative=False", by, "its groups are those of the alternative")
    family = make_link(link, 1.0)
    outcomes = check_finite("y", y)
    random = generator(random_state)
    target = _Target(float(max_group_error), float(group_mass), float(confidence), family)
    # rows that mend a model certify nothing
    share = 1.0 if _is_fitted(estimator) and not recalibrate else certify_share
    rows = _split(X, outcomes, cluster, share, random)
    if isinstance(estimator, PAICRegressor) or _is_ordered(estimator):
        return _in_order(estimator, rows, target, random)
    return _around(estimator, rows, target, by, recalibrate, alternative, random)


@dataclass(frozen=True)
class _Target:
    max_group_error: float
    group_mass: float
    confidence: float
    family: Link


@dataclass(frozen=True)
class _Rows:
    """Rows to learn from and rows, one per person, to certify on."""

    X: Any
    y: Floats
    learn: NDArray[np.intp]
    certify: NDArray[np.intp]

    def learning(self) -> tuple[Any, Floats]:
        return take_rows(self.X, self.learn), self.y[self.learn]

    def certifying(self) -> tuple[Any, Floats]:
        return take_rows(self.X, self.certify), self.y[self.certify]


def _split(X: Any, y: Floats, cluster: ArrayLike | None, share: float, random: np.random.Generator) -> _Rows:
    table = X if hasattr(X, "columns") else np.asarray(X)
    if len(table) != y.size:
        raise bad_input("y", f"have one outcome per row of X ({len(table)})", f"{y.size} outcomes")
    people = np.arange(y.size) if cluster is None else check_cluster(cluster, y.size)
    n_people = int(people.max()) + 1
    kept = np.zeros(n_people, dtype=np.bool_)
    kept[random.permutation(n_people)[: int(np.ceil(share * n_people))]] = True
    held = np.flatnonzero(kept[people])
    if cluster is not None:
        held = held[one_row_each(people[held], held.size, random)]
    return _Rows(table, y, np.flatnonzero(~kept[people]), np.sort(held))


def _is_ordered(estimator: Any) -> bool:
    """Whether this is a list of randomized forecasters; a list of other models is one ensemble."""
    return isinstance(estimator, Sequence) and all(hasattr(m, "forecast") and hasattr(m, "alpha") for m in estimator)


def _is_fitted(estimator: Any) -> bool:
    if _is_ordered(estimator):
        return True
    # the residuals of a plain regressor have to be learned on rows that certify nothing
    return isinstance(estimator, FrozenEstimator) and kind_of(estimator).is_held_out(estimator)


def _around(
    estimator: Any,
    rows: _Rows,
    target: _Target,
    by: By | None,
    recalibrate: bool,
    alternative: bool,
    random: np.random.Generator,
) -> Selection:
    """Choose a link around a deterministic model."""
    seed = int(random.integers(2**31))
    if estimator is None:
        estimator = MixtureMLPRegressor(random_state=seed)
    params: dict[str, Any] = {"alpha": 1.0, "link": target.family.name, "random_state": seed}
    mended = None
    if rows.learn.size and alternative:
        mended = RecalibratedRegressor(estimator, by=by, random_state=seed).fit(*rows.learning())
    if recalibrate:
        model = RandomizedRegressor(estimator, recalibrate=True, **params).fit(*rows.learning())
    elif mended is not None:
        model = RandomizedRegressor.sharing(mended, **params)
    else:
        # a frozen model learns nothing from the rows that it is given
        given = rows.learning() if rows.learn.size else rows.certifying()
        model = RandomizedRegressor(estimator, **params).fit(*given)
    X, y = rows.certifying()
    stated = model.base_forecast(X)
    base = read_subject(stated, None, y, random)
    proof = certify_link(base.pit, target.family, confidence=target.confidence)
    proof = proof.least_randomized(target.max_group_error, target.group_mass)
    model.set_params(alpha=proof.link.alpha)
    draws = jittered(y.size, PRICE_DRAWS, random)
    pit = proof.link.ppf(base.pit, draws)
    # log h = log g - log k at the base's PIT: the price needs no second look at the forecasts
    paid = float(proof.link.logpdf(pit, draws).mean())
    compared = [_line("as it is", stated, y, base.pit)]
    if mended is not None:
        forecast = mended.forecast(X) if recalibrate else mended._mended(stated, mended._labels(X))
        name = "recalibrated" if by is None else "recalibrated by group"
        compared.append(_line(name, forecast, y, read_subject(forecast, None, y, random).pit))
    served = stated.randomized(proof.link.alpha, proof.link, random_state=random)
    compared.append(_line("randomized", served, y, pit, proof.group_error(target.group_mass)))
    return Selection(
        model=model,
        certificate=proof,
        max_group_error=target.max_group_error,
        group_mass=target.group_mass,
        confidence=target.confidence,
        price=paid,
        limit=_limit(proof.mean_error()),
        alternative=mended,
        comparison=pd.DataFrame(compared),
        n_learning=int(rows.learn.size),
        n_certifying=proof.n_samples,
        certifying=rows.certify,
    )


def _in_order(estimator: Any, rows: _Rows, target: _Target, random: np.random.Generator) -> Selection:
    """Test randomized models one after the other; the first that fails ends it (fixed-sequence testing)."""
    if isinstance(estimator, PAICRegressor):
        params = {name: value for name, value in estimator.get_params(deep=False).items() if name != "alpha"}
        models: Sequence[Any] = type(estimator).path(*rows.learning(), ALPHAS, **params)
    else:
        models = estimator
    if not len(models):
        raise bad_input("estimator", "hold at least one fitted forecaster", "none")
    X, y = rows.certifying()
    check_rows(models[0], X, y.size)
    passed: tuple[Any, Certificate] | None = None
    for model in models:
        proof = certify(
            model, X, y, confidence=target.confidence, method="betting", mass=target.group_mass, random_state=random
        )
        if not proof.is_randomized or proof.group_error(target.group_mass) > target.max_group_error:
            break
        passed = model, proof
    if passed is None:
        raise InputError(
            f"a group error of at most {target.max_group_error:g} is not certified for mass {target.group_mass:g} on "
            f"{y.size:,} rows, not even for the most randomized of the models: bring more rows, allow a larger error, "
            "or put a more randomized model first"
        )
    model, proof = passed
    line = _line("randomized", model.forecast(X, random_state=random), y, proof.pit, target.max_group_error)
    return Selection(
        model=model,
        certificate=proof,
        max_group_error=target.max_group_error,
        group_mass=target.group_mass,
        confidence=target.confidence,
        price=np.nan,
        limit=_limit(float(pathwise_errors(proof.pit).mean())),
        alternative=None,
        comparison=pd.DataFrame([line]),
        n_learning=int(rows.learn.size),
        n_certifying=proof.n_samples,
        certifying=rows.certify,
    )


def _line(name: str, forecast: Any, y: Floats, pit: Floats, certified: float = np.nan) -> dict[str, Any]:
    return {
        "forecaster": name,
        "log_score": float(np.mean(log_score(forecast, y))),
        "crps": float(np.mean(crps(forecast.take(slice(COMPARED)), y[:COMPARED]))),
        "average_error": calibration_error(pit),
        "certified_group_error": certified,
    }


def _limit(error: float) -> float:
    return float(price_of_proof(min(error, 1 / 3)))
