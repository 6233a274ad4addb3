"""Draw the picture of the guide to watches: the first screen of the page of a simulated watch.

Chromium takes the picture. The file carries the status and the headline of the page, which a test
compares with those of the same watch, simulated again.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from scipy.stats import norm

from evenhand import Watch
from evenhand.certificates import Promise
from evenhand.links import Entropic
from evenhand.monitoring import Rows

PICTURE = Path(__file__).parents[1] / "docs" / "_static" / "watch.png"

DAYS, PER_DAY, CHANGE = 300, 40, 180


def simulated() -> Watch:
    """Return a watch in which outcomes of women in villages become lower than forecast."""
    rng = np.random.default_rng(5)
    day = np.repeat(np.arange(DAYS), PER_DAY)
    groups = {
        "sex": rng.choice(["man", "woman"], day.size),
        "clinic": rng.choice(["city", "town", "village"], day.size),
    }
    is_off = (groups["sex"] == "woman") & (groups["clinic"] == "village") & (day >= CHANGE)
    link, draws = Entropic(0.2), rng.uniform(size=day.size)
    pit = link.ppf(norm.cdf(rng.normal(size=day.size) - 2 * is_off), draws)
    is_missing = rng.uniform(size=day.size) < 0.02
    time = np.datetime64("2026-01-01T00:00:00", "us") + (day * 86_400_000_000).astype("m8[us]")
    delay = (rng.gamma(4, 9, day.size) * 86_400_000_000).astype("m8[us]")
    rows = Rows.of(
        time,
        np.where(is_missing, np.nan, pit),
        r=draws,
        link=link,
        groups=groups,
        recorded=np.where(is_missing, np.datetime64("NaT"), time + delay),
        matures_after="90d",
    )
    promise = Promise("mean_pit", mass=0.2, target=0.35, confidence=0.95, link=link)
    watch = Watch(promise, groups=["sex", "clinic"], matures_after="90d")
    watch.update(rows)
    return watch


def main() -> None:
    """Save the first screen of the page of the watch."""
    from page_picture import take_picture

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "watch.html")
        simulated().to_html(page)
        take_picture(page, PICTURE)


if __name__ == "__main__":
    main()
