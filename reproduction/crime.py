"""Study of Communities and Crime, the paper's first application."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from evenhand import Forecast, MixtureMLPRegressor, PAICRegressor, __version__, certify_pit
from evenhand.calibration import calibration_error
from evenhand.draws import jittered
from evenhand.links import make_link
from evenhand.outcomes import Rounding
from evenhand.scoring import cell_log_score, crps, log_score, spread
from evenhand.search import find_group, null_curve, scan_groups, worst_group_curve
from reproduction.datasets import load_crime
from reproduction.game import Floats
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

PROTOCOLS = {
    "published": "As published: the 500 test rows were also used for early stopping.",
    "apart": "Training, validation and test rows are disjoint.",
}
NAMES = {"published": "as published", "apart": "held-out test rows"}
N_TEST = 500
N_VALIDATION = 220
N_DRAWS = 64
NULL_SIMULATIONS = 20
STEP = 0.01
"""Rounding step of the outcome: PITs are spread over its cells, and the cell log score also
measures sharpness."""
GRID = Rounding(STEP, (0.0, 1.0))
"""Cells of the outcome, a share: those at 0 and 1 reach to all that is beyond."""

MASSES = tuple(np.linspace(0.04, 1.0, 25).round(2).tolist())
"""Group sizes of the figures."""

LINKED = "link around an ensemble"

MOSTLY = 0.9
"""Smallest share of pairs of alphas that counts as "almost always"."""

KINDS = {
    "immigration": "immig foreign speakengl",
    "race": "race black white asian hisp indian",
    "housing": ("housvac housless densehous vacant ownocc rent nophone plumb housoccup numbr"),
    "population": "population popdens numburban landarea",
    "police": "lemas police officer drug",
}
"""Kinds of features in the paper's table of least calibrated groups, by substrings of names."""


def run(
    out: Path,
    seed: int = 0,
    *,
    splits: int = 10,
    data: Path | None = None,
    jobs: int = 2,
    alphas: Sequence[float] = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0),
    link_alphas: Sequence[float] = (0.05, 0.08, 0.1, 0.15, 0.2, 0.3),
    max_steps: int = MAX_STEPS,
) -> str:
    """Run or resume the study, write its folder and return the text to print.

    Parameters
    ----------
    out : Path
        Folder of the study; results stored in it are not computed again.
    seed : int
        Seed of the first split; the others have consecutive seeds.
    splits : int
        Number of random splits.
    data : Path, optional
        Path of communities.data.
    jobs : int
        Number of splits computed in parallel.
    alphas, link_alphas : sequence of float
        Values of alpha of the paper's network, including 0.1 and 1, and of the link around an
        ensemble.
    max_steps : int
        Largest number of training steps.
    """
    # read first, so that a missing file is found before hours of training
    features = [str(name) for name in load_crime(data).X.columns]
    common: Row = {"alphas": list(alphas), "link_alphas": list(link_alphas)}
    common |= {"max_steps": max_steps, "version": __version__}
    tasks = [
        {"seed": seed + i, "protocol": protocol} | common
        for i in range(splits)
        for protocol in PROTOCOLS
    ]
    keep = ("protocol", "seed")
    rows = compute_rows(measure_split, tasks, out / "parts", keep=keep, jobs=jobs, data=data)
    # stored rows have the curve over group sizes; claims use one size
    rows["worst_error"] = [float(np.interp(MASS, MASSES, one)) for one in rows["worst_errors"]]
    claims = pd.concat(
        [
            crime_claims(rows[rows["protocol"] == protocol], features).assign(protocol=name)
            for protocol, name in NAMES.items()
        ],
        ignore_index=True,
    )
    null = {alpha: simulate_null(alpha, seed) for alpha in (PAIC, LIKELIHOOD)}
    results: Row = {"study": "crime", "settings": common | {"seed": seed, "splits": splits}}
    results |= {"claims": claims.to_dict("records"), "rows": rows.to_dict("records"), "null": null}
    exhibits = list(_exhibits(rows, claims, null))
    return write_study(out, "Communities and Crime", _lead(claims, splits), exhibits, results)


