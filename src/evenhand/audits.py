"""One audit of everything: sharpness, average and group calibration, the oracle worst group."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from evenhand import calibration
from evenhand._checks import MILD_ATOM, Floats, bad_input, check_continuous, check_finite, check_weights, largest_atom
from evenhand.draws import RandomState, generator, jittered
from evenhand.forecast import Forecast
from evenhand.report import audit_text, comparison_text, difference_in_words
from evenhand.tables import group_columns

__all__ = ["Audit", "Comparison", "audit", "compare"]

SCHEMA = "evenhand.audit/1"
LEVELS = (0.8, 0.9)
MASSES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
PIT_DRAWS = 64
SCORE_DRAWS = 16
"""Draws for CRPS and spread, whose means over draws settle with few."""

Z95 = 1.959964
SMALL_GROUP = 30


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Parameters
    ----------
    name : str
        What was audited.
    n_samples : int
        Rows.
    n_draws : int
        Draws per row, 1 for a deterministic forecaster or for one served draw per person.
    is_randomized : bool
        Whether a draw stands behind the forecasts.
    rounding_step : float or None
        Grid that the outcomes lie on, if they are rounded.
    scores : DataFrame
        One row per measure: `measure`, `value`, `low`, `high` (95%), `unit`.
    groups : DataFrame
        One row per named group, "everyone" first: `group`, `n`, `error` with its 95% band, the mean PIT (below 1/2
        the outcomes are lower than forecast), and for each interval its coverage with a 95% band, and
        whether the group is `too_small` to tell (under 30 rows).
    worst_groups : DataFrame
        The oracle worst group: `mass`, `n`, `error`.
    """

    name: str
    n_samples: int
    n_draws: int
    is_randomized: bool
    rounding_step: float | None
    scores: pd.DataFrame
    groups: pd.DataFrame
    worst_groups: pd.DataFrame

    def score(self, measure: str) -> float:
        """Return one measure of `scores`."""
        found = self.scores.loc[self.scores["measure"] == measure, "value"]
        if found.empty:
            raise bad_input("measure", f"be one of {list(self.scores['measure'])}", repr(measure))
        return float(found.iloc[0])

    def worst_group_error(self, mass: float) -> float:
        """Oracle worst-group error at one of the masses audited."""
        at = np.isclose(self.worst_groups["mass"], mass)
        if not at.any():
            raise bad_input("mass", f"be one of {list(self.worst_groups['mass'])}", mass)
        return float(self.worst_groups.loc[at, "error"].iloc[0])

    def summary(self) -> str:
        """Return the findings as text, with sentences that a person reads."""
        return audit_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as plain values; the layout is documented in docs/audit-schema.md."""
        tables = {"scores": self.scores, "groups": self.groups, "worst_groups": self.worst_groups}
        head = {
            "schema": SCHEMA,
            "name": self.name,
            "n_samples": self.n_samples,
            "n_draws": self.n_draws,
            "is_randomized": self.is_randomized,
            "rounding_step": self.rounding_step,
        }
        return head | {key: _plain_records(table) for key, table in tables.items()}

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the findings as JSON, and write them to `path` if one is given."""
        text = json.dumps(self.to_dict(), indent=2)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text


@dataclass(frozen=True)
class Comparison:
    """Two audits of the same rows, side by side.

    Parameters
    ----------
    table : DataFrame
        One row per measure: `measure`, a column per audit, and `in_words`.
    names : tuple of str
        Names of the two audits.
    """

    table: pd.DataFrame
    names: tuple[str, str]

    def summary(self) -> str:
        """Return the table as text."""
        return comparison_text(self.table, self.names)


def audit(
    model_or_forecast: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    groups: Mapping[str, ArrayLike] | Sequence[str] | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: RandomState = None,
    name: str | None = None,
) -> Audit:
    """Audit a forecaster, or anybody's forecasts, on rows that it was not trained on.

    Parameters
    ----------
    model_or_forecast : forecaster or Forecast
        A fitted forecaster, which is asked for forecasts over 64 jittered draws, or forecasts that are made already.
    X : DataFrame or array-like of shape (n, n_features), optional
        Rows for the forecaster; also the table that columns in `groups` are taken from.
    y : array-like of shape (n,)
        Outcomes.
    groups : list of column names, or dict of name to mask, optional
        Named groups. A column with few values gives one group per value, another its halves at the median.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows for estimates; the oracle worst group ignores them.
    random_state : int, generator or None
        Seed of draws, of PITs within rounding cells, and of bands.
    name : str, optional
        What to call the forecaster in what people see.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        If outcomes are missing, infinite, constant or not continuous, or do not fit the forecasts.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=500)
    >>> found = audit(Forecast.from_normal(np.zeros(500), np.full(500, 2.0)), y=y, random_state=0)
    >>> round(found.score("90% coverage"), 2)
    1.0
    """
    if y is None:
        raise bad_input("y", "be given: an audit needs outcomes", "None")
    outcomes = check_finite("y", y)
    check_continuous(outcomes)
    random = generator(random_state)
    pit_forecast, score_forecast = _forecasts(model_or_forecast, X, outcomes.size, random)
    weight = check_weights(sample_weight, outcomes.size)
    step = calibration.rounding_step(outcomes)
    # an outcome that many rows share piles their PITs up: spread them over the cell's probability
    jitter = step if largest_atom(outcomes)[1] > MILD_ATOM else None
    pit = pit_forecast.pit(outcomes, step=jitter, random_state=random)
    matrix = pit if pit.ndim == 2 else pit[:, None]
    return Audit(
        name=name or _default_name(model_or_forecast),
        n_samples=outcomes.size,
        n_draws=matrix.shape[1],
        is_randomized=pit_forecast.is_randomized,
        rounding_step=step,
        scores=_scores(pit_forecast, score_forecast, matrix, outcomes, step, weight, random),
        groups=_group_table(matrix, _named_groups(groups, X, outcomes.size), weight, random),
        worst_groups=_worst_groups(matrix),
    )


