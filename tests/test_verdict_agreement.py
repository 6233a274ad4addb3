"""One count of problems, and one decision on each group, for all readers of an audit."""

import json
import re
from dataclasses import replace

import msgspec
import numpy as np
import pandas as pd
import pytest
from scipy import special

from complaints import refused
from evenhand import Forecast, Outcomes, audit, audit_pit, figures
from evenhand._kinds import HIGHER, LOWER, MIXED, NARROW, WIDE
from evenhand.audits import Search, judged, parse_condition
from evenhand.audits.verdict import UNDECIDED, decided
from evenhand.report import audit_html, audit_markdown, audit_text, tables
from evenhand.report.slots import Slots, name_of
from evenhand.results import (
    AuditRows,
    Censoring,
    Family,
    Finding,
    GivenForecast,
    ProbabilityScores,
    Survival,
)
from repeats import repeats, statistical
from test_html import data_text, rows_of, told

PROBLEM = "problem found"
KINDS = ("0/1", "continuous", "counts", "amounts", "times", "weights", "PITs")
FOUND = re.compile(r"(?<!NO )PROBLEM FOUND in ([\d,]+)(?: of [\d,]+)? groups?[.:]")
INSIDE = re.compile(r"(-?[\d.]+)%? to (-?[\d.]+)%?[;)]")

BANNED = (
    *("PIT", "W1", "alpha", "Bonferroni", "simultaneous", "oracle", "p-value", "significan"),
    *("nats", "isotonic", "Greenwood", "exchangeable", "certificate", "e-value", "hurdle", "atom"),
    *("FAIL", "PASS", "NOT DECIDED", "deterministic", "learned", "scanned", "points of", "unseen"),
    *("cut off", "price", "floor", "ceiling", "family", "adjusted", "link"),
)
"""Words that are kept for the method, or not used anywhere."""


def redecided(found, **rows):
    """An audit with other rows, such as another tolerance, and all decisions anew."""
    return replace(found, made=decided(msgspec.structs.replace(found.made, **rows)))


def check(rows):
    """Compare text, Markdown, tables and JSON of an audit with its rows."""
    slots, text, document = Slots(rows), audit_text(rows), audit_markdown(rows)
    status, flat = rows.status, " ".join(text.split())
    # one count of problems, one verdict
    said = [FOUND.search(one) for one in (flat, document.replace("**", ""))]
    counts = {int(one[1].replace(",", "")) if one else 0 for one in said}
    assert counts == {status.n_problems} == {len(rows.problems)} == {marked(rows)}
    assert slots.badge == status.verdict.upper()
    assert slots.badge in flat
    assert slots.badge in document
    assert (status.verdict == PROBLEM) == (status.n_problems > 0) == bool(slots.name)
    assert bool(re.search("groups?: everyone", flat)) == rows.is_everyone_problem
    others = re.search(r"(?:everyone and|FOUND in) ([\d,]+) of ([\d,]+)", flat)
    if others is not None:
        n = status.n_problems - rows.is_everyone_problem
        assert others.groups() == (f"{n:,}", f"{status.n_examined:,}")
    beyond = re.search(r"over [\d.]+ points(?: \(or slope far from 1\))?, in ([\d,]+) with 9", flat)
    n_beyond = status.n_beyond if status.n_problems else 0
    assert (0 if beyond is None else int(beyond[1].replace(",", ""))) == n_beyond
    assert ("points, and not 0 with" in flat) == (status.n_problems > 0 == status.n_beyond)
    # an audit read from its JSON has the same sentences
    again = AuditRows.read(rows.to_json())
    assert (audit_text(again), audit_markdown(again)) == (text, document)
    assert max(map(len, text.split("\n"))) <= 80
    sentences = text.partition("\n")[2]
    assert not [word for word in BANNED if word in sentences], text
    check_cases(slots, rows)


def check_page(rows):
    """Compare first line, tables, picture and data of a page with the problems of its rows."""
    page, n = audit_html(rows), len(rows.problems)
    assert re.findall(r"Problem found in ([\d,]+)", told(page)) == [f"{n:,}"] * (n > 0)

    def called(label):
        return [row[0] for row in rows_of(page, label) if row[-1].startswith("problem")]

    names = [*called("Groups"), *called("Other groups"), *called("Groups without the atom")]
    groups = [name for name in names if not name.startswith("Everyone")]
    assert (len(groups) < len(names)) == rows.is_everyone_problem
    assert len(groups) + rows.is_everyone_problem == n
    assert set(called("Groups by the forecast")) <= set(groups)
    assert json.loads(data_text(page))["status"]["n_problems"] == n
    # red squares are those of problems, and say so
    picture = page.partition('class="picture"')[2].partition("</section>")[0]
    marks = re.findall(r'<g class="mark (\w+)" role="img"><title>(.*?)</title>', picture)
    assert marks
    assert all((color == "red") is ("problem found" in text) for color, text in marks)


