"""
Keep the draws and replay them
==============================

In use the draw belongs to the person and the decision. A keyed hash of the person's id makes it:
whoever asks again gets the same draw again, in any order and any batch, and without the key nobody
can tell it beforehand.
"""

# sphinx_gallery_thumbnail_number = 1

import matplotlib.pyplot as plt
import numpy as np

from evenhand import Forecast
from evenhand.draws import KeyedDraws

# %%
# Twelve people ask three times: once together, once in another order, and once each on their own.

key = (  # in use: secrets.token_bytes(32), kept where keys are kept
    b"a secret of at least sixteen bytes"
)
november = KeyedDraws(key, context="2026-11")
ids = [f"person {i}" for i in range(12)]
together = november(ids)
backwards = november(ids[::-1])[::-1]
alone = np.concatenate([november([one]) for one in ids])
print("the same each time:", bool((together == backwards).all() and (together == alone).all()))

# %% The next decision is another matter, and so is another key: the draws have nothing to do with
# each other.

many = range(3000)
first, second = november(many), KeyedDraws(key, context="2026-12")(many)

fig, left = plt.subplots(figsize=(8, 4), layout="constrained")
stated = Forecast.from_normal(np.full(12, 50.0), np.full(12, 8.0))
for r, colour, shift, label in (
    (together, "#0072b2", -0.15, "2026-11, asked three times"),
    (KeyedDraws(key, context="2026-12")(ids), "#e69f00", 0.15, "2026-12"),
):
    low, high = stated.randomized(alpha=0.1, r=r).interval(0.8)
    left.vlines(np.arange(12) + shift, low, high, color=colour, linewidth=4, label=label)
low, high = stated.interval(0.8)
left.axhspan(
    low[0], high[0], color="#757575", alpha=0.15, linewidth=0, label="without a draw: everybody"
)
left.set(
    title="80% intervals of twelve people who are alike",
    xlabel="person",
    ylabel="outcome",
    ylim=(14, 96),
)
left.legend(frameon=False, fontsize="small", ncols=3, loc="upper center")
left.spines[["top", "right"]].set_visible(False)

fig, right = plt.subplots(figsize=(5.4, 4), layout="constrained")
right.plot(first, second, ".", color="#0072b2", markersize=2, alpha=0.6)
right.set(
    title="Draws of 3,000 people in two periods", xlabel="2026-11", ylabel="2026-12", aspect="equal"
)
right.spines[["top", "right"]].set_visible(False)

# %% A draw for life would make luck permanent, so the context changes with each new decision. The
# correlation of the two periods is that of chance: within 0.05 of zero for so many people, but for
# one time in 160.

print(f"correlation of the two periods: {np.corrcoef(first, second)[0, 1]:.3f}")
