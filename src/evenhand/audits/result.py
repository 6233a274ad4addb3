"""Result of a calibration audit: decisions, text, page, JSON and repair."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from evenhand._files import write_text
from evenhand._format import Summarized, count, one_line
from evenhand._validate import InputError, bad_input
from evenhand.audits.group_tests import Family, OffGroup, marked, member_table
from evenhand.audits.outcomes import missing_columns_named
from evenhand.audits.plain import csv_tables, plain_audit, write_tables
from evenhand.audits.provenance import values_hash
from evenhand.audits.scores import AVERAGE_ERROR
from evenhand.audits.survival import CensoringCounts
from evenhand.calibration import GivenForecast, Outcomes, as_outcomes
from evenhand.certificates import Certificate
from evenhand.distributions import OutcomeKind
from evenhand.draws import RandomState
from evenhand.forecast import Forecast
from evenhand.report import (
    JudgedCondition,
    Measure,
    Note,
    Status,
    audit_brief,
    audit_html,
    audit_text,
    findings_of,
    status_of,
)
from evenhand.tables import OWN_VALUES, GroupRule, UnseenValues, as_table

if TYPE_CHECKING:
    from evenhand.forecasters import RecalibratedRegressor


# --- repair

SHOWN = 3
"""Most groups that the representation of a repaired model names."""


class RepairedGroups(dict[str, Any]):
    """Rules or masks of the groups of a repair by name, often 50: the first ones are shown."""

    def __repr__(self) -> str:
        named = ", ".join(map(repr, list(self)[:SHOWN]))
        return f"<{count(len(self), 'group')}: {named}{', ...' if len(self) > SHOWN else ''}>"


def _rules(off: Sequence[OffGroup], masks: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rules of groups by name, or their masks; groups without either give a warning."""
    known = {group.name for group in off}
    for name in masks:
        if name not in known:
            rule = "name groups that are a problem in the audit"
            remedy = f"these are: {', '.join(sorted(known)) or 'none'}"[:200]
            raise bad_input("groups", rule, repr(name), remedy)
    by = {group.name: masks.get(group.name, group.rule) for group in off}
    without = [name for name, rule in by.items() if rule is None]
    if without:
        listed = ", ".join(map(repr, without))
        warnings.warn(
            f"not repaired, as no rule defines these groups on other rows: {listed}; pass masks of"
            f" the rows of X, such as groups={{{without[0]!r}: mask}}",
            UserWarning,
            stacklevel=3,
        )
    return {name: rule for name, rule in by.items() if rule is not None}


def _distinct(by: Mapping[str, Any], X: Any, y: ArrayLike) -> RepairedGroups:
    """Return the groups without rules that select the same rows as a rule before."""
    table = as_table(X, np.size(y), name="X", per="outcome")
    # each group widens the intervals of the check for all others
    found: dict[object, tuple[str, Any]] = {}
    for name, rule in by.items():
        # groups by the forecast are not evaluated, as few have the rows of another
        is_of_table = isinstance(rule, GroupRule) and OWN_VALUES.keys().isdisjoint(rule.columns)
        rows = rule.mask(table).tobytes() if is_of_table else name
        found.setdefault(rows, (name, rule))
    return RepairedGroups(found.values())


def _unfitted(
    model: Any, by: Mapping[str, Any], random_state: RandomState
) -> RecalibratedRegressor:
    # imported here: few audits are followed by a repair, and forecasters import scikit-learn
    from sklearn.frozen import FrozenEstimator

    from evenhand.forecasters import RecalibratedRegressor

    # a fitted model is not fitted again: all rows are held-out rows
    is_estimator = hasattr(model, "fit") and not isinstance(model, FrozenEstimator)
    frozen = FrozenEstimator(model) if is_estimator else model
    return RecalibratedRegressor(frozen, by=by or None, random_state=random_state)


# --- decisions: which groups are off, and which of these are a problem (verdict: 3)

SLOPES = (0.8, 1.25)
"""Calibration slopes outside of which a significant trend is a problem, whatever its size."""

ROUNDING = 1e-9
"""Rounding error of a difference of shares."""


