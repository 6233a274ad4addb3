"""Status of audits, their short text, names of groups and the next steps."""

import re
import shlex
from functools import cache
from itertools import pairwise

import msgspec
import pytest
from scipy.stats import binom

from browser.report_examples import AUDITS, FAMILY, deterministic, group, made, rates
from evenhand.audits.verdict import decided, status_of
from evenhand.report import audit_markdown, audit_text
from evenhand.report.charts import ChartRow, Points, overview
from evenhand.report.slots import Slots, name_of
from evenhand.report.tables import result
from evenhand.results import Finding, GateCondition, Verdict
from evenhand.search import detectable_error
from test_verdict_agreement import KINDS
from test_verdict_agreement import made as audit_of_kind

EVERY = ("randomized", "nothing", "unknown_deterministic", *KINDS)


@cache
def audit_of(name):
    """Return an audit of `EVERY`, made when a test first needs it."""
    return judged(AUDITS[name]()) if name in AUDITS else audit_of_kind(name, 2).rows


def judged(values):
    """Return rows given as plain values, with the status of the problems that they mark."""
    rows = made(values)
    return msgspec.structs.replace(rows, status=status_of(rows))


def yes_no(**more):
    """Return the audit of scores, with other values."""
    return AUDITS["yes_no"]() | more


