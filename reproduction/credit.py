"""Study of Give Me Some Credit, the paper's second application: when randomization pays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from evenhand import Forecast, PAICRegressor, RandomizedRegressor, __version__, certify_pit
from evenhand.calibration import calibration_error
from evenhand.draws import fresh, jittered
from evenhand.links import make_link
from evenhand.search import worst_group_curve
from reproduction.datasets import load_credit
from reproduction.game import Floats, LearningApplicants, LendingGame, Mask
from reproduction.study import (
    BLUE,
    CLAIMS_TEXT,
    GREY,
    LIKELIHOOD,
    LINK,
    MASS,
    MAX_STEPS,
    NETWORK,
    ORANGE,
    PAIC,
    RED,
    Claim,
    Exhibit,
    Row,
    apply_map,
    compute_rows,
    interval,
    judge,
    known_data,
    learn_map,
    means_with_ends,
    new_panels,
    plot_dots,
    recalibration_claim,
    share_legend,
    spread_text,
    tally,
    tidy,
    values_at,
    write_study,
)

NOISE = 0.02
"""Standard deviation of the noise added to the classifier's probabilities."""

SHARE_UNQUALIFIED = 0.2
"""Share of people below the threshold of the figures."""

OTHER_SHARES = (0.35, 0.5, 0.8)
"""Other shares of people below the threshold, which the paper does not report."""

N_TRAIN, N_VALIDATION = 800, 200
"""The bank's training rows, and its rows for early stopping and recalibration."""

N_EARLIER, N_CUSTOMERS = 5000, 5000
N_DRAWS = 64

N_CERTIFY = 2000
"""Number of customers used for certificates and worst groups, which are slow for many people."""

LINKED = "link around boosted trees"
CELL = ["bank", "wrong", "selected"]
RATIONAL = {"learning": "who learned from earlier customers", "informed": "who know the bank"}
"""Kinds of rational customers."""

FRESH = 10_000
"""Offset of the confirmation seeds from the seeds of the search."""

CLOSED = 0.1
"""Utility per person, if everybody applies, below which a bank counts as closed; other banks earn
0.4 to 0.7."""


def run(
    out: Path,
    seed: int = 0,
    *,
    rollouts: int = 32,
    data: Path | None = None,
    jobs: int = 2,
    alphas: Sequence[float] = (0.1, 0.2, 0.4, 1.0),
    wrong: Sequence[float] = (0.0, 0.5, 1.0, 2.0),
    selected: Sequence[float] = (0.0, 0.1, 0.2, 0.3),
    map_alphas: Sequence[float] = (0.1, 0.4),
    link_alphas: Sequence[float] = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0),
    map_rollouts: int = 5,
    confirm_rollouts: int = 20,
    max_steps: int = MAX_STEPS,
) -> str:
    """Run or resume the study, write its folder and return the text to print.

    Parameters
    ----------
    out : Path
        Folder of the study; results stored in it are not computed again.
    seed : int
        Seed of the first roll-out; the others have consecutive seeds.
    rollouts : int
        Number of roll-outs of the paper's game.
    data : Path, optional
        Path of the credit table.
    jobs : int
        Number of roll-outs computed in parallel.
    alphas : sequence of float
        Values of alpha of the paper's network in the game, including 0.1 and 1.
    wrong, selected : sequence of float
        Factors of the map: the error of young people's labels in standard deviations, and the share
        of the least creditworthy people without labels.
    map_alphas, link_alphas : sequence of float
        Values of alpha, on the map, of the network and of the link around boosted trees.
    map_rollouts, confirm_rollouts : int
        Number of roll-outs of each cell of the map, and of new roll-outs of the chosen cells.
    max_steps : int
        Largest number of training steps.
    """
    # the table has no fixed checksum: tasks contain a fingerprint of its people
    common: Row = {"max_steps": max_steps, "people": fingerprint(data), "version": __version__}

    def compute(work: Any, tasks: list[Row], *keep: str) -> pd.DataFrame:
        folder = out / "parts"
        return compute_rows(
            work, [one | common for one in tasks], folder, keep=keep, jobs=jobs, data=data
        )

    tasks: list[Row] = [{"seed": seed + i, "alphas": list(alphas)} for i in range(rollouts)]
    games = compute(measure_rollout, tasks, "seed")
    claims = judge(credit_claims(games))

    strengths: Row = {"alphas": list(map_alphas), "link_alphas": list(link_alphas)}
    places = [{"wrong": w, "selected": s} for w in wrong for s in selected]
    tasks = [{"seed": seed + i} | p | strengths for p in places for i in range(map_rollouts)]
    cells = compute(measure_cell, tasks, "seed", *CELL[1:])
    found = advantages(cells)
    chosen = choose_cells(found)

    # new roll-outs, because the largest of many noisy gains is biased upwards
    tasks = []
    for bank, place in chosen.items():
        own = [[place["alpha"]], []][:: 1 if bank == NETWORK else -1]
        task = {name: place[name] for name in CELL[1:]} | {"alphas": own[0], "link_alphas": own[1]}
        tasks += [task | {"seed": seed + FRESH + i} for i in range(confirm_rollouts)]
    new = compute(measure_cell, tasks, "seed", *CELL[1:])
    confirmed = judge_chosen(new)

    tables = {"claims": claims, "confirmed": confirmed, "rows": games, "map": cells, "fresh": new}
    results: Row = {"study": "credit", "settings": common | {"seed": seed, "chosen": chosen}}
    results |= {name: table.to_dict("records") for name, table in tables.items()}
    lead = _lead(claims, confirmed, games, rollouts)
    exhibits = list(_exhibits(tables, found, chosen))
    return write_study(out, "Give Me Some Credit", lead, exhibits, results)


