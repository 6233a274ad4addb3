"""
A blind spot, and what a draw does about it
===========================================

A model that is calibrated on average can be wrong for a group that nobody has named. A draw for
each person spreads the errors over everybody: no group can be off by much, because nobody knows
beforehand for whom the draw will be unfavourable.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import BayesianRidge

from evenhand import RandomizedRegressor
from evenhand.certificates import certify_pit, wider_interval
from evenhand.draws import jittered

# %% A straight line is fitted to data that have a bump. The line knows its average error, so its
# 80% intervals cover 80% of outcomes; at the bump they do not.

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 1, size=6000))
y = x + 0.55 * np.exp(-(((x - 0.7) / 0.06) ** 2)) + 0.3 * rng.normal(size=x.size)
X, is_held = x[:, None], np.arange(x.size) % 2 == 1

model = RandomizedRegressor(BayesianRidge(), alpha=0.05, random_state=0).fit(
    X[~is_held], y[~is_held]
)
X, x, y = X[is_held], x[is_held], y[is_held]
plain = model.base_forecast(X)
served = model.forecast(X, random_state=1)  # one fresh draw for each person

# %% What can be proven for *every* tenth of the people, wherever they are, with 95% confidence: the
# certificate looks at many draws of each person, and bounds the coverage from both sides. A plain
# interval that is wide enough proves the same lower bound without a draw.

draws = jittered(x.size, 64, 2)
proof = certify_pit(plain.randomized(alpha=0.05, r=draws).pit(y), draws, random_state=0)
least, most = proof.coverage(0.8, mass=0.1)
print(
    f"80% intervals cover between {np.floor(100 * least):.0f}% and {np.ceil(100 * most):.0f}% of"
    " outcomes in every group of a tenth"
)
wider = wider_interval(plain.pit(y), floor=least, mass=0.1)
print(
    f"plain {wider.level:.0%} intervals cover at least {np.floor(100 * wider.floor):.0f}% there,"
    f" and {wider.covered:.0%} overall"
)

# %%
# The intervals of both, and the share of outcomes that they cover along ``x``, in windows of 150
# people. By chance alone such a share deviates from the coverage there by about 3 points; the
# proven limits are limits of the coverage.


def share_covered(forecast):
    """Share of outcomes within the 80% interval, in a window of 150 people."""
    low, high = forecast.interval(0.8)
    return np.convolve((low <= y) & (y <= high), np.ones(150) / 150, mode="valid")


fig, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 4.2), layout="constrained", dpi=150)
some = slice(0, None, 6)
for ax, forecast, title in (
    (left, plain, "An ordinary model"),
    (middle, served, "The same model with a draw"),
):
    low, high = (end[some] for end in forecast.interval(0.8))
    missed = (y[some] < low) | (y[some] > high)
    ax.vlines(x[some], low, high, color="#0072b2", alpha=0.18, linewidth=1)
    ax.plot(
        x[some][~missed],
        y[some][~missed],
        ".",
        color="#757575",
        markersize=3,
        label="within the 80% interval",
    )
    ax.plot(x[some][missed], y[some][missed], ".", color="#d55e00", markersize=4, label="missed")
    ax.set(title=title, xlabel="x", ylabel="outcome", ylim=(-1.6, 3.2))
left.legend(frameon=False, fontsize="medium", loc="upper left", markerscale=2.5, handletextpad=0.1)
centre = np.convolve(x, np.ones(150) / 150, mode="valid")
right.plot(centre, share_covered(plain), color="#d55e00", linewidth=2, label="ordinary")
right.plot(centre, share_covered(served), color="#0072b2", linewidth=2, label="with a draw")
right.axhline(0.8, color="#757575", linestyle="--", linewidth=1, label="nominal")
right.axhspan(least, most, color="#0072b2", alpha=0.15, linewidth=0, label="proven, every tenth")
right.set(title="Coverage of 80% intervals", xlabel="x", ylim=(0, 1.02))
right.yaxis.set_major_formatter("{x:.0%}")
right.legend(frameon=False, fontsize="medium", loc="lower left")
for ax in (left, middle, right):
    ax.spines[["top", "right"]].set_visible(False)

# %% The price is in the middle: with a draw the intervals are wider, and two people who are alike
# get different ones. The plain wider interval is narrower than that: if a lower bound is all that
# you need, use it. It has no upper bound, and nothing is proven about any other level.


def width(forecast, level):
    return np.mean(np.diff(forecast.interval(level), axis=0))


print(f"80% intervals with a draw are {width(served, 0.8) / width(plain, 0.8):.1f} times as wide")
times = width(plain, wider.level) / width(plain, 0.8)
print(f"plain {wider.level:.0%} intervals are {times:.1f} times as wide")
