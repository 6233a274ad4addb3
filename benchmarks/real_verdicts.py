"""Verdicts of audits on real tables, beside the logistic regression of statsmodels.

The tables are bundled with statsmodels (fair, randhie), scikit-learn (breast cancer, diabetes) and
scikit-survival (flchain). A random half of the rows trains models with default settings and all
features (the Cox models: sex and light chains, with or without age); the other half is audited,
with all features and the groups of one column. The affairs of fair are amounts, many of which are
0. Of randhie, whose people have several rows and no id, it is the first row of each combination of
values of a person, as in docs/counts.rst.

1. The verdict, the number of problems and the main one: everyone, or the group with the smallest
   p-value. The error of everyone, given the forecast, in points, has an upper end for 0/1 outcomes
   only. The CPU time is that of the audit.
2. For 0/1 outcomes, the p-value of everyone in the audit, which has exact tests, beside the
   regression of the outcome on the log odds by statsmodels: slope and intercept with 95% Wald
   intervals, and the likelihood ratio test of slope 1 and intercept 0.

    OMP_NUM_THREADS=1 python benchmarks/real_verdicts.py [--seed 0]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
from lifelines import CoxPHFitter
from lightgbm import LGBMClassifier
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import (
    BayesianRidge,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.datasets import load_flchain

from audit_cost import forget
from evenhand import Audit, BoostedDistributionRegressor, CountRegressor, HurdleRegressor, audit
from evenhand.forecasters import SurvivalModel

OF_PERSON = ["lncoins", "idp", "lpi", "fmde", "physlm", "disea"]
HORIZON = 10.0
TREES = LGBMClassifier(n_jobs=1, verbosity=-1, random_state=0)
LOGISTIC = make_pipeline(StandardScaler(), LogisticRegression())


def tables() -> Iterator[tuple[str, pd.DataFrame, pd.Series, str, dict[str, Any]]]:
    """Yield name, features, outcome, column of named groups and models of each table."""
    fair = sm.datasets.fair.load_pandas().data
    X, y = fair.drop(columns="affairs"), fair["affairs"]
    either = {"logistic regression": LOGISTIC, "LightGBM": TREES}
    yield "fair, 0/1", X, (y > 0).astype(int), "rate_marriage", either
    linear = make_pipeline(StandardScaler(), LinearRegression())
    hurdle = {"logistic and linear": HurdleRegressor(LOGISTIC, linear, random_state=0)}
    yield "fair, amounts", X, y, "rate_marriage", hurdle
    visits = sm.datasets.randhie.load_pandas().data.drop_duplicates(OF_PERSON)
    means = {
        "Poisson regression": make_pipeline(StandardScaler(), PoissonRegressor()),
        "boosted Poisson": HistGradientBoostingRegressor(loss="poisson", random_state=0),
    }
    counts = {
        name: CountRegressor(mean, family="poisson", random_state=0) for name, mean in means.items()
    } | {"CountRegressor()": CountRegressor(random_state=0)}
    yield "randhie", visits.drop(columns="mdvis"), visits["mdvis"], "hlthp", counts
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    yield "breast cancer", X, y, "mean radius", either
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    ours = {"BoostedDistribution": BoostedDistributionRegressor(random_state=0)}
    yield "diabetes", X, y, "sex", {"BayesianRidge": BayesianRidge()} | ours


def audited_halves(seed: int) -> Iterator[tuple[str, str, Any, pd.DataFrame, Any, dict[str, Any]]]:
    """Yield table, model, fitted model and the rows and options of its audit."""
    for table, X, y, column, models in tables():
        train, rest = np.array_split(np.random.default_rng(seed).permutation(len(X)), 2)
        for name, model in models.items():
            fitted = clone(model).fit(X.iloc[train], y.iloc[train])
            yield table, name, fitted, X.iloc[rest], y.iloc[rest], {"groups": [column]}
    # as in docs/recipes/cox.py
    X, times = load_flchain()
    people = pd.DataFrame({"age": X["age"], "sex": X["sex"].astype(str)})
    people["light_chains"] = np.log(X["kappa"] + X["lambda"])
    people["years"] = np.maximum(times["futime"], 0.5) / 365.25
    people["died"] = times["death"].astype(int)
    people = people.sample(frac=1, random_state=seed)
    train, rest = people[: len(people) // 2], people[len(people) // 2 :]
    X = rest.drop(columns=["years", "died"])
    for name, formula in (("without", "sex + light_chains"), ("with", "sex + light_chains + age")):
        cox = SurvivalModel(CoxPHFitter().fit(train, "years", "died", formula=formula), HORIZON)
        known = {"event": rest["died"], "horizon": HORIZON, "groups": ["age"]}
        yield "flchain", f"Cox, {name} age", cox, X, rest["years"], known


def points(*values: float) -> str:
    """Return an estimate and its interval, "-" for what does not exist."""
    estimate, low, high = (f"{value:.2f}" if np.isfinite(value) else "-" for value in values)
    return f"{estimate} ({low} to {high})"


def timed(model: Any, X: pd.DataFrame, y: Any, known: dict[str, Any]) -> tuple[Audit, float]:
    """Return an audit and its CPU time, with empty caches."""
    forget()
    start = time.process_time()
    found = audit(model, X, y, random_state=0, **known)
    return found, time.process_time() - start


def main_problem(found: Audit) -> str:
    """Return everyone, if a problem, or else the group with the smallest p-value."""
    tables = (found.groups, found.by_forecast, found.scan)
    listed = pd.concat(tables)[lambda rows: rows["problem"].eq(True)]
    if listed.empty:
        return "a learned group" if found.status.n_problems else ""
    if "everyone" in listed["group"].to_list():
        return "everyone"
    return str(listed.sort_values("p_adjusted", kind="stable")["group"].iloc[0])


def regression(probability: np.ndarray, y: np.ndarray) -> tuple[str, float]:
    """Return slope and intercept with intervals, and the p-value of slope 1 and intercept 0."""
    log_odds = np.log(probability) - np.log1p(-probability)
    fitted = sm.Logit(y, sm.add_constant(log_odds)).fit(disp=False)
    given = np.sum(np.where(y == 1, np.log(probability), np.log1p(-probability)))
    (intercept, slope), intervals = fitted.params, fitted.conf_int()
    text = f"{points(slope, *intervals[1]):22} {points(intercept, *intervals[0]):24}"
    return text, float(stats.chi2.sf(2 * (fitted.llf - given), 2))


def main() -> None:
    """Audit all tables and print both comparisons."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0, help="of the halves")
    seed = parser.parse_args().seed
    warnings.simplefilter("ignore")
    print(
        f"{'table':14} {'model':20} {'rows':>5} {'verdict':17} {'problems':>8} "
        f"{'error, points':>22} {'slope':>20} {'CPU s':>6}  main problem"
    )
    compared = []
    for table, name, model, X, y, known in audited_halves(seed):
        found, cpu = timed(model, X, y, known)
        given, slope = found.given_forecast, "-"
        if len(found.probability_scores):
            everyone = found.probability_scores.iloc[0]
            slope = points(everyone.slope, everyone.slope_low, everyone.slope_high)
            text, p = regression(model.predict_proba(X)[:, 1], y.to_numpy())
            own = found.groups["p_value"].iloc[0]
            compared.append(f"{table:14} {name:20} {own:9.2g}  {text} {p:8.2g}")
        ends = (given.error, given.low, given.high) if given else (None, None, None)
        error = points(*(100 * np.array(ends, float)))
        print(
            f"{table:14} {name:20} {len(X):5,} {found.status.verdict!s:17} "
            f"{found.status.n_problems:8} {error:>22} {slope:>20} {cpu:6.2f}  "
            f"{main_problem(found)}",
            flush=True,
        )
    print(
        f"\n{'0/1 outcomes':35} {'audit, p':>9}  {'statsmodels: slope':22} {'intercept':24} "
        f"{'LR, p':>8}"
    )
    print("\n".join(compared))


if __name__ == "__main__":
    main()
