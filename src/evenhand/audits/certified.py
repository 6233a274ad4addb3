"""Entry point `certify`: a certificate without an audit."""

from __future__ import annotations

import warnings
from typing import Any

from numpy.typing import ArrayLike

from evenhand import certificates
from evenhand._validate import InputError, check_finite
from evenhand.audits.certifying import certificate_of
from evenhand.audits.forecasts import check_model, check_rows, copies_among, read_subject
from evenhand.censoring import given_times
from evenhand.columns import check_groups
from evenhand.draws import RandomState, generator


def certify(
    model: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    event: ArrayLike | None = None,
    horizon: float | None = None,
    entered: Any = None,
    confidence: float = 0.95,
    groups: Any = None,
    method: certificates.Method = "local-levels",
    mass: float | None = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: RandomState = None,
) -> certificates.PITCertificate:
    """Certify a forecaster, or given forecasts, on rows not used for training or model selection.

    Parameters
    ----------
    model : forecaster or Forecast
        A fitted forecaster, which is evaluated with 64 jittered draws per row, or the forecasts
        themselves. Fitted models of other libraries, such as classifiers with `predict_proba`, are
        certified as forecasters.
    X : DataFrame or array-like of shape (n, n_features), optional
        Input rows of the forecaster, and the table that contains the columns listed in `groups`.
    y : array-like of shape (n,)
        Outcomes.
    event : array-like of shape (n,), optional
        For times until an event: 1 or True where the event was observed, 0 or False where the time
        is cut off, so that `y` is when the person was last seen without it.
    horizon : float, optional
        For times: up to when outcomes are followed, in units of `y`. The outcome is then the time
        or the horizon, whichever is first.
    entered : array-like of shape (n,), optional
        For times with a horizon: when each person entered, as dates (`y` is then in days) or as
        numbers in units of `y`. The guarantee uses the people who entered at least a horizon before
        the end of follow-up, the latest `entered + y`.
    confidence, method, mass, cluster, sample_weight, random_state
        As in `certificates.certify_pit`. With the default method, a forecaster or a forecast that
        is a link around a deterministic forecaster has the bounds of `certificates.certify_link`,
        from the PITs of that forecaster; one draw per person then suffices.
    groups : as in `audit`, optional
        Groups chosen before seeing these rows, by features known before the outcome: a group that
        the outcome defines is miscalibrated under any forecaster. A numeric column is cut at its
        median in these rows; this dependence on the rows is ignored.

    Returns
    -------
    Certificate

    Raises
    ------
    InputError
        If the inputs do not match, or allow no guarantee.

    Warns
    -----
    UserWarning
        If rows are exact copies of others, so that they are not independent.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand import Forecast
    >>> rng = np.random.default_rng(0)
    >>> forecast = Forecast.from_normal(np.zeros(400), np.ones(400))
    >>> certify(forecast, y=rng.normal(size=400), random_state=0).average_error() < 0.15
    True
    """
    if y is None:
        raise InputError("y is missing: a certificate needs outcomes; pass y=")
    random = generator(random_state)
    times = given_times(y, event, horizon, entered, sample_weight)
    outcomes = check_finite("y", y) if times is None else times.time
    masks = check_groups(groups, outcomes.size, y if X is None else X)
    audited = check_model(model)
    rows = check_rows(audited, X, outcomes.size)
    subject = read_subject(audited, rows, outcomes, random, times=times)
    if cluster is None and (warning := copies_among(rows, subject)):
        warnings.warn(warning, UserWarning, stacklevel=2)
    return certificate_of(
        subject,
        confidence=confidence,
        groups=masks,
        method=method,
        mass=mass,
        cluster=cluster,
        sample_weight=sample_weight,
        random_state=random,
    )
