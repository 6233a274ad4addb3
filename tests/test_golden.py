"""Golden files: fixed numbers of distributions, forecasts, audits, certificates, watches and logs.

Each case is a function that returns plain values; `tests/golden/<case>.json` holds what it returned
when it was written. A table that the command serves is kept as csv. Only a change that is meant to
change numbers writes the files again::

    python tests/test_golden.py --write                  # all files of tests/golden
    python tests/test_golden.py --write FOLDER CASE ...  # some cases, to another folder
    python tests/test_golden.py --write --freeze         # all files, and their hashes

Files are frozen by the hashes in `tests/golden/SHA256SUMS`: without `--freeze` a test fails, so
that no file is changed with others by accident. `--freeze` alone writes hashes only.

The tests allow for another processor, whose `exp` and `log` are a unit in the last place off. On
one machine there is a stricter comparison: write to one folder before a change and to another after
it, and compare them byte by byte with `diff -r`.
"""

import itertools
import math
import sys
import tempfile
import warnings
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge

import golden_certificates
import golden_distributions  # noqa: F401  (its cases)
import golden_service  # noqa: F401  (its cases)
from evenhand import (
    Forecast,
    ForecastColumns,
    Outcomes,
    RandomizedRegressor,
    RecalibratedRegressor,
    audit,
    audit_pit,
    certify,
    load,
    randomize,
    save,
)
from evenhand.calibration import binned_error, calibration_error, count_pits, pathwise_errors
from evenhand.certificates import certify_counts, certify_link, certify_pit
from evenhand.draws import KeyedDraws, jittered
from evenhand.links import Entropic, Gaussian, Laplace
from evenhand.scale import audit_parts
from evenhand.search import find_group, null_curve, scan_groups, worst_group_curve
from golden_certificates import least_randomized
from golden_data import (
    FEATURES,
    KEY,
    MASSES,
    QUICK,
    cheap,
    command,
    flat_pits,
    forecaster,
    found_of,
    key_file,
    people,
    pits,
    served_table,
)
from golden_files import (
    CASES,
    GOLDEN,
    SUMS,
    case,
    cells,
    differences,
    freeze,
    golden,
    is_table,
    plain,
    sums,
    with_numbers,
    write,
)

# every import from the package stands here: a refactor may edit these lines, and nothing below them
from parts_examples import searching


def proven(proof, masses=MASSES):
    said = {
        "confidence": proof.confidence,
        "method": proof.method,
        "n_samples": proof.n_samples,
        "average_error": proof.average_error(),
        "group_error": {str(mass): proof.group_error(mass) for mass in masses},
        "coverage": {
            f"{level} of {mass}": proof.coverage(level, mass)
            for level in (0.8, 0.9)
            for mass in sorted({masses[0], masses[-1]})
        },
    }
    if proof.choice.rule == "fixed":
        said |= {
            "n_draws": proof.n_draws,
            "is_randomized": proof.is_randomized,
            "named": proof.named_table(),
        }
        said |= {"questions": proof.questions}
        if proof.own.gaps is not None:
            said |= {"mpaic": {str(error): proof.mpaic(error) for error in (0.05, 0.2, 0.4)}}
            said |= {"mpaic_curve": proof.mpaic_curve([0.0, 0.1, 0.3])}
            said |= {"chain": {str(mass): proof.chain(mass) for mass in masses}}
    else:
        said |= {
            "link": proof.link.name,
            "alpha": proof.link.alpha,
            "bound": proof.bound,
            "mean_error": proof.mean_error(),
        }
    return said | {"assumptions": proof.assumptions, "not_covered": proof.not_covered}


@case
def audit_randomized(folder):
    """A randomized forecaster on columns of all kinds, with a leak and groups by name."""
    table = people(700, 2)
    features = table[["age", "region", "member", "leak"]]
    groups = ["region", "member", "age", "since", "income"]
    given = {"groups": groups, "features": features, "name": "a linear model"}
    options = searching(QUICK, min_size=60) | given
    return found_of(audit(forecaster(), table[FEATURES], table["y"], random_state=3, **options))