def calm_scores(n=20_000, predicted=0.5, reach=0.015):
    """Return an audit of right scores, whose intervals have a half width."""
    everyone = rates("everyone", n, predicted, predicted, reach)
    own = [
        rates(f"predicted probability {k} (tenth {k})", n // 10, predicted, predicted, reach)
        | {"key": "predicted probability", "part": k, "n_parts": 10}
        for k in range(1, 11)
    ]
    size = {"error": 0.0, "low": 0.0, "high": reach, "chance": 0.005, "is_complete": True}
    given = size | {"tests": {"level": 1.0, "trend": 0.5, "bend": 0.4}}
    values = yes_no(n_samples=n, groups=[everyone], by_forecast=own, given_forecast=given)
    return values | {"probability_scores": [], "family": FAMILY}


def doses(*groups, n=50_000, **more):
    """Return an audit of continuous outcomes: right on average, and these groups."""
    none = {key: [] for key in ("scan", "learned", "by_forecast", "notes")}
    none |= dict.fromkeys(("certificate", "given", "given_forecast", "rounding_step"))
    family = FAMILY | {"n_tests": 6, "n_groups": len(groups), "n_by_forecast": 0}
    calm = group("everyone", n, 0.001, 0.0, 0.006)
    head = {"groups": [calm, *groups], "n_samples": n, "family": family}
    return deterministic() | none | head | more


def status(values):
    return judged(values).status


def short(values):
    return " ".join(audit_text(judged(values)).split())


# verdict.md, section 3: errors of groups of k rows, one of G, with a share of 2 points
@pytest.mark.parametrize(
    ("k", "continuous", "half"),
    [(150, 10.75, 18.2), (500, 5.89, 9.9), (1000, 4.16, 7.0), (2000, 2.94, 4.9)],
)
def test_detectable_errors_are_those_of_the_specification(k, continuous, half):
    # a group of a continuous outcome has two tests
    assert 100 * detectable_error(k, 0.02 / 50 / 2) == pytest.approx(continuous, abs=0.005)
    assert 100 * detectable_error(k, 0.02 / 50, 0.25) == pytest.approx(half, abs=0.06)
    # beside a frequent outcome of 96% the variance is 0.01, and grows by some quarter of the error
    error = detectable_error(k, 0.02 / 50 / 2, None, 0.01)
    grown = 12 * (0.01 + (1 - 12 * 0.01) * error / 4)
    assert 100 * error == pytest.approx(continuous * grown**0.5, rel=2e-3)
    # all of 8 happen with a probability over 0.02 / 50 / 2
    assert detectable_error(8, 0.02 / 50, 0.25) == 0.5
    # more of rare events are found with 80% by a test with at most its level
    for p in (0.1, 0.02):
        error = detectable_error(k, 0.02 / 50, p * (1 - p))
        found = next(m for m in range(k) if binom.sf(m, k, p) <= 0.02 / 50 / 2)
        assert binom.sf(found, k, p + error) == pytest.approx(0.8)


def test_continuous_outcomes_need_133_rows_and_yes_no_370_or_20_events():
    verdicts = [status(doses(n=n)).verdict for n in (132, 133)]
    # of 5% events not even a doubling would show in 380 rows
    for n, predicted in ((360, 0.5), (380, 0.5), (380, 0.05), (390, 0.05)):
        verdicts.append(status(calm_scores(n, predicted, 0.5)).verdict)
    assert verdicts == [Verdict.TOO_FEW, Verdict.NO_PROBLEM] * 3


def test_the_verdict_reads_the_marks_of_the_audit_before_the_number_of_rows():
    assert status(doses(group("a", 60, 0.4, 0.1, 0.5), n=100)).verdict is Verdict.PROBLEM
    assert status(doses(group("a", 60, 0.4, 0.0, 0.5), n=100)).verdict is Verdict.TOO_FEW
    row = group("a", 5000, 0.09, 0.01, 0.2)
    for mark in (True, False):
        found = status(doses(row | {"problem": mark}))
        assert (found.verdict is Verdict.PROBLEM, found.n_problems) == (mark, int(mark))
    # the whole interval beyond the tolerance is a count of its own
    for low, n_beyond in ((0.02, 0), (0.0201, 1)):
        assert status(doses(group("a", 5000, 0.09, low, 0.2))).n_beyond == n_beyond


def test_all_people_count_once_whichever_number_shows_their_problem():
    given = {"error": 0.045, "low": 0.019, "high": None, "chance": 0.007, "is_complete": False}
    given |= {"tests": {"level": 0.6, "trend of predicted mean, spread": 1e-9}}
    pooled = group("everyone", 20_000, 0.003, 0.0, 0.01) | {"p_adjusted": 1e-9}
    rows = decided(made(doses(groups=[pooled], given_forecast=given)))
    assert rows.problems == (rows.given,)
    assert rows.status.n_problems == 1
    slots = Slots(rows)
    assert slots.verdict.startswith("in 1 group: everyone. Error (average gap of predicted")
    assert slots.title == (
        "All people, by their own forecasts: errors differ between low and high forecasts."
    )
    assert "4.5 points, at least 1.9" in slots.lead
    assert "direction" not in " ".join(slots.everyone)
    # beside a worse group, too, the number that decides stands before the pooled one
    worse = group("a", 5000, 0.09, 0.05, 0.2) | {"p_adjusted": 1e-9}
    text = audit_text(decided(made(doses(groups=[pooled, worse], given_forecast=given))))
    assert re.search(r"Everyone +Errors differ between low and high forecasts. In groups of", text)
    # a pooled error beyond the tolerance is the mark of everyone
    both = [group("everyone", 20_000, 0.03, 0.02, 0.04) | {"p_adjusted": 1e-9}]
    rows = decided(made(doses(groups=both, given_forecast=given)))
    assert rows.problems == (rows.everyone,)


def test_the_same_rows_count_once():
    own = rates("predicted probability 0.8 to 0.9 (tenth 10)", 2000, 0.84, 0.7, 0.03)
    own |= {"key": "probability", "scanned_as": "score > 0.8", "p_adjusted": 0.001}
    named = rates("top scores", 2000, 0.84, 0.7, 0.03, p_adjusted=0.001)
    named |= {"scanned_as": "score > 0.8"}
    scan = [
        rates(name, 2000, 0.84, 0.7, 0.03, p_adjusted=0.001, features=features)
        for name, features in (("score > 0.8", ["score"]), ("grade = A and x", ["grade", "x"]))
    ]
    other = rates("score <= 0.1", 2000, 0.1, 0.24, 0.03, p_adjusted=0.001, features=["score"])
    everyone = rates("everyone", 20_000, 0.5, 0.5, 0.01)
    values = yes_no(groups=[everyone, named], by_forecast=[own], scan=[*scan, other])
    rows = decided(made(values | {"given_forecast": None}))
    assert [one.group for one in rows.problems] == [own["group"], "score <= 0.1"]
    assert (rows.status.n_examined, rows.status.n_problems) == (2, 2)
    assert [one.same_as for one in rows.named] == [own["group"]]
    assert result(rows.named[0], rows).text == f"same rows as {own['group']}"


def test_proven_needs_every_upper_end():
    assert status(calm_scores()).is_proven
    assert not status(calm_scores(reach=0.021)).is_proven
    calm = calm_scores()
    wide = rates("a", 500, 0.5, 0.5, 0.03)
    found = {"mass": 0.2, "n": 900, "n_judged": 4000, "error": 0.0, "p_adjusted": 1.0, "group": ""}
    many = {"groups": [*calm["groups"], wide]}
    for more in (
        many,
        {"groups": [*calm["groups"], wide | {"too_small": True}]},
        {"given_forecast": calm["given_forecast"] | {"is_complete": False}},
        {"given_forecast": calm["given_forecast"] | {"high": 0.021}},
        {"given_forecast": None},
        # its members are known by probability
        {"groups": [*calm["groups"], rates("b", 500, 0.5, 0.5, 0.01, probable=True)]},
        # a search bounds its error from below alone
        {"learned": [found | {"off": True}]},
    ):
        assert not status(calm | more).is_proven, more
    # it is not described unless it is off
    assert status(calm | {"learned": [found | {"off": False}]}).is_proven
    # pooled errors of other outcomes may cancel
    given = {"error": 0.001, "low": 0.0, "high": None, "chance": 0.001, "is_complete": False}
    assert not status(doses(given_forecast=given)).is_proven


def test_a_group_whose_rate_is_unknown_is_no_mark_beside_the_tenths():
    found = {"mass": 0.2, "n": 900, "group": "age > 60", "error": 0.2, "error_low": 0.1}
    found |= {"bias": 0.01, "direction": "intervals too narrow"}
    rows = judged(calm_scores() | {"learned": [found | {"off": True, "problem": True}]})
    assert rows.leading is rows.learned[0]
    # nor is its mean the error that has a bound
    assert "20.0 (10.0 or more)" in audit_text(rows, full=True)
    (marks,) = (one for one in overview(rows).layers if isinstance(one, Points))
    assert [mark.y for mark in marks.points] == [0.5] * 10


def test_conditions_do_not_change_the_verdict():
    for values in (yes_no(), calm_scores()):
        alone = status(values)
        for is_true in (True, False):
            one = GateCondition(text="problem", quantity="problem", arguments=(), relation=">",
                                  limit=0, value=float(is_true), is_true=is_true)  # fmt: skip
            rows = judged(values | {"conditions": [msgspec.to_builtins(one)]})
            assert rows.status == alone
            line = f"`--fail-if problem`: {'met' if is_true else 'not met'}."
            for text in (audit_text(rows), audit_text(rows, full=True), audit_markdown(rows)):
                assert line in text


def test_without_a_problem_the_text_says_what_the_rows_would_have_shown():
    named = [rates(f"g{k}", n, 0.5, 0.5, 0.1) for k, n in enumerate((1900, 500, 150))]
    values = calm_scores()
    values |= {"groups": [*values["groups"], *named], "family": FAMILY | {"n_groups": 50}}
    text = short(values)
    # verdict.md: 9.9 points for 500 and 18.2 for 150 rows of one of 50 groups
    assert (
        "These rows would have shown a gap of predicted and observed rate of 18.2 points or"
        " more in a group of 150 rows, 9.9 in 500, "
    ) in text
    assert "Rate within 2 points in 10 groups, not proven for the others (95% con" in text
    assert "Proven within 2 points (95% confidence)." in short(calm_scores())
    fewer = doses(n=30, family=FAMILY | {"effective_share": 0.1})
    assert "TOO FEW ROWS. No error of all people together would have been found," in short(fewer)
    # with a probability of 80%, an event that is never predicted is found if its rate is 1.6 / n
    never = calm_scores(n=1000, predicted=0.0) | {"by_forecast": []}
    assert "0.2 points or more in all 1,000 (with 80% probability)" in short(never)
    rare = calm_scores(n=1000, predicted=1e-5) | {"by_forecast": []}
    assert "rows would show 0.001 points." in short(rare)
    few = short(doses(n=75))
    assert few.startswith(
        "Audit of model on clinics-find.csv: 75 rows, 0 groups (all: --full) TOO FEW ROWS. Only"
    )
    assert Slots(judged(doses(n=75))).title == "75 rows are too few for an audit."


@pytest.mark.parametrize("name", EVERY)
def test_the_short_text_fits_a_screen(name):
    text = audit_text(audit_of(name))
    lines = text.splitlines()
    # what must not be left out, and a guarantee with a draw, take some lines more
    assert len(lines) <= 12 + 2 * ("Caution" in text) + 6 * ("Proven" in text)
    assert max(map(len, lines)) <= 80
    rows = audit_of(name)
    order = ["Also", "Everyone", "Caution", "Proven", "Not tested", "Gate", "Next"]
    labels = [word for line in lines for word in order if re.match(rf"{word}(\s|$)", line)]
    assert labels == [word for word in order if word in labels]
    assert labels[-1] == "Next"
    assert re.search(r"\(all: (--full|summary\(full=True\))\) [A-Z]", " ".join(lines))
    worst = re.search(r"\n\n(?:Worst +)?(\S{,8})", text)[1]
    assert rows.leading is None or Slots(rows).name.startswith(worst)


LONG = {
    "annual_income > 52340.5 and employment = self-employed and region != south": 0.35,
    "existing_credit_lines <= 3.5 and months_at_address > 118.5": 0.3,
    "requested_amount > 12750 and loan_purpose = debt consolidation": 0.25,
}


@pytest.mark.parametrize("rate", [0.15, 0.175])
def test_a_text_of_probabilities_with_long_rules_has_12_lines(rate):
    scan = [
        rates(rule, 750, 0.15, of_group, 0.06, p_adjusted=1e-9, rule=[{"comparisons": []}],
              features=[part.split()[0] for part in rule.split(" and ")])
        for rule, of_group in LONG.items()
    ]  # fmt: skip
    everyone = rates("everyone", 20_000, 0.15, rate, 0.006)
    command = "evenhand audit loans.csv --target defaulted --forecast probability=p --groups region"
    values = calm_scores(predicted=0.15) | {"groups": [everyone], "scan": scan}
    for provenance in ({}, {"command": command}):
        text = audit_text(judged(values | {"provenance": provenance}))
        lines = text.splitlines()
        assert len(lines) <= 12
        # rules of commands are not broken
        assert max(len(line) for line in lines if "--by" not in line) <= 80
        flat = " ".join(text.split())
        assert ("The average is not significantly off." in flat) == (rate == 0.15)
        worst = "Worst Self-employed, not south, annual_income over 52,340.5: 35.0% had the event,"
        for part in (worst, "+14.0 to +26.0 (750 rows)", "in 3 with 95% confidence", "Not tested"):
            assert part in flat, part
        assert not provenance or f"--by '{next(iter(LONG))}'" in flat


NAMES = {
    "age > 60.5 and sex = women": "women over 60.5",
    "job = self-employed and region = south": "self-employed, south",
    "sex = women and kidney <= 79": "women, kidney 79 or less",
    "age <= 58 and smoker = False": "smoker False, age 58 or younger",
    "region is not south and age >= 18 and age < 65": "not south, age 18 or older and under 65",
    "age >= 70": "age 70 or older",
    "job = self-employed and sex = women": "self-employed, women",
    "income <= 32600": "income 32,600 or less",
    "weight is missing": "weight missing",
    # two columns have this value
    "arm = north": "arm north",
    # not a rule on known columns
    "top scores": "top scores",
    "height > 2 and friends": "height > 2 and friends",
}


@pytest.mark.parametrize("rule", NAMES)
def test_a_group_has_one_name_in_sentences(rule):
    columns = ("age", "sex", "job", "region", "kidney", "smoker", "income", "weight", "arm")
    others = [Finding(group="region = north", n=9, features=columns), Finding(group=rule, n=9)]
    rows = msgspec.structs.replace(judged(doses()), scan=tuple(others))
    assert name_of(rows.scan[1], rows) == NAMES[rule]


OWN = {
    ("predicted mean", 1, 5): "lowest fifth of forecasts (41 to 62 mg)",
    ("predicted mean", 2, 5): "2nd fifth of forecasts (41 to 62 mg)",
    ("80% width", 10, 10): "widest tenth of 80% intervals (41 to 62 mg)",
    ("80% width", 4, 10): "4th tenth by width of 80% intervals (41 to 62 mg)",
    ("predicted mean", 2, 2): "higher half of forecasts (41 to 62 mg)",
    ("predicted median", 2, 3): "middle third of forecasts (41 to 62 mg)",
}


@pytest.mark.parametrize("place", OWN)
def test_groups_by_the_forecast_are_named_by_their_place(place):
    key, part, n_parts = place
    own = Finding(group="x", n=9, key=key, part=part, n_parts=n_parts, lowest=41.0, highest=62.0)
    rows = msgspec.structs.replace(judged(doses()), by_forecast=(own,), about={"unit": "mg"})
    assert name_of(own, rows) == OWN[place]
    shares = msgspec.structs.replace(own, key="predicted probability", lowest=0.313, highest=0.922)
    assert name_of(shares, rows).endswith(" of probabilities (31.3% to 92.2%)")


def test_results_of_groups_are_six_words():
    calm, rows = group("a", 900, 0.01, 0.0, 0.0201), judged(doses())
    for more, expected in (
        ({}, "none found"),
        ({"error_high": 0.02}, "within 2"),
        # a small significant error is not a problem, and its upper end proves nothing
        ({"error_high": 0.02, "off": True}, "none found"),
        ({"error_high": 0.02, "probable": True}, "none found"),
        ({"off": True, "problem": True}, "problem found"),
        ({"too_small": True}, "too few rows"),
        ({"possible_leak": True}, "possible leak"),
        ({"same_as": "b", "problem": True}, "same rows as b"),
    ):
        assert result(Finding.of(calm | more), rows).text == expected, more
    scores = judged(calm_scores())
    assert {result(one, scores).text for one in scores.by_forecast} == {"rate within 2"}


def test_what_is_proven_is_rounded_to_the_side_on_which_it_stays_valid():
    rows = audit_of("randomized")
    first, without, *_ = Slots(rows).proven
    # 31.38, 51.4 and 94.45 in the example, 64.05 and 69.53 of intervals without a draw
    assert first.startswith("In every group of at least 20% of people, named or not, ")
    assert "off by at most 31.4 points" in first
    assert "cover between 51.4% and 94.5% of outcomes" in first
    assert first.endswith("(95% joint confidence, with a draw).")
    every = "In every group of at least 20% of people, named or not, the"
    assert without.startswith(
        f"{every} 95% interval covers at least 64.0% of outcomes, with no upper bound, and is "
    )
    assert "Proven" in audit_text(rows)
    # one draw per row is no guarantee for groups that nobody named
    proof = msgspec.structs.replace(rows.certificate, link_bound=None)
    one = msgspec.structs.replace(rows, n_draws=1, certificate=proof)
    assert not any(text.startswith("In every group") for text in Slots(one).proven)
    assert any("audit several draws" in text for text in Slots(one).not_tested)
    # without a draw only coverage has a bound
    (floor,) = Slots(judged(deterministic())).proven
    expected = f"{every} 98% interval covers at least 69.5% of outcomes (95% confidence, no draw)."
    assert floor == expected


def test_probable_groups_leaks_and_caveats_are_named_before_the_next_step():
    row = group("nordic", 900, 0.2, 0.15, 0.25) | {"probable": True}
    leak = {"kind": "feature", "name": "paid > 0", "column": "paid", "apart": 0.004}
    both = [leak, leak | {"apart": None, "rank_correlation": 0.999}]
    rows = judged(doses(row, caveat="A caveat.", possible_leaks=both))
    assert "(900 expected members)" in Slots(rows).lead
    caveat, reason, weighted = Slots(rows).cautions
    assert "weighted by the probability of membership" in weighted
    assert caveat == "A caveat."
    assert "feature paid may be made from the outcome: it differs" in reason
    flat = " ".join(audit_text(rows).split())
    assert flat.index("A caveat.") < flat.index("Possible leak") < flat.index("Next ")


def test_markdown_has_the_sentences_and_the_worst_groups():
    command = "evenhand audit t.csv --target y --forecast mean=mu,std=sd"
    values = doses(group("<b> | x", 900, 0.2, 0.15, 0.25), provenance={"command": command})
    text = audit_markdown(judged(values))
    assert "**PROBLEM FOUND** in 1 of 1 group." in text
    (line,) = [line for line in text.splitlines() if line.startswith("| &lt;b> \\| x |")]
    assert "problem found" in line
    assert "<b>" not in text
    assert "```\nevenhand recalibrate OTHER.csv" in text


def test_next_steps_repair_the_groups_by_their_rules():
    sides = [("age", ">", "44"), ("sex", "=", 'f and "m" = 1')]
    keys = ("column", "operator", "value")
    rule = [
        {"comparisons": [dict(zip(keys, one, strict=True))], "or_missing": False} for one in sides
    ]
    of_search = deterministic()["learned"][:1]
    given = doses(group("sex=f", 740, 0.09, 0.06, 0.12), learned=of_search)
    given["learned"][0]["rule"] = rule
    forecast = "mean=mu,std=sd"
    command = f"evenhand audit rows.csv --target 'pay $' --forecast={forecast} --groups sex"
    given["provenance"] = {"command": command}
    rows = judged(given)
    assert rows.leading is rows.learned[0]
    repair, *_ = Slots(rows).next
    assert shlex.split(repair.code) == [
        *("evenhand", "recalibrate", "OTHER.csv", "--target", "pay $", "--forecast", forecast),
        *("--by", 'age > 44 and sex = "f and \\"m\\" = 1"', "--out", "repaired"),
    ]
    text = audit_text(rows)
    # broken between options, as a shell reads it
    shown = text[text.index("evenhand recalibrate") :]
    assert shlex.split(shown.replace("\\\n", " ")) == shlex.split(repair.code)
    # readers who audited with the command get no Python, and those who did not get it alone
    assert "found.repair" not in audit_text(rows, full=True)
    text = audit_text(judged(given | {"provenance": {}}), full=True)
    assert "repaired = found.repair(model, X_other, y_other, groups=masks)" in text
    assert "evenhand recalibrate" not in text


def test_a_trend_is_repaired_for_all_people_and_a_tenth_by_its_rule():
    # the trend of the example is the smallest p-value of everyone
    step, *_ = Slots(judged(yes_no())).next
    assert step.what.startswith("Recalibrate with rows new")
    command = "evenhand audit t.csv --target y --forecast probability=p"
    values = yes_no(provenance={"command": command})
    values["groups"][0] |= {"off": False, "problem": False}
    for row in values["by_forecast"][:-1]:
        row |= {"off": False, "problem": False}
    ends = ((">", "0.81"), ("<=", "0.87"))
    sides = [{"column": "predicted probability", "operator": o, "value": v} for o, v in ends]
    values["by_forecast"][-1]["rule"] = [{"comparisons": sides, "or_missing": False}]
    step, *_ = Slots(judged(values)).next
    words = shlex.split(step.code)
    expected = "predicted probability > 0.81 and predicted probability <= 0.87"
    assert words[words.index("--by") + 1] == expected


def test_a_worst_group_without_a_rule_is_not_said_to_be_repaired():
    rule = [{"comparisons": [{"column": "sex", "operator": "=", "value": "f"}]}]
    found = {"p_adjusted": 1e-9, "off": True, "problem": True}
    ruled = group("sex = f", 900, 0.1, 0.08, 0.2) | found | {"rule": rule, "column": "sex"}
    worst = group("", 900, 0.3, 0.2, None) | found | {"mass": 0.2, "features": ["bmi", "s5"]}
    beside, alone = (
        Slots(judged(doses(*groups, provenance={}, learned=[worst]))).next[0]
        for groups in ((ruled,), ())
    )
    assert "(the worst one has no rule and is left out: name groups by bmi and s5)" in beside.what
    # an error of people whom nothing describes is that of everyone, if everyone is a problem
    for is_off in (False, True):
        values = doses(ruled, provenance={}, learned=[worst | {"features": []}])
        values["groups"][0] |= {"error": 0.25, "off": is_off, "problem": is_off}
        text = "has no rule and is left out)", "Recalibrate with rows new"
        assert text[is_off] in Slots(judged(values)).next[0].what
    # nobody has the rows of a group found by search among other rows
    assert beside.code == "repaired = found.repair(model, X_other, y_other)"
    assert alone.what.startswith("Name groups by bmi and s5 (the worst one has no rule)")
    assert alone.code == "audit(model, X_other, y_other, groups=['bmi', 's5'])"
    command = "evenhand audit t.csv --target y_event --forecast mean=m,std=s --groups sex"
    values = doses(provenance={"command": command}, learned=[worst])
    alone = Slots(judged(values)).next[0]
    assert alone.code == command.replace("t.csv", "OTHER.csv").replace("sex", "bmi,s5")
    # a group by the columns of the worst one is repaired, before those by the forecast
    sides = [{"column": "predicted mean", "operator": "<=", "value": "2"}]
    own = ruled | {"key": "predicted mean", "column": None, "rule": [{"comparisons": sides}]}
    own |= {"group": "own", "part": 1, "n_parts": 2, "lowest": 1.0, "highest": 2.0}
    values |= {"scan": [ruled], "by_forecast": [own], "learned": [worst | {"features": ["sex"]}]}
    what, code, _ = Slots(judged(values)).next[0]
    assert (code.count("--by"), '--by "sex = f" --by' in code, "no rule" in what) == (2, 1, 0)
    mask = group("club", 900, 0.2, 0.15, 0.3) | found
    beside, alone = (
        Slots(judged(doses(mask, *groups, provenance={}))).next[0] for groups in ((ruled,), ())
    )
    assert [beside.what[:17], alone.what[:17]] == ["Repair the groups", "Repair this group"]
    of_masks = "repaired = found.repair(model, X_other, y_other, groups=masks)"
    assert [beside.code, alone.code] == [of_masks] * 2


def test_a_small_error_does_not_have_the_name_of_a_problem_of_other_outcomes():
    off = {"p_adjusted": 1e-9, "off": True}
    small = (group(name, 900, 0.015, 0.01, 0.02) | off for name in ("Bonn", "Ulm"))
    large = group("Bonn", 300, 0.17, 0.1, 0.2) | off | {"problem": True}
    (found,) = Slots(judged(doses(*small, positive_part=[large]))).others
    assert found == ("Within 2 points", "small errors were found in Ulm (1.5).")


def test_a_command_repairs_the_worst_groups_that_share_no_column():
    rules = {"age > 60": "age", "age > 50": "age", "sex = f": "sex", "kidney <= 79": "kidney"}
    rules |= {"weight <= 70": "weight"}
    rows = [
        group(name, 900, 0.3 - k / 50, 0.2 - k / 50, 0.4)
        | {"p_adjusted": 1e-9, "off": True, "problem": True, "column": column}
        | {"rule": [{"comparisons": [dict(zip(("column", "operator", "value"), name.split(" "),
                                               strict=True))]}]}
        for k, (name, column) in enumerate(rules.items())
    ]  # fmt: skip
    command = "evenhand audit t.csv --target y --forecast mean=mu,std=sd"
    text = audit_text(judged(doses(*rows, provenance={"command": command})))
    code = shlex.split(text[text.index("evenhand recalibrate") :].replace("\\\n", " "))
    by = [word for option, word in pairwise(code) if option == "--by"]
    assert by == ["age > 60", "sex = f", "kidney <= 79"]
    assert "Repair 3 groups first, with rows new to model and audit; audit again:" in text
    assert "over 2 points, in 5 with 95% confidence." in text


def test_long_names_in_a_chart_take_two_lines():
    expected = [*("weight 77.9 or less, kidney 79", "or less")]
    assert ChartRow("weight 77.9 or less, kidney 79 or less").lines == expected
    assert len(ChartRow("word " * 30).lines) == 2
