"""
The paper's network along alpha
===============================

``PAICRegressor`` takes the draw as an input of the network and is trained for individual
calibration. ``path`` trains networks for many values of ``alpha`` at once; a link around one model
gives the same choice without training.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np

from evenhand import MixtureMLPRegressor, PAICRegressor
from evenhand.calibration import pathwise_errors
from evenhand.draws import jittered, nodes
from evenhand.figures import plot_front
from evenhand.search import worst_group_curve

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(1500, 2))
y = np.sin(3 * X[:, 0]) + 0.4 * rng.normal(size=1500)
train, test = slice(0, 1000), slice(1000, None)
alphas = (0.03, 0.1, 0.3, 1.0)
models = PAICRegressor.path(
    X[train], y[train], alphas, hidden=(32, 32, 32), max_steps=400, random_state=0
)

# %% Medians along the first feature under nine draws, and the distribution of people's errors. At
# ``alpha = 1`` the network ignores the draw; at small values the draw decides nearly everything.

fig, axes = plt.subplots(2, 4, figsize=(11, 5.2), layout="constrained", sharey="row")
grid = np.column_stack([np.linspace(-1, 1, 80), np.zeros(80)])
for (top, bottom), alpha, model in zip(axes.T, alphas, models, strict=True):
    median = model.forecast(grid, nodes(9)).ppf(0.5)
    top.plot(X[test][::3, 0], y[test][::3], ".", color="#b0b0b0", markersize=3)
    for j in range(9):
        top.plot(grid[:, 0], median[:, j], color=plt.colormaps["viridis"](j / 8), linewidth=1.3)
    top.set(title=f"alpha = {alpha:g}", xlabel="first feature")
    forecast = model.forecast(X[test], jittered(500, 64, random_state=1))
    errors = pathwise_errors(forecast.pit(y[test]))
    bottom.hist(errors, bins=np.linspace(0, 0.5, 26), color="#0072b2", alpha=0.8)
    score = -forecast.logpdf(y[test]).mean()
    bottom.set(title=f"mean {errors.mean():.2f}, log score {score:.2f}", xlabel="error of a person")
    bottom.title.set_fontsize("medium")
axes[0, 0].set_ylabel("median under nine draws")
axes[1, 0].set_ylabel("people")
for ax in axes.flat:
    ax.spines[["top", "right"]].set_visible(False)

# %% What matters is the pair: sharpness, and the error of the worst group. The same four values of
# ``alpha``, for the networks and for a link around one model without a draw, which is trained once.
# Lower left is better.

base = MixtureMLPRegressor(n_members=2, hidden=(32, 32), max_steps=400, random_state=0).fit(
    X[train], y[train]
)
stated, draws = base.forecast(X[test]), jittered(500, 32, random_state=2)
records = []
for alpha, model in zip(alphas, models, strict=True):
    for label, forecast in (
        ("the paper's network", model.forecast(X[test], draws)),
        ("link around one model", stated.randomized(alpha, r=draws)),
    ):
        error = worst_group_curve(forecast.pit(y[test]), 0.2, random_state=0).errors[0]
        score = -forecast.logpdf(y[test]).mean()
        records.append({"label": label, "alpha": alpha, "error": error, "score": score})

fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
_ = plot_front(records, ax=ax)
