"""Banks of the credit study: earnings, certificates and deterministic counterparts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd

from evenhand._validate import DiscreteOutcomeWarning, Floats, Mask
from evenhand.calibration import calibration_error
from evenhand.certificates import certify_pit
from evenhand.draws import fresh, jittered
from evenhand.forecast import Forecast
from evenhand.forecasters import PAICRegressor, RandomizedRegressor
from evenhand.links import make_link
from evenhand.search import worst_group_curve
from reproduction.credit_people import N_CUSTOMERS, N_EARLIER, SHARE_UNQUALIFIED, Rollout
from reproduction.lending import LearningApplicants, LendingGame, Round
from reproduction.sweep import LINK, MASS, N_DRAWS, NETWORK, Row, apply_map, learn_map

LINKED = "link around boosted trees"
"""Name of the randomized boosted trees in tables."""

OTHER_SHARES = (0.35, 0.5, 0.8)
"""Other shares of people below the threshold, which the paper does not report."""

N_CERTIFY = 2000
"""Number of customers used for certificates and worst groups, which are slow for many people."""


def measure_rollout(
    seed: int,
    alphas: list[float],
    max_steps: int,
    *,
    data: str | None = None,
    people: Row | None = None,
    version: str = "",
) -> Row:
    """Play one roll-out with the paper's network at all alphas, as trained and recalibrated.

    Parameters
    ----------
    seed : int
        Seed of the roll-out.
    alphas : list of float
        Values of alpha of the network.
    max_steps : int
        Largest number of its training steps.
    data : str, optional
        Path of the credit table.
    people, version
        Fingerprint of the table, and version of the code: stored parts of others are computed
        again.

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
        # no labels are wrong or missing here, so those of the validation rows are true
        learned = learn_map(
            bank.forecast(held, jittered(len(truth), N_DRAWS, rollout.generator(4))).pit(truth)
        )
        trained = bank.forecast(customers[0], draws), bank.forecast(earlier[0], once)
        for recalibrated in (False, True):
            met, before = (
                apply_map(forecast, learned) if recalibrated else forecast for forecast in trained
            )
            about = {"alpha": bank.alpha, "recalibrated": recalibrated} | _certified_errors(
                met, customers[1], draws
            )
            for share in (SHARE_UNQUALIFIED, *OTHER_SHARES):
                game = rollout.game(share)
                chance = game.approve(met).mean(axis=1)
                y = customers[1]
                row = about | {"share_unqualified": share} | bank_earnings(game, chance, y)
                if share == SHARE_UNQUALIFIED:
                    people = _learning_customers(rollout, game, earlier, game.approve(before))
                    row |= _applicant_earnings(
                        game, chance, y, people.applies(game, None, customers[0], y), "learning"
                    )
                yield row


def _learning_customers(
    rollout: Rollout, game: LendingGame, earlier: tuple[pd.DataFrame, Floats], approved: Mask
) -> LearningApplicants:
    """Return customers who learned from the answers to earlier customers, all of whom applied."""
    X, y = earlier
    once = np.ones(y.size, dtype=np.intp)
    people = LearningApplicants(random_state=rollout.generator(5))
    people.learn(X, y, Round(game, game.is_qualified(y), once > 0, approved, once).utilities)
    return people


def measure_cell(
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
    """Measure banks with wrong and selected labels, with random and with informed customers.

    Each randomized bank is compared with a deterministic bank with the same forecasts (for the
    network: averaged over the same draws). A network's approval probabilities are shares of the
    draws that its customers get.

    Parameters
    ----------
    seed : int
        Seed of the roll-out.
    wrong, selected : float
        As for `Rollout`.
    alphas, link_alphas : list of float
        Values of alpha of the paper's network, and of the link around boosted trees, where alpha 1
        stands for the trees without a link.
    max_steps : int
        Largest number of the network's training steps.
    data, people, version
        As for `measure_rollout`.

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
    """Yield the measures of links around one fit of boosted trees with their residuals."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    if not alphas:
        return
    # few trees, because roll-outs have only 1,000 training rows
    trees = HistGradientBoostingRegressor(max_iter=50, random_state=0)
    bank = RandomizedRegressor(trees, alpha=alphas[0], link=LINK, random_state=rollout.seed)
    known = np.concatenate([rollout.learn, rollout.stop])
    # trees need no rows for early stopping
    bank.fit(rollout.features.iloc[known], rollout.labels[known])
    game = rollout.game()
    (X, y) = rollout.rows(rollout.customers)
    base = bank.base_forecast(X)
    draws = jittered(N_CUSTOMERS, N_DRAWS, rollout.generator(2))
    for alpha in alphas:
        chance = game.chance_of_link(base.distribution, make_link(LINK, alpha))
        met = base if alpha == 1 else base.randomized(alpha, LINK, draws)
        row = {"bank": LINKED, "alpha": alpha} | _certified_errors(
            met, y, None if alpha == 1 else draws
        )
        beside = deterministic_banks(game, base.cdf(game.threshold), chance, y, base.pit(y))
        yield row | bank_earnings(game, chance, y) | beside


def _network_banks(rollout: Rollout, alphas: list[float], max_steps: int) -> Iterator[Row]:
    """Yield the measures of the paper's network; its deterministic counterpart averages draws."""
    game = rollout.game()
    (X, y) = rollout.rows(rollout.customers)
    draws = jittered(N_CUSTOMERS, N_DRAWS, rollout.generator(2))
    for bank in _networks(rollout, alphas, max_steps) if alphas else []:
        met = bank.forecast(X, draws)
        chance = game.approve(met).mean(axis=1)
        row = {"bank": NETWORK, "alpha": bank.alpha} | _certified_errors(met, y, draws)
        beside = deterministic_banks(
            game, met.cdf(game.threshold).mean(axis=1), chance, y, met.pit(y).mean(axis=1)
        )
        yield row | bank_earnings(game, chance, y) | beside


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
    )


