"""Parts of `BoostedDistributionRegressor`: ensembles of trees, and what they predict (LightGBM)."""

from __future__ import annotations

from evenhand.forecasters.boosting.booster_text import check_booster_text
from evenhand.forecasters.boosting.candidates import Candidate, best_candidate
from evenhand.forecasters.boosting.ensembles import FoldEnsembles, lightgbm, raw_output
from evenhand.forecasters.boosting.features import category_flags, tree_features
from evenhand.forecasters.boosting.outcome_scale import OutcomeScale
from evenhand.forecasters.boosting.settings import (
    TreeSettings,
    fitting_leaf_size,
    fitting_learning_rate,
    fitting_leaves,
    fitting_share,
    n_splits,
    n_threads,
)

__all__ = [
    "Candidate",
    "FoldEnsembles",
    "OutcomeScale",
    "TreeSettings",
    "best_candidate",
    "category_flags",
    "check_booster_text",
    "fitting_leaf_size",
    "fitting_learning_rate",
    "fitting_leaves",
    "fitting_share",
    "lightgbm",
    "n_splits",
    "n_threads",
    "raw_output",
    "tree_features",
]
