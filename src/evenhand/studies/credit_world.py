"""The credit world: people with a worthiness, and one roll-out of a bank among them, measured in every way."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import DiscreteOutcomeWarning, Floats
from evenhand.calibration import calibration_error
from evenhand.certificates import certify_pit
from evenhand.datasets import load_credit
from evenhand.draws import fresh, jittered
from evenhand.forecast import Forecast
from evenhand.forecasters import PAICRegressor, RandomizedRegressor
from evenhand.links import make_link
from evenhand.search import worst_group_curve
from evenhand.studies.lending import LearningApplicants, LendingGame, Round
from evenhand.studies.recalibration import learn_map, mended

NOISE = 0.02
"""Standard deviation of what is added to the classifier's probability."""

SHARE_UNQUALIFIED = 0.2
"""The threshold of the figures: so many people fall short of it."""

OTHER_SHARES = (0.35, 0.5, 0.8)

N_TRAIN = 800
N_VALIDATION = 200
"""What the bank has: rows to learn from, and rows that stop the training and recalibrate."""

N_EARLIER = 5000
N_CUSTOMERS = 5000
N_CERTIFY = 2000
N_DRAWS = 64
MASS = 0.2

YOUNG = 0.3
"""Share of people, by age, of whom a bank that is wrong thinks too well."""

NETWORK = "paper's network"
LINKED = "link around boosted trees"
LINK = "entropic"

Row = dict[str, Any]
Ints = NDArray[np.intp]
Mask = NDArray[np.bool_]


@lru_cache(maxsize=1)
def world(data: str | None) -> tuple[pd.DataFrame, Floats, Floats]:
    """Features as normal scores, probabilities of no delinquency and ages of all people.

    The classifier is fitted on one half and asked about the other: its probabilities are no memory
    of the labels.
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


def people_of(data: str | None) -> dict[str, Any]:
    """Return what tells one table of people from another, as plain values."""
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
        features, chances, age = world(data)
        order = np.random.default_rng([seed, 0]).permutation(len(chances))
        worth = chances + NOISE * np.random.default_rng([seed, 1]).normal(size=len(chances))
        self.seed = seed
        self.earlier = order[:N_EARLIER]
        self.customers = order[N_EARLIER : N_EARLIER + N_CUSTOMERS]
        others = order[N_EARLIER + N_CUSTOMERS :]
        others = others[worth[others] >= np.quantile(worth, selected)] if selected else others
        self.learn = others[:N_TRAIN]
        self.stop = others[N_TRAIN : N_TRAIN + N_VALIDATION]
        self.features = features
        self.worth = worth
        # what the bank takes for the truth
        self.labels = worth + wrong * chances.std() * (age <= np.quantile(age, YOUNG))

    def game(self, share_unqualified: float = SHARE_UNQUALIFIED) -> LendingGame:
        """The paper's game with a threshold that this share of all people falls short of."""
        return LendingGame(threshold=float(np.quantile(self.worth, share_unqualified)))

    def rows(self, who: Ints) -> tuple[pd.DataFrame, Floats]:
        """Features and worthiness of some people."""
        return self.features.iloc[who], self.worth[who]

    def generator(self, purpose: int) -> np.random.Generator:
        """A stream of its own for each purpose; 0 and 1 are taken by people and noise."""
        return np.random.default_rng([self.seed, purpose])


