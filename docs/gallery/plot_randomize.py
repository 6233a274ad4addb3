"""
Prove with the least randomization
==================================

``randomize`` keeps the model, holds rows out and takes the least randomization with which they
prove that every group of a given size is off by no more than a target. The figure shows the price
of other targets.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import BayesianRidge

from evenhand import randomize
from evenhand.certificates import certify_link
from evenhand.figures import PRICE_TITLE, as_points
from evenhand.links import Entropic

rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 3))
y = 3 * X[:, 0] + rng.normal(size=4000)
chosen = randomize(BayesianRidge(), X, y, goal=0.25, group_mass=0.2, random_state=0)
print(chosen.summary())

# %%
# One confidence band bounds the errors of all values of ``alpha`` simultaneously. Therefore
# ``alpha`` may be chosen on the rows that certify it.

held = chosen.certifying
proof = certify_link(chosen.model.base_forecast(X[held]).pit(y[held]), Entropic(0.1))
rows = []
for alpha in np.geomspace(0.02, 1.0, 12):
    link = Entropic(alpha)
    certified = proof.with_link(link).group_error(0.2)
    rows.append(
        {
            "alpha": alpha,
            "price": link.price,
            "right": link.group_error(0.2),
            "certified": certified,
        }
    )
rows = pd.DataFrame(rows)

# %%
# The dashed curve is the error of the worst 20% of people for a calibrated model: the bound that
# infinitely many rows would prove.

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(
    rows["price"],
    rows["certified"],
    color="#0072b2",
    linewidth=2,
    label=f"certified on {held.size:,} people",
)
ax.plot(
    rows["price"], rows["right"], "--", color="#757575", label="a calibrated model, unlimited rows"
)
ax.plot(
    Entropic(chosen.alpha).price,
    chosen.certificate.group_error(0.2),
    "D",
    color="#d55e00",
    markersize=9,
)
ax.annotate(
    f"chosen: alpha = {chosen.alpha:.2g}",
    (Entropic(chosen.alpha).price, 0.25),
    (10, 8),
    textcoords="offset points",
)
ax.axhline(0.25, color="#d55e00", linestyle=":", linewidth=1)
ax.set(
    title="Price of smaller errors",
    xlabel=PRICE_TITLE,
    ylabel="Largest error of groups of 20% of people\n(percentage points)",
    xlim=(0, 2),
    ylim=(0, 0.52),
)
ax.yaxis.set_major_formatter(as_points)
ax.spines[["top", "right"]].set_visible(False)
_ = ax.legend(frameon=False)
