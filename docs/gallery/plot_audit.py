"""
Audit a model
=============

An audit needs forecasts of rows that the model has not seen, and their outcomes. It finds the
people for whom the predicted uncertainty is wrong: in named groups, in groups scanned from the
features, and in a learned group. The model is not changed.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from evenhand import Forecast, audit
from evenhand.figures import plot_calibration, plot_groups

# %%
# The model predicts a mean and a standard deviation for each of 3,000 people. For people over sixty
# in the north its forecasts are too low.

rng = np.random.default_rng(0)
people = pd.DataFrame(
    {
        "age": rng.uniform(20, 80, size=3000),
        "income": rng.lognormal(10, 0.4, size=3000),
        "region": rng.choice(["north", "south"], size=3000),
    }
)
score = (people["income"] - 24_000) / 10_000
y = score + rng.normal(size=3000)
y[(people["age"] > 60) & (people["region"] == "north")] += 0.9

forecast = Forecast.from_normal(mean=score + 0.15, std=np.full(3000, 1.05))
found = audit(forecast, X=people, y=y, groups=["region", "age"], random_state=0, name="the model")

# %%
# Over all people the model is nearly calibrated. Many checks look no further than this histogram.

fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
_ = plot_calibration(forecast.pit(y), ax=ax).set_title("PITs of all people")

# %%
# In the named groups it is not. Errors are in percentage points: 0 is perfect and 50 the worst
# possible. The intervals cover the true errors of all groups simultaneously, with 95% confidence.
# Errors in the shaded zone are within the tolerance, significant or not.

fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
plot_groups(found.groups, ax=ax, tolerance=found.tolerance)
_ = fig.suptitle("Errors of the named groups")

# %%
# The scan tests halves of all features and their intersections. P-values are adjusted for all tests
# of the audit. Errors in tables are fractions.

found.scan[["group", "n", "error", "direction", "bias", "p_adjusted"]].head(4).round(3)

# %%
# The learned group is found without any group being named: a model looks for it on a part of the
# rows, and it is measured on the others. ``low`` is a lower bound of its true error, with 95%
# confidence.

found.learned[["mass", "n", "error", "error_low", "bias", "group"]].round(3)
