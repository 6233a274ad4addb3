"""Cross-fitted ensembles of trees (LightGBM)."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand._validate import Floats, Ints, MissingExtraError, require_extra
from evenhand.forecasters.boosting.settings import TreeSettings


def lightgbm() -> Any:
    """Return the module LightGBM, or raise an error that names what is missing."""
    try:
        return require_extra("lightgbm", "boosting")
    except OSError as error:  # the package is installed, but the OpenMP library is not
        remedy = (
            "install the OpenMP runtime (Debian and Ubuntu: libgomp1, macOS: brew install libomp)"
        )
        raise MissingExtraError(f"lightgbm cannot be loaded ({error}); {remedy}") from error


class FoldEnsembles:
    """Ensembles of trees for one table, each grown without one fold of one split of its rows.

    Parameters
    ----------
    features : ndarray of shape (n, n_features)
        Numbers, level numbers of categories, NaN for missing values.
    categories : list of int
        Features that are categories: LightGBM splits them by sets of levels.
    folds : ndarray of shape (n_splits, n)
        Fold of each row in each split, 0 to the number of folds - 1.
    settings : TreeSettings
        Settings of the trees.
    """

    def __init__(
        self, features: Floats, categories: list[int], folds: Ints, settings: TreeSettings
    ) -> None:
        self.features = features
        self.categories = categories
        self.folds = folds
        self.settings = settings
        # binned once, as the folds of all fits are subsets of one data set
        self._rows = (
            lightgbm()
            .Dataset(
                features,
                np.zeros(len(features)),
                params=settings.of_mean(),
                categorical_feature=categories,
            )
            .construct()
        )

    @property
    def can_split(self) -> bool:
        """Whether any feature has more than one value."""
        return any(self._rows.feature_num_bin(i) > 1 for i in range(self.features.shape[1]))

    def take(self, rows: Ints) -> FoldEnsembles:
        """Return the same for a part of the rows."""
        return FoldEnsembles(
            self.features[rows], self.categories, self.folds[:, rows], self.settings
        )

    def of_mean(self, target: Floats, weight: Floats) -> tuple[list[Any], Floats]:
        """Grow ensembles for the mean of the target.

        Returns the ensembles and, for each row, the mean output of those grown without it.
        """
        return self._grow(target, weight, self.settings.of_mean())

    def of_log_scale(self, size: Floats, weight: Floats) -> tuple[list[Any], Floats]:
        """Grow ensembles for the logarithm of the mean of positive sizes."""
        # with a log link, the gamma likelihood estimates the mean size consistently for any shape
        return self._grow(size, weight, self.settings.of_spread())

    def _grow(
        self, target: Floats, weight: Floats, params: dict[str, Any]
    ) -> tuple[list[Any], Floats]:
        """Grow all ensembles tree by tree until their mean held-out loss stops decreasing.

        The folds of a small table are too small to determine a number of trees each.
        """
        self._rows.set_label(target)
        self._rows.set_weight(weight)
        parts = [
            np.flatnonzero(fold == k) for fold in self.folds for k in range(self.folds.max() + 1)
        ]
        shares = [weight[held_out].sum() for held_out in parts]
        boosters = [self._booster(held_out, params) for held_out in parts]
        least = np.inf
        best = 1
        for n_trees in range(1, self.settings.n_estimators + 1):
            for booster in boosters:
                booster.update()
            losses = [booster.eval_valid()[0][2] for booster in boosters]
            loss = np.average(losses, weights=shares)
            if loss < least:
                least = loss
                best = n_trees
            elif n_trees - best >= self.settings.patience:
                break
        # in their stored form, and without a reference to the training rows
        kept = [
            lightgbm().Booster(model_str=booster.model_to_string(num_iteration=best))
            for booster in boosters
        ]
        out = np.zeros(target.size)
        for booster, held_out in zip(kept, parts, strict=True):
            out[held_out] += raw_output(booster, self.features[held_out], self.settings.n_threads)
        return kept, out / len(self.folds)

    def _booster(self, held_out: Ints, params: dict[str, Any]) -> Any:
        """Return an ensemble without trees that learns from the rows that are not held out."""
        learn = np.setdiff1d(np.arange(len(self.features)), held_out)
        booster = lightgbm().Booster(params, self._rows.subset(learn))
        return booster.add_valid(self._rows.subset(held_out), "fold")


def raw_output(booster: Any, features: Floats, n_threads: int) -> Floats:
    """Return means or log scales, shape (n,)."""
    return np.asarray(
        booster.predict(features, raw_score=True, num_threads=n_threads), dtype=np.float64
    )
