"""
Audit a model that you have
===========================

Nothing is changed in the model. Its forecasts of rows that it has not seen, and what happened, are
enough to say where it is wrong: in the groups you name, in halves of features and their
intersections, in the worst group that a learner finds.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from evenhand import Forecast, audit
from evenhand.figures import plot_calibration, plot_groups

# %% Forecasts of another team: a mean and a standard deviation for each of 3,000 people. For people
# over sixty who live in the north they are too low, and the team does not know.

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

theirs = Forecast.from_normal(mean=score + 0.15, std=np.full(3000, 1.05))
found = audit(theirs, X=people, y=y, groups=["region", "age"], random_state=0, name="their model")

# %%
# On average over everybody the model looks well: this is what most checks stop at.

fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
_ = plot_calibration(theirs.pit(y), ax=ax)

# %% The named groups already hint at it. Errors are in percentage points, 50 is the worst there is;
# the intervals of all named and scanned groups hold at once. Errors in the shaded zone are within
# the tolerance: significant or not, they are not important.

fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
_ = plot_groups(found.groups, ax=ax, tolerance=found.tolerance.error)

# %% The scan goes through all halves and their intersections, and its p-values hold for all of them
# together.

found.scan[["group", "n", "error", "direction", "bias", "p_adjusted"]].head(4).round(3)

# %% The learner was told of no groups at all. It looks for people on some rows, and others judge
# what it found; ``low`` is a bound below which the true error of that group does not lie, with 95%
# confidence.

found.learned[["mass", "n", "error", "low", "bias", "description"]].round(3)