def decide_groups(table: pd.DataFrame, tolerance: float, level: float) -> pd.DataFrame:
    """Add the columns `off` and `problem` to a table of groups.

    A group is off if its p-value, adjusted for the whole family, is below the level; groups that
    are too small and possible leaks never are. It is a problem if it is off and its estimated error
    is beyond the tolerance, or the slope of the trend that decides it far from 1.
    """
    if not len(table.columns):
        return table
    is_judged = ~(_numbers(table, "too_small") > 0) & ~(_numbers(table, "possible_leak") > 0)
    is_off = is_judged & (_numbers(table, "p_adjusted") < level)
    # where times are cut off, the error of the tested PITs understates the size (outcomes: 5)
    size, tested = _numbers(table, "km_error"), _numbers(table, "error")
    slope = _numbers(table, "slope")
    is_beyond = np.where(np.isnan(size), tested, size) > tolerance + ROUNDING
    is_beyond |= (slope < SLOPES[0]) | (slope > SLOPES[1])
    return table.assign(off=is_off, problem=is_off & is_beyond)


def decide_everyone(
    groups: pd.DataFrame, given: GivenForecast | None, tolerance: float
) -> pd.DataFrame:
    """Judge everyone, the first row, by the error given the forecast as well."""
    if given is None or not len(groups):
        return groups
    problem = groups["problem"].to_numpy(copy=True)
    problem[0] |= groups["off"].iloc[0] and given.error > tolerance + ROUNDING
    return groups.assign(problem=problem)


def same_decisions(groups: pd.DataFrame, scan: pd.DataFrame) -> pd.DataFrame:
    """Return the scan with the decisions of named groups of the same rows.

    The same rows have one decision under both names, also if they are too small.
    """
    named = groups.dropna(subset="scanned_as").drop_duplicates("scanned_as")
    known = {
        column: dict(zip(named["scanned_as"], named[column], strict=True))
        for column in ("off", "problem")
    }
    return scan.assign(
        **{
            column: [
                decisions.get(group, own)
                for group, own in zip(scan["group"], scan[column], strict=True)
            ]
            for column, decisions in known.items()
        }
    )


def decide_learned(learned: pd.DataFrame, tolerance: float, level: float) -> pd.DataFrame:
    """Add the same columns to learned groups, whose p-values are adjusted for their number.

    Rules of groups that are not off would describe noise: they are removed.
    """
    found = decide_groups(learned, tolerance, level)
    if "description" not in found or found.empty:
        return found
    is_off = found["off"].to_numpy()
    kept = [rule if off else None for rule, off in zip(found["description"], is_off, strict=True)]
    return found.assign(
        # as objects: pandas would convert None to NaN
        description=pd.Series(kept, index=found.index, dtype=object),
        description_share=found["description_share"].where(is_off),
    )