@case
def audit_masks_and_labels(folder):
    """Masks and labels as groups, one of them made by the outcome; rounded outcomes."""
    table = people(600, 3)
    y = (2 * table["y"]).round(0) / 2
    groups = {
        "older": table["age"].to_numpy() > 50,
        "region": table["region"],
        "since": table["since"],
    }
    groups["late"] = (y > y.median()).to_numpy()
    options = {"groups": groups, "features": table[["rooms"]], "target_name": "loss"}
    options |= searching(QUICK, learned_masses=(), min_size=60) | {"random_state": 4}
    with warnings.catch_warnings(action="ignore"):  # rounded outcomes are remarked on
        found = audit(forecaster(0.3, "laplace"), table[FEATURES], y, **options)
    return found_of(found, ("calibration",))


@case
def audit_weights(folder):
    table = people(600, 4)
    weight = 0.5 + (np.arange(600) % 7) * 0.25
    weight[::31] = 0.0
    outcomes = Outcomes(table["y"], weight=weight)
    options = {"groups": table[["region", "member"]], "features": table[["rooms", "member"]]}
    options |= searching(QUICK, min_size=60)
    return found_of(audit(forecaster(), table[FEATURES], outcomes, random_state=5, **options))


@case
def audit_cluster(folder):
    table = people(800, 5)
    outcomes = Outcomes(table["y"], person=np.random.default_rng(9).integers(0, 450, 800))
    options = {"groups": ["region"], "features": table[["rooms", "member"]], "random_state": 6}
    options |= searching(QUICK, min_size=50, confidence=0.9)
    found = audit(forecaster(0.2, "gaussian"), table[FEATURES], outcomes, **options)
    return found_of(found, ("calibration", "pit"))


@case
def audit_forecasts(folder):
    """Deterministic forecasts that are given: normal, quantiles, samples; and a randomized one."""
    table = people(600, 6)
    y, mean, std = (table[name].to_numpy() for name in ("y", "mean", "std"))
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    options = searching(QUICK, learned_masses=(), masses=(0.2, 1.0), min_size=60)
    values = mean[:, None] + std[:, None] * np.array([-1.6, -0.7, 0.0, 0.7, 1.6])
    drawn = mean[:, None] + std[:, None] * np.random.default_rng(1).random((600, 21))
    normal = Forecast.from_normal(mean, std)
    r = jittered(600, 4, random_state=7)
    several = {
        "normal": (normal, {"features": table[["age", "region"]], "groups": table[["member"]]}),
        "quantiles": (Forecast.from_quantiles(levels, values), {"groups": table[["region"]]}),
        "samples": (Forecast.from_samples(drawn), {}),
        "randomized": (normal.randomized(0.2, "entropic", r), {"groups": table[["region"]]}),
    }
    said = {}
    for name, (one, more) in several.items():
        found = audit(one, y=y, random_state=7, **more, **options)
        said[name] = found_of(found, () if name == "normal" else ("pit", "calibration"))
    return said


@case
def audit_kinds(folder):
    """Forecasts of counts, scores, amounts with zeros and events, deterministic and randomized."""
    table = people(400, 15)
    random = np.random.default_rng(15)
    score = table["age"].rank(pct=True).to_numpy()
    chance = 0.1 + 0.6 * score
    is_event = random.random(400) < np.where(table["member"], 0.9, 1.1) * chance
    counts = random.poisson(np.exp(score)).astype(float)
    amounts = Forecast.from_normal(5 + 3 * score, np.full(400, 1.5))
    paid = np.where(is_event, np.maximum(random.normal(5 + 3 * score, 1.5), 0.1), 0.0)
    r = jittered(400, 4, random_state=15)
    ordinal = np.array([[0.2, 0.5, 0.3]]) * np.ones((400, 1))
    several = {
        "events": (Forecast.from_probability(chance), is_event.astype(float)),
        "counts": (Forecast.from_poisson(np.exp(score)).randomized(0.2, r=r), counts),
        "scores": (Forecast.from_pmf([1, 2, 3], ordinal), np.clip(1 + counts, 1, 3)),
        "amounts": (Forecast.from_hurdle(1 - chance, amounts).randomized(0.2, r=r), paid),
    }
    options = searching(QUICK, learned_masses=(0.5,), masses=(0.2, 1.0), min_size=60)
    options |= {"groups": ["member"], "random_state": 7}
    said = {}
    for name, (forecast, y) in several.items():
        found = audit(forecast, table[["age", "region", "member"]], y, **options)
        # an error of 0 up to chance: rounding errors of its sum would be compared
        said[name] = found_of(found, ("learned",))
    return said