def _lead(claims: pd.DataFrame, splits: int) -> list[str]:
    """Return sentences on the results."""
    sentences = [
        f"{splits} random splits of the same 1,994 communities. 95% intervals over splits (t"
        " intervals for means, Clopper-Pearson intervals for shares of splits) account for other"
        " splits, not for other communities."
    ]
    for name, own in claims.groupby("protocol", sort=False):
        sentences.append(f"{str(name).capitalize()}: {tally(own)}.")
        # with one split all claims are undecided, so none is listed
        failed = own[own["verdict"] != "holds"] if splits > 1 else own.head(0)
        sentences += [
            f"{str(row.verdict).capitalize()}, {name}: {row.claim} ({row.measured}:"
            f" {spread_text(row)})."
            for row in failed.itertuples()
        ]
    return sentences


# --- training and measures on one split


class Split:
    """Rows of one split, and a random stream for each purpose.

    As "published", the 500 test rows are also used for early stopping, and recalibration uses the
    training rows. With "apart", 220 other rows are used for early stopping and recalibration, and
    the 500 test rows only for measures.
    """

    def __init__(self, seed: int, protocol: str, data: Path | None = None) -> None:
        crime = load_crime(data)
        order = np.random.default_rng(seed).permutation(len(crime.y))
        self.table = crime.X
        self.X, self.y = crime.X.to_numpy(dtype=np.float64), crime.y.to_numpy(dtype=np.float64)
        self.seed = seed
        self.protocol = protocol
        self.random = {
            name: np.random.default_rng([seed, i])
            for i, name in enumerate(("draws", "few", "recalibrate", "spread"), start=1)
        }
        self.test = order[:N_TEST]
        if protocol == "published":
            self.learn, self.stop, self.recalibrate = order[N_TEST:], self.test, order[N_TEST:]
        else:
            self.stop = self.recalibrate = order[N_TEST : N_TEST + N_VALIDATION]
            self.learn = order[N_TEST + N_VALIDATION :]


def measure_split(
    seed: int,
    protocol: str,
    alphas: list[float],
    link_alphas: list[float],
    max_steps: int,
    *,
    data: Path | None = None,
    version: str = "",
) -> list[Row]:
    """Train the forecasters of one split; return measures by forecaster, alpha, recalibration.

    The link around an ensemble is measured with the protocol "apart" only. `version` is part of a
    task, so that stored rows of other versions are computed again.
    """
    with known_data():
        return list(_rows(Split(seed, protocol, data), alphas, link_alphas, max_steps))


def _rows(
    split: Split, alphas: list[float], link_alphas: list[float], max_steps: int
) -> Iterator[Row]:
    X, y, learn, stop, random = split.X, split.y, split.learn, split.stop, split.random
    # many draws for PITs, few for CRPS and spread, which are tabulated for each forecast
    wide = jittered(N_TEST, N_DRAWS, random["draws"])
    few = jittered(N_TEST, 4, random["few"])
    recalibration_draws = jittered(len(split.recalibrate), N_DRAWS, random["recalibrate"])
    options: Row = {"random_state": split.seed, "max_steps": max_steps, "device": "cpu"}
    networks = PAICRegressor.path(
        X[learn], y[learn], alphas, X_val=X[stop], y_val=y[stop], **options
    )
    for model in networks:
        seen = model.forecast(X[split.recalibrate], recalibration_draws)
        # one map for all draws, because it acts on PITs
        learned = learn_map(
            seen.pit(y[split.recalibrate], rounding=GRID, random_state=random["spread"])
        )
        for recalibrated in (False, True):
            many, some = (model.forecast(X[split.test], r) for r in (wide, few))
            if recalibrated:
                many, some = (apply_map(forecast, learned) for forecast in (many, some))
            about = {"forecaster": NETWORK, "alpha": model.alpha, "recalibrated": recalibrated}
            yield about | _measures(split, model.alpha, many, some, wide)
    if split.protocol == "published":
        return
    # the ensemble holds out its own rows for early stopping, so it gets both parts
    base = MixtureMLPRegressor(**options).fit(
        np.vstack([X[learn], X[stop]]), np.concatenate([y[learn], y[stop]])
    )
    forecast = base.forecast(X[split.test])
    own = float(cell_log_score(forecast, y[split.test], STEP).mean())
    for alpha in link_alphas:
        many, some = (forecast.randomized(alpha, LINK, r) for r in (wide, few))
        about = {"forecaster": LINKED, "alpha": alpha, "recalibrated": False}
        about["base_plus_price"] = own + make_link(LINK, alpha).price
        yield about | _measures(split, alpha, many, some, wide)


