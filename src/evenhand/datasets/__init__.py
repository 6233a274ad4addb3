"""Example data sets: tables with an outcome and columns that define groups.

Public tables are loaded. The table of weekly doses is generated, and its true distribution is
known.
"""

from evenhand.datasets.dataset import Dataset
from evenhand.datasets.doses import GeneratedDataset, make_doses
from evenhand.datasets.loaders import load_credit, load_crime, load_diabetes

__all__ = [
    "Dataset",
    "GeneratedDataset",
    "load_credit",
    "load_crime",
    "load_diabetes",
    "make_doses",
]