@case
def audit_of_pits(folder):
    """PITs with their draws, and PITs alone."""
    matrix, r, X = pits()
    residual = pd.Series(X["z"].to_numpy() - 0.5 * X["x"].to_numpy(), name="loss")
    flat, features = flat_pits()
    options = searching(QUICK, min_size=80) | {"random_state": 8}
    drawn = audit_pit(matrix, r, X, residual=residual, groups=X[["kind", "flag"]], **options)
    alone = audit_pit(flat, X=features[["x", "kind"]], groups=["kind"], **options)
    return {"with draws": found_of(drawn), "alone": found_of(alone)}


@case
def scan(folder):
    """Groups of features, with both corrections, weights, residuals and several draws."""
    matrix, _, X = pits()
    flat, features = flat_pits()
    weight = 0.5 + (np.arange(600) % 5) * 0.5
    weight[::29] = 0.0
    residual = X["z"].to_numpy() - 0.5 * X["x"].to_numpy()
    table = people(600, 7)
    odd = {"odd": np.arange(600) % 2 == 1}
    weighted = {"residual": residual, "sample_weight": weight, "random_state": 2}
    several = {
        "holm": scan_groups(flat, features, 60, random_state=0),
        "draws": scan_groups(matrix, X, 60, residual=residual, groups=odd, random_state=1),
        "weights": scan_groups(matrix, X[["kind", "flag"]], 60, groups=["kind"], **weighted),
        "kinds": scan_groups(
            flat, table[["income", "region", "member", "since"]], 90, random_state=3
        ),
    }
    return {
        name: {"table": one, "left_out": one.attrs.get("left_out")} for name, one in several.items()
    }


@case
def learned(folder):
    """The worst group that features define; right forecasts, where learners tie, are no case."""
    matrix, _, X = pits(900, 4, 11)
    flat, features = flat_pits(900, 12)
    several = [
        find_group(matrix, X, 0.3, residual=X["z"].to_numpy(), random_state=0),
        find_group(flat, features, 0.2, confidence=0.9, n_folds=4, random_state=1),
        find_group(0.5 * flat, features[["kind", "x"]], 0.5, random_state=2),
    ]
    return [{**vars(one), "conditions": [str(c) for c in one.conditions]} for one in several]


@case
def worst_groups(folder):
    """Worst groups among all subsets, and what the same search finds where nothing is wrong."""
    matrix, _, _ = pits(400)
    flat, _ = flat_pits(400)

    said = {}
    for name, one in (("draws", matrix), ("flat", flat)):
        curve = worst_group_curve(one, MASSES, n_starts=24, random_state=0)
        said[name] = {
            "masses": curve.masses,
            "errors": curve.errors,
            "sizes": [rows.size for rows in curve.rows],
            "rows of the least": curve.rows[0],
            "null": vars(null_curve(one, (0.2, 1.0), n_simulations=4, random_state=1)),
        }
    links = (Entropic(0.2), Laplace(0.2))
    said["link"] = [
        vars(null_curve(matrix, MASSES, link=one, n_simulations=4, random_state=4)) for one in links
    ]
    return said


@case
def errors_of_pits(folder):
    """W1 errors, their bands and errors of each person."""
    matrix, _, _ = pits()
    flat, _ = flat_pits()
    weight = 0.5 + (np.arange(600) % 5) * 0.5
    return {
        "calibration_error": [calibration_error(matrix), calibration_error(flat)],
        "weighted": [
            calibration_error(matrix, sample_weight=weight),
            calibration_error(flat, sample_weight=weight),
        ],
        "pathwise_errors": pathwise_errors(matrix)[:20],
    }


