"""Named groups: one rule for masks, labels and columns in every function that takes groups."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from complaints import refused
from evenhand import Forecast, ForecastColumns, Outcomes, audit, audit_pit, certify, randomize
from evenhand._validate import InputError
from evenhand.audits import Search, judged, parse_condition
from evenhand.calibration import count_pits
from evenhand.certificates import certify_pit
from evenhand.decisions import BayesDecision, StepLoss, loss_guarantee
from evenhand.draws import jittered
from evenhand.links import Laplace
from evenhand.scale import audit_parts
from evenhand.search import scan_groups
from evenhand.tables import Group, GroupRule, check_groups, group_columns

N = 240
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {"age": RNG.uniform(20, 80, N), "sex": RNG.choice(["f", "m"], N), "score": RNG.normal(size=N)}
)
PIT, Y = RNG.random(N), RNG.normal(size=N)
OLD = X["age"] > 60
LABELLED = {
    "old": OLD.to_numpy(),
    "sex = f": (X["sex"] == "f").to_numpy(),
    "sex = m": (X["sex"] == "m").to_numpy(),
}

FORMS = {
    "dict": {"old": OLD.tolist(), "sex": X["sex"].to_numpy()},
    "DataFrame": pd.DataFrame({"old": OLD, "sex": X["sex"]}),
    "nullable": pd.DataFrame({"old": OLD.astype("boolean"), "sex": X["sex"].astype("category")}),
    "polars": pl.DataFrame({"old": OLD.to_numpy(), "sex": X["sex"].to_list()}),
}


@pytest.mark.parametrize("form", FORMS)
def test_booleans_are_masks_and_other_values_labels(form):
    found = check_groups(FORMS[form], N, X)
    assert list(found) == list(LABELLED)
    for name, mask in LABELLED.items():
        np.testing.assert_array_equal(found[name], mask)
    assert {Group.given("old"), Group("sex", "=", "f")} <= {group for group, _ in found.pairs()}


FORECAST = Forecast.from_normal(np.zeros(N), np.ones(N))
DECISION = BayesDecision(("yes", "no"), {"yes": StepLoss([0.0], [4.0, 0.0]), "no": 1.0})


def test_every_function_audits_the_groups_that_it_was_given():
    given = {"groups": FORMS["polars"], "random_state": 0}
    scanned = scan_groups(PIT, X[["score"]], 20, **given)["group"]
    losses = loss_guarantee(DECISION, FORECAST, Y, k=2, masses=0.5, **given).table
    for names in (
        audit(FORECAST, X=X, y=Y, **given).groups["group"][1:],
        audit_pit(PIT, X=X, **given).groups["group"][1:],
        certify(FORECAST, X, Y, **given).named_table()["group"],
        certify_pit(PIT, **given).named_table()["group"],
        scanned[scanned.isin(LABELLED)],
        losses.query("kind == 'named'")["group"].unique(),
    ):
        assert sorted(names) == sorted(LABELLED)


def test_a_table_of_masks_is_audited_and_not_columns_of_its_names():
    # a column of X of the same name made halves of the scores in place of the mask
    masks = pd.DataFrame({"score": OLD})
    found = audit(FORECAST, X, Y, groups=masks, random_state=0).groups
    assert found[["group", "n"]].values.tolist() == [["everyone", N], ["score", int(OLD.sum())]]
    proof = certify(FORECAST, X, Y, groups=masks, random_state=0).named_table()
    assert (proof["group"].tolist(), proof["n"].tolist()) == (["score"], [int(OLD.sum())])


def test_blocks_of_counts_take_masks_alone_and_tables_in_parts_names(tmp_path):
    counts = count_pits(PIT, groups=pd.DataFrame({"old": OLD}), random_state=0)
    assert counts.groups["old"].n_samples == OLD.sum()
    with pytest.raises(InputError, match=r"groups\['sex'\] .*240 booleans.*; make masks.*block"):
        count_pits(PIT, groups=FORMS["DataFrame"], random_state=0)
    pd.DataFrame({"y": Y, "mean": 0.0, "std": 1.0}).to_parquet(tmp_path / "a.parquet")
    groups = {"y": OLD}
    with pytest.raises(InputError, match=r"^groups .*column names.*; add the groups to the table"):
        audit_parts(ForecastColumns(mean="mean", std="std"), tmp_path, "y", groups=groups)


def test_groups_that_do_not_fit_are_refused_in_one_line():
    def wrong(facts, groups):
        refused(facts, check_groups, groups, N, X)

    table = pd.DataFrame({"old": OLD})
    wrong(r"^groups .*\(240\).* 9 rows", table[:9])
    wrong(r"^groups and X .*indexes.*; reorder .*\.loc\[X\.index\]", table[::-1])
    wrong(r"groups\['none'\].* empty group", {"none": np.zeros(N, dtype=bool)})
    wrong(r"groups\['everyone'\].*reserved.*; rename", {"everyone": OLD})
    wrong("^groups .*Series without a name; write", OLD.rename(None))
    missing = OLD.astype("boolean").mask(X["sex"] == "m")
    wrong(r"groups\['old'\] is a mask .*missing.*first in row.*; fill", table.assign(old=missing))
    wrong("^groups .*column names.* ndarray; pass masks as", [OLD.to_numpy()])
    wrong(r"^groups\['sex = f'\]: two .*'sex = f'; rename", {"sex": X["sex"], "sex = f": OLD})


NESTED = {"lists": [["a"], ["b"]], "structs or maps": [{"a": 1}, {"a": 2}]}


@pytest.mark.parametrize(("kind", "part"), [("lists", "groups"), ("structs or maps", "features")])
def test_nested_columns_of_parquet_are_refused_in_memory_and_in_parts(
    kind, part, tmp_path, evenhand
):
    table = pd.DataFrame({"y": Y, "mean": 0.0, "std": 1.0, "tags": NESTED[kind] * (N // 2)})
    table.to_parquet(tmp_path / "a.parquet")
    rule = f"a.parquet: column 'tags' must contain single values, got {kind}; drop the column"
    subject = ForecastColumns(mean="mean", std="std")
    chosen = {"groups": ["tags"], "features": []} if part == "groups" else {"features": ["tags"]}
    refused(rule, audit_parts, subject, tmp_path, "y", **chosen)
    forecasts = ("--target", "y", "--forecast", "mean=mean,std=std")
    complaint = evenhand(
        "audit", tmp_path / "a.parquet", *forecasts, f"--{part}", "tags"
    ).complaint()
    assert rule in complaint


@pytest.mark.parametrize("given", [lambda y: y, Outcomes], ids=["array", "Outcomes"])
def test_outcomes_groups_and_features_in_another_order_are_refused(given):
    rng, n = np.random.default_rng(0), 300
    y = pd.Series(rng.normal(size=n), index=rng.permutation(n))
    is_old = pd.Series(rng.random(n) < 0.5, name="old")  # the same people in another order
    forecast = Forecast.from_normal(np.zeros(n), np.ones(n))
    for judge in (audit, certify):
        message = r"groups\['old'\] and y .*indexes.*; reorder .*\.loc\[y\.index"
        refused(message, judge, forecast, y=given(y), groups={"old": is_old}, random_state=0)
        refused(r"^y and X .*\.loc\[X\.index", judge, forecast, is_old.to_frame(), given(y))
    refused("^features and y ", audit, forecast, y=given(y), features=is_old.to_frame())
    refused("^y and X ", randomize, lambda rows: forecast, is_old.to_frame(), given(y))
    found = certify(forecast, y=given(y), groups={"old": is_old.loc[y.index]}, random_state=0)
    assert found.named_table()["n"].tolist() == [int(is_old.sum())]


def test_floats_between_0_and_1_given_by_name_are_probabilities_of_membership():
    p = np.linspace(0.0, 0.9, N)
    found = check_groups({"old": OLD, "proxy": p}, N, X, allow_probable=True)
    assert found.names == ("old", "proxy")
    # what needs known members reads the mapping, which has only masks
    assert list(found) == ["old"]
    np.testing.assert_array_equal(found["old"], OLD)
    ((group, shares),) = found.probable()
    assert group == Group.given("proxy")
    np.testing.assert_array_equal(shares, p)
    again = check_groups(found, N, X, allow_probable=True)
    ((_, shares),) = again.take(np.arange(5)).probable()
    np.testing.assert_array_equal(shares, p[:5])
    assert found.without(["proxy"]).names == found.known().names == ("old",)
    assert found.take(np.array([0])).names == (("old",) if OLD[0] else ())
    # what needs known members refuses them
    groups, known = {"proxy": np.full(N, 0.3)}, r"groups\['proxy'\].*members must be known"
    refused(known, scan_groups, PIT, X, groups=groups)
    refused(known, certify_pit, PIT, groups=groups)
    refused(known, certify, FORECAST, X, Y, groups=groups)


def test_the_command_takes_columns_of_probabilities(tmp_path, evenhand):
    table = pd.DataFrame({"y": Y, "mu": 0.0, "sd": 1.0, "age": X["age"]})
    table["proxy"] = np.linspace(0.1, 0.9, N)
    path = tmp_path / "rows.csv"
    table.to_csv(path, index=False)
    args = ("audit", path, "--target", "y", "--forecast", "mean=mu,std=sd", "--json")
    found = json.loads(evenhand(*args, "--group-probabilities", "proxy").out)
    assert [row["group"] for row in found["membership"]] == ["proxy"]
    assert found["membership"][0]["members"] == pytest.approx(N / 2)
    assert any("probabilities of membership: proxy" in note["text"] for note in found["notes"])
    refused = evenhand(*args, "--group-probabilities", "age").complaint()
    assert "'age' of --group-probabilities must contain probabilities" in refused
    folder = tmp_path / "parts"
    folder.mkdir()
    table.to_parquet(folder / "a.parquet")
    in_parts = ("audit", folder, *args[2:], "--group-probabilities", "proxy")
    assert "needs a table in memory" in evenhand(*in_parts).complaint()


# Rules of groups: text is parsed against known columns, and selects the rows that it prints.

TABLE = pd.DataFrame(
    {
        "bmi": [0.01, 0.03, 0.05, np.nan],
        "sex": [1, 2, 2, 1],
        "years and months": [1.0, 2.0, 3.0, 4.0],
        "job": ["cook", "R and D", None, 'a "b" and c = d'],
        "smokes": [True, False, True, False],
        "day": pd.to_datetime(
            ["2020-01-01", "2020-01-02", "2020-01-02 12:00", None], format="ISO8601"
        ),
    }
)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("bmi > 0.03", [2]),
        ("bmi>=0.03", [1, 2]),
        ("bmi <= 0.03", [0, 1]),
        ("bmi <= 0.03 (or missing)", [0, 1, 3]),
        ("bmi missing", [3]),
        ("bmi is not missing and sex = 2", [1, 2]),
        ("bmi > 0.03 and sex = 2", [2]),
        ("sex = 2.0", [1, 2]),
        ("years and months > 2 and sex = 2", [2]),
        ("years and months <= 3 and years and months > 1", [1, 2]),
        ("job = R and D", [1]),
        ("job = R and D and sex = 2", [1]),
        ('job = "R and D"', [1]),
        ('job = "a \\"b\\" and c = d"', [3]),
        ('job != "cook or a = b"', [0, 1, 2, 3]),
        ("bmi > 0.03 and " * 99 + "sex = 2", [2]),
        ("day < 2021", [0, 1, 2]),
        ("job != cook", [1, 2, 3]),
        ("smokes = true", [0, 2]),
        ("day <= 2020-01-02", [0, 1]),
        ("day = 2020-01-02", [1]),
    ],
)
def test_text_selects_the_rows_that_it_describes(text, rows):
    rule = GroupRule.parse(text, TABLE.columns)
    assert np.flatnonzero(rule.mask(TABLE)).tolist() == rows
    again = GroupRule.parse(rule.name, TABLE.columns)
    np.testing.assert_array_equal(again.mask(TABLE), rule.mask(TABLE))
    stored = GroupRule.from_state(json.loads(json.dumps(rule.to_state())))
    assert stored == rule
    assert stored.name == rule.name
    np.testing.assert_array_equal(rule.mask(pl.from_pandas(TABLE)), rule.mask(TABLE))


def test_wrong_text_is_refused_in_one_line():
    for text, message in {
        "bmy > 0.03": "the table has no column 'bmy'",
        "job = cook and sexx = 2": "has no column 'sexx'.*did you mean 'sex'",
        "bmi 0.03": "must be comparisons such as",
        "bmi > 0.03 and": "must be comparisons",
        "": "must be comparisons",
        "bmi > 0.03 or sex = 2": "must compare column 'bmi' with a number",
        "job = cook or sex = 2": 'must be comparisons.*join them by "and"',
        "sex = 2 AND bmi > 0.03": "must be comparisons",
        "bmi > nan": "must compare column 'bmi' with a number, got 'nan'",
        "day < NaT": "must compare column 'day' with a date such as 2020-01-31, got 'NaT'",
        "job > cook": "column 'job' must contain numbers or dates to be compared by >",
        "day > soon": "must compare column 'day' with a date such as 2020-01-31, got 'soon'",
    }.items():
        refused(message, lambda text=text: GroupRule.parse(text, TABLE.columns).mask(TABLE))


@pytest.mark.parametrize(
    "forged",
    [{"operator": "in"}, {"operator": "missing"}, {"value": None}, {"column": 1}, {"name": "x"}],
    ids=str,
)
def test_a_stored_rule_that_was_changed_is_refused(forged):
    (state,) = GroupRule.parse("sex = 2", TABLE.columns).to_state()
    state["comparisons"][0] |= forged
    refused(r"output of GroupRule\.to_state \((?!InputError)", GroupRule.from_state, [state])


@pytest.mark.parametrize("dtype", ["float64", "float32", "Int64"])
def test_rules_of_an_audit_s_groups_select_the_rows_of_the_groups(dtype):
    random = np.random.default_rng(0)
    numbers = random.normal(size=501) * 1e3
    values = pd.Series(numbers.astype(int) if dtype in ("int64", "Int64") else numbers)
    table = pd.DataFrame({"x": values.astype(dtype), "few": random.integers(0, 4, 501)})
    for group, mask in group_columns(table, ["x", "few"], source="X").pairs():
        rule = GroupRule.of(group)
        assert rule.name == group.name
        np.testing.assert_array_equal(rule.mask(table), mask)
        parsed = GroupRule.parse(group.name, table.columns)
        np.testing.assert_array_equal(parsed.mask(table), mask)


# --- conditions on audits: the grammar, what each quantity reads, and what is refused


def test_whole_numbers_above_two_to_the_53rd_are_exact():
    table = pd.DataFrame({"id": np.array([2**53, 2**53 + 1, 2**53 + 2])})
    for text, rows in (("<=", [0, 1]), (">", [2]), ("=", [1]), ("<", [0]), (">=", [1, 2])):
        rule = GroupRule.parse(f"id {text} {2**53 + 1}", table.columns)
        assert np.flatnonzero(rule.mask(table)).tolist() == rows


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    r = jittered(400, 16, rng)
    pit = Laplace(0.1).ppf(rng.random(400)[:, None], r)
    search = Search(masses=[0.2, 1.0], learned_masses=[0.2])
    return audit_pit(pit, r, rng.normal(size=(400, 2)), search=search, random_state=0)


def test_each_quantity_is_read_from_the_audit(found):
    values = {
        "certified_group_error(0.2) > 0": found.certificate.group_error(0.2),
        "certified_group_error(0.35) > 0": found.certificate.group_error(0.35),
        "groups_beyond_tolerance > 0": found.status.n_beyond,
        "problem": found.status.n_problems,
        "not-proven": 1.0,
        "coverage(0.8, 0.2) > 0": found.certificate.coverage(0.8, 0.2)[0],
    }
    for text, value in values.items():
        assert judged(parse_condition(text), found).value == value


@pytest.mark.parametrize(
    ("relation", "offset", "expected"),
    [(">", 0, False), (">=", 0, True), ("<", 0, False), ("<=", 0, True), (">", -1e-6, True)],
)
def test_relations_mean_what_they_say(found, relation, offset, expected):
    limit = found.certificate.group_error(0.2) + offset
    condition = parse_condition(f"certified_group_error(0.2) {relation} {limit!r}")
    assert judged(condition, found).is_true is expected


def test_anything_else_is_refused():
    for text, told in {
        "": "or compare a quantity with a number",
        "problems": "must be problem, too-few-rows, not-proven, or compare",
        "groups_beyond_tolerance == 1": "or compare a quantity with a number",
        "groups_beyond_tolerance > 0.5": "limit must be",
        "groups_beyond_tolerance > __import__('os').getpid()": "must have numbers",
        "average_error > 0.3": "must name one of groups_beyond_tolerance, ",
        "certified_group_error > 0.3": r"must be written as certified_group_error\(mass\)",
        "certified_group_error(x) > 0.3": "must have numbers",
        "certified_group_error(20) > 0.3": "--fail-if: mass must be above 0 and at most 1, got 20",
        "certified_group_error(0.2) > nan": "limit must be at least 0 and at most 1, got nan",
        "coverage(1, 0.2) < 0.5": "level must be above 0 and below 1, got 1.0",
    }.items():
        refused(told, parse_condition, text)


def refusal(text, found):
    reason = judged(parse_condition(text), found).reason
    beginning = f"condition {text!r} cannot be evaluated: "
    assert reason.startswith(beginning)
    return reason.removeprefix(beginning)


def test_what_the_audit_did_not_find_is_an_error_not_a_pass():
    weighted = audit_pit([0.1, 0.5, 0.9, 0.3], sample_weight=[1, 2, 1, 1], random_state=0)
    for text in ("certified_group_error(0.2) > 0.3", "coverage(0.8, 0.2) < 0.3"):
        assert "no certificate" in refusal(text, weighted)
    # the verdict needs no certificate
    assert judged(parse_condition("too-few-rows"), weighted).is_true


def test_one_forecast_per_person_is_no_matter_for_a_gate_on_every_group():
    # the certificate of the true distribution is at least 0.4: no deterministic model could pass
    rng = np.random.default_rng(0)
    single = audit_pit(
        rng.random(400),
        groups={"half": np.arange(400) < 200},
        search=Search(masses=[0.2]),
        random_state=0,
    )
    floor = "certified_group_error(0.2) > 0.1"
    assert "with one forecast per person" in refusal(floor, single)
    assert "choose a level above 0.8" in refusal("coverage(0.8, 0.2) < 0.5", single)
    # a wider interval has a floor in every group of a size, and the model decides on it
    wider = parse_condition("coverage(0.98, 0.2) < 0.6")
    assert 0.6 < judged(wider, single).value == single.certificate.coverage(0.98, 0.2)[0] < 0.9
    narrow = audit_pit(rng.beta(0.5, 0.5, size=400), search=Search(masses=[0.2]), random_state=0)
    assert judged(wider, narrow).is_true
    assert not judged(wider, single).is_true
    drawn = audit_pit(rng.random(400), rng.random(400), search=Search(masses=[0.2]), random_state=0)
    assert "only one draw per person" in refusal("certified_group_error(0.2) > 0.1", drawn)
    # everybody is a group that was named beforehand
    assert not judged(parse_condition("certified_group_error(1) > 0.2"), single).is_true