def one_rollout(
    seed: int,
    alphas: list[float],
    max_steps: int,
    *,
    data: str | None = None,
    people: Row | None = None,
    version: str = "",
) -> Row:
    """Play the paper's game once, with the paper's network along the alphas, without and with recalibration.

    Parameters
    ----------
    seed : int
        Of the roll-out.
    alphas : list of float
        Of the network.
    max_steps : int
        Most steps of its training.
    data : str, optional
        Path of the credit table.
    people, version
        Of the table and of the code: parts of others are computed again.

    Returns
    -------
    dict
        `rows`, one per alpha, recalibration and threshold.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreteOutcomeWarning)
        return {"rows": list(_along_the_alphas(Rollout(seed, data), alphas, max_steps))}


def _along_the_alphas(rollout: Rollout, alphas: list[float], max_steps: int) -> Iterator[Row]:
    banks = _networks(rollout, alphas, max_steps)
    earlier = rollout.rows(rollout.earlier)
    customers = rollout.rows(rollout.customers)
    held, truth = rollout.rows(rollout.stop)
    draws = jittered(N_CUSTOMERS, N_DRAWS, rollout.generator(2))
    once = fresh(N_EARLIER, rollout.generator(3))
    for bank in banks:
        # no labels are wrong or missing in this part: the bank's validation rows say the truth
        learned = learn_map(
            bank.forecast(held, jittered(len(truth), N_DRAWS, rollout.generator(4))).pit(truth)
        )
        trained = bank.forecast(customers[0], draws), bank.forecast(earlier[0], once)
        for recalibrated in (False, True):
            met, before = (
                mended(forecast, learned) if recalibrated else forecast for forecast in trained
            )
            about = {"alpha": bank.alpha, "recalibrated": recalibrated} | _proven(
                met, customers[1], draws
            )
            for share in (SHARE_UNQUALIFIED, *OTHER_SHARES):
                game = rollout.game(share)
                chance = game.approve(met).mean(axis=1)
                y = customers[1]
                row = about | {"share_unqualified": share} | _earned(game, chance, y)
                if share == SHARE_UNQUALIFIED:
                    people = _taught(rollout, game, earlier, game.approve(before))
                    row |= _of_applicants(
                        game, chance, y, people.applies(game, None, customers[0], y), "learning"
                    )
                yield row


def _taught(
    rollout: Rollout, game: LendingGame, earlier: tuple[pd.DataFrame, Floats], approved: Mask
) -> LearningApplicants:
    """Customers who have seen what the bank gave the earlier ones, all of whom applied."""
    X, y = earlier
    once = np.ones(y.size, dtype=np.intp)
    people = LearningApplicants(random_state=rollout.generator(5))
    people.learn(X, y, Round(game, game.is_qualified(y), once > 0, approved, once).utilities)
    return people


def one_cell(
    seed: int,
    wrong: float,
    selected: float,
    alphas: list[float],
    link_alphas: list[float],
    max_steps: int,
    *,
    data: str | None = None,
    people: Row | None = None,
    version: str = "",
) -> Row:
    """Measure banks whose labels are wrong and selected, with customers at random and with customers who know them.

    Beside each randomized bank stands a deterministic one with the same forecasts (for the network:
    averaged over the same draws). The draws that a network's chances are counted over are those
    that it is met with.

    Parameters
    ----------
    seed : int
        Of the roll-out.
    wrong, selected : float
        As for `Rollout`.
    alphas, link_alphas : list of float
        Of the paper's network, and of the link around boosted trees; a link of alpha 1 is the trees
        themselves.
    max_steps : int
        Most steps of the network's training.
    data, people, version
        As for `one_rollout`.

    Returns
    -------
    dict
        `rows`, one per kind of bank and alpha.
    """
    rollout = Rollout(seed, data, wrong, selected)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreteOutcomeWarning)
        return {
            "rows": [
                *_linked_banks(rollout, link_alphas),
                *_network_banks(rollout, alphas, max_steps),
            ]
        }


def _linked_banks(rollout: Rollout, alphas: list[float]) -> Iterator[Row]:
    """Boosted trees with the law of their residuals, and a link around them.

    One fit for all alphas.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    if not alphas:
        return
    trees = HistGradientBoostingRegressor(max_iter=50, random_state=0)
    bank = RandomizedRegressor(
        trees, alpha=alphas[0], link=LINK, random_state=rollout.seed, on_discrete="ignore"
    )
    known = np.concatenate([rollout.learn, rollout.stop])
    bank.fit(rollout.features.iloc[known], rollout.labels[known])
    game = rollout.game()
    (X, y) = rollout.rows(rollout.customers)
    stated = bank.base_forecast(X)
    draws = jittered(N_CUSTOMERS, N_DRAWS, rollout.generator(2))
    for alpha in alphas:
        chance = game.chance_of_link(stated.distribution, make_link(LINK, alpha))
        met = stated if alpha == 1 else stated.randomized(alpha, LINK, draws)
        row = {"bank": LINKED, "alpha": alpha} | _proven(met, y, None if alpha == 1 else draws)
        beside = _beside(game, stated.cdf(game.threshold), chance, y, stated.pit(y))
        yield row | _earned(game, chance, y) | beside


def _network_banks(rollout: Rollout, alphas: list[float], max_steps: int) -> Iterator[Row]:
    """The paper's network; its deterministic counterpart averages the same network's forecasts over the draws."""
    game = rollout.game()
    (X, y) = rollout.rows(rollout.customers)
    draws = jittered(N_CUSTOMERS, N_DRAWS, rollout.generator(2))
    for bank in _networks(rollout, alphas, max_steps) if alphas else []:
        met = bank.forecast(X, draws)
        chance = game.approve(met).mean(axis=1)
        row = {"bank": NETWORK, "alpha": bank.alpha} | _proven(met, y, draws)
        beside = _beside(
            game, met.cdf(game.threshold).mean(axis=1), chance, y, met.pit(y).mean(axis=1)
        )
        yield row | _earned(game, chance, y) | beside