@case
def certificates(folder):
    """Certificates of forecasters and PITs, by each method, with named groups and clusters."""
    matrix, r, X = pits(500, 16)
    flat, features = flat_pits(500)
    person = np.random.default_rng(10).integers(0, 300, 500)
    table = people(600, 8)
    X_new, y = table[FEATURES], table["y"]
    given = Forecast.from_normal(table["mean"], table["std"])
    one, flags = (0.2,), {"random_state": 0, "groups": X[["kind", "flag"]]}
    return {
        "local-levels": proven(certify_pit(matrix, r, **flags)),
        "betting": proven(certify_pit(matrix, r, method="betting", mass=0.2, **flags), one),
        "cluster": proven(certify_pit(matrix, r, person=person, **flags)),
        "without draws": proven(certify_pit(matrix, random_state=1)),
        "flat": proven(certify_pit(flat, groups=features[["kind"]], random_state=2)),
        "flat betting": proven(
            certify_pit(flat, method="betting", mass=0.5, random_state=2), (0.5,)
        ),
        "forecaster": proven(
            certify(forecaster(), X_new, y, groups=["region", "age", "member"], random_state=3)
        ),
        "forecasts": proven(certify(given, table, y, groups=["region"], random_state=4)),
    }


@case
def certificates_of_counts(folder):
    """Counts of two blocks of people, added up, and what they prove."""
    matrix, r, X = pits(500, 16)
    groups = {"flag": X["flag"].to_numpy(), "kind a": (X["kind"] == "a").to_numpy()}
    said = {}
    for name, draws in (("draws", r), ("no draws", None)):
        random = np.random.default_rng(0)
        blocks = []
        for part in (slice(0, 180), slice(180, 500)):
            masks = {group: mask[part] for group, mask in groups.items()}
            some = None if draws is None else draws[part]
            blocks.append(count_pits(matrix[part], some, groups=masks, random_state=random))
        total = reduce(add, blocks)
        said[name] = {
            "n_samples": total.n_samples,
            "levels": total.levels,
            "binned_error": binned_error(total.pit),
            "inside": {str(level): counts for level, counts in total.inside.items()},
            "pit": total.pit.reshape(64, -1).sum(axis=1),
            "one_draw": total.one_draw.reshape(64, -1).sum(axis=1),
            "error": total.error.reshape(64, -1).sum(axis=1),
            "gap": None if total.gap is None else total.gap.reshape(64, -1).sum(axis=1),
        }
        said[name]["local-levels"] = proven(certify_counts(total, is_randomized=True))
    return said


@case
def certificates_of_links(folder):
    """Certificates of links on a deterministic forecaster, and the least randomization."""
    flat, _ = flat_pits(800)
    person = np.random.default_rng(11).integers(0, 600, 800)
    said = {}
    for link in (Entropic(0.1), Laplace(0.2), Gaussian(0.3)):
        proof = certify_link(flat, link)
        least = least_randomized(proof, 0.3, 0.2)
        said[link.name] = {"proof": proven(proof), "least": proven(least), "table": least.table()}
    cluster = certify_link(flat, Entropic(0.1), confidence=0.9, person=person, random_state=0)
    said["cluster"] = {
        "proof": proven(cluster),
        "least": proven(least_randomized(cluster, 0.25, 0.5)),
    }
    return said


def chosen_of(chosen, masses=MASSES):
    one = chosen.certificate
    names = ("alpha", "price", "limit", "wider", "group_error", "goal", "group_mass", "confidence")
    names += ("n_learning", "n_certifying", "statement")
    said = {name: getattr(chosen, name) for name in names}
    said |= {"comparison": chosen.comparison.drop(columns="crps_error")}
    said |= {"certifying": [int(chosen.certifying.sum()), *chosen.certifying[:10].tolist()]}
    certificate = {
        "average_error": one.average_error(),
        "group_error": {str(mass): one.group_error(mass) for mass in masses},
    }
    return said | {"certificate": certificate, "has_alternative": chosen.alternative is not None}


@case
def selections(folder):
    """The least certified randomization: of a model, a recalibrated one, several models."""
    table = people(1000, 9)
    X, y = table[FEATURES], table["y"]
    person = np.random.default_rng(12).integers(0, 700, 1000)
    diabetes = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    models = [forecaster(alpha) for alpha in (0.02, 0.05, 0.1, 0.2)]
    prefit = FrozenEstimator(cheap().fit(people(500, 1)[FEATURES], people(500, 1)["y"]))
    mended = randomize(
        cheap(), X, y, by=["region", "member"], recalibrate=True, goal=0.32, random_state=1
    )
    around = randomize(
        cheap(), X, Outcomes(y, person=person), goal=0.33, link="laplace", random_state=2
    )
    tested = randomize(models, X[:400], y[:400], goal=0.32, random_state=3)
    return {
        "default": chosen_of(randomize(BayesianRidge(), *diabetes, goal=0.4, random_state=0)),
        "recalibrated": chosen_of(mended),
        "cluster": chosen_of(around),
        "prefit": chosen_of(randomize(prefit, X[:400], y[:400], goal=0.3, random_state=4)),
        "in order": chosen_of(tested, (0.2, 1.0)),
        "served": mended.model.forecast(X[:4], r=[0.1, 0.4, 0.6, 0.9]).ppf([0.1, 0.5, 0.9]),
    }