def marked(rows):
    """Number of members that the tables mark: everyone once, and each set of rows once."""
    first, others = tables.first_groups(rows)
    listed = [*rows.by_forecast, *first, *others]
    listed += rows.positive_part if rows.censoring is None else ()
    distinct = {id(one): tables.result(one, rows).text for one in listed}
    of_all = {tables.result(one, rows).text for one in rows.overall}
    return sum(result == PROBLEM for result in [*distinct.values(), *({PROBLEM} & of_all)])


def check_cases(slots, rows):
    """Compare the sentences on cases with the numbers and directions of their rows."""
    leading = rows.leading
    names = [slots.name, *(name for name, _ in slots.others)]
    assert len(set(names)) == len(names)
    if leading is not None:
        assert leading.least == max(one.least for one in rows.problems)
        assert slots.name.lower() == name_of(leading, rows).lower()
        check_direction(f"{slots.title} {slots.lead}", leading, rows)
    cases = {name_of(one, rows).lower(): one for one in rows.apart(rows.problems)[::-1]}
    for name, text in slots.others:
        if not name.startswith("Within"):
            check_direction(text, cases[name.lower()], rows)
    for text in (slots.lead, *slots.everyone, *(text for _, text in slots.others)):
        for low, high in INSIDE.findall(text):
            assert float(low) <= float(high), text
        # a lower bound of a case is that of its row, rounded down
    for least in re.findall(r"at least (\d+\.\d)", slots.lead):
        assert float(least) <= 100 * leading.least + 1e-9 < float(least) + 0.1


def check_direction(text, one, rows):
    """Check that no word on a direction contradicts the row of a case."""
    # levels and mean of amounts may disagree, which is said
    told = re.sub(r"(?i)outcomes rank \w+ than forecast", "", text)
    is_low = any(word in told for word in ("lower than", "rarer than", "earlier than"))
    is_high = any(word in told for word in ("higher than", "more frequent than", "later than"))
    assert not (is_low and is_high), text
    if is_low or is_high:
        assert one.bias is None or (one.bias < 0) == is_low, text
        is_mean = one.bias is not None and (one.is_mean_off or one.bias_low is None)
        assert one.direction == (LOWER if is_low else HIGHER) or is_mean, text
    for words, direction in (("narrower", NARROW), ("wider", WIDE)):
        assert (words not in text) or one.direction == direction, text
    rates = re.search(r"([\d.]+)% had the event[^,]*, ([\d.]+)% were predicted", text)
    if rates is not None and one is not rows.everyone:
        change = float(rates[1]) - float(rates[2])
        shown = re.search(r"difference ([+-]?[\d.]+) points", text)
        assert float(shown[1]) == pytest.approx(change, abs=0.11), text
        # an event that is earlier than forecast happens to more people by the horizon
        assert rows.censoring is None or one.direction != (HIGHER if change > 0 else LOWER), text


# --- audits of tables: one count of problems, and the decisions on each group


