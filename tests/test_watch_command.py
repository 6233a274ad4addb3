"""The command `watch`, from a log to text, page, state and exit code."""

import json
import re
import shutil
from datetime import timedelta

import jsonschema
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

from evenhand import InputError, RecalibratedRegressor, save
from evenhand.certificates import Promise
from evenhand.links import Entropic
from evenhand.monitoring import Rows, Watch, watch_schema
from evenhand.report import watch_html
from evenhand.service import LogWatch, WatchedContexts, WatchState, matured_rows, open_log
from evenhand.service.log import digest_of
from evenhand.store import pack, write_model
from log_writers import tampered
from postgresql_server import PASSWORD, QUOTED
from watched_logs import fitted, serve

UNTIL = "2026-03-05"
PROMISE = Promise("mean_pit", 0.2, 0.3, 0.95, Entropic(0.1)).to_dict()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with certified models and logs; nothing in it is changed by tests."""
    folder = tmp_path_factory.mktemp("watched")
    model, other = fitted(), fitted(1)
    for name, one in (("model", model), ("other", other)):
        write_model(pack(one), folder / name, {"schema": "x", "promise": PROMISE})
    serve(model, folder / "broken.sqlite", 40, broken_from=20)
    serve(model, folder / "right.sqlite", 15)
    return folder


def watch(evenhand, log, *options):
    return evenhand("watch", log, "--matures-after", "7d", "--until", UNTIL, *options)


def values(evenhand, log, *options):
    done = watch(evenhand, log, "--json", *options)
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_the_values_are_those_of_a_watch_over_the_rows_of_the_log(place, evenhand):
    found = values(evenhand, place / "broken.sqlite")
    jsonschema.validate(found, watch_schema())
    log = open_log(place / "broken.sqlite")
    horizon = Watch(matures_after="7d")
    rows = matured_rows(log, matures_after=timedelta(days=7), until=UNTIL)
    # without a certificate, everyone and two halves by the forecast are groups, too
    other = Watch(groups=["everyone", "sex", "predicted mean"], matures_after="7d")
    other.learn(rows.columns[:100])
    other.update(rows, until=UNTIL)
    assert horizon.to_dict()["settings"]["matures_after_days"] == 7
    assert found["alarms"] == other.to_dict()["alarms"]
    assert found["tests"] == json.loads(json.dumps(other.to_dict()["tests"]))
    log.close()


def test_an_alarm_names_the_group_the_direction_and_the_date(place, evenhand):
    done = watch(evenhand, place / "broken.sqlite")
    text = " ".join(done.out.split())
    assert done.code == 0
    assert re.search(r"sex = f: above 2 points since about [^:]*: outcomes higher than", text)
    # served from 25 January on, counted a week later; the estimate of the start is near
    since = re.search(r"Audit the rows served since about (\d+) (\w+) 2026, then repair", text)
    day = {"January": 0, "February": 31}[since[2]] + int(since[1])
    assert 20 <= day <= 30
    assert re.search(
        r"^hash chain of \d[\d,]* entries verified; last: \d+:[0-9a-f]{64}$", done.err, re.M
    )
    assert re.search(r"^\d+ new alarms?$", done.err, re.MULTILINE)


def test_the_groups_of_the_log_are_watched_unless_others_are_named(place, evenhand):
    found = values(evenhand, place / "right.sqlite")
    names = [row["name"] for row in found["groups"]]
    assert names[:3] == ["everyone", "sex = f", "sex = m"]
    expected = ["predicted mean ", "predicted mean "]
    assert [name.partition(">")[0].partition("<")[0] for name in names[3:]] == expected
    options = ("--certificate", place / "model", "--groups", "sex")
    promised = values(evenhand, place / "right.sqlite", *options)
    assert [row["name"] for row in promised["groups"]] == ["sex = f", "sex = m"]
    refused = watch(evenhand, place / "right.sqlite", "--groups", "sx").complaint()
    assert "'sx'" in refused
    assert "did you mean 'sex'?" in refused


def test_settings_are_those_of_the_options(place, evenhand):
    options = ("--tolerance", "0.3", "--false-alarm", "0.01", "--period", "week")
    found = values(evenhand, place / "broken.sqlite", *options)
    settings = found["settings"]
    assert (settings["tolerance"], settings["false_alarm"]) == (0.3, 0.01)
    assert (settings["period"], settings["matures_after_days"]) == ("week", 7)
    assert found["status"] == "no alarm"  # an error of women of under 30 points is tolerated


def test_the_promise_of_the_served_model_is_watched(place, evenhand):
    found = values(evenhand, place / "broken.sqlite", "--certificate", place / "model")
    jsonschema.validate(found, watch_schema())
    assert found["settings"]["target"] == 0.3
    assert found["sources"]["certificate"] == str(place / "model")
    assert found["promise"]["estimate"] > 0.3
    assert {one["part"] for one in found["alarms"]} >= {"promise", "group"}
    right = values(evenhand, place / "right.sqlite", "--certificate", place / "model")
    assert right["status"] == "no alarm"


@pytest.fixture(scope="module")
def two(place, tmp_path_factory):
    """Return a log with a second context of the same model, and a third of another."""
    log = tmp_path_factory.mktemp("two") / "log.sqlite"
    shutil.copy(place / "right.sqlite", log)
    serve(fitted(), log, 3, context="refreshed", first=30)
    serve(fitted(1), log, 2, context="other model", first=50)
    return log


def test_all_contexts_of_the_model_are_watched_as_one(two, place, evenhand):
    done = watch(evenhand, two, "--json", "--certificate", place / "model")
    found = json.loads(done.out)
    assert found["sources"]["contexts"] == ["2026", "refreshed"]
    assert "watching 2 contexts as one: '2026', 'refreshed'\n" in done.err
    # 15 and 3 days of 20 people, who are others
    assert (found["n_rows"], found["n_repeated"]) == (360, 0)
    assert "<dd>2026, refreshed</dd>" in watch_html(found)
    done = watch(evenhand, two, "--json", "--certificate", place / "other")
    assert json.loads(done.out)["sources"]["contexts"] == ["other model"]
    # without a certificate, those of the newest context's model
    done = watch(evenhand, two, "--json")
    assert json.loads(done.out)["sources"]["contexts"] == ["other model"]


def test_contexts_are_watched_alone_if_they_are_named(two, place, evenhand):
    more = ("--certificate", place / "model", "--context")
    assert values(evenhand, two, *more, "2026")["n_rows"] == 300
    assert values(evenhand, two, *more, "refreshed,2026")["n_rows"] == 360
    refused = watch(evenhand, two, "--context", "refresht").complaint()
    assert "did you mean 'refreshed'?" in refused
    refused = watch(evenhand, two, *more, "2026,other model").complaint()
    assert "its context 'other model' has another model" in refused
    assert "give the certificate of the served model" in refused


def test_a_new_context_of_the_model_joins_a_running_watch(place, tmp_path, evenhand):
    log, state = tmp_path / "log.sqlite", tmp_path / "state.json"
    shutil.copy(place / "right.sqlite", log)
    more = ("--state", state)
    assert values(evenhand, log, *more, "--until", "2026-02-01")["n_rows"] == 300
    serve(fitted(), log, 3, context="refreshed", first=30)
    serve(fitted(1), log, 2, context="other model", first=50)
    found = values(evenhand, log, *more)
    # without the state, the newest context is of another model
    whole = values(evenhand, log, "--certificate", place / "model")
    assert found["sources"]["contexts"] == whole["sources"]["contexts"] == ["2026", "refreshed"]
    assert found["n_rows"] == whole["n_rows"] == 360
    alone = values(evenhand, log, "--context", "2026,refreshed")
    assert found["tests"] == alone["tests"]
    assert found["groups"] == alone["groups"]


def test_groups_are_defined_by_the_first_people_served_before_their_outcomes(
    place, tmp_path, evenhand
):
    log, state = place / "right.sqlite", tmp_path / "state.json"
    # 80 people were served in four days: the watch has not begun, whatever has matured
    done = watch(evenhand, log, "--matures-after", "1d", "--json", "--until", "2026-01-09")
    found = json.loads(done.out)
    assert (found["status"], found["n_waiting"]) == ("no rows yet", 80)
    assert "begins when 100 people were served" in found["notes"][0]
    assert "warning: the watch begins when 100 people" in done.err
    # on the fifth day they are 100; no horizon of a week has passed
    values(evenhand, log, "--state", state, "--until", "2026-01-10")
    kept = json.loads(state.read_text())["watch"]
    assert kept["n_rows"] == 0
    assert kept["groups"] is not None
    later = values(evenhand, log, "--state", state)
    assert later["n_rows"] == 300
    # the people who defined the groups do not count in them, and everyone needs no definition
    n = {row["name"]: row["n"] for row in later["groups"]}
    assert n["everyone"] == 300
    assert n["sex = f"] + n["sex = m"] == 200
    assert later["draws"]["n"] == 300


def test_only_new_alarms_are_counted_as_new(place, tmp_path, evenhand):
    more = ("--state", tmp_path / "state.json", "--fail-if-alarm")
    first, second = (watch(evenhand, place / "broken.sqlite", *more) for _ in range(2))
    assert (first.code, second.code) == (1, 1)
    assert "new alarm" in first.err
    assert re.search(r"^failed: \d alarms?$", first.err, re.MULTILINE)
    assert "new alarm" not in second.err


def test_a_state_shows_a_log_that_was_cut_off(place, tmp_path, evenhand):
    log, state = tmp_path / "log.sqlite", tmp_path / "state.json"
    shutil.copy(place / "right.sqlite", log)
    assert watch(evenhand, log, "--state", state).code == 0
    tampered(log, "DELETE FROM entries WHERE number = (SELECT max(number) FROM entries)")
    assert "are missing" in watch(evenhand, log, "--state", state).complaint()
    # without the state, the end of the chain cannot be known
    assert watch(evenhand, log).code == 0


def test_a_changed_log_is_refused(place, tmp_path, evenhand):
    log = tmp_path / "log.sqlite"
    shutil.copy(place / "right.sqlite", log)
    tampered(
        log,
        "UPDATE entries SET content = replace(content, '\"y\":', '\"y\":1') WHERE number = 200",
        f"UPDATE entries SET sha256 = '{'0' * 64}' WHERE number = 100",
    )
    assert "entry 100" in watch(evenhand, log).complaint()


def test_states_of_other_watches_are_refused(two, place, tmp_path, evenhand):
    state = tmp_path / "state.json"
    assert watch(evenhand, two, "--context", "2026", "--state", state).code == 0
    before = state.read_bytes()
    other = watch(evenhand, two, "--context", "refreshed", "--state", state).complaint()
    assert "the state is of the context '2026', not of the context 'refreshed'" in other
    changed = ("--context", "2026", "--state", state, "--tolerance", "0.1")
    assert "tolerance" in watch(evenhand, two, *changed).complaint()
    early = ("--context", "2026", "--state", state, "--until", "2026-01-20")
    assert "before 2026-03-05" in watch(evenhand, two, *early).complaint()
    assert state.read_bytes() == before
    edited = json.dumps(json.loads(before) | {"after": 1})
    for content in ("{}", "no JSON", '{"schema": "x/1"}', "[" * 100_000, edited):
        state.write_text(content)
        refused = watch(evenhand, two, "--context", "2026", "--state", state).complaint()
        assert "remove it to begin again" in refused
        assert state.read_text() == content


def test_a_forged_state_file_is_refused_in_one_line_or_is_a_state(two, tmp_path, evenhand):
    state = tmp_path / "state.json"
    assert watch(evenhand, two, "--context", "2026", "--state", state).code == 0
    kept = json.loads(state.read_text())
    del kept["sha256"]
    log = open_log(two)
    refused = []
    for name in ("scope", "head", "until", "after", "watch"):
        inner = kept[name] if isinstance(kept[name], dict) and name != "watch" else {}
        for key in (None, *inner):
            for value in (None, "text", True, -1, 10**30, [], [1, 2], {}, {"what": 1}):
                values = {**kept, name: value if key is None else {**kept[name], key: value}}
                state.write_text(json.dumps(values | {"sha256": digest_of(values)}))
                try:
                    before = WatchState.read(state)
                    chosen = WatchedContexts.of(log, before=before.scope)
                    found = LogWatch(log, chosen, Watch(groups=["sex"], matures_after="7d"), before)
                    found.update()
                    assert before.watch is None or before.watch["settings"]["groups"] == ["sex"]
                except InputError as error:
                    refused.append(str(error))
    log.close()
    assert len(refused) > 50
    assert not [message for message in refused if "\n" in message]


def test_page_and_json_are_written(place, tmp_path, evenhand):
    page, data = tmp_path / "watch.html", tmp_path / "watch.json"
    for out in (page, data):
        done = watch(evenhand, place / "broken.sqlite", "--out", out)
        assert done.code == 0
        assert f"watch written to {out}" in done.err
    text = page.read_text(encoding="utf-8")
    assert "Watch of broken.sqlite<" in text
    assert "Entries of the log, verified" in text
    assert "evenhand watch" in text
    jsonschema.validate(json.loads(data.read_text()), watch_schema())


def test_wrong_options_are_refused_in_one_line(place, evenhand):
    for option, value, message in (
        ("--matures-after", "one year", "--matures-after must be a number of days, or a time"),
        ("--tolerance", "2", "--tolerance must be above 0 and below 1"),
        ("--period", "days", "did you mean 'day'?"),
        ("--until", "2126-01-01", "in the future"),
        ("--until", "tomorrow", "--until must be a date or time"),
        ("--out", "watch.pdf", ".html"),
        ("--context", "other", "has no context 'other'"),
    ):
        assert message in watch(evenhand, place / "right.sqlite", option, value).complaint()


def test_files_that_are_read_are_not_overwritten(place, tmp_path, evenhand):
    log = tmp_path / "log.sqlite"
    shutil.copy(place / "right.sqlite", log)
    before = log.read_bytes()
    assert "--state" in watch(evenhand, log, "--state", log).complaint()
    # the state and the page, neither of which is there yet
    for state, out in (("new.json", "new.json"), ("new.html", "link.html")):
        (tmp_path / "link.html").unlink(missing_ok=True)
        (tmp_path / "link.html").symlink_to("new.html")
        both = ("--state", tmp_path / state, "--out", tmp_path / out)
        refused = watch(evenhand, log, *both).complaint()
        assert f"--out {tmp_path / out} is the same file as the state" in refused
        assert not (tmp_path / state).exists()
    assert watch(evenhand, tmp_path / "none.sqlite").complaint()
    assert not (tmp_path / "none.sqlite").exists()
    assert log.read_bytes() == before


def test_a_log_in_postgresql_is_watched_and_its_password_not_shown(postgresql, tmp_path, evenhand):
    url = postgresql.new_database()
    serve(fitted(), url, 10)
    done = watch(evenhand, url, "--json", "--out", tmp_path / "watch.html")
    assert json.loads(done.out)["n_rows"] == 200
    for text in (done.out, done.err, (tmp_path / "watch.html").read_text()):
        assert PASSWORD not in text
        assert QUOTED not in text


def table_of(folder, n=3000, shift=0.0):
    """Write normal forecasts of 20 people a day; outcomes of women shift after half of the days."""
    random = np.random.default_rng(7)
    day = np.arange(n) // 20
    sex = random.choice(["f", "m"], n)
    mean = random.normal(size=n)
    moved = shift * ((sex == "f") & (day >= n // 40))
    y = mean + random.normal(size=n) + moved
    late = random.uniform(size=n) < 0.1
    served = np.datetime64("2026-01-01") + day
    table = pd.DataFrame(
        {
            "day": served,
            "mu": mean,
            "sd": 1.0,
            "chance": stats.norm.cdf(mean),
            "sex": sex,
            "y": np.where(random.uniform(size=n) < 0.05, np.nan, y),
            "event": (random.uniform(size=n) < stats.norm.cdf(mean + moved)).astype(int),
            "seen": served + np.where(late, 9, 3).astype("timedelta64[D]"),
        }
    )
    table.to_csv(folder / "table.csv", index=False)
    return folder / "table.csv"


NORMAL = ("--target", "y", "--forecast", "mean=mu,std=sd", "--time", "day")
EVENTS = ("--target", "event", "--forecast", "probability=chance", "--time", "day")


def test_a_table_of_forecasts_is_watched_as_the_pits_of_its_rows(tmp_path, evenhand):
    path = table_of(tmp_path, shift=1.0)
    more = ("--groups", "sex", "--recorded", "seen", "--matures-after", "7d")
    found = json.loads(evenhand("watch", path, *NORMAL, *more, "--json").done().out)
    jsonschema.validate(found, watch_schema())
    table = pd.read_csv(path, parse_dates=["day", "seen"])
    rows = Rows.of(
        table["day"],
        stats.norm.cdf(table["y"], table["mu"], table["sd"]),
        groups=table[["sex"]].assign(**{"predicted mean": table["mu"]}),
        recorded=table["seen"],
        matures_after="7d",
    )
    other = Watch(groups=["everyone", "sex", "predicted mean"], matures_after="7d")
    alarms = other.update(rows)
    assert [one["group"] for one in found["alarms"]] == [one.group for one in alarms]
    assert {"group": "sex = f", "direction": "higher"}.items() <= found["alarms"][0].items()
    assert found["n_missing"] == other.to_dict()["n_missing"] > found["n_late"] > 0
    assert len(found["groups"]) == 5


def test_a_right_table_raises_no_alarm_and_a_wrong_level_is_named(tmp_path, evenhand):
    path = table_of(tmp_path)
    for options in (NORMAL, EVENTS):
        evenhand("watch", path, *options, "--groups", "sex", "--fail-if-alarm").done()
    table = pd.read_csv(path)
    # too extreme: right on average over everyone, and wrong at both ends
    table["chance"] = stats.norm.cdf(2.5 * stats.norm.ppf(table["chance"]))
    table.to_csv(path, index=False)
    done = evenhand("watch", path, *EVENTS, "--json", "--fail-if-alarm")
    assert done.code == 1
    found = json.loads(done.out)["alarms"]
    assert {a["group"].split()[2]: a["direction"] for a in found} == {"<=": "higher", ">": "lower"}


def test_options_that_a_table_or_a_log_lacks_are_named(tmp_path, evenhand):
    path = table_of(tmp_path, 40)
    for options, message in (
        (NORMAL[:4], "add --time"),
        ((*NORMAL, "--state", "state.json"), "--state has no effect on a table"),
        (
            (*NORMAL[:-1], "sex"),
            "csv: column 'sex', row 1 must be a date or time, got '[fm]'; write",
        ),
        ((*NORMAL, "--recorded", "sex"), "csv: column 'sex', row 1 must be a date or time, got"),
        ((*NORMAL[:-1], "dya"), "has no column 'dya'.*did you mean 'day'"),
        ((*NORMAL, "--groups", "sax"), "has no column 'sax'.*did you mean 'sex'"),
        ((*NORMAL, "--id", "sex"), "column 'sex'.*: keep one row of each"),
        ((), "a log is watched with --matures-after"),
        (("--matures-after", "9d", "--id", "x"), "--id has no effect on a decision log"),
    ):
        assert re.search(message, evenhand("watch", path, *options).complaint())


def test_a_model_of_any_kind_is_watched_and_a_randomized_one_in_its_log(place, tmp_path, evenhand):
    path = table_of(tmp_path)
    table, model = pd.read_csv(path), RecalibratedRegressor(LinearRegression(), random_state=0)
    model.fit(table[["mu"]][:1500], table["mu"][:1500] + np.sin(np.arange(1500)) / 2)
    save(model, tmp_path / "m")
    options = ("--target", "y", "--time", "day")
    done = evenhand("watch", path, *options, "--forecast", tmp_path / "m", "--fail-if-alarm")
    # outcomes have a standard deviation of 1, and those it has learned of 0.35
    assert done.code == 1
    assert "forecasts too narrow" in " ".join(done.out.split())
    randomized = evenhand("watch", path, *options, "--forecast", place / "model").complaint()
    assert "is randomized: its forecasts are watched in a decision log" in randomized


def test_times_are_watched_up_to_their_horizon_and_lost_ones_are_missing(tmp_path, evenhand):
    random = np.random.default_rng(0)
    table = pd.DataFrame({"day": np.datetime64("2024-01-01") + np.arange(3000) // 5})
    table[["s25", "s50", "s75", "s100"]] = 0.8, 0.6, 0.4, 0.2
    # uniform up to 125 days; all are followed for 110, but a tenth are lost before the event
    time, lost = random.uniform(0, 125, 3000), random.uniform(size=3000) < 0.1
    table["days"] = np.minimum(np.where(lost, 0.7 * time, time), 110)
    table["died"] = (~lost & (time <= 110)).astype(int)
    table["fast"] = table["days"] / (1 + table["died"])
    table.to_csv(tmp_path / "times.csv", index=False)
    forecast = "survival=s,event=died,horizon=100"
    call = ("watch", tmp_path / "times.csv", "--time", "day", "--forecast", forecast)
    refused = evenhand(*call, "--target", "days").complaint()
    assert "--matures-after of at least the horizon" in refused
    call += ("--matures-after", "100d", "--json", "--target")
    found = json.loads(evenhand(*call, "days").done().out)
    assert (found["status"], found["n_missing"]) == ("no alarm", (lost & (0.7 * time < 100)).sum())
    alarm = json.loads(evenhand(*call, "fast").done().out)["alarms"][0]
    assert (alarm["group"], alarm["direction"]) == ("everyone", "lower")