def _numbers(table: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """Return a column; NaN if the table lacks it."""
    if column not in table:
        return np.full(len(table), np.nan)
    return table[column].to_numpy(dtype=np.float64, na_value=np.nan)


# --- audit


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Summarized):
    """Result of a calibration audit.

    Parameters
    ----------
    name : str
        Name of the audited forecaster.
    n_samples : int
        Number of rows.
    n_draws : int
        Draws per row, 1 for a deterministic forecaster or for one served draw per person.
    is_randomized : bool
        Whether the forecasts depend on draws.
    rounding_step : float or None
        Grid that the outcomes lie on, if they are rounded.
    scores : DataFrame
        One row per measure: `measure`, `value`, `low`, `high` (95%, for each measure by itself),
        `unit`.
    groups : DataFrame
        One row per named group, "everyone" first: `group`, `n`, `error`, `mean_pit` (below 1/2 the
        outcomes are lower than forecast), `bias` (outcome minus forecast, units of the outcome) and
        the coverage of each prediction interval, with confidence intervals that hold for all groups
        of the audit at once, by measure and level, as `family` states. For 0/1 outcomes the error
        is the absolute difference of the event `rate` and the mean `predicted` probability, of
        everyone that of `given_forecast`; there is no coverage, and `slope` is the calibration
        slope where the trend decides the test. `p_value` tests whether the group is calibrated, and
        `p_adjusted`, adjusted for the whole family, is compared with one minus the confidence:
        below it the group is `off`, and a `problem` if its error is beyond the tolerance as well,
        or the slope outside 0.8 to 1.25. `too_small` marks groups of under 30 rows, whose estimates
        are unreliable; `column` is the column that defines the group (None for a mask);
        `possible_leak` marks groups that the outcome may define; `scanned_as` is the name of the
        same rows in `scan` (None if they were not scanned).
    scan : DataFrame
        Halves and values of features and their intersections, the smallest p-values first: see
        `search.scan_groups`. Intervals and p-values are adjusted for the groups of both tables.
        Empty without features.
    by_forecast : DataFrame
        Groups by the level and the spread of the forecast itself, with the columns of `groups` and
        the `key`, a value of the forecast by which people are divided, `part` (from 1), `n_parts`,
        and the range of its values from `lowest` to `highest`. For 0/1 outcomes these are tenths of
        the predicted probability. Empty below 300 rows and if only PITs are known.
    learned : DataFrame
        The worst group of each size, learned from features on some rows and tested on
        others: see `search.find_group`. Empty without features.
    learned_rows : DataFrame
        The rows of the learned groups: `mass`, `row` in the given table, counted from 0, and `id`
        (None if none was given). Not part of the JSON, where it would be long.
    worst_groups : DataFrame
        The oracle worst group of each size: `mass`, `n`, `error`; `null_mean`, `null_low` and
        `null_high`, the mean and the 5% and 95% quantiles of the same search on calibrated
        forecasts of the same kind; `certified`, the upper bound for every group.
    certificate : Certificate or None
        Guarantees; None if there can be none, with the reason in `notes`.
    plain_intervals : DataFrame
        Lower bounds for the coverage of prediction intervals without a draw in every group:
        `level`, `mass`, `floor`, `covered` (estimated coverage of all people) and `width`, the mean
        width divided by that of the 80% intervals that are served (NaN if unknown). They hold
        jointly with each other, with the confidence of the certificate. Empty without a
        certificate, and for forecasters that are neither deterministic nor a link around a
        deterministic one.
    notes : tuple of Note
        Rows, groups and analyses that were left out or done differently, with reasons; each prints
        as a sentence.
    measures : tuple of Measure
        The measures of `scores`, in its order.
    histogram : DataFrame
        Histogram of PITs over people and draws: `start`, `end` and `share` of each bin, and the
        simultaneous 95% band from `low` to `high`: it contains all bars with probability 0.95 if
        the forecasts are calibrated.
    calibration : DataFrame
        Calibration curve: `level`, the share `observed` of outcomes at or below the forecast
        quantile of that level, and its simultaneous 95% band from `low` to `high`. For 0/1 outcomes
        the isotonic curve of the event `rate` by `probability`, with its band. For times that
        may be cut off, `histogram` and `calibration` are those of the tested PITs.
    provenance : dict
        Versions, command, seed, model, data and origin of the draws; see docs/audit-schema.rst.
    about : dict of str to str
        Description of the audit for readers: population, period, author, purpose, unit of the
        outcome and whatever else was given; empty if nothing was.
    conditions : tuple of JudgedCondition
        Conditions of a gate with their values; empty without a gate.
    target : str or None
        Name of the outcome; None if unknown.
    caveat : str or None
        A warning that reports show first: that the randomization was chosen on these rows, or that
        rows are exact copies of others.
    unseen : UnseenValues or None
        Values, by column, that are absent from the forecaster's training table; None if that table
        is unknown.
    miscoverage : DataFrame
        How far the coverage of intervals, given the features, differs from their level: see
        `search.conditional_miscoverage`. Empty without features.
    membership : DataFrame
        Bounds for each group whose members are known by probability: `group`, the expected number
        of `members`, and for the coverage of each interval and the bias the ends `least` and
        `most` of an interval that contains the value of the group, whatever the relation between
        membership and outcome, with the confidence of the audit, separately for each measure. The
        estimates of these groups in `groups` weight rows by the probabilities; `n` is the rounded
        number of members.
    tolerance : float
        Error that does not matter.
    family : Family or None
        Numbers of groups and tests that hold together, their shares of the error probability, and
        the measures whose intervals are asymptotic.
    given_forecast : GivenForecast or None
        Mean error of people with the same forecast, in which errors of opposite sign do not cancel,
        with the tests of everyone; None if only PITs are known.
    probability_scores : DataFrame
        For 0/1 outcomes, the usual scores of everyone and of named groups of at least 150 rows: see
        `calibration.probability_scores`. Empty for other outcomes.
    off_groups : tuple of OffGroup or None
        Groups that are off, by the column `off` of the tables, with the rules that select them
        among other rows; at most 50 scanned groups, the smallest p-values first. None if the audit
        was computed in parts.
    leaks : DataFrame
        Groups and features that the outcome may define, which do not count as findings: `kind`
        ("group" or "feature"), `name`, `column`, `apart` (share of rows on which the group differs
        from a range of outcomes), `rank_correlation` with the outcomes and
        `forecast_rank_correlation`, the same for the forecasts' medians. Empty if only PITs are
        known.
    outcome_kind : OutcomeKind or None
        Kind of outcome that the forecasts describe; None if only PITs are known.
    reliability : DataFrame
        Predicted probabilities of an event against its rate: `group` ("everyone" first), `bin`
        (from 0, by increasing probability), `n`, the mean predicted `probability`, the `rate` of
        the event and its interval from `low` to `high`, simultaneous for all bins of the group with
        the confidence of the audit. The event is `y = 1` for 0/1 outcomes, an outcome that is not
        the atom for hurdles, and an event by the horizon for times, whose rates are Kaplan-Meier
        estimates. Empty for other outcomes.
    grid_share : float or None
        Share of the average error that may be due to rounding, where PITs are spread over rounding
        cells: `(d - I) / d` with the average error `d` and the least error `I` of any positions in
        the cells (`calibration.cell_error`). None without such cells.
    positive_part : DataFrame
        Named groups of the people whose outcome is not the atom of a hurdle, with the columns of
        `groups`, for the PITs of the continuous part. Intervals and p-values are adjusted for the
        groups of this table alone. Empty for other outcomes.
    censoring : CensoringCounts or None
        Numbers of events, of people who reached the horizon and of people who are lost; None unless
        outcomes are times that may be cut off. The tables `groups`, `scan` (significant groups, at
        most 100) and `learned` then have these columns too: `km_error`, the error of the
        Kaplan-Meier estimate of PITs, with its asymptotic interval from `km_low` to `km_high`, and
        the bounds `least_error` and `most_error`, which hold whoever is cut off
        (`calibration.CensoredError`); `mean_pit` and coverages are those of the Kaplan-Meier
        estimate. Errors and tests are those of randomized PITs of the censored distribution:
        `error` understates the size.
    survival : DataFrame
        Probability of the event by the horizon: `group` ("everyone" first), `n`, `n_events`,
        `n_lost`, the mean `predicted` probability, the Kaplan-Meier estimate `observed` and its
        interval from `low` to `high`, and the bounds `least` and `most` of Clopper and Pearson, for
        which the lost count as people without the event and with it. Intervals and bounds are
        simultaneous for all groups. Empty without a horizon.
    """

    name: str
    n_samples: int
    n_draws: int
    is_randomized: bool
    rounding_step: float | None
    scores: pd.DataFrame
    groups: pd.DataFrame
    scan: pd.DataFrame
    learned: pd.DataFrame
    worst_groups: pd.DataFrame
    certificate: Certificate | None
    plain_intervals: pd.DataFrame
    notes: tuple[Note, ...]
    measures: tuple[Measure, ...]
    histogram: pd.DataFrame
    calibration: pd.DataFrame
    target: str | None
    tolerance: float
    miscoverage: pd.DataFrame
    membership: pd.DataFrame
    family: Family | None
    by_forecast: pd.DataFrame
    given_forecast: GivenForecast | None
    probability_scores: pd.DataFrame
    off_groups: tuple[OffGroup, ...] | None
    learned_rows: pd.DataFrame
    leaks: pd.DataFrame
    outcome_kind: OutcomeKind | None
    reliability: pd.DataFrame
    positive_part: pd.DataFrame
    censoring: CensoringCounts | None
    survival: pd.DataFrame
    provenance: dict[str, Any] = field(default_factory=dict)
    caveat: str | None = None
    unseen: UnseenValues | None = None
    grid_share: float | None = None
    about: Mapping[str, str] = field(default_factory=dict)
    conditions: tuple[JudgedCondition, ...] = ()

    def __post_init__(self) -> None:
        # decided here, once for all that read the tables: an audit with another tolerance or with
        # other rows decides anew
        level = 1 - (self.family.confidence if self.family else 0.95)
        groups = decide_groups(self.groups, self.tolerance, level)
        groups = decide_everyone(groups, self.given_forecast, self.tolerance)
        scan = decide_groups(self.scan, self.tolerance, level)
        learned = decide_learned(self.learned, self.tolerance, level)
        decided = {"groups": groups, "scan": same_decisions(groups, scan), "learned": learned}
        for name in ("by_forecast", "positive_part"):
            decided[name] = decide_groups(getattr(self, name), self.tolerance, level)
        for name, table in decided.items():
            object.__setattr__(self, name, table)
        if self.off_groups is not None:
            object.__setattr__(self, "off_groups", self._marked("off"))

    def __repr__(self) -> str:
        return one_line(
            self,
            name=self.name,
            n_samples=self.n_samples,
            n_draws=self.n_draws,
            average_error=self.score(AVERAGE_ERROR),
            groups=len(self.groups) - 1,
            is_certified=self.certificate is not None,
        )

    def score(self, measure: str | Measure) -> float:
        """Return the value of a measure in `scores`, by its name or as a `Measure`."""
        name = str(measure)
        found = self.scores.loc[self.scores["measure"] == name, "value"]
        if found.empty:
            raise bad_input("measure", f"be one of {list(self.scores['measure'])}", repr(name))
        return float(found.iloc[0])

    @property
    def status(self) -> Status:
        """Verdict by evidence: problem found, no problem found or too few rows, with its numbers.

        Conditions of a gate do not change it.
        """
        return status_of(findings_of(plain_audit(self)))

    def summary(self, *, full: bool = False) -> str:
        """Return the findings as text.

        Parameters
        ----------
        full : bool, default False
            Whether to return all findings and tables; otherwise about 20 lines: the verdict, the
            main findings, what is proven for every group, and what to do next.
        """
        text = audit_text if full else audit_brief
        return text(plain_audit(self))

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the findings as one self-contained HTML page; write it to `path` if given.

        The page contains nobody's id; `Audit.members` and `Audit.to_csv` list them.
        """
        text = audit_html(plain_audit(self))
        if path is not None:
            write_text(path, text)
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as plain values.

        The layout is documented in docs/audit-schema.rst.
        """
        return plain_audit(self)

    @cached_property
    def every_group(self) -> pd.DataFrame:
        """Certified bounds for every group, by group size; empty without a certificate.

        The columns are those of the certificate's `table`. It is cached: with many rows the bounds
        take seconds, and text, page and comparisons show them.
        """
        if self.certificate is None:
            return pd.DataFrame({"mass": []})
        table = self.certificate.table()
        if self.certificate.kind is OutcomeKind.BINARY:
            return table[["mass", "bias_low", "bias_high"]]
        return table

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the findings as JSON; write them to `path` if given."""
        text = json.dumps(self.to_dict(), indent=2)
        if path is not None:
            write_text(path, text + "\n")
        return text

    def to_csv(self, folder: str | Path) -> list[Path]:
        """Write each table as a csv file to a folder, numbers with all digits.

        The files are named as the keys of the JSON, for example `groups.csv` and `scan.csv`, and
        `every_group.csv`, `histogram.csv` and `learned_rows.csv`. The folder is made if it is
        missing, and files that an earlier call wrote are replaced.

        Returns
        -------
        list of Path
            The files.

        Raises
        ------
        InputError
            If a file of these names exists that this method did not write.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from evenhand import audit_pit
        >>> found = audit_pit(np.linspace(0.01, 0.99, 50), masses=[1.0], random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     names = [path.name for path in found.to_csv(folder)]
        >>> names[:3]
        ['scores.csv', 'groups.csv', 'scan.csv']
        """
        return write_tables(folder, csv_tables(self))

    @property
    def members(self) -> pd.DataFrame:
        """Members of the groups in `off_groups`: `group`, `mass`, `row` and `id`.

        `mass` is that of a learned group, `row` the number of the row in the given table, counted
        from 0, and `id` is None if no ids were given. Groups known by probability have no members,
        and audits of tables in parts list none.
        """
        return member_table(self.off_groups or ())

    def _marked(self, column: str) -> tuple[OffGroup, ...]:
        """Return the groups for which a decision is true."""
        listed = [table for table in (self.groups, self.scan, self.by_forecast) if len(table)]
        return marked(self.off_groups or (), listed, self.learned, column)

    def repair(
        self,
        model: Any,
        X: Any,
        y: ArrayLike | Outcomes,
        *,
        groups: Mapping[str, Any] | None = None,
        random_state: RandomState = None,
    ) -> RecalibratedRegressor:
        """Recalibrate a fitted model for the groups that are a problem.

        Groups that are significantly off within the tolerance of the audit get no map of their own;
        audit with `tolerance=0` to repair all that are off. Groups by the forecast itself are those
        by the forecast of `model`. Groups with the same rows of `X` are repaired once, under the
        first name. If no group is to be repaired, the result is a single
        map for all rows.

        The rows of the audit were used to choose the groups: pass other rows. The check of the
        repair accounts for the estimation of the maps and for the selection of the groups that need
        a correction, as both are repeated without the rows that are checked. It does not account
        for the choice of the groups by this audit if its rows are passed again; gains of these
        groups are then overestimated. A warning is given if the outcomes are those of the audit.

        Counts, events and outcomes with an atom are repaired by their kind, as the model predicts
        it, and times that may be cut off by the likelihood of what is known; see
        `RecalibratedRegressor`.

        Parameters
        ----------
        model : estimator, forecaster or function
            The audited model, fitted on other rows. It is not fitted again.
        X : DataFrame or array-like of shape (n, n_features)
            Rows that neither the model nor the audit has seen, with the columns of the groups.
        y : array-like of shape (n,) or Outcomes
            Outcomes, of times that may be cut off with their events, and the horizon of the audit.
        groups : dict of str to array of bool, optional
            Masks of these rows for groups that no rule defines: groups that were given to the audit
            as masks, and learned groups without a rule. Without a mask they are not repaired, with
            a warning that names them.
        random_state : int, generator or None
            Seed of the folds of the check.

        Returns
        -------
        RecalibratedRegressor
            Fitted; `check_` and `summary()` report for each group whether the repair helped.
        """
        if self.off_groups is None:
            raise InputError(
                "this audit does not contain the definitions of its groups, as it was read in parts"
                " or from PITs of blocks; name the groups in RecalibratedRegressor(model, by={name:"
                " rule})"
            )
        if isinstance(model, Forecast):
            remedy = "pass the model, or a function from X to its forecasts"
            raise bad_input("model", "be a fitted model or a function", "a Forecast", remedy)
        outcomes = as_outcomes(y)
        by = _rules(self._marked("problem"), dict(groups or {}))
        unfitted = _unfitted(model, _distinct(by, X, outcomes.value), random_state)
        with missing_columns_named(model, X):
            repaired = unfitted.fit(X, outcomes)
        if self.provenance.get("values_sha256") == values_hash(outcomes.value):
            warnings.warn(
                "X and y are the rows of this audit, which chose the groups by them: the check of"
                " the repair overestimates its gains; pass other rows",
                UserWarning,
                stacklevel=2,
            )
        return repaired