def _measures(split: Split, alpha: float, wide: Forecast, few: Forecast, draws: Floats) -> Row:
    """Return all measures of one forecaster at one alpha."""
    y = split.y[split.test]
    features = split.table.iloc[split.test]
    # the same random spreading for all forecasters, so that comparisons are paired
    pit = wide.pit(y, rounding=GRID, random_state=np.random.default_rng([split.seed, 10]))
    # one random cell per row gives a single uniform draw
    once = pit[
        np.arange(N_TEST), np.random.default_rng([split.seed, 11]).integers(N_DRAWS, size=N_TEST)
    ]
    scan = scan_groups(pit, features, random_state=split.seed)
    worst = scan.iloc[int(scan["error"].argmax())]
    row = {
        "nll": log_score(wide, y).mean(),
        "cell_log_score": cell_log_score(wide, y, STEP).mean(),
        "crps": crps(few, y).mean(),
        "mean_std": spread(few).mean(),
        "average_error": calibration_error(pit),
        "worst_errors": worst_group_curve(pit, MASSES, random_state=0).errors,
        "as_published": errors_as_published(pit, once),
        "interpretable_error": worst["error"],
        "interpretable_group": worst["group"],
        "interpretable_features": list(worst["features"]),
        "interpretable_direction": worst["direction"],
        "interpretable_p": worst["p_adjusted"],
        "interpretable_as_published": scan_groups(once, features)["error"].max(),
    }
    # rows used for early stopping cannot certify
    if split.protocol == "apart":
        row["certified_error"] = certify_pit(pit, draws).group_error(MASS)
    if alpha in (PAIC, LIKELIHOOD) and split.protocol == "apart":
        learned = find_group(pit, features, MASS, random_state=split.seed)
        row |= {"learned_error": learned.error, "learned_low": learned.low}
    return row


def errors_as_published(pit: Floats, once: Floats) -> Floats:
    """Return worst-group errors as in the published code: by mean PIT, one draw (method: errata).

    The published code takes the larger error of the rows with the lowest and with the highest mean
    PITs.
    """
    order = np.argsort(pit.mean(axis=1))
    sizes = [max(round(mass * len(pit)), 1) for mass in MASSES]
    return np.array(
        [
            max(calibration_error(once[order[:k]]), calibration_error(once[order[-k:]]))
            for k in sizes
        ]
    )


def simulate_null(alpha: float, seed: int) -> Row:
    """Return the null distribution of worst-group errors for calibrated forecasts of this alpha."""
    # draws under a link; deterministic forecasts have one PIT per person
    link = make_link(LINK, alpha) if alpha < 1 else None
    pit = np.full((N_TEST, N_DRAWS) if alpha < 1 else N_TEST, 0.5)
    null = null_curve(pit, MASSES, link=link, n_simulations=NULL_SIMULATIONS, random_state=seed)
    return {"low": null.low, "mean": null.mean, "high": null.high}


# --- claims


def crime_claims(rows: pd.DataFrame, features: Sequence[str]) -> pd.DataFrame:
    """Decide the paper's claims, each by its 95% interval over splits.

    Parameters
    ----------
    rows : DataFrame
        Rows of one protocol: `seed, forecaster, alpha, recalibrated` and the measures of
        `measure_split`.
    features : sequence of str
        Features that define groups.
    """
    return judge(_claims(rows[rows["forecaster"] == NETWORK], features))


