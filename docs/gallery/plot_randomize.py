"""
Randomize as little as can be proven
====================================

``randomize`` keeps the model, sets rows aside and takes the least randomization with which every
group of a given size is certified on them. Here the target is varied, to see what is paid for it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import BayesianRidge

from evenhand import randomize
from evenhand.certificates import certify_link
from evenhand.links import Entropic

rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 3))
y = X[:, 0] + rng.normal(size=4000)
chosen = randomize(BayesianRidge(), X, y, max_group_error=0.3, group_mass=0.2, random_state=0)
print(chosen.summary())

# %% The same confidence bands bound the error at all values of ``alpha`` at once. This is why
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
# The dashed curve is the error of the worst fifth of people around a model that is right, which is
# what infinitely many rows would prove.

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(
    rows["price"],
    rows["certified"],
    color="#0072b2",
    linewidth=2,
    label=f"certified on {held.size:,} people",
)
ax.plot(
    rows["price"],
    rows["right"],
    "--",
    color="#757575",
    label="a model that is right, all people known",
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
    (Entropic(chosen.alpha).price, 0.3),
    (10, 8),
    textcoords="offset points",
)
ax.axhline(0.3, color="#d55e00", linestyle=":", linewidth=1)
ax.set(
    xlabel="price: log score given up (nats)",
    ylabel="error of the worst fifth of people",
    xlim=(0, 2),
    ylim=(0, 0.52),
)
ax.yaxis.set_major_formatter("{x:.0%}")
ax.spines[["top", "right"]].set_visible(False)
_ = ax.legend(frameon=False)
