"""
Forecasts that come as quantiles or samples
===========================================

Quantiles from a spreadsheet, samples from a Bayesian model, means and standard deviations from
another language: all become a :class:`~evenhand.Forecast`, and everything else works on it.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

from evenhand import Forecast
from evenhand.calibration import calibration_error

rng = np.random.default_rng(0)
n = 1000
location = rng.normal(size=n)
y = location + rng.gumbel(scale=0.7, size=n)

# %% Three descriptions of the outcomes: the truth by nine quantiles, by two hundred samples, and a
# normal distribution with the right mean and standard deviation but the wrong shape.

law = stats.gumbel_r(scale=0.7)
levels = np.array([0.02, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.98])
forecasts = {
    "9 quantiles": Forecast.from_quantiles(levels, location[:, None] + law.ppf(levels)),
    "200 samples": Forecast.from_samples(location[:, None] + rng.gumbel(scale=0.7, size=(n, 200))),
    "mean and spread": Forecast.from_normal(location + law.mean(), np.full(n, law.std())),
}

# %% The densities of the first person, and the PITs of all. The error is the distance of the PITs
# from the uniform law.

fig, top = plt.subplots(1, 3, figsize=(9.6, 3.2), layout="constrained", sharey=True)
grid = np.linspace(-2, 5, 300)
for ax, (name, forecast) in zip(top, forecasts.items(), strict=True):
    first = forecast[0]
    density = [float(np.exp(first.logpdf([location[0] + value])[0])) for value in grid]
    ax.fill_between(grid, density, color="#0072b2", alpha=0.25, linewidth=0)
    ax.plot(grid, density, color="#0072b2")
    ax.plot(grid, law.pdf(grid), "--", color="#757575", label="the truth")
    ax.set(title=name, xlabel="outcome less location")
top[0].legend(frameon=False)

bars, bottom = plt.subplots(figsize=(6.4, 4), layout="constrained")
colours = ("#0072b2", "#56b4e9", "#d55e00")
for (name, forecast), colour in zip(forecasts.items(), colours, strict=True):
    pit = forecast.pit(y)
    label = f"{name}: error {calibration_error(pit):.3f}"
    bottom.hist(
        pit,
        bins=20,
        range=(0, 1),
        density=True,
        histtype="step",
        linewidth=2,
        color=colour,
        label=label,
    )
bottom.axhline(1, color="#757575", linestyle="--")
bottom.set(xlabel="PIT", ylabel="density", ylim=(0, 2.4))
bottom.legend(frameon=False)
for ax in (*top, bottom):
    ax.spines[["top", "right"]].set_visible(False)

# %%
# Any of them can be randomized; the draw is the person's own.

served = forecasts["200 samples"].randomized(alpha=0.1, r=rng.uniform(size=n))
low, high = served.interval(0.8)
print(f"80% intervals hold {np.mean((low <= y) & (y <= high)):.0%} of outcomes")
