"""
The least price of a proof
==========================

A small error for every group has a price in log score, and no forecaster can pay less than the
curve below. The figure shows it with forecasters of outcomes whose true distribution is known.

The theorem and its proof: :doc:`/proofs`.
"""

import matplotlib.pyplot as plt
import numpy as np

from evenhand import Forecast
from evenhand.calibration import pathwise_errors
from evenhand.draws import jittered
from evenhand.figures import plot_price_of_proof

# %%
# Outcomes are normal around a mean that the forecasters know, so their entropy is known as well.
# The first forecaster randomizes the true distribution. The second has a standard deviation that is
# 50% too large. The third moves its mean by the normal score of the draw, which is the Gaussian
# link.

rng = np.random.default_rng(0)
mean = rng.normal(size=20_000)
y = mean + rng.normal(size=mean.size)
entropy = 0.5 * np.log(2 * np.pi * np.e)
r = jittered(mean.size, 32, random_state=1)

points = []
for name, std, link in (
    ("true distribution", 1.0, "laplace"),
    ("too wide", 1.5, "laplace"),
    ("moved mean", 1.0, "gaussian"),
):
    for alpha in (0.08, 0.2):
        forecast = Forecast.from_normal(mean, np.full(mean.size, std)).randomized(alpha, link, r)
        paid = -forecast.logpdf(y).mean(axis=1) - entropy
        error = 2 * paid.std() / np.sqrt(paid.size)
        point = {"error": pathwise_errors(forecast.pit(y)).mean(), "price": paid.mean()}
        point |= {"name": name} if alpha == 0.08 else {}
        points.append(point | {"price_low": paid.mean() - error, "price_high": paid.mean() + error})

fig, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
_ = plot_price_of_proof(ax, points=points).set_title("Price and error of randomized forecasters")

# %%
# The first forecaster lies on the curve. A wrong model lies above it by what it loses in log score,
# which a repair can recover and a draw cannot.
