"""
The worst group, beside the same search in calibrated forecasts
===============================================================

A search that picks the worst 20% of people after seeing their outcomes finds large errors in any
forecasts, perfect ones included. So the oracle worst group is shown beside the result of the same
search in calibrated forecasts of the same kind.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np

from evenhand import Forecast, Search, audit
from evenhand.draws import jittered
from evenhand.figures import plot_worst_group

# %%
# A model whose forecasts are too low where the first feature is large, and the same model with a
# draw for each person.

rng = np.random.default_rng(0)
X = rng.normal(size=(1200, 4))
y = X[:, 0] + rng.normal(size=1200)
y[X[:, 0] > 1] += 0.8
plain = Forecast.from_normal(X[:, 0], np.ones(1200))
served = plain.randomized(alpha=0.1, r=jittered(1200, 32, random_state=1))

masses = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
for forecast, title in (
    (plain, "Deterministic forecasts"),
    (served, "Randomized forecasts, alpha = 0.1"),
):
    fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
    found = audit(
        forecast,
        y=y,
        features=X,
        search=Search(masses=masses, learned_masses=(0.2, 0.5), n_simulations=10),
        random_state=0,
    )
    plot_worst_group(found.worst_groups, ax=ax, learned=found.learned)
    ax.set(title=title, ylim=(0, 0.68))

# %%
# In the first figure the oracle worst group has little information about the model: in calibrated
# forecasts the same search finds nearly as much, about (1 - group size) / 2. The learned group is
# defined by features and measured on other rows, so its error is evidence. In the second figure the
# errors are measured over many draws of each person, and the certified bound is a proof.
