"""
Audit, repair, prove: one model in three steps
==============================================

A model predicts the dose of a blood thinner that each patient needs, with 80% prediction
intervals. The audit finds for whom they are wrong, the repair recalibrates them there, and a
certificate bounds their coverage in every group of at least 20% of patients, named or not.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import binomtest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator

from evenhand import RecalibratedRegressor, audit, randomize
from evenhand.datasets import make_doses

# %%
# The table is generated, so that the truth is known. The model was trained on a trial that enrolled
# no women over 60. In the clinics where it is used, one patient in five also has a gene variant
# that no column records: no model can learn it.

trial = make_doses(4000, cohort="trial", random_state=0)
clinics = make_doses(10_000, random_state=1)
X, y = clinics.X, clinics.y
find, repair, prove, check = (
    slice(start, stop) for start, stop in ((0, 2000), (2000, 4000), (4000, 6000), (6000, None))
)
trees = HistGradientBoostingRegressor(random_state=0)
model = RecalibratedRegressor(trees, random_state=0).fit(trial.X, trial.y)

# %%
# *Audit.* The worst group that the audit finds is the one that the trial did not enroll.

found = audit(model, X[find], y[find], groups=["sex", "age"], random_state=0)
worst = found.scan.iloc[0]
print(
    f"worst group: {worst['group']}, probabilities off by {100 * worst['error']:.0f} points, by at"
    f" least {np.floor(100 * worst['error_low']):.0f} with 95% confidence"
)

# %%
# *Repair.* All groups that the audit found are recalibrated on other rows. There is no draw.

repaired = found.repair(model, X[repair], y[repair], random_state=0)

# %%
# *Prove.* With one forecast per person, nothing can be proven about 80% intervals in groups that
# nobody recorded. A wider interval has a floor: it covers at least so many outcomes in every group
# of 20%. A draw for each person gives a floor and a ceiling.

chosen = randomize(
    FrozenEstimator(repaired),
    X[prove],
    y[prove],
    max_group_error=0.25,
    group_mass=0.2,
    random_state=0,
)
low, high = chosen.certificate.coverage(0.8, mass=0.2)
wider, _ = chosen.plain
print(
    f"wider intervals cover at least {np.floor(100 * wider.floor):.0f}%, randomized intervals"
    f" between {np.floor(100 * low):.0f}% and {np.ceil(100 * high):.0f}% of outcomes in every group"
)

# %%
# The four forecasts on fresh rows. Who has the variant is known here only because the table is
# generated.

X, y, has_variant = X[check], y[check].to_numpy(), clinics.truth["variant"][check].to_numpy()
is_older_woman = ((X["sex"] == "woman") & (X["age"] > 60)).to_numpy()
groups = {
    "Everyone": np.ones(len(y), dtype=bool),
    "Women over 60": is_older_woman,
    "Gene variant that\nnobody recorded": has_variant,
}
steps = (
    ("1. Audit", "wrong for women\nover 60", model.forecast(X), 0.8, None),
    ("2. Repair", "right for women\nover 60", repaired.forecast(X), 0.8, None),
    (
        "3a. Prove a floor",
        f"wider intervals ({wider.level:.0%}),\nno draw",
        repaired.forecast(X),
        wider.level,
        (wider.floor, 1),
    ),
    (
        "3b. Prove a range",
        "80% intervals, a draw\nfor each patient",
        chosen.model.forecast(X, random_state=1),
        0.8,
        (low, high),
    ),
)
predicted = model.forecast(X).mean()
width = np.diff(model.forecast(X).interval(0.8), axis=0).mean()
for title, _, forecast, level, _ in steps:
    bounds = forecast.interval(level)
    is_covered = (bounds[0] <= y) & (y <= bounds[1])
    print(
        f"{title}: {is_covered[is_older_woman].mean():.0%} of women over 60,"
        f" {is_covered[has_variant].mean():.0%} of patients with the variant,"
        f" intervals {np.mean(bounds[1] - bounds[0]) / width - 1:.0%} wider"
    )

# %%
# The picture: above, coverage of each group with 95% confidence intervals, and what is proven for
# every group of 20%; below, the intervals of the first twenty women over 60 and of the first twenty
# patients with the variant, relative to the forecast of the model. Orange marks groups whose
# coverage is significantly more than 10 points too low, and outcomes that are missed.

people = np.concatenate(
    [
        np.flatnonzero(is_older_woman & ~has_variant)[:20],
        np.flatnonzero(has_variant & ~is_older_woman)[:20],
    ]
)
place = np.arange(40) + 3 * (np.arange(40) >= 20)

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#666666"


def draw_coverage(ax, interval, level, proven):
    """Draw the coverage of each group, and what is proven for every group."""
    is_covered = (interval[0] <= y) & (y <= interval[1])
    ax.axvline(100 * level, color=GREY, linestyle="--", linewidth=1, zorder=0)
    for row, members in enumerate(groups.values()):
        hits, n = int(is_covered[members].sum()), int(members.sum())
        ends = 100 * np.array(binomtest(hits, n).proportion_ci(0.95))
        # significantly more than 10 points below the level
        is_off = ends[1] < 100 * level - 10
        color = ORANGE if is_off else BLUE
        ax.hlines(row, *ends, color=color, linewidth=3)
        ax.plot(100 * hits / n, row, "X" if is_off else "o", color=color, markersize=6)
        label(ax, 100 * hits / n, row, f"{hits / n:.0%}", color)
    if proven is None:
        ax.barh(3, 100, height=0.36, facecolor="none", edgecolor=GREY, linestyle=":")
        label(ax, 50, 3, "nothing proven", GREY)
    else:
        start, end = np.floor(100 * proven[0]), np.ceil(100 * proven[1])
        ax.axvspan(start, end, color=BLUE, alpha=0.12, linewidth=0)
        ax.barh(3, end - start, left=start, height=0.36, color=BLUE)
        text = f"{start:.0f}% to {end:.0f}%" if end < 100 else f"at least {start:.0f}%"
        label(ax, min((start + end) / 2, 70), 3, text, BLUE)


def label(ax, x, row, text, color):
    """Write a text above a row."""
    above = {"xytext": (0, 7 if row < 3 else 12), "textcoords": "offset points", "ha": "center"}
    ax.annotate(text, (x, row), color=color, weight="bold", **above)


def draw_people(ax, interval):
    """Draw the intervals and outcomes of 40 people, relative to the model's forecasts."""
    lower, upper = (end[people] - predicted[people] for end in interval)
    outcome = (y - predicted)[people]
    is_missed = (outcome < lower) | (outcome > upper)
    ax.vlines(place, lower, upper, color="#9cc9e3", linewidth=1.7)
    ax.plot(place[~is_missed], outcome[~is_missed], "o", color="black", markersize=2.6)
    ax.plot(place[is_missed], outcome[is_missed], "X", color=ORANGE, markersize=5.5)
    for some in (slice(0, 20), slice(20, 40)):
        text = f"{is_missed[some].sum()} missed"
        ax.text(place[some].mean(), -33, text, ha="center", color=ORANGE)
    times = np.mean(interval[1] - interval[0]) / width
    ax.set_title(
        "intervals" if times == 1 else f"{times - 1:.0%} wider than in 1", size=10, color=GREY
    )


