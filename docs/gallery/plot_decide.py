"""
Decide with a forecast, and be held to it
=========================================

A ward sends people home or keeps them. The decision follows from a forecast of how they will be;
what the forecast promised it would cost is compared with what it did cost.
"""

import matplotlib.pyplot as plt
import numpy as np

from evenhand import Forecast
from evenhand.decisions import BayesDecision, StepLoss, loss_guarantee
from evenhand.draws import jittered

# %% Keeping somebody costs 1. Sending home somebody who then does badly (an outcome below 0) costs
# 8. So whoever has a stated chance of at most 1/8 to do badly is sent home.

ward = BayesDecision(("home", "keep"), {"home": StepLoss(cuts=[0.0], values=[8, 0]), "keep": 1})

# %%
# The forecasts know the people's state, but not that those who live alone do worse than it says.

rng = np.random.default_rng(0)
n = 6000
state, is_alone = rng.normal(1.6, 0.3, size=n), rng.random(n) < 0.1
outcome = state - np.where(is_alone, 1.3, 0.0) + rng.normal(size=n)
plain = Forecast.from_normal(state - 0.13, np.full(n, 1.07))
served = plain.randomized(alpha=0.1, r=jittered(n, 32, random_state=1))

# %% How often the cost exceeds ``k`` times what was promised. Only sending home can turn out badly,
# so calibration for each person would keep it within ``1/k`` for everybody: for those who live
# alone as well, though nobody thought of them.

multiples = (2, 4, 8, 12, 16)
found = {
    name: loss_guarantee(
        ward, forecast, outcome, k=multiples, groups={"alone": is_alone}, random_state=0
    )
    for name, forecast in (("deterministic", plain), ("with a draw", served))
}

fig, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained", sharey=True)
for ax, group, title in zip(
    axes, ("everyone", "alone"), ("Everyone", "Those who live alone"), strict=True
):
    for (name, guarantee), colour in zip(found.items(), ("#d55e00", "#0072b2"), strict=True):
        rows = guarantee.table[guarantee.table["group"] == group]
        ax.plot(rows["k"], rows["exceeded"], "o-", color=colour, label=name)
        ax.fill_between(rows["k"], rows["low"], rows["high"], color=colour, alpha=0.15, linewidth=0)
    k = np.linspace(2, 16, 100)
    ax.plot(k, 1 / k, "--", color="#757575", label="1/k")
    ax.set(title=title, xlabel="k", ylim=(0, 0.55))
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("cost exceeds k times the promise")
_ = axes[0].legend(frameon=False)

# %% The bands are what confidence leaves possible. The deterministic model breaks its promise to
# those who live alone; with the draw it is nearly kept. What these rows prove of it, for groups
# that nobody named as well:

found["with a draw"].table.query("k in (2, 8)")[
    ["group", "k", "exceeded", "high", "bound", "verdict"]
].round(3)