def _claims(network: pd.DataFrame, features: Sequence[str]) -> Iterator[Claim]:
    for recalibrated, how in ((False, ""), (True, ", recalibrated")):
        yield from _claims_of_alphas(network, recalibrated, how)
    for alpha in (PAIC, LIKELIHOOD):
        before, after = (values_at(network, "average_error", alpha, own) for own in (False, True))
        claim = f"Recalibration improves average calibration, alpha {alpha:g}"
        yield Claim(claim, "error before minus after", before - after)
        yield recalibration_claim(network, alpha)
    # scanned groups have at most two features: the share among random pairs is the baseline
    plain = np.mean([not kinds_of([feature]) for feature in features])
    usual = float(1 - plain**2)
    measured = (
        "share of splits whose worst group involves a kind of feature in the paper's table;"
        f" {usual:.2f} of random pairs of features do"
    )
    for alpha in (PAIC, LIKELIHOOD):
        own = network[(network["alpha"] == alpha) & ~network["recalibrated"]]
        named = np.array([bool(kinds_of(used)) for used in own["interpretable_features"]])
        claim = f"The least calibrated groups are protected groups, alpha {alpha:g}"
        yield Claim(claim, measured, named, usual)


def _claims_of_alphas(network: pd.DataFrame, recalibrated: bool, how: str) -> Iterator[Claim]:
    """Yield claims that compare two alphas, for networks as trained or recalibrated."""

    def gap(column: str) -> Floats:
        """Return the measure at alpha 1 minus that at alpha 0.1, by split."""
        at_likelihood = values_at(network, column, LIKELIHOOD, recalibrated)
        return at_likelihood - values_at(network, column, PAIC, recalibrated)

    claim = f"A smaller alpha calibrates adversarial groups better{how}"
    measured = f"worst fifth: error at alpha {LIKELIHOOD:g} minus that at {PAIC:g}"
    yield Claim(claim, measured, gap("worst_error"))
    shares = []
    for _, own in network[network["recalibrated"] == recalibrated].groupby("seed"):
        errors = own.sort_values("alpha")["worst_error"]
        shares.append(np.mean([first < second for first, second in combinations(errors, 2)]))
    measured = f"share of pairs of alphas in this order, at least {MOSTLY:g}"
    yield Claim(f"... and does so almost always{how}", measured, np.array(shares), MOSTLY)
    claim = f"A smaller alpha calibrates interpretable groups better{how}"
    yield Claim(claim, "worst scanned group: the same difference", gap("interpretable_error"))
    scores = {"nll": "log score", "cell_log_score": "cell log score", "mean_std": "mean std"}
    for column, name in scores.items():
        measured = f"{name} at alpha {PAIC:g} minus that at {LIKELIHOOD:g}"
        yield Claim(f"A smaller alpha is less sharp{how}", measured, -gap(column))
    curves = []
    for alpha in (LIKELIHOOD, PAIC):
        own = network[(network["alpha"] == alpha) & (network["recalibrated"] == recalibrated)]
        curves.append(np.array(own.sort_values("seed")["worst_errors"].tolist()))
    gaps = curves[0] - curves[1]
    # the hardest size for the claim: the smallest lower end of the difference
    at = int(np.argmin([interval(gap)[1] for gap in gaps.T] if len(gaps) > 1 else gaps[0]))
    measured = f"the same difference at the size with the smallest lower end, {MASSES[at]:g}"
    yield Claim(f"A smaller alpha is better at every group size{how}", measured, gaps[:, at])


def kinds_of(features: Iterable[str]) -> list[str]:
    """Return the kinds, as in the paper's table, of the features that define a group."""
    text = " ".join(features).lower()
    return [kind for kind, parts in KINDS.items() if any(part in text for part in parts.split())]


# --- exhibits


