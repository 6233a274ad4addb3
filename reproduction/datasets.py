"""Tables of the studies and benchmarks: downloaded, or read from a file of the user."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from evenhand import InputError


class Dataset(NamedTuple):
    """A table of features and the outcome to forecast.

    Parameters
    ----------
    X : DataFrame of shape (n, p)
        Features; missing values are NaN.
    y : Series of shape (n,)
        Outcome, float64, with the same index 0, 1, ... as `X`.
    """

    X: pd.DataFrame
    y: pd.Series[float]


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
        raise InputError(
            f"{file} must have the SHA-256 {_CRIME_SHA256}, got {digest}; remove it and download it"
            f" again from {_CRIME_URL}"
        )
    table = pd.read_csv(file, header=None, names=_CRIME_COLUMNS.split(), na_values="?")
    # columns with missing values are omitted, as in the published code
    features = table.iloc[:, _CRIME_IDENTIFIERS:-1].dropna(axis="columns")
    return Dataset(features.astype("float64"), table.iloc[:, -1].astype("float64"))


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
    return Dataset(table, y)


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
        raise InputError(f"path must be {kind}, got {place}; check its spelling and folder")
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
