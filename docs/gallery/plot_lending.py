"""
A bank and its applicants
=========================

A bank grants a loan where the predicted probability that the person cannot repay it is at most 25%.
With a draw, each person has a probability of getting the loan, and people who know the bank apply
where it is worth their while.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import BayesianRidge

from evenhand import Forecast, RandomizedRegressor
from evenhand.figures import as_percent
from reproduction.lending import InformedApplicants, LendingGame, RandomApplicants, play_rounds
from evenhand.links import Entropic

game = LendingGame(threshold=0.0)

# %%
# The probability of a loan against the predicted risk. Without a draw it jumps at 25%; it is
# flatter with more randomization, which means a smaller ``alpha``.

mean = np.linspace(-2.5, 3.5, 400)
predicted = Forecast.from_normal(mean, np.ones(mean.size))
risk = predicted.cdf(0.0)

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for alpha, colour in ((1.0, "#757575"), (0.5, "#56b4e9"), (0.2, "#0072b2"), (0.05, "#002a50")):
    probability = game.chance_of_link(predicted.distribution, Entropic(alpha))
    ax.plot(risk, probability, color=colour, linewidth=2, label=f"alpha = {alpha:g}")
for level, name in (
    (5 / 7, "qualified people apply above this"),
    (1 / 3, "unqualified people apply above this"),
):
    ax.axhline(level, color="#d55e00", linestyle=":", linewidth=1.2)
    ax.text(0.98, level + 0.015, name, ha="right", color="#a04000", fontsize="small")
ax.set(
    title="Who gets a loan",
    xlabel="predicted probability that the person cannot repay",
    ylabel="probability of a loan",
    xlim=(0, 1),
    ylim=(-0.02, 1.02),
)
for axis in (ax.xaxis, ax.yaxis):
    axis.set_major_formatter(as_percent)
ax.spines[["top", "right"]].set_visible(False)
_ = ax.legend(frameon=False, loc=(0.7, 0.4))

# %%
# The gain of the bank for each person, if everybody applies and if people know the bank. Its
# forecasts are right here, so randomization costs it something. It pays only for a bank whose
# threshold is wrong.

rng = np.random.default_rng(0)
X = rng.normal(size=(12_000, 1))
y = X[:, 0] + rng.normal(size=12_000)
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
alphas = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
for label, applicants, colour in (
    ("everybody applies", RandomApplicants(1.0), "#757575"),
    ("people who know the bank", InformedApplicants(), "#d55e00"),
):
    earned = []
    for alpha in alphas:
        bank = RandomizedRegressor(BayesianRidge(), alpha=alpha, random_state=0).fit(
            X[:2000], y[:2000]
        )
        (played,) = play_rounds(game, bank, [(X[2000:], y[2000:])], applicants, random_state=1)
        earned.append(played.bank_utility)
    ax.plot(alphas, earned, "o-", color=colour, label=label)
ax.set(title="What the bank gains", xlabel="alpha", ylabel="gain per person", ylim=(None, 0.26))
ax.axhline(0, color="black", linewidth=0.8)
ax.spines[["top", "right"]].set_visible(False)
_ = ax.legend(frameon=False, loc="lower right")
