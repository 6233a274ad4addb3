"""
Decisions with a guaranteed loss
================================

A hospital sends patients home or keeps them, by the action with the least expected loss under the
forecast. The realized losses are compared with those that the forecast predicted.
"""

import matplotlib.pyplot as plt
import numpy as np

from evenhand import Forecast
from evenhand.decisions import BayesDecision, StepLoss, loss_guarantee
from evenhand.draws import jittered

# %%
# Keeping a patient costs 1. Sending home a patient who then does badly (an outcome below 0) costs
# 8. So patients with a predicted probability of at most 1/8 of doing badly are sent home.

ward = BayesDecision(("home", "keep"), {"home": StepLoss(cuts=[0.0], values=[8, 0]), "keep": 1})

# %%
# The forecasts use the state of the patients, but not that patients who live alone do worse.

rng = np.random.default_rng(0)
n = 6000
state, is_alone = rng.normal(1.6, 0.3, size=n), rng.random(n) < 0.1
outcome = state - np.where(is_alone, 1.3, 0.0) + rng.normal(size=n)
plain = Forecast.from_normal(state - 0.13, np.full(n, 1.07))
served = plain.randomized(alpha=0.1, r=jittered(n, 32, random_state=1))

# %%
# The share of patients whose loss exceeds ``k`` times the predicted loss. Under calibration for
# each person it would be at most ``1/k`` in every group: also among patients who live alone, a
# group that was not named when the model was made.

multiples = (2, 4, 8, 12, 16)
found = {
    name: loss_guarantee(
        ward, forecast, outcome, k=multiples, groups={"alone": is_alone}, random_state=0
    )
    for name, forecast in (("deterministic", plain), ("with a draw", served))
}

fig, axes = plt.subplots(1, 2, figsize=(7, 3.8), layout="constrained", sharey=True)
for ax, group, title in zip(
    axes, ("everyone", "alone"), ("all patients", "patients who live alone"), strict=True
):
    for (name, guarantee), colour in zip(found.items(), ("#d55e00", "#0072b2"), strict=True):
        rows = guarantee.table[guarantee.table["group"] == group]
        ax.plot(rows["k"], rows["exceeded"], "o-", color=colour, label=name)
        ax.fill_between(rows["k"], rows["low"], rows["high"], color=colour, alpha=0.15, linewidth=0)
    k = np.linspace(2, 16, 100)
    ax.plot(k, 1 / k, "--", color="#757575", label="1/k")
    ax.set(title=title, xlabel="k", xticks=multiples, ylim=(0, 0.55))
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("loss exceeds k times the predicted loss")
_ = axes[0].legend(frameon=False)

# %%
# The bands are 95% confidence intervals. For patients who live alone, the losses of the
# deterministic model exceed the predicted ones too often; with a draw, slightly too often for the
# largest multiples. ``bound`` is what these rows prove, for groups without a name as well.

found["with a draw"].table.query("k in (2, 8)")[
    ["group", "k", "exceeded", "high", "bound", "verdict"]
].round(3)
