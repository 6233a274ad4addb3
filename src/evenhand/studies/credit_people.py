"""People of the credit study: worthiness, a bank's labels, and who is who in a roll-out."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import Floats, Ints
from evenhand.datasets import load_credit
from evenhand.studies.lending import LendingGame

NOISE = 0.02
"""Standard deviation of what is added to the classifier's probability."""

SHARE_UNQUALIFIED = 0.2
"""The threshold of the figures: so many people fall short of it."""

N_TRAIN = 800
N_VALIDATION = 200
"""What the bank has: rows to learn from, and rows that stop the training and recalibrate."""

N_EARLIER = 5000
N_CUSTOMERS = 5000


@lru_cache(maxsize=1)
def load_people(data: str | None) -> tuple[pd.DataFrame, Floats, Floats]:
    """Features as normal scores, probabilities of no delinquency and ages of all people.

    The classifier is fitted on one half and predicts the other, so that its probabilities do not
    repeat the labels.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import cross_val_predict
    from sklearn.preprocessing import QuantileTransformer

    credit = load_credit(data)
    classifier = HistGradientBoostingClassifier(random_state=0)
    chances = cross_val_predict(
        classifier, credit.X, credit.y.astype(int), cv=2, method="predict_proba"
    )[:, 0]
    # some features have values a thousand standard deviations out: a network would see nothing else
    scores = QuantileTransformer(output_distribution="normal", random_state=0).fit_transform(
        credit.X
    )
    features = pd.DataFrame(scores, columns=credit.X.columns)
    return (
        features,
        np.asarray(chances, dtype=np.float64),
        credit.X["age"].to_numpy(dtype=np.float64),
    )


def fingerprint_people(data: str | None) -> dict[str, Any]:
    """Return plain values that differ from one table of people to another."""
    credit = load_credit(data)
    digest = pd.util.hash_pandas_object(credit.X, index=False).sum()
    return {"n": len(credit.y), "delinquent": int(credit.y.sum()), "hash": f"{int(digest):x}"}


class Rollout:
    """People of one roll-out: what the bank learns from, earlier customers, customers.

    Parameters
    ----------
    seed : int
        Of who is who, the noise and everything that follows.
    data : str, optional
        Path of the credit table.
    wrong : float
        By how many standard deviations of worthiness the bank's labels of young people are too
        high.
    selected : float
        Share of people, the least worthy, of whom the bank has no labels: an earlier lender refused
        them.
    """

    def __init__(
        self, seed: int, data: str | None, wrong: float = 0.0, selected: float = 0.0
    ) -> None:
        features, chances, age = load_people(data)
        order = np.random.default_rng([seed, 0]).permutation(len(chances))
        # many people share a probability: noise makes worthiness continuous
        worth = chances + NOISE * np.random.default_rng([seed, 1]).normal(size=len(chances))
        self.seed = seed
        self.earlier = order[:N_EARLIER]
        self.customers = order[N_EARLIER : N_EARLIER + N_CUSTOMERS]
        # customers are drawn before labels are selected: they are all kinds of people
        others = order[N_EARLIER + N_CUSTOMERS :]
        others = others[worth[others] >= np.quantile(worth, selected)] if selected else others
        self.learn = others[:N_TRAIN]
        self.stop = others[N_TRAIN : N_TRAIN + N_VALIDATION]
        self.features = features
        self.worth = worth
        # what the bank takes for the truth; labels of the youngest three tenths are too high
        self.labels = worth + wrong * chances.std() * (age <= np.quantile(age, 0.3))

    def game(self, share_unqualified: float = SHARE_UNQUALIFIED) -> LendingGame:
        """The paper's game with a threshold that this share of all people falls short of."""
        return LendingGame(threshold=float(np.quantile(self.worth, share_unqualified)))

    def rows(self, who: Ints) -> tuple[pd.DataFrame, Floats]:
        """Features and worthiness of some people."""
        return self.features.iloc[who], self.worth[who]

    def generator(self, purpose: int) -> np.random.Generator:
        """A stream of its own for each purpose; 0 and 1 are taken by people and noise."""
        return np.random.default_rng([self.seed, purpose])