def made(kind, seed):
    """An audit with a fault of random size in a random group, with features and named groups."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n = int(rng.choice([60, 320, 900, 2500]))
    X = pd.DataFrame(
        {"age": rng.integers(18, 90, n), "job": rng.choice(["a", "b", "c"], n), "x": rng.random(n)}
    )
    m = rng.normal(size=n)
    off = np.where(X["job"] == rng.choice(["a", "b"]), rng.choice([0.0, 0.3, 1.0]), 0.0)
    steep = rng.choice([1.0, 1.0, 0.6])
    options = {
        "search": Search(
            learned_masses=(0.5,) if rng.random() < 0.5 else (), masses=(0.2, 1.0), n_simulations=2
        ),
        "X": X,
        "groups": ["job"],
        "random_state": seed,
    }
    outcome = steep * m + off + rng.normal(size=n)
    forecast = Forecast.from_normal(m, np.ones(n))
    if kind == "PITs":
        return audit_pit(special.ndtr(outcome - m), **options)
    if kind == "0/1":
        outcome = (rng.random(n) < special.expit(steep * m - 1 + off)).astype(float)
        forecast = Forecast.from_probability(special.expit(m - 1))
    elif kind == "counts":
        outcome = rng.poisson(np.exp(steep * m / 2 + off)).astype(float)
        forecast = Forecast.from_poisson(np.exp(m / 2))
    elif kind == "amounts":
        outcome = np.where(rng.random(n) < special.expit(m - 1 + off), 0.0, 30 + outcome)
        amount = Forecast.from_normal(30 + m, np.ones(n))
        forecast = Forecast.from_hurdle(special.expit(m - 1), amount)
    elif kind == "times":
        grid = np.linspace(0.1, 8, 60)
        survival = np.exp(-grid / np.exp(m / 2)[:, None])
        time, lost = rng.exponential(np.exp(steep * m / 2 + off)), rng.exponential(3, n)
        outcome = np.minimum(time, lost)
        forecast = Forecast.from_survival(grid, survival, horizon=3.0)
        outcome = Outcomes(outcome, time < lost, horizon=3.0)
    elif kind == "weights":
        outcome = Outcomes(outcome, weight=rng.choice([1.0, 3.0], n))
    return audit(forecast, y=outcome, **options)


@statistical
@pytest.mark.parametrize("kind", KINDS)
def test_text_page_tables_and_json_have_one_count(kind):
    for seed in range(repeats(16, shorter=8)):
        found = made(kind, seed)
        check(found.rows)
        check_groups(found)
        check_page(found.rows)
        expected = found.status.verdict == "no problem found"
        assert found.summary(full=True).upper().count("NO PROBLEM FOUND IN") == (expected)


QUICK = {"search": Search(masses=(0.5,), learned_masses=(0.2,), n_simulations=2)}


def people(n, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.uniform(size=n),
            "score": rng.uniform(size=n),
            "sex": rng.choice(["f", "m"], n),
            "region": rng.integers(0, 4, n).astype(str),
        }
    )
    return X, rng.normal(size=n)


def audited(X, y, **options):
    forecast = Forecast.from_normal(np.zeros(len(y)), np.ones(len(y)))
    given = {"features": X, "groups": ["sex", "region"], "random_state": 0}
    return audit(forecast, X, y, **(QUICK | given | options))


def planted():
    X, y = people(3000, 2)
    return audited(X, y + 0.7 * ((X["age"] > 0.5) & (X["sex"] == "f")))


def small_shift():
    """All of region 2 is off by about 1.1 points, which 40,000 rows show."""
    X, y = people(40_000, 4)
    shifted = y + 0.04 * (X["region"] == "2").to_numpy()
    return audited(X, shifted, features=X[["region"]], search=Search(learned_masses=()))


def leaking():
    X, y = people(900, 5)
    return audited(X, y, groups={"high": y > 0, "sex": X["sex"]})


def small():
    X, y = people(300, 6)
    few = np.arange(300) < 12
    return audited(X, y + 1.0, groups={"few": few, "sex": X["sex"]})


@pytest.fixture(scope="module")
def audits():
    return {make.__name__: make() for make in (planted, small_shift, leaking, small)}


def brute_force(found, tolerance):
    """Return names of named groups that are off and that are a problem, by the definition."""
    off, problems = set(), set()
    for row in found.groups.to_dict("records")[1:]:
        if row["too_small"] or row["possible_leak"] or not row["p_adjusted"] < 0.05:
            continue
        off.add(row["group"])
        # the second rule for 0/1 outcomes
        is_steep = not 0.8 <= np.nan_to_num(row.get("slope", 1.0), nan=1.0) <= 1.25
        if row.get("km_error", row["error"]) > tolerance or is_steep:
            problems.add(row["group"])
    return off, problems


def test_all_readers_call_the_same_groups_off(audits):
    for found in audits.values():
        for tolerance in (0.0, 0.02, 1.0):
            check_groups(redecided(found, tolerance=tolerance))


def check_groups(found):
    """Compare the named groups that an audit calls off with the definition."""
    off, problems = brute_force(found, found.tolerance)
    rows = found.rows
    assert {one.group for one in rows.named if one.off} == off
    assert {one.group for one in rows.named if one.problem} == problems
    assert {one.group for one in rows.named if tables.result(one, rows).text == PROBLEM} <= problems
    # the same rows are called the same under both names
    scan = {one.group: (one.off, one.problem) for one in rows.scan}
    for one in rows.named:
        if one.scanned_as is not None and not one.possible_leak:
            assert scan[one.scanned_as] == (one.off, one.problem)
    # nothing is a problem without being off
    assert all(is_off or not is_problem for is_off, is_problem in scan.values())


def test_the_figure_colours_what_the_audit_decided(audits):
    for found in audits.values():
        places = {}
        for container in figures.plot_groups(found.groups).containers:
            (line, *_) = container.lines
            for place in np.asarray(line.get_xydata())[:, 1]:
                places[int(place)] = str(line.get_color())
        for place, row in enumerate(found.groups.to_dict("records")):
            color = (
                figures.RED if row["problem"] else figures.ORANGE if row["off"] else figures.BLUE
            )
            is_unjudged = row["too_small"] or row["possible_leak"]
            assert places[place] == (figures.GREY if is_unjudged else color)


def test_a_group_that_is_off_by_one_point_is_no_problem(audits):
    """The planted shift of 0.04 is an error of 0.04 / (2 sqrt(pi)) = 1.13 points."""
    found = audits["small_shift"]
    assert "region = 2" in {one.group for one in found.rows.examined if one.off}
    assert not found.rows.problems
    (sentence,) = [text for name, text in Slots(found.rows).others if name == "Within 2 points"]
    assert "region 2" in sentence
    # with a smaller tolerance the same finding leads
    strict = Slots(redecided(found, tolerance=0.005).rows)
    assert strict.title.lower().startswith("region 2")


def test_groups_found_by_search_count(audits):
    rows = audits["planted"].rows
    # outcomes of some people were raised
    assert rows.everyone.direction == HIGHER
    learned = [id(one) for one in rows.learned if one.problem]
    assert learned
    assert set(learned) < {id(one) for one in rows.problems}


def test_the_gate_counts_the_groups_beyond_the_tolerance(audits):
    gate = parse_condition("groups_beyond_tolerance > 0")
    assert judged(gate, audits["planted"]).is_true
    assert not judged(gate, audits["small_shift"]).is_true
    n = sum((one.size.low or 0) > 0.02 for one in audits["planted"].rows.examined)
    assert judged(gate, audits["planted"]).value - n in (0, 1)
    for limit in ("-1", "0.5", "nan"):
        refused("limit", parse_condition, f"groups_beyond_tolerance > {limit}")


JOBS, AGES = ("cook", "driver", "nurse"), (30, 45, 60)


class Maker:
    """Random rows of audits of a kind; the numbers of a group contradict each other freely."""

    def __init__(self, kind, seed):
        self.kind = kind
        self.random = np.random.default_rng([seed, KINDS.index(kind)])
        # in half of the audits nothing is found
        self.p_values = [1e-6, 0.03, 0.2, 1.0] if self.chance(0.5) else [0.2, 1.0]

    def chance(self, share):
        return bool(self.random.random() < share)

    def group(self, name, n, **more):
        random = self.random
        error = float(random.choice([0.0, 0.004, 0.015, 0.03, 0.09, 0.3]) * random.random())
        half, bias = float(0.1 * random.random()), float(random.normal(0, 0.2))
        values = {
            "error": error,
            "error_low": max(error - half, 0.0),
            "error_high": error + half,
            "bias": bias,
            "bias_low": bias - half,
            "bias_high": bias + half,
            "p_adjusted": float(random.choice(self.p_values)),
        }
        if self.kind == "0/1":
            predicted = float(random.uniform(0.05, 0.8))
            bias = float(np.clip(bias, -0.9 * predicted, 0.95 - predicted))
            rate, slope = predicted + bias, float(random.uniform(0.5, 1.5))
            ends = {"bias_low": bias - half, "bias_high": bias + half, "bias": bias}
            values |= ends | {"predicted": predicted, "rate": rate, "error": abs(bias)}
            values |= {"error_low": max(abs(bias) - half, 0.0), "error_high": abs(bias) + half}
            values |= {"slope": slope, "slope_low": slope - 0.2, "slope_high": slope + 0.2}
        else:
            covered = float(random.uniform(0.4, 0.99))
            values |= {"coverage_80": covered, "mean_pit": float(random.uniform(0.3, 0.7))}
            values |= {
                "coverage_80_low": covered - half,
                "coverage_80_high": min(covered + half, 1),
            }
        if self.kind in ("times", "PITs"):
            values |= dict.fromkeys(("bias", "bias_low", "bias_high"))
        if self.kind == "times":
            size = {"km_error": error, "km_error_low": values["error_low"], "censored": True}
            values |= size | {"km_error_high": error + half, "least_error": 0.0, "most_error": 0.5}
        return Finding(group=name, n=n, **(values | more))

    def rows(self):
        random = self.random
        n = int(random.choice([60, 320, 900, 2500]))
        everyone = self.group("everyone", n)
        named = [
            self.group(f"job = {job}", n // 3, column="job", scanned_as=f"job = {job}",
                       too_small=self.chance(0.1), possible_leak=self.chance(0.1),
                       probable=self.chance(0.1))
            for job in JOBS
        ]  # fmt: skip
        # a rule of the reader, which the search finds again
        named.append(self.group("age > 60.5 and job = cook", n // 5))
        scan = [
            self.group(f"age > {age}", n // 2, features=("age",), direction=self.direction())
            for age in AGES
        ]
        scan += [self.group(f"job = {job} and age <= 45", n // 6, features=("job", "age"))
                 for job in JOBS]  # fmt: skip
        # the same rows under a second name
        scan.append(msgspec.structs.replace(named[0], column=None, features=("job",)))
        own = []
        if self.kind != "PITs":
            key = "predicted probability" if self.kind == "0/1" else "predicted mean"
            own = [self.group(f"{key} {k}", n // 4, key=key, part=k + 1, n_parts=4,
                              lowest=k / 4, highest=(k + 1) / 4) for k in range(4)]  # fmt: skip
        learned = [
            self.group("age > 60.5 and job is cook", n // 5, mass=mass, features=("age", "job"),
                       n_judged=n // 2, direction=self.direction(), error_high=None,
                       bias_low=None, bias_high=None, coverage_80_low=None,
                       coverage_80_high=None, predicted=None, rate=None)
            for mass in (0.2, 0.5)[: int(random.integers(3))]
        ]  # fmt: skip
        part = [self.group("everyone", n // 2), self.group("job = cook", n // 6, column="job")]
        error = float(0.06 * random.random())
        given = GivenForecast(
            error=error, low=error / 2, chance=0.01, tests={"trend of mean": 0.01, "level": 0.5}
        )
        if self.kind == "0/1":
            everyone = msgspec.structs.replace(
                everyone, error=error, error_low=error / 2, error_high=2 * error
            )
        kinds = {"0/1": "binary", "counts": "count", "PITs": None}
        kinds |= {"amounts": "hurdle", "times": "hurdle" if self.chance(0.5) else "continuous"}
        horizon = 30.0 if kinds["times"] == "hurdle" else None
        is_time = self.kind == "times"
        shares = dict.fromkeys(("everyone", "by_forecast"), 0.01) | {"groups": 0.03}
        made = AuditRows(
            name="model", target="dose", n_samples=n, n_draws=1, status=UNDECIDED,
            about={"unit": "mg"} if self.chance(0.5) else {}, is_randomized=self.chance(0.2),
            outcome_kind=kinds.get(self.kind, "continuous"),
            tolerance=float(random.choice([0.005, 0.02])),
            family=Family(confidence=0.95, n_groups=10, n_by_forecast=len(own), n_learned=0,
                          n_tests=4, shares=shares, min_size=20),
            groups=(everyone, *named), by_forecast=tuple(own), scan=tuple(scan),
            given_forecast=None if self.kind == "PITs" else given,
            learned=tuple(learned), positive_part=tuple(part) if self.kind == "amounts" else (),
            censoring=Censoring(n_events=n // 2, n_reached=n // 4, n_lost=n - n // 2 - n // 4,
                                horizon=horizon) if is_time else None,
            survival=self.survival(n) if horizon is not None and is_time else (),
            probability_scores=self.scores(n),
            provenance={"command": "evenhand audit a.csv --target dose --forecast model"}
            if self.chance(0.5) else {},
        )  # fmt: skip
        return decided(made)

    def direction(self):
        return str(self.random.choice([LOWER, HIGHER, NARROW, WIDE, MIXED]))

    def survival(self, n):
        found = []
        for name in ("everyone", "job = cook"):
            observed, predicted = map(float, self.random.uniform(0.1, 0.9, 2))
            ends = {"low": observed - 0.05, "high": observed + 0.05}
            counts = {"n": n, "n_events": n // 2, "n_lost": 3}
            found.append(
                Survival(group=name, observed=observed, predicted=predicted, **counts, **ends)
            )
        return tuple(found)

    def scores(self, n):
        if self.kind != "0/1":
            return ()
        slope = float(self.random.uniform(0.5, 1.5))
        ends = {"slope": slope, "slope_low": slope - 0.1, "slope_high": slope + 0.1}
        return (ProbabilityScores(group="everyone", n=n, **ends),)


@pytest.mark.parametrize("kind", KINDS)
def test_text_page_tables_and_json_of_random_rows_agree(kind):
    verdicts = set()
    for seed in range(24):
        rows = Maker(kind, seed).rows()
        verdicts.add(rows.status.verdict)
        check(rows)
        check_page(rows)
    assert len(verdicts) > 1