def _plain_records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a table with all digits; JSON has no NaN or infinity, so they become None."""
    return [
        {
            str(key): None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in row.items()
        }
        for row in table.to_dict("records")
    ]


def compare(first: Audit, second: Audit) -> Comparison:
    """Put two audits of the same rows side by side, with a sentence in plain words on each difference.

    Parameters
    ----------
    first, second : Audit
        Usually the deterministic base and the randomized forecaster.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If they are not of the same rows and groups.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> sharp = Forecast.from_normal(np.zeros(500), np.full(500, 0.5))
    >>> found = [audit(f, y=y, name=n) for f, n in ((sharp, "sharp"), (sharp.randomized(0.1), "randomized"))]
    >>> list(compare(*found).table.columns)
    ['measure', 'sharp', 'randomized', 'in_words']
    """
    sizes = [
        [f"{name} ({n})" for name, n in zip(a.groups["group"], a.groups["n"], strict=True)] for a in (first, second)
    ]
    if sizes[0] != sizes[1]:
        raise bad_input("audits", "be of the same rows and groups", " and ".join(map(", ".join, sizes)))
    names = (first.name, second.name)
    if names[0] == names[1]:
        raise bad_input("audits", "have different names", repr(names[0]), "pass name= to audit")
    rows = [
        {"measure": measure, names[0]: a, names[1]: b, "in_words": difference_in_words(measure, a, b, names)}
        for measure, (a, b) in _aligned(first, second)
    ]
    return Comparison(pd.DataFrame(rows), names)


def _aligned(first: Audit, second: Audit) -> list[tuple[str, tuple[float, float]]]:
    pairs = [
        (str(measure), (first.score(measure), second.score(measure)))
        for measure in first.scores["measure"]
        if measure in set(second.scores["measure"])
    ]
    for a, b in zip(first.groups.to_dict("records"), second.groups.to_dict("records"), strict=True):
        if a["group"] != "everyone":
            pairs.append((f"error, {a['group']}", (a["error"], b["error"])))
            pairs.append((f"90% coverage, {a['group']}", (a["coverage_90"], b["coverage_90"])))
    for mass in first.worst_groups["mass"]:
        pairs.append((f"oracle worst {mass:.0%}", (first.worst_group_error(mass), second.worst_group_error(mass))))
    return pairs


def _forecasts(model: Any, X: Any, n: int, random: np.random.Generator) -> tuple[Forecast, Forecast]:
    """Forecasts for PITs and for scores; the same if they are given."""
    if isinstance(model, Forecast):
        if model.n_samples != n:
            raise bad_input("y", f"have one outcome per forecast ({model.n_samples})", f"{n} outcomes")
        return model, model
    if not hasattr(model, "forecast"):
        remedy = "put a link around it: RandomizedRegressor(model), or make a Forecast of its output"
        raise bad_input("model_or_forecast", "be a forecaster or a Forecast", type(model).__name__, remedy)
    if X is None:
        raise bad_input("X", "be given with a forecaster", "None")
    if len(X) != n:
        raise bad_input("y", f"have one outcome per row of X ({len(X)})", f"{n} outcomes")
    wide = model.forecast(X, jittered(n, PIT_DRAWS, random))
    if not wide.is_randomized:
        return wide, wide
    return wide, model.forecast(X, jittered(n, SCORE_DRAWS, random))


def _default_name(model: Any) -> str:
    return "forecast" if isinstance(model, Forecast) else type(model).__name__


def _named_groups(groups: Any, X: Any, n: int) -> dict[str, NDArray[np.bool_]]:
    if groups is None:
        return {}
    if not isinstance(groups, Mapping):
        if isinstance(groups, str):
            raise bad_input("groups", "be a list of column names or masks by name", repr(groups), f"write [{groups!r}]")
        if X is None or not hasattr(X, "columns"):
            raise bad_input("groups", "be masks by name where X is not a table", type(groups).__name__)
        if len(X) != n:
            raise bad_input("X", f"have one row per outcome ({n})", f"{len(X)} rows")
        import narwhals as nw

        return group_columns(nw.from_native(X).to_pandas(), list(groups), source="X")
    masks = {}
    for name, mask in groups.items():
        array = np.asarray(mask)
        if array.shape != (n,) or array.dtype != np.bool_:
            raise bad_input(f"groups[{name!r}]", f"be {n} booleans", f"{array.dtype} of shape {array.shape}")
        if str(name) == "everyone" or str(name) in masks:
            raise bad_input(f"groups[{name!r}]", "have a name of its own", f"{str(name)!r} twice")
        if not array.any():
            raise bad_input(f"groups[{name!r}]", "hold at least one row", "none")
        masks[str(name)] = array
    return masks


def _scores(
    forecast: Forecast,
    few: Forecast,
    pit: Floats,
    y: Floats,
    step: float | None,
    weight: Floats,
    random: np.random.Generator,
) -> pd.DataFrame:
    rows = [("log score", calibration.log_score(forecast, y), "nats")]
    if step is not None:
        rows.append((f"log score, cells of {step:g}", calibration.cell_log_score(forecast, y, step), "nats"))
    rows.append(("CRPS", calibration.crps(few, y), "units of y"))
    rows.append(("mean std", calibration.spread(few), "units of y"))
    for level in LEVELS:
        rows.append((f"{level:.0%} interval width", calibration.interval_width(few, level), "units of y"))
    rows += [(f"{level:.0%} coverage", calibration.covered(pit, level), "share") for level in LEVELS]
    found = [
        {"measure": name, **(_share_band if unit == "share" else _mean_band)(values, weight), "unit": unit}
        for name, values, unit in rows
    ]
    error = calibration.calibration_error(pit, sample_weight=weight)
    low, high = calibration.error_band(pit, sample_weight=weight, random_state=random)
    found.append({"measure": "average error", "value": error, "low": low, "high": high, "unit": "probability"})
    return pd.DataFrame(found)


def _mean_band(values: Floats, weight: Floats) -> dict[str, float]:
    """Weighted mean with a normal 95% band from the spread between people."""
    mean = float(np.average(values, weights=weight))
    share = weight / weight.sum()
    # linearized variance of a weighted mean
    se = float(np.sqrt((share**2 * (values - mean) ** 2).sum())) if values.size > 1 else np.nan
    return {"value": mean, "low": mean - Z95 * se, "high": mean + Z95 * se}


def _share_band(values: Floats, weight: Floats) -> dict[str, float]:
    """Weighted mean of shares with Wilson's 95% band, which has a width even where all agree.

    The number of rows is an effective one: that at which single trials would vary as these shares do.
    """
    mean = min(max(float(np.average(values, weights=weight)), 0.0), 1.0)
    share = weight / weight.sum()
    variance = float((share**2 * (values - mean) ** 2).sum())
    n = mean * (1 - mean) / variance if variance > 0 and values.size > 1 else 1 / float((share**2).sum())
    centre = (mean + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 / (1 + Z95**2 / n) * np.sqrt(mean * (1 - mean) / n + (Z95 / (2 * n)) ** 2)
    return {"value": mean, "low": max(float(centre - half), 0.0), "high": min(float(centre + half), 1.0)}


def _group_table(
    pit: Floats, groups: dict[str, NDArray[np.bool_]], weight: Floats, random: np.random.Generator
) -> pd.DataFrame:
    everyone = {"everyone": np.ones(pit.shape[0], dtype=np.bool_)}
    rows = []
    for name, mask in (everyone | groups).items():
        part, w = pit[mask], weight[mask]
        if not w.any():
            warnings.warn(f"group {name!r} has zero weight and is left out", UserWarning, stacklevel=3)
            continue
        low, high = calibration.error_band(part, sample_weight=w, random_state=random)
        row: dict[str, Any] = {"group": name, "n": int(mask.sum())}
        row |= {"error": calibration.calibration_error(part, sample_weight=w), "error_low": low, "error_high": high}
        row["mean_pit"] = float(np.average(part.mean(axis=-1), weights=w))
        for level in LEVELS:
            band = _share_band(calibration.covered(part, level), w)
            key = f"coverage_{level * 100:.0f}"
            row |= {key: band["value"], f"{key}_low": band["low"], f"{key}_high": band["high"]}
        row["too_small"] = row["n"] < SMALL_GROUP
        rows.append(row)
    return pd.DataFrame(rows)


def _worst_groups(pit: Floats) -> pd.DataFrame:
    curve = calibration.worst_group_curve(pit, MASSES)
    counts = [rows.size for rows in curve.rows]
    return pd.DataFrame({"mass": curve.masses, "n": counts, "error": curve.errors})
