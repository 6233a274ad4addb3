"""Example data sets: tables with an outcome and columns that define groups.

Public tables are loaded. The table of weekly doses is generated, and its true distribution is
known.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from evenhand._format import one_line
from evenhand._validate import InputError, bad_input, check_choice, check_count

# --- a table of features with its outcome


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table of features and the outcome to forecast.

    Parameters
    ----------
    X : DataFrame of shape (n, p)
        Features; missing values are NaN.
    y : Series of shape (n,)
        Outcome, float64, with the same index 0, 1, ... as `X`.
    name : str
        Short name.
    groups : tuple of str
        Columns of `X` that define groups of interest.
    description : str
        Source, meaning of a row, and omitted columns.
    """

    X: pd.DataFrame
    y: pd.Series[float]
    name: str
    groups: tuple[str, ...]
    description: str

    def __repr__(self) -> str:
        return one_line(
            self,
            name=self.name,
            n=len(self.X),
            features=self.X.shape[1],
            target=self.y.name,
            groups=self.groups,
        )


# --- generated table of weekly doses of a blood thinner, with its true distribution
#
# The table has both kinds of error that an audit is for. A model trained on the trial is wrong for
# women over 60, whom the trial did not enroll: an audit of patients of the clinics finds this
# group, and rows of the clinics repair it. One patient in five has a gene variant that no column
# records: no model can learn it, and no test of features can find it.

COHORTS = ("clinics", "trial")

VARIANT_SHARE = 0.2
"""Share of patients with the unrecorded gene variant, independent of every column."""


@dataclass(frozen=True, eq=False, repr=False)
class GeneratedDataset(Dataset):
    """A generated table, with what a real table never shows.

    Parameters
    ----------
    truth : DataFrame of shape (n,), with the index of `X`
        One row per person: the parameters of the true distribution of the outcome, and membership
        in groups that are known only because the table is generated. Never a feature of a model.
    """

    truth: pd.DataFrame


def make_doses(
    n_samples: int = 6000,
    *,
    cohort: str = "clinics",
    random_state: int | np.random.Generator | None = None,
) -> GeneratedDataset:
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
    GeneratedDataset
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
    >>> data.X.shape, data.y.name, data.groups
    ((6000, 7), 'dose', ('sex', 'age', 'clinic'))
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
    return GeneratedDataset(
        X=X,
        y=dose.round(1).rename("dose"),
        name="doses",
        groups=("sex", "age", "clinic"),
        description=(
            f"{n:,} generated patients: age, sex, weight, kidney function, interacting drugs,"
            " smoking and clinic; the outcome is the dose of a blood thinner in mg per week."
        ),
        truth=truth,
    )


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


# --- public example tables: bundled, downloaded, or read from a file of the user

_CRIME_URL = (
    "https://archive.ics.uci.edu/ml/machine-learning-databases/communities/communities.data"
)
_CRIME_SHA256 = "09e0b5c07eae24c1efab19b2edee05e160e7f5743b6f31e31eec3d73624da2ea"

# The file has no header. Names are those of its description, communities.names: five identifiers,
# 122 features and the outcome.
_CRIME_COLUMNS = """
state county community communityname fold population householdsize racepctblack racePctWhite
racePctAsian racePctHisp agePct12t21 agePct12t29 agePct16t24 agePct65up numbUrban pctUrban medIncome
pctWWage pctWFarmSelf pctWInvInc pctWSocSec pctWPubAsst pctWRetire medFamInc perCapInc whitePerCap
blackPerCap indianPerCap AsianPerCap OtherPerCap HispPerCap NumUnderPov PctPopUnderPov
PctLess9thGrade PctNotHSGrad PctBSorMore PctUnemployed PctEmploy PctEmplManu PctEmplProfServ
PctOccupManu PctOccupMgmtProf MalePctDivorce MalePctNevMarr FemalePctDiv TotalPctDiv PersPerFam
PctFam2Par PctKids2Par PctYoungKids2Par PctTeen2Par PctWorkMomYoungKids PctWorkMom NumIlleg PctIlleg
NumImmig PctImmigRecent PctImmigRec5 PctImmigRec8 PctImmigRec10 PctRecentImmig PctRecImmig5
PctRecImmig8 PctRecImmig10 PctSpeakEnglOnly PctNotSpeakEnglWell PctLargHouseFam PctLargHouseOccup
PersPerOccupHous PersPerOwnOccHous PersPerRentOccHous PctPersOwnOccup PctPersDenseHous
PctHousLess3BR MedNumBR HousVacant PctHousOccup PctHousOwnOcc PctVacantBoarded PctVacMore6Mos
MedYrHousBuilt PctHousNoPhone PctWOFullPlumb OwnOccLowQuart OwnOccMedVal OwnOccHiQuart RentLowQ
RentMedian RentHighQ MedRent MedRentPctHousInc MedOwnCostPctInc MedOwnCostPctIncNoMtg NumInShelters
NumStreet PctForeignBorn PctBornSameState PctSameHouse85 PctSameCity85 PctSameState85 LemasSwornFT
LemasSwFTPerPop LemasSwFTFieldOps LemasSwFTFieldPerPop LemasTotalReq LemasTotReqPerPop
PolicReqPerOffic PolicPerPop RacialMatchCommPol PctPolicWhite PctPolicBlack PctPolicHisp
PctPolicAsian PctPolicMinor OfficAssgnDrugUnits NumKindsDrugsSeiz PolicAveOTWorked LandArea PopDens
PctUsePubTrans PolicCars PolicOperBudg LemasPctPolicOnPatr LemasGangUnitDeploy LemasPctOfficDrugUn
PolicBudgPerPop ViolentCrimesPerPop
"""
_CRIME_IDENTIFIERS = 5