def _lead(
    claims: pd.DataFrame, confirmed: pd.DataFrame, games: pd.DataFrame, rollouts: int
) -> list[str]:
    """Return sentences on the results."""
    headlines = claims[claims["measured"].str.startswith("utility per person at")]
    drawn = games[games["share_unqualified"] == SHARE_UNQUALIFIED]
    trained = drawn[~drawn["recalibrated"]]
    certified = trained[trained["alpha"] == PAIC]["certified_error"].mean()
    closed = (trained[trained["alpha"] == LIKELIHOOD]["utility_random"] < CLOSED).sum()
    return [
        (
            f"{rollouts} roll-outs: in each, a bank is trained on {N_TRAIN + N_VALIDATION:,} people"
            f" and then has {N_CUSTOMERS:,} other customers. Intervals are 95% t intervals over"
            " roll-outs, separately for each claim. All roll-outs sample from the same table, so a"
            " person may occur in several."
        ),
        f"{tally(claims).capitalize()}.",
        *(
            f"{row.claim}: {row.verdict} ({row.measured}: {spread_text(row)})."
            for row in (*headlines.itertuples(), *confirmed.itertuples())
        ),
        (
            f"As trained, the network with alpha {LIKELIHOOD:g} approves hardly anybody in"
            f" {closed} of {rollouts} roll-outs (it earns less than {CLOSED:g} per person even if"
            " everybody applies), which makes its intervals wide."
        ),
        (
            f"The certificate of the network with alpha {PAIC:g}, as trained, averaged over"
            f" roll-outs: predicted probabilities are off by at most {certified:.3f} in every fifth"
            " of the people. For deterministic banks no bound below 0.25 can be certified."
        ),
    ]


# --- people: worthiness, labels, and their roles in a roll-out


