"""
Repair a model by group
=======================

Where the groups are known, a recalibration map for each group repairs the model. No randomness is
needed, and here the forecasts get sharper. Groups that are not named are not repaired.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import BayesianRidge

from evenhand import RecalibratedRegressor, Search, compare
from evenhand.figures import ERROR_TITLE, as_points

# %%
# Outcomes of one group have three times the standard deviation of the other group's, and a linear
# model predicts one standard deviation for both.

rng = np.random.default_rng(0)
table = pd.DataFrame({"x": rng.normal(size=4000), "kind": rng.integers(2, size=4000)})
y = table["x"] + np.where(table["kind"] == 1, 1.5, 0.5) * rng.normal(size=4000)
train, test = slice(0, 2000), slice(2000, None)

pooled = RecalibratedRegressor(BayesianRidge(), random_state=0).fit(table[train], y[train])
by_group = RecalibratedRegressor(BayesianRidge(), by="kind", random_state=0).fit(
    table[train], y[train]
)

# %%
# One map for all people leaves both groups as they were. A map for each group repairs both, and the
# log score improves. Where nothing is wrong, a map that is estimated from few rows costs a little.

changes = compare(
    pooled,
    by_group,
    table[test],
    y[test],
    groups=["kind"],
    search=Search(learned_masses=()),
    random_state=0,
    names=("one map", "a map for each group"),
)
print(changes)

# %%
# The errors of the groups with simultaneous 95% intervals:

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
styles = ((0.18, "#d55e00"), (-0.18, "#0072b2"))
for found, (offset, colour) in zip(changes.audits, styles, strict=True):
    rows = found.groups
    place = np.arange(len(rows))[::-1] + offset
    ax.barh(place, rows["error"], height=0.34, color=colour, label=found.name)
    ax.hlines(place, rows["error_low"], rows["error_high"], color="black", linewidth=1.2)
ax.set_yticks(np.arange(len(rows))[::-1], rows["group"])
ax.set(title="Errors of the groups", xlabel=ERROR_TITLE, xlim=(0, None))
ax.xaxis.set_major_formatter(as_points)
ax.spines[["top", "right"]].set_visible(False)
_ = ax.legend(frameon=False)
