"""
The worst group, and what a search finds in nothing
===================================================

Whoever picks the worst fifth of people with the outcomes in view finds something in any forecasts,
perfect ones too. So each search is shown beside the same search in calibrated forecasts of the same
kind.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np

from evenhand import Forecast, audit
from evenhand.draws import jittered
from evenhand.figures import plot_worst_group

# %%
# A model with a blind spot where the first feature is large, and the same model behind a link.

rng = np.random.default_rng(0)
X = rng.normal(size=(1200, 4))
y = X[:, 0] + rng.normal(size=1200)
y[X[:, 0] > 1] += 0.8
plain = Forecast.from_normal(X[:, 0], np.ones(1200))
served = plain.randomized(alpha=0.1, r=jittered(1200, 32, random_state=1))

masses = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
for forecast, title in ((plain, "Deterministic"), (served, "Randomized, alpha = 0.1")):
    fig, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    found = audit(
        forecast,
        y=y,
        features=X,
        masses=masses,
        learned_masses=(0.2, 0.5),
        n_simulations=10,
        random_state=0,
    )
    plot_worst_group(found.worst_groups, ax=ax, learned=found.learned)
    ax.set(title=title, ylim=(0, 0.68))

# %% In the first figure the search with outcomes in view says little about the model: it finds
# nearly as much in the truth, for which the curve is near (1 - share) / 2. The learned group, which
# is defined by features and judged on other rows, is the one to look at. In the second the pathwise
# errors can be seen, and the bound is a proof.