def _exhibits(
    rows: pd.DataFrame, claims: pd.DataFrame, null: dict[float, Row]
) -> Iterator[Exhibit]:
    first = ["protocol", "claim", "measured", "value", "low", "high", "verdict"]
    yield Exhibit("claims", "The paper's claims", CLAIMS_TEXT, claims[first])
    for protocol, lead in PROTOCOLS.items():
        own = rows[rows["protocol"] == protocol]
        for recalibrated, how in ((False, "as trained"), (True, "recalibrated")):
            linked = (
                " Blue: a link around a deterministic ensemble. Dotted: its score if the ensemble"
                " were the true distribution."
            )
            yield Exhibit(
                f"sharpness-{'recalibrated-' * recalibrated}{protocol}",
                f"Sharpness against the worst group, {how}, {NAMES[protocol]}",
                f"{lead} Small dots are splits, large dots are means by alpha. Top: the oracle"
                f" worst group of {MASS:.0%} of the test rows. Bottom: the worst group among halves"
                f" of features and their intersections.{linked * (not recalibrated)}",
                draw=partial(plot_sharpness, own, recalibrated=recalibrated),
                alt="Eight panels: four measures of sharpness against the error of two kinds of"
                " worst group, along the alphas",
            )
        yield Exhibit(
            f"group-size-{protocol}",
            f"Error of the worst group against its size, {NAMES[protocol]}",
            f"{lead} Bands with a line: mean and one standard deviation over splits. Hatched"
            " bands: 90% of the errors that the same search finds in calibrated forecasts, for"
            " alpha 0.1 with the entropic link of that alpha. A deterministic forecaster far below"
            " its hatched band has intervals that are too wide overall, as the error at 100%"
            " shows.",
            draw=partial(plot_sizes, own, null),
            alt="Two panels: the worst group's error against its size, at alpha 0.1 and 1, as"
            " trained and recalibrated",
        )
        yield Exhibit(
            f"groups-{protocol}",
            f"The least calibrated groups, {NAMES[protocol]}",
            f"{lead} The scanned group with the largest error in each split, for the splits with"
            " the largest errors. Cut values are medians of the test rows; p-values are adjusted by"
            " Holm's method over all scanned groups.",
            _groups_table(own),
        )
    # certificates need rows that were not used for training
    apart = rows[(rows["protocol"] == "apart") & ~rows["recalibrated"]]
    proofs = {
        "worst_error": "oracle worst fifth",
        "certified_error": "certified for every fifth",
        "learned_error": "learned fifth",
        "learned_low": "its lower bound",
        "interpretable_error": "worst scanned group",
    }
    yield Exhibit(
        "proofs",
        "Certified and estimated group errors",
        "Means over splits with held-out test rows. The certificate bounds the error of every group"
        " of a fifth of the people with 95% confidence; for deterministic forecasts (alpha 1) with"
        " uniform PITs no bound below 0.40 can be certified.",
        apart.groupby(["forecaster", "alpha"])[list(proofs)]
        .mean()
        .rename(columns=proofs)
        .reset_index(),
    )
    names = [*SHARPNESS, "average_error", *ERRORS]
    keys = ["protocol", "forecaster", "recalibrated", "alpha"]
    yield Exhibit(
        "scores",
        "All scores",
        "Means over splits with the ends of their 95% t intervals.",
        pd.DataFrame(
            dict(zip(keys, key, strict=True)) | means_with_ends(part, names)
            for key, part in rows.groupby(keys, sort=False)
        ),
    )