fig, axes = plt.subplots(
    2,
    4,
    figsize=(8.8, 5.2),
    layout="constrained",
    sharey="row",
    height_ratios=(3, 2),
)
fig.suptitle(
    "Share of patients whose dose lies in the prediction interval (dashed: as intended)", size=13
)
for top, bottom, (title, subtitle, forecast, level, proven) in zip(*axes, steps, strict=True):
    interval = forecast.interval(level)
    draw_coverage(top, interval, level, proven)
    draw_people(bottom, interval)
    top.set_title(subtitle, size=10.5)
    top.text(0.5, 1.2, title, transform=top.transAxes, ha="center", size=12, weight="bold")
    top.set(xlim=(0, 103), ylim=(3.35, -0.6), xticks=(0, 40, 100 * level))
    top.set_yticks(range(4), [*groups, "Every group of 20%\nof people, named or not"])
    for text in top.get_yticklabels()[3:]:
        text.set_weight("bold")
    top.xaxis.set_major_formatter("{x:.0f}%")
    bottom.set(xticks=(9.5, 32.5), xticklabels=("women\nover 60", "gene\nvariant"))
    bottom.set(ylim=(-36, 26))
    bottom.tick_params(axis="x", length=0)
    for ax in (top, bottom):
        ax.spines[["top", "right"]].set_visible(False)
axes[1, 0].set_ylabel("40 patients: dose\nminus forecast (mg)")