@case
def served_fit(folder):
    """`evenhand fit`, and `evenhand predict` of its forecasts with draws."""
    train = folder / "train.csv"
    people(200, 13).drop(columns=["leak", "mean", "std"]).to_csv(
        train, index=False, date_format="%Y-%m-%d"
    )
    model, out = folder / "model", folder / "served.csv"
    command("fit", train, "--target", "y", "--id", "id", "--seed", "0", "--out", folder / "base",
            "--device", "cpu")  # fmt: skip
    rows = pd.read_csv(train).drop(columns="id")
    base = FrozenEstimator(load(folder / "base"))
    save(RandomizedRegressor(base, 0.2).fit(rows.drop(columns="y"), rows["y"]), model)
    command("predict", served_table(folder, 12), "--forecast", model, "--id", "id",
            "--key-file", key_file(folder), "--context", "2026-11", "--out", out)  # fmt: skip
    return cells(out)


@case
def served_predict(folder):
    """`evenhand predict` of a saved linear model."""
    model, out = folder / "model", folder / "served.csv"
    save(forecaster(), model)
    command("predict", served_table(folder), "--forecast", model, "--id", "id", "--key-file",
            key_file(folder), "--context", "2026-11", "--levels", "0.05,0.5,0.95", "--moments",
            "--out", out)  # fmt: skip
    return cells(out)


@case
def served_randomize(folder):
    """`evenhand predict` of randomized forecasts in columns."""
    model, out = folder / "model", folder / "served.csv"
    known, columns = people(200, 13), ForecastColumns("mean", "std")
    save(RandomizedRegressor(columns, 0.3, "laplace").fit(known, known["y"]), model)
    command("predict", served_table(folder), "--forecast", model, "--id", "id", "--key-file",
            key_file(folder), "--out", out)  # fmt: skip
    return cells(out)


@case
def keyed_draws(folder):
    """Draws of ids, as text: multiples of a power of two, the same on every machine."""
    ids = [1, "1", 17, 2**40, "Zoë", "a b", "x-9"]
    several = {context: KeyedDraws(KEY, context) for context in ("", "2026-11")}
    return {
        context: {"fingerprint": draws.fingerprint, "r": [repr(float(r)) for r in draws(ids)]}
        for context, draws in several.items()
    }


@case
def parts(folder):
    """An audit in parts: counts over all rows, without searches or the random sample."""
    table = people(1100, 14)
    cuts = [0, 150, 310, 500, 720, 930, 1100]
    for i, (start, stop) in enumerate(itertools.pairwise(cuts)):
        table[start:stop].to_parquet(folder / f"part-{i}.parquet", index=False)
    person = {"groups": ["region", "member", "age", "since"], "sample_size": 300, "id_column": "id"}
    options = searching(person, masses=(0.2, 0.5, 1.0), learned_masses=(), min_size=60)
    columns = ForecastColumns(mean="mean", std="std")
    several = {
        "columns": audit_parts(
            columns, folder, "y", features=["rooms"], levels=(0.5,), random_state=1, **options
        ),
        "model": audit_parts(
            forecaster(), folder, "y", features=["rooms"], random_state=2, **options
        ),
    }
    return {name: all_rows(found) for name, found in several.items()}