def _networks(rollout: Rollout, alphas: list[float], max_steps: int) -> list[PAICRegressor]:
    return PAICRegressor.path(
        rollout.features.iloc[rollout.learn],
        rollout.labels[rollout.learn],
        alphas,
        X_val=rollout.features.iloc[rollout.stop],
        y_val=rollout.labels[rollout.stop],
        random_state=rollout.seed,
        max_steps=max_steps,
        device="cpu",
        on_discrete="ignore",
    )


def _proven(met: Forecast, y: Floats, draws: Floats | None) -> Row:
    """Errors of a bank's forecasts over the customers, and what some of them prove."""
    pit = met.pit(y)
    some = slice(0, N_CERTIFY)
    certificate = certify_pit(pit[some], None if draws is None else draws[some], random_state=0)
    return {
        "average_error": calibration_error(pit),
        "worst_error": worst_group_curve(pit[some], MASS, random_state=0).errors[0],
        "certified_average": certificate.average_error(),
        "certified_error": certificate.group_error(MASS),
    }


def _earned(game: LendingGame, chance: Floats, y: Floats) -> Row:
    """What the bank earns when everybody applies, and when those apply who know their chance."""
    everybody = np.ones(y.size, dtype=np.bool_)
    informed = game.applies_if_informed(chance, y)
    qualified = game.is_qualified(y)
    bad = (chance * ~qualified).mean()
    good = (chance * qualified).mean()
    row = {"bad_yes": bad, "bad_share_of_yes": bad / (bad + good) if bad + good > 0 else np.nan}
    row |= _of_applicants(game, chance, y, everybody, "random") | _of_applicants(
        game, chance, y, informed, "informed"
    )
    # who is asked in and who is not: the bank's earnings, part by part
    gains = game.expected_bank_utility(chance, y)
    open_to_all, open_to_bad = (chance >= least for least in game.break_even)
    row["earned_from_all"] = (gains * open_to_all).mean()
    row["lost_to_exploiters"] = (gains * (informed & ~open_to_all)).mean()
    return row | {
        "open_to_all": open_to_all.mean(),
        "open_to_bad_only": (open_to_bad & ~open_to_all).mean(),
    }


def _of_applicants(game: LendingGame, chance: Floats, y: Floats, applied: Mask, who: str) -> Row:
    gains = game.expected_bank_utility(chance, y) * applied
    exploiting = applied & ~game.is_qualified(y)
    return {
        f"utility_{who}": gains.mean(),
        f"per_applicant_{who}": gains.sum() / applied.sum() if applied.any() else 0.0,
        f"exploiting_{who}": exploiting.mean(),
        f"applied_{who}": applied.mean(),
    }


def _beside(game: LendingGame, risk: Floats, chance: Floats, y: Floats, pit: Floats) -> Row:
    """What deterministic banks with the same forecasts earn.

    The one that cuts at its own risk, and the best cut.

    Parameters
    ----------
    game : LendingGame
        The rules.
    risk : ndarray of shape (n,)
        Chance of `y < threshold` that the deterministic forecast states.
    chance : ndarray of shape (n,)
        Of a yes from the randomized bank.
    y, pit : ndarray of shape (n,)
        Worthiness, and its PIT under the deterministic forecast.
    """
    says_yes = risk <= game.risk
    is_bad = ~game.is_qualified(y)
    shut_out = says_yes & (chance < game.break_even[0])
    proven = certify_pit(pit[:N_CERTIFY], random_state=0)
    row = {"utility_plain": game.expected_bank_utility(says_yes.astype(np.float64), y).mean()}
    row |= {"plain_bad_share": _share(is_bad, says_yes), "shut_out": shut_out.mean()}
    row |= {"shut_out_bad_share": _share(is_bad, shut_out)}
    row |= {
        "plain_certified_average": proven.average_error(),
        "plain_certified_error": proven.group_error(MASS),
    }
    return row | _best_cut(game, risk, y)


def _share(of: Mask, among: Mask) -> float:
    return float(of[among].mean()) if among.any() else np.nan


def _best_cut(game: LendingGame, base: Floats, y: Floats) -> Row:
    """What a deterministic bank with the same forecasts earns at the best cut, picked in hindsight, and the cut.

    No link around these forecasts earns more from customers who know it (documentation: decide).
    """
    order = np.argsort(base, kind="stable")
    gains = (
        np.cumsum(np.where(game.is_qualified(y[order]), game.bank_gain, -game.bank_loss)) / y.size
    )
    # people with one forecast are on one side of a cut
    last = np.append(np.diff(base[order]) > 0, True)
    at = int(np.argmax(np.where(last, gains, -np.inf)))
    if gains[at] <= 0:
        return {"best_cut": 0.0, "utility_best_cut": 0.0}
    return {"best_cut": base[order][at], "utility_best_cut": gains[at]}
