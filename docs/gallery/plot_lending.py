"""
A bank, its applicants, and a draw
==================================

A bank says yes where the forecast gives "cannot pay" a chance of at most a quarter. With a draw, a
person's answer is a chance, and people who know the bank apply where that chance is worth their
while.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import BayesianRidge

from evenhand import Forecast, RandomizedRegressor
from evenhand.lending import InformedApplicants, LendingGame, RandomApplicants, play_rounds
from evenhand.links import Entropic

game = LendingGame(threshold=0.0)

# %% The chance of a loan against the risk that the model states. Without a draw it jumps at a
# quarter; the more randomization, the flatter it gets.

mean = np.linspace(-2.5, 3.5, 400)
stated = Forecast.from_normal(mean, np.ones(mean.size))
risk = stated.cdf(0.0)

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for alpha, colour in ((1.0, "#757575"), (0.5, "#56b4e9"), (0.2, "#0072b2"), (0.05, "#002a50")):
    chance = game.chance_of_link(stated.distribution, Entropic(alpha))
    ax.plot(risk, chance, color=colour, linewidth=2, label=f"alpha = {alpha:g}")
for level, name in (
    (5 / 7, "the qualified apply above this"),
    (1 / 3, "the unqualified apply above this"),
):
    ax.axhline(level, color="#d55e00", linestyle=":", linewidth=1.2)
    ax.text(0.98, level + 0.015, name, ha="right", color="#a04000", fontsize="small")
ax.set(
    xlabel="stated chance that the person cannot pay",
    ylabel="chance of a loan",
    xlim=(0, 1),
    ylim=(-0.02, 1.02),
)
ax.spines[["top", "right"]].set_visible(False)
_ = ax.legend(frameon=False, loc=(0.7, 0.4))

# %% What the bank earns for each person, from people who come at random and from people who know
# it. Its forecasts are right here, so each draw costs: randomization pays a bank only where its own
# cut is wrong.

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
ax.set(xlabel="alpha", ylabel="gain of the bank per person", ylim=(None, 0.26))
ax.axhline(0, color="black", linewidth=0.8)
ax.spines[["top", "right"]].set_visible(False)
_ = ax.legend(frameon=False, loc="lower right")