def _certified_errors(met: Forecast, y: Floats, draws: Floats | None) -> Row:
    """Return errors of a bank's forecasts for all customers, and certificates from some of them."""
    pit = met.pit(y)
    # customers are in random order, so the first ones are a random sample
    some = slice(0, N_CERTIFY)
    certificate = certify_pit(pit[some], None if draws is None else draws[some], random_state=0)
    return {
        "average_error": calibration_error(pit),
        "worst_error": worst_group_curve(pit[some], MASS, random_state=0).errors[0],
        "certified_average": certificate.average_error(),
        "certified_error": certificate.group_error(MASS),
    }


def bank_earnings(game: LendingGame, chance: Floats, y: Floats) -> Row:
    """Return the bank's earnings if everybody applies, and if customers know the bank."""
    everybody = np.ones(y.size, dtype=np.bool_)
    informed = game.applies_if_informed(chance, y)
    qualified = game.is_qualified(y)
    bad = (chance * ~qualified).mean()
    good = (chance * qualified).mean()
    row = {"bad_yes": bad, "bad_share_of_yes": bad / (bad + good) if bad + good > 0 else np.nan}
    row |= _applicant_earnings(game, chance, y, everybody, "random") | _applicant_earnings(
        game, chance, y, informed, "informed"
    )
    # earnings from people for whom applying pays off in any case, or only if unqualified
    gains = game.expected_bank_utility(chance, y)
    open_to_all, open_to_bad = (chance >= least for least in game.break_even)
    row["earned_from_all"] = (gains * open_to_all).mean()
    row["lost_to_exploiters"] = (gains * (informed & ~open_to_all)).mean()
    return row | {
        "open_to_all": open_to_all.mean(),
        "open_to_bad_only": (open_to_bad & ~open_to_all).mean(),
    }


def _applicant_earnings(
    game: LendingGame, chance: Floats, y: Floats, applied: Mask, who: str
) -> Row:
    gains = game.expected_bank_utility(chance, y) * applied
    exploiting = applied & ~game.is_qualified(y)
    return {
        f"utility_{who}": gains.mean(),
        f"per_applicant_{who}": gains.sum() / applied.sum() if applied.any() else 0.0,
        f"exploiting_{who}": exploiting.mean(),
        f"applied_{who}": applied.mean(),
    }


def deterministic_banks(
    game: LendingGame, risk: Floats, chance: Floats, y: Floats, pit: Floats
) -> Row:
    """Return the earnings of deterministic banks with the same forecasts: own cut and oracle cut.

    Parameters
    ----------
    game : LendingGame
        The rules.
    risk : ndarray of shape (n,)
        Probability of `y < threshold` predicted by the deterministic forecast.
    chance : ndarray of shape (n,)
        Probability of approval by the randomized bank.
    y, pit : ndarray of shape (n,)
        Worthiness, and its PIT under the deterministic forecast.
    """
    # the deterministic bank approves if approval has a positive expected gain
    approves = risk <= game.risk
    is_bad = ~game.is_qualified(y)
    deterred = approves & (chance < game.break_even[0])
    proof = certify_pit(pit[:N_CERTIFY], random_state=0)
    row = {"utility_plain": game.expected_bank_utility(approves.astype(np.float64), y).mean()}
    row |= {"plain_bad_share": _share_among(is_bad, approves), "shut_out": deterred.mean()}
    row |= {"shut_out_bad_share": _share_among(is_bad, deterred)}
    row |= {
        "plain_certified_average": proof.average_error(),
        "plain_certified_error": proof.group_error(MASS),
    }
    return row | best_cut(game, risk, y)


def _share_among(of: Mask, among: Mask) -> float:
    return float(of[among].mean()) if among.any() else np.nan


def best_cut(game: LendingGame, risk: Floats, y: Floats) -> Row:
    """Return the oracle cut on the same forecasts, and the earnings of a bank that uses it.

    No link around these forecasts earns more from customers who know it (documentation: decide).
    """
    # all cuts between two neighbouring people earn the same, so cuts at people suffice
    order = np.argsort(risk, kind="stable")
    gains = (
        np.cumsum(np.where(game.is_qualified(y[order]), game.bank_gain, -game.bank_loss)) / y.size
    )
    # people with equal forecasts are on the same side of a cut
    last = np.append(np.diff(risk[order]) > 0, True)
    at = int(np.argmax(np.where(last, gains, -np.inf)))
    if gains[at] <= 0:
        return {"best_cut": 0.0, "utility_best_cut": 0.0}
    return {"best_cut": risk[order][at], "utility_best_cut": gains[at]}
