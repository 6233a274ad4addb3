"""
Forecasts given as quantiles, samples or means
==============================================

Quantiles from a spreadsheet, samples from a Bayesian model, means and standard deviations from
another program: each becomes a :class:`~evenhand.Forecast`, which everything else takes.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

from evenhand import Forecast
from evenhand.calibration import calibration_error, pit_histogram
from evenhand.figures import as_percent

rng = np.random.default_rng(0)
n = 1000
location = rng.normal(size=n)
y = location + rng.gumbel(scale=0.7, size=n)

# %%
# Three forecasts of the same outcomes: nine quantiles of the true distribution, 200 samples from
# it, and a normal distribution with the true mean and standard deviation but the wrong shape.

truth = stats.gumbel_r(scale=0.7)
levels = np.array([0.02, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.98])
forecasts = {
    "9 quantiles": Forecast.from_quantiles(levels, location[:, None] + truth.ppf(levels)),
    "200 samples": Forecast.from_samples(location[:, None] + rng.gumbel(scale=0.7, size=(n, 200))),
    "mean and std": Forecast.from_normal(location + truth.mean(), np.full(n, truth.std())),
}

# %%
# The densities of the first person, and the PITs of all people. The calibration error is the
# distance of the PITs from the uniform distribution, in percentage points.

fig, top = plt.subplots(1, 3, figsize=(7, 2.8), layout="constrained", sharey=True)
grid = np.linspace(-2, 5, 300)
for ax, (name, forecast) in zip(top, forecasts.items(), strict=True):
    first = forecast[0]
    density = [float(np.exp(first.logpdf([location[0] + value])[0])) for value in grid]
    ax.fill_between(grid, density, color="#0072b2", alpha=0.25, linewidth=0)
    ax.plot(grid, density, color="#0072b2")
    ax.plot(grid, truth.pdf(grid), "--", color="#757575", label="true density")
    ax.set(title=name, xlabel="outcome minus location")
top[0].legend(frameon=False, loc="upper right", fontsize="small")
top[0].set(ylabel="density", ylim=(0, 0.85))

bars, bottom = plt.subplots(figsize=(7, 4), layout="constrained")
colours = ("#0072b2", "#56b4e9", "#d55e00")
for (name, forecast), colour in zip(forecasts.items(), colours, strict=True):
    pit = forecast.pit(y)
    label = f"{name}: off by {100 * calibration_error(pit):.1f} points"
    bins = pit_histogram(pit)
    bottom.stairs(
        bins["share"], [0, *bins["end"]], baseline=None, color=colour, linewidth=2, label=label
    )
bottom.axhline(0.05, color="#757575", linestyle="--")
bottom.set(
    title="PITs of all people",
    xlabel="PIT",
    ylabel="share of outcomes",
    xlim=(0, 1),
    ylim=(0, 0.12),
)
for axis in (bottom.xaxis, bottom.yaxis):
    axis.set_major_formatter(as_percent)
bottom.legend(frameon=False)
for ax in (*top, bottom):
    ax.spines[["top", "right"]].set_visible(False)

# %%
# Each of them can be audited, repaired by group and, if a proof is needed, randomized with a draw
# for each person.

served = forecasts["200 samples"].randomized(alpha=0.1, r=rng.uniform(size=n))
low, high = served.interval(0.8)
print(f"randomized 80% intervals cover {np.mean((low <= y) & (y <= high)):.0%} of outcomes")