_CREDIT_FILES = ("give-me-some-credit.csv.gz", "give-me-some-credit.csv", "cs-training.csv")
_CREDIT_LABEL = "SeriousDlqin2yrs"
_CREDIT_REMEDY = (
    "Kaggle requires a login: download cs-training.csv from"
    " https://www.kaggle.com/c/GiveMeSomeCredit/data and pass its path, or set EVENHAND_DATA to its"
    " folder"
)


def load_diabetes() -> Dataset:
    """Return the diabetes table bundled with scikit-learn: 442 patients.

    The outcome is the progression of the disease after one year.

    Examples
    --------
    >>> data = load_diabetes()
    >>> data.X.shape, data.groups, data.y.max()
    ((442, 10), ('sex', 'age'), np.float64(346.0))
    """
    from sklearn.datasets import load_diabetes as load

    bunch = load(as_frame=True, scaled=False)
    return Dataset(
        X=bunch.data,
        y=bunch.target.astype("float64").rename("progression"),
        name="diabetes",
        groups=("sex", "age"),
        description=(
            "442 diabetes patients (Efron, Hastie, Johnstone and Tibshirani 2004,"
            " doi:10.1214/009053604000000067): age, sex, body mass index, blood pressure and six"
            " serum values in their own units; the outcome is a measure of the progression of the"
            " disease one year later."
        ),
    )


def load_crime(path: str | os.PathLike[str] | None = None) -> Dataset:
    """Return Communities and Crime (UCI): 1994 communities with 99 features.

    The outcome is the number of violent crimes per head.

    Parameters
    ----------
    path : path, optional
        The file communities.data, or the folder that contains it. If not given, the folder in the
        environment variable EVENHAND_DATA is searched; if it does not contain the file, the file
        is downloaded once from UCI and cached.

    Raises
    ------
    InputError
        If there is no file at `path`, its SHA-256 is not the expected one, or it cannot be
        downloaded.

    Notes
    -----
    Five identifying columns and 23 features with missing values are omitted: 22 come from a police
    survey of only 319 of the communities, and OtherPerCap lacks one value. This is the protocol of
    the code that Zhao, Ma and Ermon published with "Individual Calibration with Randomized
    Forecasting", arXiv:2006.10288.

    Examples
    --------
    >>> data = load_crime()  # doctest: +SKIP
    >>> data.X.shape  # doctest: +SKIP
    (1994, 99)
    """
    file = _local(path, ("communities.data",)) or _fetched_crime()
    # the published numbers were computed from exactly this file
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    if digest != _CRIME_SHA256:
        remedy = f"remove it and download it again from {_CRIME_URL}"
        raise bad_input(str(file), f"have the SHA-256 {_CRIME_SHA256}", digest, remedy)
    table = pd.read_csv(file, header=None, names=_CRIME_COLUMNS.split(), na_values="?")
    # columns with missing values are omitted, as in the published code
    features = table.iloc[:, _CRIME_IDENTIFIERS:-1].dropna(axis="columns")
    return Dataset(
        X=features.astype("float64"),
        y=table.iloc[:, -1].astype("float64"),
        name="crime",
        groups=("racepctblack", "racePctHisp", "racePctAsian", "PctPopUnderPov"),
        description=(
            "Communities and Crime (Redmond 2009, UCI, doi:10.24432/C53W3X): 1994 communities of"
            " the United States, census features of 1990 and violent crimes per head in 1995, each"
            " scaled to lie between 0 and 1. Five identifying columns and 23 features with missing"
            " values are omitted."
        ),
    )