def all_rows(found):
    """Return what an audit in parts says of all rows."""
    plain = found_of(found)
    # bands of group errors are scaled from the sample; names in the scan belong to the scan
    searched = ("scanned_as", "error_low", "error_high")
    groups = [
        {name: value for name, value in row.items() if name not in searched}
        for row in plain["groups"]
    ]
    of_pits = {"80% coverage", "90% coverage", "average error"}
    scores = [row for row in plain["scores"] if row["measure"] in of_pits]
    for row in scores:
        if row["measure"] == "average error":
            del row["low"], row["high"]
    proof = found.certificate
    return {
        "n_samples": plain["n_samples"],
        "n_draws": plain["n_draws"],
        "is_randomized": plain["is_randomized"],
        "rounding_step": plain["rounding_step"],
        "values_sha256": plain["provenance"]["values_sha256"],
        "scores": scores,
        "groups": groups,
        "certificate": plain["certificate"],
        "coverage": [proof.coverage(level, mass) for level in (0.8, 0.9) for mass in MASSES],
        "certified": [row["certified"] for row in plain["worst_groups"]],
        "calibration": plain["calibration"],
        "pit": plain["pit"],
    }


@case
def recalibrated(folder):
    """A model recalibrated by all kinds of groups, on known and new values and float32."""
    table = people(800, 15)
    new = people(20, 16)[FEATURES].copy()
    new.loc[2, "region"], new.loc[5, "age"], new.loc[6, "income"] = "west", 300, -1000.0
    new.loc[7, "since"] = pd.Timestamp("1990-01-01")
    narrow = new.astype({"income": "float32", "age": "float32", "rooms": "float32"})
    said = {}
    several = {
        "none": None,
        "text": "region",
        "number": "age",
        "missing number": ["income"],
        "few numbers": ["rooms"],
        "boolean and text": ["member", "region"],
        "date": ["since"],
        "function": lambda X: np.where(X["age"] > 40, "old", "young"),
    }
    for name, by in several.items():
        model = RecalibratedRegressor(cheap(), by=by, random_state=0).fit(
            table[FEATURES], table["y"]
        )
        with warnings.catch_warnings(action="ignore"):  # of values that training never had
            said[name] = {"groups": model.groups_, "n_maps": len(model.levels_)}
            for kind, rows in (("rows", new), ("float32", narrow)):
                forecast = model.forecast(rows)
                said[name] |= {
                    f"{kind}: cdf": forecast.cdf(8.0),
                    f"{kind}: ppf": forecast.ppf([0.1, 0.5])[:10],
                }
    return said


@pytest.mark.parametrize("name", CASES)
def test_numbers_stay(name, tmp_path):
    got, want = CASES[name](tmp_path), golden(name)
    got, want = (with_numbers(got), with_numbers(want)) if is_table(name) else (plain(got), want)
    found = sorted(differences(got, want, name))
    shown = "\n".join(found[:40])
    assert not found, f"{len(found)} values differ from tests/golden:\n{shown}"


def test_each_golden_file_has_a_case():
    assert {path.stem for path in GOLDEN.iterdir() if path.is_file()} - {SUMS.name} == set(CASES)


def test_every_answer_of_a_certificate_is_golden():
    assert not golden_certificates.unasked()


def test_golden_files_are_frozen():
    want = SUMS.read_text(encoding="utf-8")
    changed = {line.split("  ")[1] for line in {*sums().splitlines()} ^ {*want.splitlines()}}
    assert not changed, f"{sorted(changed)}: if meant, python tests/test_golden.py --freeze"


def test_a_difference_is_found_and_its_place_named():
    want = {"a": [1.0, 2.0], "b": {"c": 1, "d": None}, "e": math.nan, "f": True}
    assert not list(
        differences(
            {"a": [1.0 + 1e-12, 2.0], "b": {"c": 1, "d": None}, "e": math.nan, "f": True}, want, ""
        )
    )
    got = {"a": [1.0 + 1e-8, 2.0, 3.0], "b": {"c": 1.0, "x": None}, "e": 0.0, "f": 1}
    found = {line.split(":")[0] for line in differences(got, want, "")}
    assert found == {"/a", "/a/0", "/b/c", "/b/d", "/b/x", "/e", "/f"}


def write_all(folder, names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or CASES:
        with tempfile.TemporaryDirectory() as place:
            write(name, CASES[name](Path(place)), folder)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--freeze"]
    is_frozen = len(words) < len(sys.argv) - 1
    if words[:1] != (["--write"] if words or not is_frozen else []):
        raise SystemExit(__doc__)
    if words:
        write_all(Path(words[1]) if words[1:] else GOLDEN, words[2:])
    if is_frozen:
        freeze()