@lru_cache(maxsize=1)
def load_people(data: Path | None) -> tuple[pd.DataFrame, Floats, Floats]:
    """Return features as normal scores, probabilities of no delinquency and ages of all people.

    The probabilities are cross-fitted: each half is predicted by a classifier trained on the other
    half, so that they do not reproduce the labels.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import cross_val_predict
    from sklearn.preprocessing import QuantileTransformer

    X, y = load_credit(data).X, load_credit(data).y
    classifier = HistGradientBoostingClassifier(random_state=0)
    fitted = cross_val_predict(classifier, X, y.astype(int), cv=2, method="predict_proba")
    # some features have outliers of a thousand standard deviations, which would dominate a network
    scores = QuantileTransformer(output_distribution="normal", random_state=0).fit_transform(X)
    probabilities = np.asarray(fitted[:, 0], dtype=np.float64)
    return pd.DataFrame(scores, columns=X.columns), probabilities, X["age"].to_numpy(np.float64)


def fingerprint(data: Path | None) -> Row:
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
    data : Path, optional
        Path of the credit table.
    wrong : float
        Error of the bank's labels of young people: they are too high by this number of standard
        deviations of worthiness.
    selected : float
        Share of the least worthy people, for whom the bank has no labels because an earlier lender
        refused them.
    """

    def __init__(
        self, seed: int, data: Path | None, wrong: float = 0.0, selected: float = 0.0
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

    def rows(self, who: NDArray[np.intp]) -> tuple[pd.DataFrame, Floats]:
        """Return features and worthiness of some people."""
        return self.features.iloc[who], self.worth[who]

    def generator(self, purpose: int) -> np.random.Generator:
        """Return the random stream of a purpose; 0 and 1 are reserved for roles and noise."""
        return np.random.default_rng([self.seed, purpose])

    def networks(self, alphas: list[float], max_steps: int) -> list[PAICRegressor]:
        """Train the paper's network at all alphas."""
        return PAICRegressor.path(
            self.features.iloc[self.learn],
            self.labels[self.learn],
            alphas,
            X_val=self.features.iloc[self.stop],
            y_val=self.labels[self.stop],
            random_state=self.seed,
            max_steps=max_steps,
            device="cpu",
        )


# --- banks: earnings, certificates and deterministic counterparts


def measure_rollout(
    seed: int, alphas: list[float], max_steps: int, *, data: Path | None = None, **task: Any
) -> list[Row]:
    """Play one roll-out with the paper's network at all alphas, as trained and recalibrated.

    `task` has the fingerprint of the table and the version of the code: stored rows of others are
    computed again. Returns one row per alpha, recalibration and threshold.
    """
    with known_data():
        return list(_game_rows(Rollout(seed, data), alphas, max_steps))


def _game_rows(rollout: Rollout, alphas: list[float], max_steps: int) -> Iterator[Row]:
    X_before, y_before = rollout.rows(rollout.earlier)
    X, y = rollout.rows(rollout.customers)
    held, truth = rollout.rows(rollout.stop)
    draws = jittered(N_CUSTOMERS, N_DRAWS, rollout.generator(2))
    once = fresh(N_EARLIER, rollout.generator(3))
    for bank in rollout.networks(alphas, max_steps):
        # no labels are wrong or missing here, so those of the validation rows are true
        held_draws = jittered(len(truth), N_DRAWS, rollout.generator(4))
        learned = learn_map(bank.forecast(held, held_draws).pit(truth))
        trained = bank.forecast(X, draws), bank.forecast(X_before, once)
        for recalibrated in (False, True):
            met, before = (
                apply_map(forecast, learned) if recalibrated else forecast for forecast in trained
            )
            about = {"alpha": bank.alpha, "recalibrated": recalibrated}
            about |= _certified_errors(met, y, draws)
            for share in (SHARE_UNQUALIFIED, *OTHER_SHARES):
                game = rollout.game(share)
                chance = game.approve(met).mean(axis=1)
                row = about | {"share_unqualified": share} | bank_earnings(game, chance, y)
                if share == SHARE_UNQUALIFIED:
                    # customers learn from the answers to earlier ones, all of whom applied
                    people = LearningApplicants(rollout.generator(5))
                    answers = game.approve(before).astype(np.float64)
                    people.learn(X_before, y_before, game.expected_utility(answers, y_before))
                    row |= _earnings_from(game, chance, y, people.applies(X, y), "learning")
                yield row


def measure_cell(
    seed: int,
    wrong: float,
    selected: float,
    alphas: list[float],
    link_alphas: list[float],
    max_steps: int,
    *,
    data: Path | None = None,
    **task: Any,
) -> list[Row]:
    """Measure banks with wrong and selected labels, with random and with informed customers.

    Each randomized bank is compared with a deterministic bank with the same forecasts (for the
    network: averaged over the same draws). A network's approval probabilities are shares of the
    draws that its customers get. `alphas` are those of the network, `link_alphas` those of the link
    around boosted trees, where 1 stands for the trees without a link. Returns one row per kind of
    bank and alpha.
    """
    rollout = Rollout(seed, data, wrong, selected)
    with known_data():
        linked = _linked_banks(rollout, link_alphas) if link_alphas else ()
        networks = _network_banks(rollout, alphas, max_steps) if alphas else ()
        return [*linked, *networks]


def _linked_banks(rollout: Rollout, alphas: list[float]) -> Iterator[Row]:
    """Yield the measures of links around one fit of boosted trees with their residuals."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    # few trees, because roll-outs have only 1,000 training rows
    trees = HistGradientBoostingRegressor(max_iter=50, random_state=0)
    bank = RandomizedRegressor(trees, alpha=alphas[0], link=LINK, random_state=rollout.seed)
    # trees need no rows for early stopping
    known = np.concatenate([rollout.learn, rollout.stop])
    bank.fit(rollout.features.iloc[known], rollout.labels[known])
    game = rollout.game()
    X, y = rollout.rows(rollout.customers)
    base = bank.base_forecast(X)
    draws = jittered(N_CUSTOMERS, N_DRAWS, rollout.generator(2))
    for alpha in alphas:
        chance = game.chance_of_link(base.distribution, make_link(LINK, alpha))
        met, r = (base, None) if alpha == 1 else (base.randomized(alpha, LINK, draws), draws)
        row = {"bank": LINKED, "alpha": alpha} | _certified_errors(met, y, r)
        row |= bank_earnings(game, chance, y)
        yield row | deterministic_banks(game, base.cdf(game.threshold), chance, y, base.pit(y))


def _network_banks(rollout: Rollout, alphas: list[float], max_steps: int) -> Iterator[Row]:
    """Yield the measures of the paper's network; its deterministic counterpart averages draws."""
    game = rollout.game()
    X, y = rollout.rows(rollout.customers)
    draws = jittered(N_CUSTOMERS, N_DRAWS, rollout.generator(2))
    for bank in rollout.networks(alphas, max_steps):
        met = bank.forecast(X, draws)
        chance = game.approve(met).mean(axis=1)
        row = {"bank": NETWORK, "alpha": bank.alpha} | _certified_errors(met, y, draws)
        row |= bank_earnings(game, chance, y)
        risk, pit = met.cdf(game.threshold).mean(axis=1), met.pit(y).mean(axis=1)
        yield row | deterministic_banks(game, risk, chance, y, pit)


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
    informed = game.applies_if_informed(chance, y)
    qualified = game.is_qualified(y)
    bad, good = (chance * ~qualified).mean(), (chance * qualified).mean()
    # earnings from people for whom applying pays off in any case, or only if unqualified
    gains = game.expected_bank_utility(chance, y)
    open_to_all = chance >= game.break_even[0]
    return {
        "bad_share_of_yes": bad / (bad + good) if bad + good > 0 else np.nan,
        "earned_from_all": (gains * open_to_all).mean(),
        "lost_to_exploiters": (gains * (informed & ~open_to_all)).mean(),
        **_earnings_from(game, chance, y, np.ones(y.size, dtype=np.bool_), "random"),
        **_earnings_from(game, chance, y, informed, "informed"),
    }


def _earnings_from(game: LendingGame, chance: Floats, y: Floats, applied: Mask, who: str) -> Row:
    gains = game.expected_bank_utility(chance, y) * applied
    return {
        f"utility_{who}": gains.mean(),
        f"per_applicant_{who}": gains.sum() / applied.sum() if applied.any() else 0.0,
        f"exploiting_{who}": (applied & ~game.is_qualified(y)).mean(),
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
    return {
        "utility_plain": game.expected_bank_utility(approves.astype(np.float64), y).mean(),
        "plain_bad_share": is_bad[approves].mean() if approves.any() else np.nan,
        "shut_out": deterred.mean(),
        "shut_out_bad_share": is_bad[deterred].mean() if deterred.any() else np.nan,
        "plain_certified_average": proof.average_error(),
        **best_cut(game, risk, y),
    }


def best_cut(game: LendingGame, risk: Floats, y: Floats) -> Row:
    """Return the oracle cut on the same forecasts, and the earnings of a bank that uses it.

    No link around these forecasts earns more from customers who know it (README).
    """
    # all cuts between two neighbouring people earn the same, so cuts at people suffice
    order = np.argsort(risk, kind="stable")
    gains = np.cumsum(game.expected_bank_utility(np.ones(y.size), y[order])) / y.size
    # people with equal forecasts are on the same side of a cut
    last = np.append(np.diff(risk[order]) > 0, True)
    at = int(np.argmax(np.where(last, gains, -np.inf)))
    if gains[at] <= 0:
        return {"best_cut": 0.0, "utility_best_cut": 0.0}
    return {"best_cut": risk[order][at], "utility_best_cut": gains[at]}


# --- claims, and choice of the cells where randomization pays


def credit_claims(rows: pd.DataFrame) -> Iterator[Claim]:
    """Yield the paper's claims about the game, from the rows of `measure_rollout` with `seed`."""
    # the threshold of the figures; other thresholds have their own table
    drawn = rows[rows["share_unqualified"] == SHARE_UNQUALIFIED]
    yield from _claims_of_alphas(drawn, True, ", recalibrated")
    yield from _claims_of_alphas(drawn, False, "")
    yield from (recalibration_claim(drawn, alpha) for alpha in (PAIC, LIKELIHOOD))


def _claims_of_alphas(rows: pd.DataFrame, recalibrated: bool, how: str) -> Iterator[Claim]:
    """Yield claims that compare banks at two alphas, as trained or recalibrated."""
    small, large = f"alpha {PAIC:g}", f"alpha {LIKELIHOOD:g}"

    def more(column: str) -> Floats:
        """Return the measure at the smaller alpha minus that at the larger, by roll-out."""
        at_paic = values_at(rows, column, PAIC, recalibrated)
        return at_paic - values_at(rows, column, LIKELIHOOD, recalibrated)

    claim = f"With random customers the individually calibrated bank earns less{how}"
    measured = f"utility per person at {small} minus that at {large}"
    yield Claim(claim, measured, more("utility_random"), is_above=False)
    claim = f"With rational customers it earns more{how}"
    for who, which in RATIONAL.items():
        for column, unit in (("utility", "person"), ("per_applicant", "applicant")):
            measured = f"utility per {unit} at {small} minus that at {large}, customers {which}"
            yield Claim(claim, measured, more(f"{column}_{who}"))
    claim = f"It has fewer exploitative customers{how}"
    for who, which in RATIONAL.items():
        measured = (
            f"share of people who are unqualified and apply, customers {which}: {small} minus"
            f" {large}"
        )
        yield Claim(claim, measured, more(f"exploiting_{who}"), is_above=False)
    claim = f"At most 25% of the people it approves are unqualified, {small}, random customers{how}"
    share = values_at(rows, "bad_share_of_yes", PAIC, recalibrated)
    yield Claim(claim, "unqualified share of approvals", share, 0.25, is_above=False)


def advantages(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the gain of each randomized bank over a deterministic bank with the same forecasts.

    Customers know the bank in both cases. `cells` are rows of `measure_cell` with `seed`, `wrong`
    and `selected`. Returns one row per bank, cell and alpha below 1: the gain `more` with its 95% t
    interval over roll-outs, the earnings of both banks, the share of unqualified people among those
    whom the deterministic bank approves, and among those of them who are deterred by the randomized
    bank, and the certificates of both.
    """
    means = {
        "utility_informed": "earned",
        "utility_plain": "deterministic",
        "plain_bad_share": "unqualified among approved",
        "shut_out_bad_share": "unqualified among deterred",
        "certified_error": "certified every fifth",
        "certified_average": "certified average",
        "plain_certified_average": "certified average, deterministic",
    }
    table = []
    for place, own in cells[cells["alpha"] < 1].groupby([*CELL, "alpha"], sort=False):
        # paired by roll-out: both banks have the same customers
        gains = (own["utility_informed"] - own["utility_plain"]).to_numpy(dtype=np.float64)
        row = dict(zip([*CELL, "alpha"], place, strict=True))
        row |= dict(zip(("more", "low", "high"), interval(gains), strict=True))
        table.append(row | {new: own[name].mean() for name, new in means.items()})
    return pd.DataFrame(table)


def choose_cells(found: pd.DataFrame) -> dict[str, Row]:
    """Choose the cell and alpha to confirm for each kind of bank: the largest lower end of gains.

    Only cells with positive earnings are considered, because even a closed bank, which earns 0,
    gains over a bank that loses money.
    """
    chosen = {}
    for bank, own in found.groupby("bank", sort=False):
        earning = own[own["earned"] > 0] if (own["earned"] > 0).any() else own
        lower = earning["low"].fillna(earning["more"])
        best = earning.iloc[int(lower.to_numpy(dtype=np.float64).argmax())]
        chosen[str(bank)] = {name: float(best[name]) for name in ("wrong", "selected", "alpha")}
    return chosen


def judge_chosen(cells: pd.DataFrame) -> pd.DataFrame:
    """Decide on new roll-outs whether, and why, randomization earns more in the chosen cells."""
    groups = cells.groupby([*CELL, "alpha"], sort=False)
    return judge(claim for _, own in groups for claim in _claims_of_cell(own))


def _claims_of_cell(own: pd.DataFrame) -> Iterator[Claim]:
    place = own.iloc[0]
    earned, plain, everybody, best = (
        own[name].to_numpy(dtype=np.float64)
        for name in ("utility_informed", "utility_plain", "utility_random", "utility_best_cut")
    )
    labels = (
        f"labels of young people {place['wrong']:g} sd too high, no labels of the least worthy"
        f" {100 * place['selected']:g}%"
    )
    where = f"{place['bank']}, alpha {place['alpha']:g}"
    claim = f"A randomized bank earns more from rational customers ({where}; {labels})"
    measured = "utility per person minus that of the deterministic bank, new roll-outs"
    yield Claim(claim, measured, earned - plain)
    yield Claim(f"... and its earnings are positive ({where})", "utility per person", earned)
    claim = f"... and randomization gains more with them than if everybody applied ({where})"
    measured = "gain by randomization minus the same with random customers"
    yield Claim(claim, measured, earned - everybody)
    claim = (
        "... and earns more than the oracle cut on the same forecasts, the best deterministic one"
        f" ({where})"
    )
    yield Claim(claim, "utility per person minus that of the oracle cut", earned - best)


# --- exhibits


def _exhibits(
    tables: dict[str, pd.DataFrame], found: pd.DataFrame, chosen: dict[str, Row]
) -> Iterator[Exhibit]:
    games, cells, fresh = tables["rows"], tables["map"], tables["fresh"]
    yield Exhibit(
        "claims",
        "The paper's claims",
        f"{CLAIMS_TEXT} {SHARE_UNQUALIFIED:.0%} of people have a worthiness below the threshold.",
        tables["claims"],
    )
    for recalibrated, how, number in ((True, "recalibrated", 5), (False, "as trained", 7)):
        own = games[
            (games["recalibrated"] == recalibrated)
            & (games["share_unqualified"] == SHARE_UNQUALIFIED)
        ]
        names = [f"{measure}_{who}" for who in WHO for measure in ("utility", "exploiting")]
        yield Exhibit(
            f"customers-{'recalibrated' if recalibrated else 'trained'}",
            f"Random and rational customers, {how} (the paper's Figure {number})",
            "Small dots are roll-outs, large marks are means by alpha with 95% intervals. Rational"
            " customers either train a network psi(x, y) on the utilities of earlier customers, as"
            " in the paper, or know the probability that the bank approves them.",
            pd.DataFrame(
                {"alpha": alpha} | means_with_ends(one, names)
                for alpha, one in own.groupby("alpha")
            ),
            partial(plot_customers, own),
            "Three panels against alpha: the bank's utility per person, its utility per applicant,"
            " and the share of unqualified applicants",
        )
    names = ["utility_random", "utility_informed", "per_applicant_informed"]
    names += ["exploiting_informed", "bad_share_of_yes"]
    ends = games[games["alpha"].isin((PAIC, LIKELIHOOD))]
    yield Exhibit(
        "thresholds",
        "Other thresholds",
        "Means over roll-outs with other shares of people below the threshold, because the paper"
        " does not report its threshold. Customers know the bank.",
        ends.groupby(["share_unqualified", "recalibrated", "alpha"])[names].mean().reset_index(),
    )
    yield Exhibit(
        "map",
        "Where randomization pays",
        "A bank's training labels can be wrong in two ways: labels of the youngest 30% of people"
        " are too high (rows), and the least worthy people have no labels (columns; an earlier"
        " lender with more information refused them). Each cell shows the gain of the randomized"
        " bank over the deterministic bank with the same forecasts, from customers who know it"
        " (* if the 95% interval excludes 0), and below it the earnings of both per person, at the"
        " chosen alpha. The intervals are not corrected for the number of cells; the new roll-outs"
        " below need no such correction. Deterred people are approved by the deterministic bank,"
        " but their probability of approval by the randomized bank is too small for qualified"
        " people to apply.",
        found,
        lambda: plot_map(found, chosen),
        "Two tables of coloured cells: gain by randomization against the error and the selection of"
        " the labels",
    )
    first, last = ((cells["wrong"].agg(end), cells["selected"].min()) for end in ("min", "max"))
    place = chosen[LINKED]["wrong"], chosen[LINKED]["selected"]
    yield Exhibit(
        "strengths",
        "How much randomization",
        "One deterministic bank, boosted trees with the distribution of their residuals, and the"
        " entropic link around it. A weak link (alpha near 1) changes little. With a link of medium"
        " strength many people have an approval probability between 1/3 and 5/7, where only"
        " unqualified people apply. A strong link deters everybody, unless the bank's forecasts are"
        " both wrong and very sharp. No link earns more than the oracle cut, the best deterministic"
        " cut on the same forecasts.",
        # the chosen cell may be one of the corners
        draw=lambda: plot_strengths(cells, list(dict.fromkeys((first, last, place)))),
        alt="Panels against the link's alpha: the bank's utility with rational customers, and if"
        " everybody applies",
    )
    names = ["utility_informed", "utility_plain", "utility_random", "utility_best_cut"]
    names += ["earned_from_all", "lost_to_exploiters", "plain_bad_share", "shut_out"]
    names += ["shut_out_bad_share", "certified_error"]
    yield Exhibit(
        "confirmed",
        "The chosen cells on new roll-outs",
        "For each kind of bank, the cell and alpha whose gain on the map has the largest lower"
        " confidence end, among those with positive earnings, on new roll-outs, which were not used"
        " for the choice. The gain need not be significant. earned_from_all is the utility from"
        " people whose approval probability is high enough for qualified and unqualified people to"
        " apply, and lost_to_exploiters that from people for whom it is high enough only if they"
        " are unqualified.",
        fresh.groupby([*CELL, "alpha"], sort=False)[names].mean().reset_index(),
    )
    yield Exhibit("verdicts", "Claims about the chosen cells", CLAIMS_TEXT, tables["confirmed"])


WHO = {
    "random": ("Everybody applies", GREY, "^"),
    "learning": ("Rational: learned from earlier customers", ORANGE, "o"),
    "informed": ("Rational: know the bank", BLUE, "s"),
}
MEASURES = {
    "utility": "Bank's utility per person",
    "per_applicant": "Bank's utility per applicant",
    "exploiting": "Unqualified applicants (share of people)",
}


def plot_customers(rows: pd.DataFrame) -> Figure:
    """Draw the bank's earnings and the share of unqualified applicants against alpha.

    `rows` are those of `measure_rollout` at one threshold, with or without recalibration.
    """
    panels = new_panels((11.0, 4.0), 1, len(MEASURES))[0]
    for axes, (measure, title) in zip(panels, MEASURES.items(), strict=True):
        for shift, (who, (label, color, marker)) in enumerate(WHO.items()):
            values = rows.groupby("alpha")[f"{measure}_{who}"]
            mean, low, high = np.array([interval(own.to_numpy()) for _, own in values]).T
            # shifted, so that marks do not overlap
            move = 0.012 * (shift - 1)
            plot_dots(axes, rows["alpha"] + move, rows[f"{measure}_{who}"], marker, color)
            ends = np.nan_to_num([mean - low, high - mean])
            style: Any = {"fmt": f"{marker}-", "color": color, "label": label}
            axes.errorbar(np.unique(rows["alpha"]) + move, mean, yerr=ends, **style)
        axes.set(xlabel="α (1: likelihood only)", ylabel=title)
        tidy(axes)
    return share_legend(panels[0], 3)


def plot_map(found: pd.DataFrame, chosen: dict[str, Row]) -> Figure:
    """Draw the gain of the randomized bank over the deterministic one, for each cell.

    `found` is the result of `advantages`; each kind of bank is drawn at the alpha chosen for it.
    """
    panels = new_panels((11.0, 4.6), 1, len(chosen))[0]
    own = {
        bank: found[(found["bank"] == bank) & (found["alpha"] == place["alpha"])]
        for bank, place in chosen.items()
    }
    # colours are symmetric about 0, on a scale that does not exaggerate small gains
    limit = max(0.1, *(rows["more"].abs().max() for rows in own.values()))
    for axes, (bank, rows) in zip(panels, own.items(), strict=True):
        table = rows.pivot(index="wrong", columns="selected", values="more")
        image = axes.imshow(table, cmap="PuOr_r", vmin=-limit, vmax=limit, aspect="auto")
        for row in rows.itertuples():
            star = "*" if row.low > 0 or row.high < 0 else ""
            text = f"{row.more:+.2f}{star}\n{row.earned:.2f} / {row.deterministic:.2f}"
            color = "white" if abs(row.more) > 0.65 * limit else "black"
            place = table.columns.get_loc(row.selected), table.index.get_loc(row.wrong)
            axes.text(*place, text, ha="center", va="center", fontsize="small", color=color)
        axes.set_xticks(range(table.shape[1]), [f"{share:.0%}" for share in table.columns])
        axes.set_yticks(range(table.shape[0]), [f"{sd:g}" for sd in table.index])
        axes.set_xlabel("Least worthy people without labels")
        axes.set_title(f"{bank}, α = {chosen[bank]['alpha']:g}", fontsize="medium")
    panels[0].set_ylabel("Labels of young people too high by (sd)")
    figure: Figure = panels[0].get_figure(root=True)
    label = "Utility per person, randomized minus deterministic"
    figure.colorbar(image, ax=list(panels), label=label, shrink=0.9)
    return figure


def plot_strengths(cells: pd.DataFrame, places: list[tuple[float, float]]) -> Figure:
    """Draw the earnings of a link around one deterministic bank against alpha, in some cells.

    `cells` are rows of `measure_cell`; `places` are values of `wrong` and `selected`.
    """
    panels = new_panels((4.0 * len(places), 3.9), 1, len(places), sharey=True)[0]
    linked = cells[cells["bank"] == LINKED]
    for axes, (wrong, selected) in zip(panels, places, strict=True):
        own = linked[(linked["wrong"] == wrong) & (linked["selected"] == selected)]
        plot_dots(axes, own["alpha"], own["utility_informed"], "s", BLUE)
        by_alpha = own.groupby("alpha")
        for name, style, color, label in (
            ("utility_informed", "s-", BLUE, "Rational customers"),
            ("utility_random", "^--", GREY, "Everybody applies"),
            ("utility_best_cut", ":", RED, "Oracle cut (best deterministic cut)"),
        ):
            means = by_alpha[name].mean()
            axes.plot(means.index, means, style, color=color, label=label)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_xscale("log")
        axes.set(xlabel="α of the link (1: deterministic)")
        axes.set_title(
            f"Labels of young people {wrong:g} sd too high,\nleast worthy {selected:.0%} without"
            " labels",
            fontsize="medium",
        )
        tidy(axes)
    panels[0].set_ylabel("Bank's utility per person")
    return share_legend(panels[0], 3)
