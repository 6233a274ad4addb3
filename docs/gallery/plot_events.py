"""
Yes or no: reliability by group, before and after a repair
==========================================================

A classifier may be calibrated over all people and wrong in every group. A recalibration map for
each group repairs it. No randomness is needed, and for 0/1 outcomes it could not help.
"""

import matplotlib.pyplot as plt
import numpy as np
import statsmodels.api as sm
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evenhand import RecalibratedRegressor, Search, audit
from evenhand.figures import as_percent

# %%
# A survey that is bundled with statsmodels: whether married women report an affair. The model does
# not use how they rate their marriage.

table = sm.datasets.fair.load_pandas().data.sample(frac=1, random_state=0)
X = table.drop(columns="affairs").reset_index(drop=True)
y = (table["affairs"] > 0).to_numpy(dtype=int)
rating = X["rate_marriage"]
X["marriage"] = np.select([rating == 5, rating == 4], ["very good", "good"], "fair or poor")
used = make_column_transformer((StandardScaler(), ["age", "yrs_married", "children", "educ"]))
model = make_pipeline(used, LogisticRegression()).fit(X[:2000], y[:2000])
repaired = RecalibratedRegressor(FrozenEstimator(model), by="marriage", random_state=0)
repaired = repaired.fit(X[2000:4000], y[2000:4000])

# %%
# Audits of the other 2,366 women. The vertical lines are intervals that cover the event rates of
# all bins of a group simultaneously, with 95% confidence.

fig, axes = plt.subplots(1, 2, figsize=(7, 3.6), sharex=True, sharey=True, layout="constrained")
colours = {"very good": "#0072b2", "good": "#009e73", "fair or poor": "#d55e00"}
for ax, title, one in zip(axes, ("the model", "repaired by group"), (model, repaired), strict=True):
    found = audit(
        one,
        X[4000:],
        y[4000:],
        groups=["marriage"],
        search=Search(learned_masses=()),
        random_state=0,
    )
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    for shift, (name, colour) in zip((-0.004, 0, 0.004), colours.items(), strict=True):
        bins = found.reliability.query(
            "group == @group", local_dict={"group": f"marriage = {name}"}
        )
        ax.vlines(bins["probability"] + shift, bins["low"], bins["high"], color=colour, alpha=0.35)
        ax.plot(bins["probability"] + shift, bins["rate"], "o", color=colour, ms=4, label=name)
    ax.set(title=title, xlabel="predicted probability", xlim=(0, 0.9), ylim=(0, 1))
    ax.spines[["top", "right"]].set_visible(False)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(as_percent)
axes[0].set_ylabel("observed event rate")
_ = axes[1].legend(title="marriage", frameon=False, loc="lower right")
