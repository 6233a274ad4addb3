"""
Keep and replay draws
=====================

A randomized forecast needs a draw for each person and decision. A keyed hash of the person's id
computes it: the same id has the same draw in any order and any batch, so a forecast can be
replayed. Nobody can predict a draw without the key.
"""

# sphinx_gallery_thumbnail_number = 1

import matplotlib.pyplot as plt
import numpy as np

from evenhand import Forecast
from evenhand.draws import KeyedDraws

# %%
# The draws of twelve people, computed three times: together, in another order, and one by one.

key = b"a secret of at least sixteen bytes"  # in use: secrets.token_bytes(32), kept in a safe place
november = KeyedDraws(key, context="2026-11")
ids = [f"person {i}" for i in range(12)]
together = november(ids)
backwards = november(ids[::-1])[::-1]
alone = np.concatenate([november([one]) for one in ids])
print("the same each time:", bool((together == backwards).all() and (together == alone).all()))

# %%
# Draws of another context, such as the next period, are independent of these, and so are draws of
# another key.

many = range(3000)
first, second = november(many), KeyedDraws(key, context="2026-12")(many)

fig, left = plt.subplots(figsize=(7, 4), layout="constrained")
deterministic = Forecast.from_normal(np.full(12, 50.0), np.full(12, 8.0))
for r, colour, shift, label in (
    (together, "#0072b2", -0.15, "2026-11, computed three times"),
    (KeyedDraws(key, context="2026-12")(ids), "#e69f00", 0.15, "2026-12"),
):
    low, high = deterministic.randomized(alpha=0.1, r=r).interval(0.8)
    left.vlines(np.arange(12) + shift, low, high, color=colour, linewidth=4, label=label)
low, high = deterministic.interval(0.8)
left.axhspan(low[0], high[0], color="#757575", alpha=0.15, linewidth=0, label="without a draw")
left.set(
    title="80% intervals of twelve people with equal features",
    xlabel="person",
    ylabel="outcome",
    ylim=(14, 96),
)
left.legend(frameon=False, fontsize="small", ncols=3, loc="upper center")
left.spines[["top", "right"]].set_visible(False)

fig, right = plt.subplots(figsize=(5.8, 4.6), layout="constrained")
right.plot(first, second, ".", color="#0072b2", markersize=2, alpha=0.6)
right.set(
    title="Draws of 3,000 people",
    xlabel="draw in 2026-11",
    ylabel="draw in 2026-12",
    aspect="equal",
)
right.spines[["top", "right"]].set_visible(False)

# %%
# One draw for all decisions would make luck permanent, so the context changes with each decision.
# The correlation of two independent periods is within 0.05 of zero for 3,000 people, except in one
# case of 160.

print(f"correlation of the two periods: {np.corrcoef(first, second)[0, 1]:.3f}")
