"""
Watch a promise for a year
==========================

Forecasts are promised to be off by at most 35 points in every group of 20% of people. For 200 days
the promise is kept, although barely. Then outcomes change for people whom no column describes. A
test that is read every day raises alarms long before anything is wrong. A watch raises one alarm,
soon after the change.
"""

# sphinx_gallery_thumbnail_number = 1

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from evenhand import Watch
from evenhand.certificates import Promise
from evenhand.draws import fresh
from evenhand.links import Entropic
from evenhand.monitoring import Rows

# %%
# Fifty people a day are served. For a hidden fifth of them outcomes are higher than forecast by
# 0.83 predicted standard deviations, so that the worst group of 20% is off by exactly the promised
# 35 points. From day 200 on they are higher by 1.4.

DAYS, PER_DAY, CHANGE, WINDOW, YEARS = 365, 50, 200, 30, 8
day = np.repeat(np.arange(DAYS), PER_DAY)
first_day = np.datetime64("2026-01-01")
link = Entropic(0.2)
promise = Promise("mean_pit", mass=0.2, target=0.35, confidence=0.95, link=link)


def one_year(random_state):
    """Return the PITs of the model inside the link, and the draws, of a year."""
    rng = np.random.default_rng(random_state)
    is_hidden = rng.uniform(size=day.size) < 0.2
    shift = is_hidden * np.where(day < CHANGE, 0.83, 1.4)
    return norm.cdf(rng.normal(size=day.size) + shift), fresh(day.size, rng)


# %%
# The watch reads the served PITs and the draws. (In service ``evenhand watch`` reads them from a
# decision log, when each forecast has matured.)


def watched(pit, draws):
    """Return a watch of a year."""
    watch = Watch(promise)
    watch.update(Rows.of(first_day + day, link.ppf(pit, draws), r=draws, link=link))
    return watch


def day_of(alarm):
    """Return the number of the day of an alarm."""
    return int((np.datetime64(alarm.date) - first_day).astype(int))


# %%
# The daily test estimates the mean of the worst fifth over the last 30 days, and whether it is
# significantly larger than promised, at 5%. Whoever reads it every day reads 336 tests a year.


def daily_test(pit):
    """Return the estimate, and whether it is significant, at the end of each day."""
    found = []
    for end in range(WINDOW, DAYS + 1):
        recent = link.mean_pit(pit[(day >= end - WINDOW) & (day < end)]) - 0.5
        q = np.quantile(recent, 1 - promise.mass)
        excess = np.maximum(recent - q, 0) / promise.mass
        found.append((q + excess.mean(), excess.std() / np.sqrt(recent.size)))
    estimate, error = np.transpose(found)
    return estimate, estimate > promise.target + norm.ppf(0.95) * error


days = np.arange(WINDOW - 1, DAYS)
years = [one_year(seed) for seed in range(YEARS)]
watches = [watched(*year) for year in years]
tests = [daily_test(pit) for pit, _ in years]
is_false = np.array([is_alarm[days < CHANGE].any() for _, is_alarm in tests])
alarms = [[day_of(alarm) for alarm in watch.alarms] for watch in watches]
print(f"daily test: false alarms in {is_false.sum()} of {YEARS} years")
print(f"watch: false alarms in {sum(min(found) < CHANGE for found in alarms)} of {YEARS} years")
print(
    f"watch: alarm {np.median([found[0] - CHANGE for found in alarms]):.0f} days after the change"
)

# %%
# One of these years. Above, the estimate of the last 30 days; orange marks the days on which it is
# significantly larger than promised. Below, the evidence of the watch, which grows a thousandfold
# within two weeks of the change.

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#666666"
SHOWN = 2


def panel(ax, title):
    """Prepare a panel in which the days with a broken promise are shaded."""
    ax.axvspan(CHANGE, DAYS, color=ORANGE, alpha=0.08, linewidth=0)
    ax.set_title(title, size=12)
    ax.set(xlim=(0, DAYS))
    ax.spines[["top", "right"]].set_visible(False)


def limit(ax, x, y, text):
    """Draw a limit with its name."""
    ax.axhline(y, color=GREY, linewidth=1, linestyle="--")
    ax.annotate(text, (x, y), (0, 4), textcoords="offset points", color=GREY, size=10)


def name_parts(ax):
    """Name the days before and after the change."""
    options = {"transform": ax.get_xaxis_transform(), "va": "top", "size": 10}
    ax.text(CHANGE - 4, 0.97, "promise kept", ha="right", color=GREY, **options)
    ax.text(CHANGE + 4, 0.97, "broken", color=ORANGE, **options)


tested = watches[SHOWN].to_dict()["tests"]
higher = next(one for one in tested if one["part"] == "promise" and one["direction"] == "higher")
evidence, needed = np.exp(higher["log_evidence"]), np.exp(higher["threshold"])
estimate, is_alarm = tests[SHOWN]

fig, (top, bottom) = plt.subplots(2, 1, figsize=(7.2, 5.6), sharex=True, layout="constrained")
n_days = int(is_alarm[days < CHANGE].sum())
panel(top, f"Test of the last 30 days: significant on {n_days} days before the change")
top.plot(days, 100 * estimate, color=BLUE, linewidth=1.5)
top.plot(days[is_alarm], 100 * estimate[is_alarm], "o", color=ORANGE, markersize=3)
limit(top, 245, 100 * promise.target, "promised: at most 35 points")
top.set_ylabel("error of the worst fifth\n(points)")

panel(bottom, f"Watch: one alarm, on day {alarms[SHOWN][0]}")
bottom.semilogy(evidence, color=BLUE, linewidth=1.8)
bottom.plot(alarms[SHOWN][0], needed, "o", color=ORANGE, markersize=8)
limit(bottom, 2, needed, "alarm")
name_parts(bottom)
bottom.set(ylabel="evidence", xlabel="day", ylim=(1e-3, 1e9))

# %%
# All years, one in each row. Orange ticks are days on which the daily test is significant, blue
# marks the alarm of the watch.

fig, ax = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
panel(ax, f"{YEARS} years: days with an alarm of the daily test, and of the watch")
ax.eventplot(
    [days[is_alarm] for _, is_alarm in tests], colors=ORANGE, linelengths=0.6, linewidths=1.8
)
for row, found in enumerate(alarms):
    ax.plot(found, [row] * len(found), "o", color=BLUE, markersize=8, markeredgecolor="white")
ax.set(xlabel="day", ylabel="year", yticks=range(YEARS), yticklabels=range(1, YEARS + 1))
ax.set_ylim(YEARS - 0.4, -1.3)
name_parts(ax)
plt.show()
