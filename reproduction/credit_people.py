"""People of the credit study: worthiness, labels, and their roles in a roll-out."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import Floats, Ints
from evenhand.datasets import load_credit
from reproduction.lending import LendingGame

NOISE = 0.02
"""Standard deviation of the noise added to the classifier's probabilities."""

SHARE_UNQUALIFIED = 0.2
"""Share of people below the threshold of the figures."""

N_TRAIN = 800
N_VALIDATION = 200
"""The bank's training rows, and its rows for early stopping and recalibration."""

N_EARLIER = 5000
N_CUSTOMERS = 5000


@lru_cache(maxsize=1)
def load_people(data: str | None) -> tuple[pd.DataFrame, Floats, Floats]:
    """Return features as normal scores, probabilities of no delinquency and ages of all people.

    The probabilities are cross-fitted: each half is predicted by a classifier trained on the other
    half, so that they do not reproduce the labels.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import cross_val_predict
    from sklearn.preprocessing import QuantileTransformer

    credit = load_credit(data)
    classifier = HistGradientBoostingClassifier(random_state=0)
    probabilities = cross_val_predict(
        classifier, credit.X, credit.y.astype(int), cv=2, method="predict_proba"
    )[:, 0]
    # some features have outliers of a thousand standard deviations, which would dominate a network
    scores = QuantileTransformer(output_distribution="normal", random_state=0).fit_transform(
        credit.X
    )
    features = pd.DataFrame(scores, columns=credit.X.columns)
    return (
        features,
        np.asarray(probabilities, dtype=np.float64),
        credit.X["age"].to_numpy(dtype=np.float64),
    )


def fingerprint_people(data: str | None) -> dict[str, Any]:
    """Return plain values that identify the table of people."""
    credit = load_credit(data)
    digest = pd.util.hash_pandas_object(credit.X, index=False).sum()
    return {"n": len(credit.y), "delinquent": int(credit.y.sum()), "hash": f"{int(digest):x}"}


class Rollout:
    """People of one roll-out: training people of the bank, earlier customers and customers.

    Parameters
    ----------
    seed : int
        Seed of the roles of people, the noise and all later random numbers.
    data : str, optional
        Path of the credit table.
    wrong : float
        Error of the bank's labels of young people: they are too high by this number of standard
        deviations of worthiness.
    selected : float
        Share of the least worthy people, for whom the bank has no labels because an earlier lender
        refused them.
    """

    def __init__(
        self, seed: int, data: str | None, wrong: float = 0.0, selected: float = 0.0
    ) -> None:
        features, base, age = load_people(data)
        order = np.random.default_rng([seed, 0]).permutation(len(base))
        # many people share a probability; noise makes worthiness continuous
        worth = base + NOISE * np.random.default_rng([seed, 1]).normal(size=len(base))
        self.seed = seed
        self.earlier = order[:N_EARLIER]
        self.customers = order[N_EARLIER : N_EARLIER + N_CUSTOMERS]
        # customers are drawn before the selection of labels, so they represent all people
        others = order[N_EARLIER + N_CUSTOMERS :]
        others = others[worth[others] >= np.quantile(worth, selected)] if selected else others
        self.learn = others[:N_TRAIN]
        self.stop = others[N_TRAIN : N_TRAIN + N_VALIDATION]
        self.features = features
        self.worth = worth
        # the bank's training labels; those of the youngest 30% are too high
        self.labels = worth + wrong * base.std() * (age <= np.quantile(age, 0.3))

    def game(self, share_unqualified: float = SHARE_UNQUALIFIED) -> LendingGame:
        """Return the paper's game with a threshold that this share of people is below."""
        return LendingGame(threshold=float(np.quantile(self.worth, share_unqualified)))

    def rows(self, who: Ints) -> tuple[pd.DataFrame, Floats]:
        """Return features and worthiness of some people."""
        return self.features.iloc[who], self.worth[who]

    def generator(self, purpose: int) -> np.random.Generator:
        """Return the random stream of a purpose; 0 and 1 are reserved for roles and noise."""
        return np.random.default_rng([self.seed, purpose])