def load_credit(path: str | os.PathLike[str] | None = None) -> Dataset:
    """Return Give Me Some Credit (Kaggle): 150,000 borrowers with 10 features.

    The outcome is whether the borrower was delinquent within two years.

    Parameters
    ----------
    path : path, optional
        The training file as csv or csv.gz, or a folder that contains it under the name
        cs-training.csv, give-me-some-credit.csv or give-me-some-credit.csv.gz. If not given, the
        folder in the environment variable EVENHAND_DATA is searched. The file is never downloaded,
        as Kaggle requires a login.

    Raises
    ------
    InputError
        If no file is found, or the file is not this table with its labels.

    Notes
    -----
    The outcome is 0 or 1, a label for a classifier and not a continuous outcome for a predicted
    distribution. MonthlyIncome and NumberOfDependents have missing values.

    Examples
    --------
    >>> data = load_credit("cs-training.csv")  # doctest: +SKIP
    >>> data.X.shape  # doctest: +SKIP
    (150000, 10)
    """
    file = _local(path, _CREDIT_FILES)
    if file is None:
        raise InputError(
            f"the training file of Give Me Some Credit was not found; {_CREDIT_REMEDY}"
        )
    try:
        # the first column is a row id
        table = pd.read_csv(file, index_col=0).reset_index(drop=True)
    except (OSError, EOFError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{file} cannot be read as csv ({reason}); {_CREDIT_REMEDY}") from error
    if _CREDIT_LABEL not in table.columns:
        found = ", ".join(map(str, table.columns[:12]))
        raise InputError(
            f"{file} has no column {_CREDIT_LABEL!r} after the row id, only {found};"
            f" {_CREDIT_REMEDY}"
        )
    # the test file has the column without values
    y = pd.to_numeric(table.pop(_CREDIT_LABEL), errors="coerce").astype("float64")
    wrong = ~y.isin((0.0, 1.0))
    if wrong.any():
        place = f"{file}: column {_CREDIT_LABEL!r}, row {int(wrong.argmax()) + 1}"
        raise InputError(
            f"{place} is missing or neither 0 nor 1; use cs-training.csv, as cs-test.csv has no"
            " labels"
        )
    return Dataset(
        X=table,
        y=y,
        name="credit",
        groups=("age", "NumberOfDependents"),
        description=(
            f"Give Me Some Credit (Kaggle 2011): {len(table):,} borrowers, their age, income, debts"
            " and late payments; the outcome is 1 for a payment 90 days late or worse within the"
            " next two years. MonthlyIncome and NumberOfDependents have missing values."
        ),
    )


def _local(path: str | os.PathLike[str] | None, names: tuple[str, ...]) -> Path | None:
    """Return the file at `path`, or the one in the folder EVENHAND_DATA if `path` is None.

    None if `path` is None and there is no such file.
    """
    if path is None:
        folder = os.environ.get("EVENHAND_DATA")
        return next(
            (file for name in names if folder and (file := Path(folder, name)).is_file()), None
        )
    place = Path(path)
    candidates = [place / name for name in names] if place.is_dir() else [place]
    found = next((file for file in candidates if file.is_file()), None)
    if found is None:
        kind = f"a folder with {' or '.join(names)}" if place.is_dir() else "an existing file"
        raise bad_input("path", f"be {kind}", str(place), "check its spelling and folder")
    return found


def _fetched_crime() -> Path:
    """Return the file from the user's cache; download it first if it is not there yet."""
    import pooch

    try:
        file = pooch.retrieve(
            url=_CRIME_URL,
            known_hash=f"sha256:{_CRIME_SHA256}",
            fname="communities.data",
            path=pooch.os_cache("evenhand"),
        )
    # errors of requests are OSErrors, and pooch raises ValueError for a wrong hash
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0][:200]
        remedy = "download it by hand and pass its path, or set EVENHAND_DATA to its folder"
        raise InputError(
            f"communities.data cannot be downloaded from {_CRIME_URL} ({reason}); {remedy}"
        ) from error
    return Path(file)


__all__ = [
    "Dataset",
    "GeneratedDataset",
    "load_credit",
    "load_crime",
    "load_diabetes",
    "make_doses",
]
