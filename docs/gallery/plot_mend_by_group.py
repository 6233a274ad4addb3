"""
Mend a model by group, without randomness
=========================================

Where the groups are known, a map on each group's probabilities repairs it. No draw is needed, and
here the forecasts get sharper by it. What it cannot do is repair groups that nobody has named.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import BayesianRidge

from evenhand import RecalibratedRegressor, audit, compare

# %% One group's outcomes spread three times as much as the other's, and a linear model states one
# spread for both.

rng = np.random.default_rng(0)
table = pd.DataFrame({"x": rng.normal(size=4000), "kind": rng.integers(2, size=4000)})
y = table["x"] + np.where(table["kind"] == 1, 1.5, 0.5) * rng.normal(size=4000)
train, test = slice(0, 2000), slice(2000, None)

pooled = RecalibratedRegressor(BayesianRidge(), random_state=0).fit(table[train], y[train])
by_group = RecalibratedRegressor(BayesianRidge(), by="kind", random_state=0).fit(
    table[train], y[train]
)

# %% One map for everybody leaves both groups as they were; one map for each group repairs both, and
# the log score gets better. Where there is nothing to repair, a map costs a little, as it is
# learned from few rows.

audits = [
    audit(
        model, table[test], y[test], groups=["kind"], learned_masses=(), random_state=0, name=name
    )
    for name, model in (("one map", pooled), ("a map per group", by_group))
]
compare(*audits).table.query("measure.str.contains('kind|log score')").round(3)

# %%
# The same as a picture: errors of the groups, with 95% bands.

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for found, offset, colour in zip(audits, (0.18, -0.18), ("#d55e00", "#0072b2"), strict=True):
    rows = found.groups
    place = np.arange(len(rows))[::-1] + offset
    ax.barh(place, rows["error"], height=0.34, color=colour, label=found.name)
    ax.hlines(place, rows["error_low"], rows["error_high"], color="black", linewidth=1.2)
ax.set_yticks(np.arange(len(rows))[::-1], rows["group"])
ax.set(xlabel="error: stated chances are off by so much on average", xlim=(0, None))
ax.xaxis.set_major_formatter("{x:.0%}")
ax.spines[["top", "right"]].set_visible(False)
_ = ax.legend(frameon=False)
