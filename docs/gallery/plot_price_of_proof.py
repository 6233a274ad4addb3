"""
What proof must cost
====================

No forecaster, whatever it is made of, lies below a certain curve of mean error and log score given
up. The theorem and its proof are in :doc:`/price-of-proof`; here are forecasters of a known truth
beside the curve.
"""

import matplotlib.pyplot as plt
import numpy as np

from evenhand import Forecast
from evenhand.calibration import pathwise_errors
from evenhand.draws import jittered
from evenhand.figures import plot_price_of_proof

# %% Outcomes are normal around a mean that the forecasters know, so that the entropy is known as
# well. One forecaster is the truth and one has a standard deviation that is too large by a half.
# The third uses the draw in the simplest way: it moves its mean by the draw's normal score, which
# is the Gaussian link over the truth.

rng = np.random.default_rng(0)
mean = rng.normal(size=20_000)
y = mean + rng.normal(size=mean.size)
entropy = 0.5 * np.log(2 * np.pi * np.e)
r = jittered(mean.size, 32, random_state=1)

points = []
for name, std, link in (
    ("the truth", 1.0, "laplace"),
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

fig, ax = plt.subplots(figsize=(8, 5), layout="constrained")
_ = plot_price_of_proof(ax, points=points)

# %% The truth lies on the curve. What a wrong model loses is its height above the curve, and no use
# of the draw brings it back; mending the model does.
