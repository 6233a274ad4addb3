"""Tables, models and audits of the demonstration on generated doses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from evenhand.audits import LEARNED_MASSES, audit

if TYPE_CHECKING:
    from evenhand.audits import Audit
    from evenhand.columns import GroupRule
    from evenhand.datasets import GeneratedDataset
    from evenhand.forecasters import RecalibratedRegressor
    from evenhand.selection import Selection

N_TRIAL = 8000
N_PART = 2000
"""Number of patients of each step."""

GROUPS = ("sex", "age", "clinic")
GROUP_SIZE = 0.2
FOUND_SIZES = (GROUP_SIZE, 0.5)
"""Sizes of learned groups in step 1, where no group is smaller than those of the certificate."""

MAX_GROUP_ERROR = 0.25
UNIT = "mg per week"


@dataclass(frozen=True)
class Part:
    """Some patients: features, doses, and the truth about them.

    Parameters
    ----------
    X, truth : DataFrame
        One row per patient; the index holds the patients' ids.
    y : Series
        Doses.
    """

    X: pd.DataFrame
    y: pd.Series
    truth: pd.DataFrame

    @classmethod
    def of(cls, data: GeneratedDataset, start: int, stop: int, letter: str) -> Part:
        """Return the patients from `start` to `stop`, whose ids start with `letter`."""
        ids = pd.Index([f"{letter}{row:04d}" for row in range(start, stop)], name="patient")
        rows = slice(start, stop)
        X, y, truth = data.X[rows], data.y[rows], data.truth[rows]
        return cls(X.set_axis(ids), y.set_axis(ids), truth.set_axis(ids))

    @property
    def table(self) -> pd.DataFrame:
        """The table that a csv file holds: the id `patient`, the features and the dose."""
        return self.X.assign(dose=self.y).reset_index()


@dataclass(frozen=True)
class Tables:
    """The tables of the trial and of the three steps, each with other patients."""

    trial: Part
    find: Part
    repair: Part
    prove: Part


@dataclass(frozen=True)
class Work:
    """Everything that the demonstration fits and audits.

    Parameters
    ----------
    tables : Tables
        The tables.
    model, repaired : RecalibratedRegressor
        The model of the trial, and the model after the repair.
    rule : GroupRule
        Worst group that the audit found.
    chosen : Selection
        The least randomization of the repaired model, with its certificate.
    found, before, after, randomized : Audit
        Audits: of the model in the step `find`, and of the three models on fresh patients.
    """

    tables: Tables
    model: RecalibratedRegressor
    repaired: RecalibratedRegressor
    rule: GroupRule
    chosen: Selection
    found: Audit
    before: Audit
    after: Audit
    randomized: Audit


def make_tables(seed: int) -> Tables:
    """Generate the trial and three parts of the patients of the clinics."""
    from evenhand.datasets import make_doses

    trial = make_doses(N_TRIAL, cohort="trial", random_state=2 * seed)
    clinics = make_doses(3 * N_PART, random_state=2 * seed + 1)
    starts = range(0, 3 * N_PART, N_PART)
    parts = (Part.of(clinics, start, start + N_PART, "c") for start in starts)
    return Tables(Part.of(trial, 0, N_TRIAL, "t"), *parts)


def train(trial: Part, seed: int) -> RecalibratedRegressor:
    """Fit gradient boosting, with the distribution of its errors estimated by cross-fitting."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    from evenhand.forecasters import RecalibratedRegressor

    encoded = make_column_transformer(
        (OrdinalEncoder(), ["sex", "clinic"]), remainder="passthrough"
    )
    # many small trees: the true mean dose is nearly additive
    boosting = make_pipeline(
        encoded, HistGradientBoostingRegressor(max_iter=200, max_leaf_nodes=6, random_state=seed)
    )
    return RecalibratedRegressor(boosting, random_state=seed).fit(trial.X, trial.y)


def audited(
    model: Any,
    part: Part,
    name: str,
    groups: Mapping[str, Any],
    seed: int,
    learned: Sequence[float] = LEARNED_MASSES,
) -> Audit:
    """Audit a model on some patients, with the columns of `GROUPS` and further groups."""
    named = {column: part.X[column] for column in GROUPS} | dict(groups)
    about = {
        "unit": UNIT,
        "population": "generated patients of clinics",
        "purpose": "demonstration on a generated table",
    }
    return audit(
        model,
        part.X,
        part.y,
        groups=named,
        learned_masses=learned,
        random_state=seed,
        name=name,
        about=about,
    )


def worst_rule(found: Audit) -> GroupRule:
    """Return the rule of the learned group of `GROUP_SIZE`, else of another group that is off."""
    from evenhand._validate import InputError

    ruled = [group for group in found.off_groups or () if group.rule is not None]
    # learned groups first: they may combine more than two features, and cut anywhere
    ruled.sort(key=lambda group: (group.mass is None, group.mass != GROUP_SIZE))
    if not ruled or ruled[0].rule is None:
        raise InputError("the audit found no group that is off with this seed; use another --seed")
    return ruled[0].rule


def judged(found: Audit) -> Audit:
    """Return an audit with a condition on the certified group error, as in a gate."""
    from evenhand.audits import parse_condition, with_conditions

    limit = f"certified_group_error({GROUP_SIZE:g}) > {MAX_GROUP_ERROR:g}"
    return with_conditions(found, [parse_condition(limit)])


def randomized(repaired: RecalibratedRegressor, part: Part, seed: int) -> Selection:
    """Choose the least randomization of a fitted model that fresh patients prove."""
    from sklearn.frozen import FrozenEstimator

    from evenhand.selection import randomize

    return randomize(
        FrozenEstimator(repaired),
        part.X,
        part.y,
        max_group_error=MAX_GROUP_ERROR,
        group_mass=GROUP_SIZE,
        random_state=seed,
    )
