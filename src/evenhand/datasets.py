"""Example data: a generated table of weekly doses, with its true distribution.

The table has both kinds of error that an audit is for. A model trained on the trial is wrong for
women over 60, whom the trial did not enroll: an audit of patients of the clinics finds this group,
and rows of the clinics repair it. One patient in five has a gene variant that no column records: no
model can learn it, and no test of features can find it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from evenhand._format import OneLine
from evenhand._validate import check_choice, check_count

__all__ = ["Dataset", "make_doses"]

COHORTS = ("clinics", "trial")

VARIANT_SHARE = 0.2
"""Share of patients with the unrecorded gene variant, independent of every column."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(OneLine):
    """A generated table of features and the outcome to forecast, with its true distribution.

    Parameters
    ----------
    X : DataFrame of shape (n, p)
        Features.
    y : Series of shape (n,)
        Outcome, float64, with the same index 0, 1, ... as `X`.
    truth : DataFrame of shape (n,), with the index of `X`
        One row per person: the parameters of the true distribution of the outcome, and membership
        in groups that are known only because the table is generated. Never a feature of a model.
    """

    X: pd.DataFrame
    y: pd.Series[float]
    truth: pd.DataFrame


def make_doses(
    n_samples: int = 6000,
    *,
    cohort: str = "clinics",
    random_state: int | np.random.Generator | None = None,
) -> Dataset:
    """Generate a table of the weekly doses of a blood thinner that patients turn out to need.

    The people and the relations are invented; no real patient is in the table. Two cohorts have
    the same true distribution of the outcome given everything about a person. They differ in whom
    they enroll: the trial enrolled no women over 60.

    Parameters
    ----------
    n_samples : int, default 6000
        Number of patients, at least 1.
    cohort : {"clinics", "trial"}, default "clinics"
        Patients of the clinics, or participants of the trial on which a model is trained.
    random_state : int, Generator or None, default None
        Seed.

    Returns
    -------
    Dataset
        `X` has the columns age (years), sex, weight (kg), kidney (function, ml per minute), drugs
        (number of interacting drugs), smoker and clinic. `y` is the dose in mg per week. `truth`
        has the columns mean and std, the parameters of the normal distribution of each patient's
        dose, and variant, whether the patient has the gene variant that no column records.

    Raises
    ------
    InputError
        If `n_samples` is not a positive integer, or `cohort` is not one of the two.

    Examples
    --------
    >>> data = make_doses(6000, random_state=0)
    >>> data.X.shape, data.y.name
    ((6000, 7), 'dose')
    >>> trial = make_doses(4000, cohort="trial", random_state=1)
    >>> int(((trial.X["sex"] == "woman") & (trial.X["age"] > 60)).sum())
    0
    """
    n = check_count("n_samples", n_samples)
    check_choice("cohort", cohort, COHORTS)
    random = np.random.default_rng(random_state)
    X = _people(n, random, enrolls_older_women=cohort == "clinics")
    truth = _truth(X, random)
    dose = truth["mean"] + truth["std"] * random.normal(size=n)
    return Dataset(X, dose.round(1).rename("dose"), truth)


def _people(n: int, random: np.random.Generator, *, enrolls_older_women: bool) -> pd.DataFrame:
    """Return `n` patients of a population of which the trial leaves about a fifth out."""
    # twice as many and 100 more leave n with near certainty, for every n
    n_drawn = n if enrolls_older_women else 2 * n + 100
    age = random.normal(58, 16, size=n_drawn).clip(20, 90).round()
    is_woman = random.random(n_drawn) < 0.5
    weight = random.normal(72, 12, size=n_drawn) + np.where(is_woman, 0, 12)
    kidney = 125 - 0.8 * age + random.normal(0, 12, size=n_drawn)
    people = pd.DataFrame(
        {
            "age": age,
            "sex": pd.Categorical(np.where(is_woman, "woman", "man")),
            "weight": weight.clip(40, 150).round(1),
            "kidney": kidney.clip(15, 130).round(),
            "drugs": random.poisson(1.2, size=n_drawn),
            "smoker": random.random(n_drawn) < 0.25,
            "clinic": pd.Categorical(
                random.choice(["city", "town", "village"], p=[0.5, 0.3, 0.2], size=n_drawn)
            ),
        }
    )
    if not enrolls_older_women:
        people = people[~_older_women(people)]
    return people[:n].reset_index(drop=True)


def _truth(X: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    """Return the true distribution of each patient's dose, and the unrecorded variant."""
    is_older_woman = _older_women(X)
    has_variant = random.random(len(X)) < VARIANT_SHARE
    mean = (
        75
        - 0.45 * (X["age"] - 58)
        + 0.35 * (X["weight"] - 78)
        + 0.15 * (X["kidney"] - 78)
        - 3 * X["drugs"]
        + 5 * X["smoker"]
        - 7 * is_older_woman
        - 9 * has_variant
    )
    return pd.DataFrame(
        {"mean": mean, "std": np.where(is_older_woman, 6.0, 4.0), "variant": has_variant}
    )


def _older_women(X: pd.DataFrame) -> pd.Series[bool]:
    """Return the group that the trial did not enroll."""
    return (X["sex"] == "woman") & (X["age"] > 60)
