"""A table of features with its outcome."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from evenhand._format import one_line

__all__ = ["Dataset"]


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
