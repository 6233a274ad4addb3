"""
Train a randomized network
==========================

``PAICRegressor`` is the network of Zhao, Ma and Ermon (2020): the draw is one of its inputs, and it
is trained for individual calibration. ``path`` trains networks for several values of ``alpha``
together. A link around one deterministic model gives the same choice of ``alpha`` without training.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np

from evenhand import MixtureMLPRegressor, PAICRegressor
from evenhand.calibration import pathwise_errors
from evenhand.draws import jittered, nodes
from evenhand.figures import as_points
from evenhand.search import worst_group_curve

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(1500, 2))
y = np.sin(3 * X[:, 0]) + 0.4 * rng.normal(size=1500)
train, test = slice(0, 1000), slice(1000, None)
alphas = (0.03, 0.1, 0.3, 1.0)
models = PAICRegressor.path(
    X[train], y[train], alphas, hidden=(32, 32, 32), max_steps=400, random_state=0
)

# %%
# Left, predicted medians along the first feature for nine draws, from the lowest (dark) to the
# highest (light). Right, the errors of people over their draws. At ``alpha = 1`` the network
# ignores the draw; at small values the forecast depends on little else.

fig, axes = plt.subplots(4, 2, figsize=(7, 9), layout="constrained", sharex="col", sharey="col")
grid = np.column_stack([np.linspace(-1, 1, 80), np.zeros(80)])
for (left, right), alpha, model in zip(axes, alphas, models, strict=True):
    median = model.forecast(grid, nodes(9)).ppf(0.5)
    left.plot(X[test][::3, 0], y[test][::3], ".", color="#b0b0b0", markersize=3)
    for j in range(9):
        left.plot(grid[:, 0], median[:, j], color=plt.colormaps["viridis"](j / 8), linewidth=1.3)
    left.set(title=f"alpha = {alpha:g}", ylabel="outcome")
    forecast = model.forecast(X[test], jittered(500, 64, random_state=1))
    errors = pathwise_errors(forecast.pit(y[test]))
    right.hist(errors, bins=np.linspace(0, 0.5, 26), color="#0072b2", alpha=0.8)
    score = -forecast.logpdf(y[test]).mean()
    right.set_title(
        f"mean {100 * errors.mean():.0f} points, log score {score:.2f} nats", fontsize="medium"
    )
    right.set(ylabel="people")
    right.xaxis.set_major_formatter(as_points)
axes[-1, 0].set_xlabel("first feature")
axes[-1, 1].set_xlabel("error of a person (percentage points)")
for ax in axes.flat:
    ax.spines[["top", "right"]].set_visible(False)

# %%
# Sharpness and the error of the worst group, for the same four values of ``alpha``: the networks,
# and a link around one deterministic model that is trained once. Lower left is better.

base = MixtureMLPRegressor(n_members=2, hidden=(32, 32), max_steps=400, random_state=0).fit(
    X[train], y[train]
)
deterministic, draws = base.forecast(X[test]), jittered(500, 32, random_state=2)
networks = [model.forecast(X[test], draws) for model in models]
links = [deterministic.randomized(alpha, r=draws) for alpha in alphas]

fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
for label, forecasts, line in (
    ("the paper's network", networks, "o-"),
    ("link around one model", links, "s--"),
):
    pits = [forecast.pit(y[test]) for forecast in forecasts]
    error = [worst_group_curve(pit, 0.2, random_state=0).errors[0] for pit in pits]
    score = [-forecast.logpdf(y[test]).mean() for forecast in forecasts]
    ax.plot(error, score, line, label=label)
    for place in (0, 1, -1):
        ax.annotate(
            f"α = {alphas[place]:g}",
            (error[place], score[place]),
            (7, 4),
            textcoords="offset points",
            fontsize="small",
        )
ax.set(
    title="Sharpness and error of the worst group",
    xlabel="Calibration error of the worst group (percentage points)",
    ylabel="Score (smaller is sharper)",
)
ax.xaxis.set_major_formatter(as_points)
ax.spines[["top", "right"]].set_visible(False)
_ = ax.legend()
