"""The watch over served forecasts: false alarms, delays, order of rows, and bad input."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from complaints import refused
from evenhand import Watch
from evenhand.certificates import Envelope, Promise
from evenhand.draws import KeyedDraws
from evenhand.links import Entropic
from evenhand.monitoring import Rows
from repeats import most_failures, repeats, statistical

START = np.datetime64("2026-01-01T00:00", "us")
DAY = np.timedelta64(86_400_000_000, "us")
LINK = Entropic(0.12)


def times_of(n_days, per_day):
    return START + (np.arange(n_days * per_day) * (DAY // per_day))


def stream(n_days, per_day, seed, **columns):
    """Rows of calibrated forecasts."""
    random = np.random.default_rng(seed)
    n = n_days * per_day
    values = {"pit": random.uniform(size=n), "r": random.uniform(size=n)} | columns
    return Rows.of(times_of(n_days, per_day), **values)


def served(alarms):
    return [(alarm.part, alarm.group, alarm.direction) for alarm in alarms]


@pytest.mark.parametrize(
    ("pit", "direction"),
    [
        (lambda u: u**0.5, "higher"),
        (lambda u: u**2, "lower"),
        (lambda u: stats.norm.cdf(2 * stats.norm.ppf(u)), "narrow"),
        (lambda u: stats.norm.cdf(stats.norm.ppf(u) / 2), "wide"),
    ],
)
def test_the_alarm_names_the_way_in_which_forecasts_are_wrong(pit, direction):
    u = np.random.default_rng(1).uniform(size=2000)
    found = Watch().update(Rows.of(times_of(100, 20), pit(u)))
    assert served(found) == [("group", "everyone", direction)]


def test_an_alarm_gives_the_start_the_date_and_the_evidence():
    u = np.random.default_rng(2).uniform(size=100 * 20)
    change = np.arange(u.size) >= 60 * 20
    watch = Watch()
    (alarm,) = watch.update(Rows.of(times_of(100, 20), np.where(change, u**0.5, u)))
    since = (np.datetime64(alarm.since) - START) / DAY
    date = (np.datetime64(alarm.date) - START) / DAY
    assert abs(since - 60) <= 3
    assert 60 <= date <= 75
    # one part alone has the whole risk
    assert alarm.threshold == pytest.approx(np.log(20))
    assert alarm.log_evidence >= alarm.threshold
    assert date * 20 < alarm.n_rows <= (date + 1) * 20
    assert watch.to_dict()["status"] == "alarm"


def test_one_alarm_per_test_stays_when_the_evidence_falls():
    u = np.random.default_rng(3).uniform(size=400 * 20)
    bad = np.arange(u.size) < 20 * 20
    watch = Watch()
    alarms = watch.update(Rows.of(times_of(400, 20), np.where(bad, u**0.5, u)))
    values = watch.to_dict()
    assert len(alarms) == 1
    assert watch.alarms == alarms
    (group,) = values["groups"]
    assert group["log_evidence"] < group["threshold"] < group["max_log_evidence"]
    assert values["alarms"][0]["max_log_evidence"] >= values["alarms"][0]["log_evidence"]
    assert watch.update(stream(1, 20, 4).take(slice(0, 0))) == []


def test_events_are_watched_by_their_bias():
    random = np.random.default_rng(5)
    p = random.uniform(0.2, 0.8, size=3000)
    y = random.uniform(size=p.size) < p + 0.15
    watch = Watch()
    found = watch.update(Rows.of(times_of(150, 20), outcome=y, probability=p))
    assert served(found) == [("group", "everyone", "higher")]
    (group,) = watch.to_dict()["groups"]
    assert group["error"] == pytest.approx(np.mean(y - p), abs=1e-6)
    assert watch.to_dict()["settings"]["kind"] == "event"
    assert watch.to_dict()["draws"] is None
    other = Rows.of(["2026-06-01"], [0.5])
    refused("rows have no excess, but this watch began with 0/1", watch.update, other)


def test_counts_are_watched_by_their_cells_averaged():
    # served Poisson forecasts of mean 3: each cell is [F(y - 1), F(y)]
    y = np.random.default_rng(6).poisson(3.0, size=4000)
    low, high = stats.poisson.cdf(y - 1, 3.0), stats.poisson.cdf(y, 3.0)
    watch = Watch()
    assert watch.update(Rows.of(times_of(200, 20), (low, high))) == []
    (group,) = watch.to_dict()["groups"]
    # sampling errors of W1 at n = 4000 are about 0.3 / sqrt(n)
    assert group["error"] < 0.02
    assert group["n"] == 4000
    lows, highs = stats.poisson.cdf(y - 1, 2.0), stats.poisson.cdf(y, 2.0)
    found = Watch().update(Rows.of(times_of(200, 20), (lows, highs)))
    assert found[0].direction == "higher"


def shifted(shift, change):
    """Randomized forecasts of 50 people a day, with base PITs shifted from a day on."""
    random, n = np.random.default_rng(0), 120 * 50
    score = random.normal(size=n) + shift * (np.arange(n) >= change * 50)
    r = random.uniform(size=n)
    return Rows.of(times_of(120, 50), LINK.ppf(stats.norm.cdf(score), r), r=r, link=LINK)


def test_a_broken_promise_is_detected_within_days():
    # outcomes: 6: entropic 0.12, groups of 20%, a promise of 0.30, a shift of 1.0 deviations
    promise = Promise("mean_pit", 0.2, 0.30, 0.95, LINK)
    watch = Watch(promise)
    rows = shifted(1.0, change=100)
    (alarm,) = watch.update(rows)
    assert served([alarm]) == [("promise", None, "higher")]
    assert 100 <= (np.datetime64(alarm.date) - START) / DAY <= 112
    assert abs((np.datetime64(alarm.since) - START) / DAY - 100) <= 3
    values = watch.to_dict()
    # the promise has 5 parts of 6 of the risk beside the draws, each side a half
    assert values["promise"]["threshold"] == pytest.approx(np.log(2 / (0.05 * 5 / 6)))
    worst = np.sort(LINK.mean_pit(rows.base[0]))[-len(rows) // 5 :] - 0.5
    assert values["promise"]["estimate"] == pytest.approx(worst.mean(), abs=0.001)
    assert values["settings"]["link"] == "entropic"
    assert values["groups"] == []
    assert Watch(promise).update(shifted(-1.0, change=100))[0].direction == "lower"


def test_the_promise_of_a_gap_and_of_a_bias_are_watched():
    random = np.random.default_rng(20)
    n = 100 * 50
    r = random.uniform(size=n)
    far = Rows.of(times_of(100, 50), random.uniform(size=n), r=r)
    gap = Watch(Promise("gap", 0.2, 0.3, 0.95))
    assert served(gap.update(far)) == [("promise", None, "gap")]
    p = random.uniform(0.2, 0.8, size=n)
    y = random.uniform(size=n) < p + 0.2
    # of calibrated forecasts the half with most outcomes of 1 has a bias of 2 E p(1 - p) = 0.44
    bias = Watch(Promise("bias", 0.5, 0.45, 0.95))
    expected = [("promise", None, "higher")]
    assert served(bias.update(Rows.of(times_of(100, 50), outcome=y, probability=p))) == expected
    refused("rows have no base PITs", Watch(Promise("mean_pit", 0.2, 0.3, 0.95, LINK)).update, far)


def test_base_pits_outside_the_certified_envelope_give_a_notice_and_no_alarm():
    envelope = Envelope(low=((0.1, 0.12),), high=((0.1, 0.12),))
    watch = Watch(Promise("mean_pit", 0.2, 0.45, 0.95, LINK, envelope))
    assert watch.update(shifted(0.5, change=60)) == []
    (notice,) = watch.notices
    assert (notice.part, notice.direction) == ("promise", "higher")
    values = watch.to_dict()
    assert values["status"] == "no alarm"
    assert values["notices"][0]["date"] >= "2026-03-02"
    assert {test["part"] for test in values["tests"]} == {"promise", "draws"}
    assert Watch.from_state(json.loads(json.dumps(watch.state()))).to_dict() == values


def test_a_repeated_draw_is_recognized_for_as_many_draws_as_are_promised():
    # with twice as many, the older half has just been forgotten
    n, most = 140_000, 65_536
    r = np.random.default_rng(0).uniform(size=n)
    r[2 * most : 2 * most + 1000] = r[most : most + 1000]
    watch = Watch()
    watch.update(Rows.of(times_of(n // 1000, 1000), np.full(n, np.nan), r=r))
    assert watch.to_dict()["draws"]["n_repeated"] == 1000


def test_a_draw_that_is_repeated_is_counted_once():
    r = np.tile(KeyedDraws(b"a key of twenty bytes")(["a", "b", "c"]), 500)
    watch = Watch()
    assert watch.update(Rows.of(times_of(75, 20), np.full(1500, np.nan), r=r)) == []
    draws = watch.to_dict()["draws"]
    assert (draws["n"], draws["n_repeated"]) == (3, 1497)
    shown = " ".join(watch.summary().split())
    assert "1,497 of 1,500 draws repeated an earlier one and did not count;" in shown
    assert "no sign of repeated" not in shown
    # the same in pieces, through the memory of the state
    again = Watch()
    rows = Rows.of(times_of(75, 20), np.full(1500, np.nan), r=r)
    for first in range(0, 1500, 50):
        again = Watch.from_state(json.loads(json.dumps(again.state())))
        again.update(rows.take(slice(first, first + 50)))
    assert again.to_dict() == watch.to_dict()


def amounts(seed, n_days, shift=0.0):
    """Amounts of which half are 0, forecast rightly but for a shift of those that are not."""
    random = np.random.default_rng(seed)
    n = n_days * 50
    r, is_atom = random.uniform(size=n), random.uniform(size=n) < 0.5
    u = stats.norm.cdf(random.normal(size=n) + shift)
    high = np.where(is_atom, 0.5, 0.5 + LINK.ppf(u, r) / 2)
    return {
        "time": times_of(n_days, 50),
        "pit": (np.where(is_atom, 0.0, high), high),
        "r": r,
        "base": (np.where(is_atom, 0.0, u), np.where(is_atom, 1.0, u)),
        "promised": ~is_atom,
        "link": LINK,
    }


PROMISED_AMOUNTS = Promise("mean_pit", 0.2, 0.25, 0.95, LINK, atom=0.0)


def test_the_promise_of_amounts_is_about_those_beside_the_atom():
    for shift, expected in ((0.0, []), (1.0, ["higher"])):
        columns = amounts(0, 40, shift)
        rows = Rows(known=np.full(columns["r"].size, True), **columns)
        watch = Watch(PROMISED_AMOUNTS)
        assert [alarm.direction for alarm in watch.update(rows)] == expected
        text = " ".join(watch.summary().split())
        assert "every group of at least 20% of the people whose outcome is not 0" in text
        assert (
            "in every group of at least 20% of the people whose outcome is not 0: at most" in text
        )


def test_amounts_without_what_is_beside_the_atom_are_refused():
    # a link randomizes the part beside the atom: base PITs of the whole would raise false alarms
    columns = amounts(0, 10)
    rows = Rows.of(columns["time"], columns["pit"], r=columns["r"], link=LINK)
    message = "about outcomes other than 0, but rows do not have which"
    refused(message, Watch(PROMISED_AMOUNTS).update, rows)


def boundary():
    """Shift of base PITs with a W1 error of served PITs of 0.02, and the promise just kept.

    Under a shift, served PITs are stochastically larger than uniform, so that W1 is the shift of
    their mean, and the worst 20% of people are those with the largest base PITs.
    """
    scores = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)

    def errors(shift):
        return LINK.mean_pit(stats.norm.cdf(scores + shift)) - 0.5

    shift = optimize.brentq(lambda one: errors(one).mean() - 0.02, 0.0, 1.0)
    return shift, Promise("mean_pit", 0.2, float(errors(shift)[16_000:].mean()), 0.95, LINK)


def year_at_the_boundary(seed, shift):
    """A year of 20 people a day in 10 groups, all shifted alike, with fair draws."""
    random = np.random.default_rng(seed)
    n = 365 * 20
    base = stats.norm.cdf(random.normal(size=n) + shift)
    r = random.uniform(size=n)
    return Rows.of(
        times_of(365, 20),
        LINK.ppf(base, r),
        r=r,
        link=LINK,
        groups={"g": random.integers(0, 10, size=n)},
    )


def with_late_outcomes(rows, seed):
    """Lose outcomes or delay them, the largest PITs more often, which no alarm may profit from."""
    random = np.random.default_rng(10_000 + seed)
    is_lost = random.uniform(size=len(rows)) < 0.1 * rows.pit[0]
    found = Rows.of(
        rows.time,
        np.where(is_lost, np.nan, rows.pit[0]),
        r=rows.r,
        link=LINK,
        groups=rows.columns,
        recorded=rows.time + (random.exponential(4, len(rows)) * 86_400e6).astype("m8[us]"),
        matures_after="14d",
    )
    assert not found.known.all()
    return found


@statistical
@pytest.mark.parametrize("are_late", [False, True])
def test_false_alarms_of_a_year_of_all_parts_are_rare(are_late):
    # promise, W1 error of ten groups and draws are all at the boundary of their hypotheses
    shift, promise = boundary()
    n_sets, failures = repeats(400, shorter=50), 0
    for seed in range(n_sets):
        rows = year_at_the_boundary(seed, shift)
        rows = with_late_outcomes(rows, seed) if are_late else rows
        # evidence is read after each row; starts in weeks take a third of the time of days
        watch = Watch(promise, groups=["g"], period="week", matures_after="14d")
        failures += bool(watch.update(rows))
    assert failures <= most_failures(n_sets)


@pytest.mark.parametrize(
    ("period", "dates"),
    [
        ("day", ["2026-01-31", "2026-02-01", "2026-02-02"]),
        ("week", ["2026-01-26", "2026-02-02"]),
        ("month", ["2026-01-01", "2026-02-01"]),
    ],
)
def test_periods_are_calendar_units_of_maturity(period, dates):
    watch = Watch(period=period, matures_after="30d")
    watch.update(Rows.of(["2026-01-01T10:00", "2026-01-03T23:59"], [0.5, 0.5]))
    values = watch.to_dict()
    assert values["dates"] == dates
    assert (values["first"], values["until"]) == (dates[0], dates[-1])
    assert values["n_periods"] == len(dates)
    assert all(len(test["log_evidence"]) == len(dates) for test in values["tests"])


def test_periods_without_rows_count_like_those_with_rows():
    # a gap of 100 days: the weight of each start is added on its day, and evidence is unchanged
    rows = stream(10, 20, 10)
    watch, quiet = Watch(), Watch()
    watch.update(rows)
    quiet.update(rows, until=START + 110 * DAY)
    assert quiet.to_dict()["n_periods"] == 110
    before, after = (one.to_dict()["groups"][0]["log_evidence"] for one in (watch, quiet))
    assert after == pytest.approx(before, abs=1e-12)
    quiet.update(Rows.of([START + 110 * DAY], [0.5]))
    assert quiet.to_dict()["n_periods"] == 111


def test_arrival_of_outcomes_in_another_order_changes_nothing():
    random = np.random.default_rng(12)
    n = 60 * 20
    times = times_of(60, 20)
    times[::2] = times[1::2]  # two rows are served at each time
    delay = random.exponential(10, size=n)
    recorded = times + (delay * 1e6).astype("m8[us]") * 86_400
    pit = random.uniform(size=n) ** 0.5
    columns = {"time": times, "pit": pit, "r": random.uniform(size=n), "recorded": recorded}
    columns["id"] = np.array([f"{i:05d}" for i in range(n)])
    documents = []
    for arrival in (np.arange(n), np.argsort(recorded), random.permutation(n)):
        shuffled = {name: values[arrival] for name, values in columns.items()}
        watch = Watch(matures_after="20d")
        watch.update(Rows.of(**shuffled, matures_after="20d"))
        documents.append(watch.to_dict())
    assert documents[1] == documents[0]
    assert documents[2] == documents[0]
    assert documents[0]["n_late"] == int((delay > 20).sum()) > 0
    assert documents[0]["alarms"]


def test_late_and_missing_outcomes_cannot_raise_an_alarm():
    n = 60 * 20
    pit = np.random.default_rng(13).uniform(size=n) ** 0.3
    lost = np.random.default_rng(14).uniform(size=n) < 0.7
    watch = Watch()
    assert watch.update(Rows.of(times_of(60, 20), np.where(lost, np.nan, pit))) == []
    values = watch.to_dict()
    assert values["n_missing"] == int(lost.sum())
    assert values["groups"][0]["n_missing"] == int(lost.sum())
    assert Watch().update(Rows.of(times_of(60, 20), pit))


def test_rows_out_of_the_order_of_serving_are_refused_by_row():
    days, half = np.array(["2026-01-02", "2026-01-01"], dtype="M8[us]"), np.full(2, 0.5)
    wrong = r"^time\[1\] is 2026-01-01.*order of serving"
    refused(wrong, Rows, days, np.full(2, True), (half, half))
    watch = Watch()
    watch.update(Rows.of(["2026-01-02"], [0.5]))
    before = watch.state()
    message = r"row 0 was served at 2026-01-01.*before 2026-01-02.*reached"
    refused(message, watch.update, Rows.of(["2026-01-01"], [0.5]))
    watch.update(stream(0, 1, 0), until="2026-02-01")
    pattern = r"row 0 .*matures at 2026-01-15.*before moving on"
    refused(pattern, watch.update, Rows.of(["2026-01-15"], [0.5]))
    assert before["n_rows"] == watch.state()["n_rows"]


def test_a_watch_never_goes_back_in_time_nor_far_ahead():
    watch = Watch(matures_after=10)
    watch.update(Rows.of(["1969-12-22", "1970-01-10"], [0.5, 0.5]))
    before = watch.state()
    early = "until is 1970-01-15.*, before 1970-01-20"
    refused(early, watch.update, stream(0, 1, 0), until="1970-01-15")
    for until in ("3000-01-01", "9999-01-01"):
        for one, day in ((watch, "1970-01-11"), (Watch(), "1970-01-01")):
            ahead = "periods after the rows before; check the clock"
            refused(ahead, one.update, Rows.of([day], [0.5]), until=until)
    assert watch.state() == before


def test_rows_of_one_time_need_ids_if_the_log_is_in_another_order():
    times = ["2026-01-02", "2026-01-01", "2026-01-01"]
    refused(r"time\[2\] is 2026-01-01.*give the ids", Rows.of, times, [0.1, 0.2, 0.3])
    rows = Rows.of(times, [0.1, 0.2, 0.3], id=["a", "c", "b"])
    assert rows.pit[0].tolist() == [0.3, 0.2, 0.1]


def test_columns_of_a_log_are_checked_by_row():
    def wrong(message, pit=None, **columns):
        refused(message, Rows.of, ["2026-01-01", "2026-01-02"], pit, **columns)

    half = [0.5, 0.5]
    wrong(r"pit\[1\] must lie between 0 and 1, got 1.5", [0.5, 1.5])
    wrong(r"pit must have lower ends.*0.5 and 0.4 in row 0", ([0.5, 0.6], [0.4, 0.7]))
    wrong(r"r\[1\] must lie strictly between 0 and 1", half, r=[0.5, 1.0])
    wrong(r"outcome\[1\] must be 0 or 1, got 2", outcome=[1, 2], probability=half)
    wrong(r"recorded\[0\] must not be before its forecast", half, recorded=["2025-01-01", None])


def test_rows_of_a_log_carry_base_pits_and_delays():
    link = Entropic(0.12)
    r = np.array([0.3, 0.8])
    base = np.array([0.2, 0.9])
    rows = Rows.of(
        ["2026-01-01", "2026-01-02"],
        link.ppf(base, r),
        r=r,
        link=link,
        recorded=["2026-01-02T12:00", "2026-03-01"],
        matures_after="30d",
        until="2026-01-31T12:00",
        groups=pd.DataFrame({"sex": ["f", "m"]}),
    )
    assert len(rows) == 1  # the second matures on 1 February
    assert rows.base[0] == pytest.approx(base[:1], abs=1e-9)
    assert rows.delay.tolist() == [1.5]
    assert rows.columns["sex"].tolist() == ["f"]
    late = Rows.of(["2026-01-01"], [0.5], recorded=["2026-03-01"], matures_after=30)
    assert late.known.tolist() == [False]
    assert np.isnan(late.pit[0][0])
    # at the very end of the wait an outcome is known
    ends = ["2026-01-31T00:00:00", "2026-01-31T00:00:00.000001"]
    rows = Rows.of(["2026-01-01"] * 2, [0.5, 0.5], recorded=ends, matures_after="30d")
    assert rows.known.tolist() == [True, False]


# --- states of a watch: exact continuation, and refusal of other and damaged states


MINUTE = np.timedelta64(60_000_000, "us")
PROMISE = Promise("mean_pit", 0.2, 0.3, 0.95, LINK)


def random_rows(n, seed):
    """Rows with all parts: missing and late outcomes, repeated draws, several columns, a change."""
    random = np.random.default_rng(seed)
    times = START + np.sort(random.integers(0, 40 * 1440, size=n)) * MINUTE
    r = random.uniform(size=n)
    r[n // 2 :: 7] = r[: len(r[n // 2 :: 7])]
    base = random.uniform(size=n) ** np.where(np.arange(n) < n // 2, 1.0, 0.05)
    delay = random.exponential(1.5, size=n)
    town = random.integers(0, 2 + (np.arange(n) > n // 3) * 3).astype(object)
    town[random.uniform(size=n) < 0.05] = None
    return Rows.of(
        times,
        LINK.ppf(base, r),
        r=r,
        link=LINK,
        recorded=times + (delay * 1440).astype(np.int64) * MINUTE,
        matures_after="8d",
        groups={
            "town": town,
            "age": random.uniform(20, 80, size=n),
            "text": random.choice(np.array(["x", None, "ü", "x = 1", "nan"], dtype=object), n),
            "few": random.choice([1.5, np.nan, 2, 3e20], n),
            "flag": random.choice([True, False], n),
            "date": np.datetime64("2020-01-01") + random.integers(0, 1000, size=n),
        },
    )


def through_json(watch):
    return Watch.from_state(json.loads(json.dumps(watch.state(), allow_nan=False)))


def new_watch(promise=PROMISE, **changes):
    return Watch(promise, **({"groups": ["town", "age"], "matures_after": "8d"} | changes))


@pytest.mark.parametrize("seed", range(4))
def test_a_resumed_watch_equals_an_uninterrupted_one(seed):
    rows = random_rows(600, seed)
    random = np.random.default_rng(100 + seed)
    columns = ["town", "age", "text", "few", "flag", "date"]
    settings = {"groups": columns, "period": ("day", "week", "month")[seed % 3]}
    promise = PROMISE if seed < 3 else Promise("gap", 0.2, 0.3, 0.95)
    whole, parts = new_watch(promise, **settings), new_watch(promise, **settings)
    # groups are learned from the first update, which is the same
    whole.update(rows.take(slice(0, 60)))
    parts.update(rows.take(slice(0, 60)))
    expected = whole.update(rows.take(slice(60, 600)), until="2026-03-01")
    cuts = [60, *np.sort(random.choice(np.arange(61, 600), size=25, replace=False)), 600]
    found = []
    for first, last in pairwise(cuts):
        parts = through_json(parts)
        found += parts.update(rows.take(slice(first, last)))
    parts = through_json(parts)
    found += parts.update(rows.take(slice(0, 0)), until="2026-03-01")
    assert expected
    assert found == expected
    assert parts.to_json() == whole.to_json()
    # the text also distinguishes -0.0 from 0.0
    assert json.dumps(parts.state()) == json.dumps(whole.state())


def test_a_state_continues_under_the_same_settings_only():
    watch = new_watch()
    watch.update(random_rows(100, 1))
    state = watch.state()
    assert Watch.from_state(state, like=new_watch()).state() == state
    other = Promise("mean_pit", 0.1, 0.3, 0.95, LINK)
    for like, message in (
        (new_watch(other), "certificate is Promise.* in the state"),
        (new_watch(None), "certificate is Promise.* in the state"),
        (new_watch(groups=["town"]), "groups is .* in the state, not"),
        (new_watch(matures_after="9d"), "matures_after is 8.0 in the state"),
        (new_watch(tolerance=0.05), "tolerance is 0.02"),
    ):
        refused(message, Watch.from_state, state, like=like)


def test_a_state_is_small_and_no_update_changes_it():
    watch = new_watch()
    watch.update(random_rows(300, 3))
    kept = json.dumps(state := watch.state())
    later = {"town": [1], "age": [3]}
    for one in (watch, Watch.from_state(state)):
        one.update(Rows.of(["2026-06-01"], [0.5], r=[0.5], link=LINK, groups=later))
        assert json.dumps(state) == kept
    # of a year and ten groups: evidence per day and test, draws, bins
    assert len(kept) < 200_000