def _groups_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the five worst scanned groups of each network at both alphas."""
    own = rows[(rows["forecaster"] == NETWORK) & rows["alpha"].isin((PAIC, LIKELIHOOD))]
    worst = own.sort_values("interpretable_error", ascending=False)
    worst = worst.groupby(["alpha", "recalibrated"]).head(5).sort_values(["alpha", "recalibrated"])
    return pd.DataFrame(
        {
            "alpha": worst["alpha"],
            "recalibrated": worst["recalibrated"],
            "least calibrated group": worst["interpretable_group"],
            "split": worst["seed"],
            "kinds": [", ".join(kinds_of(u)) or "other" for u in worst["interpretable_features"]],
            "error": worst["interpretable_error"],
            "direction": worst["interpretable_direction"],
            "p adjusted": worst["interpretable_p"],
        }
    )


SHARPNESS = {
    "nll": "Log score (nats),\nlower is sharper",
    "cell_log_score": "Cell log score (nats),\nlower is sharper",
    "mean_std": "Mean standard deviation\n(crime rate, 0 to 1)",
    "crps": "CRPS (crime rate, 0 to 1),\nlower is better",
}
ERRORS = {
    "worst_error": "Error of the oracle worst 20%\n(percentage points)",
    "interpretable_error": "Error of the worst scanned group\n(percentage points)",
}
AS_POINTS = PercentFormatter(1.0, symbol="")


def plot_sharpness(rows: pd.DataFrame, *, recalibrated: bool) -> Figure:
    """Draw sharpness against worst-group error, for all measures and both kinds of groups.

    `rows` are those of one protocol; with `recalibrated`, the network's recalibrated forecasts are
    shown.
    """
    panels = new_panels((11.0, 6.4), len(ERRORS), len(SHARPNESS), sharex="row")
    own = rows[rows["recalibrated"] == recalibrated]
    series = (
        (NETWORK, ORANGE, "o", "Paper's network"),
        (LINKED, BLUE, "s", "Link around an ensemble"),
    )
    for line, (error, error_label) in zip(panels, ERRORS.items(), strict=True):
        for axes, (score, score_label) in zip(line, SHARPNESS.items(), strict=True):
            for name, color, marker, label in series:
                one = own[own["forecaster"] == name]
                if len(one):
                    plot_dots(axes, one[error], one[score], marker, color)
                    means = one.groupby("alpha")[[error, score]].mean()
                    axes.plot(means[error], means[score], f"{marker}-", color=color, label=label)
            # in theory the price is added to the log score of a base that is the true distribution
            if len(one) and (error, score) == ("worst_error", "cell_log_score"):
                means = one.groupby("alpha")[[error, "base_plus_price"]].mean()
                label = "Ensemble + price of its link"
                axes.plot(means[error], means["base_plus_price"], ":", color=BLUE, label=label)
            axes.set(xlabel=error_label, ylabel=score_label)
            axes.xaxis.set_major_formatter(AS_POINTS)
            tidy(axes)
    means = own[own["forecaster"] == NETWORK].groupby("alpha")[["worst_error", "nll"]].mean()
    for alpha in {means.index.min(), PAIC, means.index.max()}:
        at = tuple(means.loc[alpha])
        panels[0, 0].annotate(f"α = {alpha:g}", at, (6, 6), textcoords="offset points")
    return share_legend(panels[0, 1], 3)


def plot_sizes(rows: pd.DataFrame, null: dict[float, Row]) -> Figure:
    """Draw the worst-group error against the group size, as trained and recalibrated.

    `rows` are those of one protocol; `null` has by alpha the null distribution of the errors.
    """
    panels = new_panels((9.0, 4.2), 1, 2, sharey=True)[0]
    network = rows[rows["forecaster"] == NETWORK]
    styles = {PAIC: (BLUE, "o", "PAIC"), LIKELIHOOD: (ORANGE, "s", "likelihood")}
    # the null distribution is the same before and after recalibration
    for axes, recalibrated in zip(panels, (False, True), strict=True):
        for alpha, (color, marker, name) in styles.items():
            own = network[(network["alpha"] == alpha) & (network["recalibrated"] == recalibrated)]
            _size_curve(axes, own, color, marker, f"α = {alpha:g} ({name})")
            calibrated = f"link, α = {alpha:g}" if alpha < 1 else "deterministic"
            low, high = null[alpha]["low"], null[alpha]["high"]
            style = {"facecolor": "none", "edgecolor": color, "hatch": "////", "linewidth": 0.5}
            axes.fill_between(MASSES, low, high, label=f"Calibrated, {calibrated}", **style)
        axes.set_title("Recalibrated" if recalibrated else "As trained", fontsize="medium")
        axes.set(xlabel="Group size (share of people)", xlim=(0, 1.02), ylim=(0, 0.52))
        axes.xaxis.set_major_formatter(PercentFormatter(1.0))
        axes.yaxis.set_major_formatter(AS_POINTS)
        tidy(axes)
    panels[0].set_ylabel("Calibration error of the worst group\n(percentage points)")
    panels[1].axhline(0, color=GREY, linewidth=0.8)
    return share_legend(panels[0], 4)


def _size_curve(axes: Axes, rows: pd.DataFrame, color: str, marker: str, label: str) -> None:
    """Draw the mean error over splits with a band of one standard deviation."""
    curves = np.array(rows["worst_errors"].tolist())
    mean = curves.mean(axis=0)
    sd = curves.std(axis=0, ddof=1 if len(curves) > 1 else 0)
    axes.fill_between(MASSES, mean - sd, mean + sd, color=color, alpha=0.2, linewidth=0)
    axes.plot(MASSES, mean, color=color, marker=marker, markevery=4, markersize=5, label=label)
