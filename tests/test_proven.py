"""Every cell of the table of bounds: brute force over all groups, or a refusal (method: 12).

A bound, computed for a whole small population, must be at least what the worst of all its groups
has. The population of averaged cells under a link is one of Poisson counts, for which the ordered
bound would be too small.
"""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from complaints import refused
from evenhand.calibration import Cells, Reading, covered_whole, cvar
from evenhand.certificates import LatticeBounds, LinkBounds
from evenhand.certificates.parts import PROVEN, gap, missed, norm, refusal
from evenhand.draws import jittered, nodes
from evenhand.links import Entropic
from sharp_laws import every_corner

LINK = Entropic(0.12)
MASS = 0.2
LEVELS = (np.arange(200) + 0.5) / 200
DRAWS = nodes(200)
ALL = list(Reading)
READINGS = [(one,) for one in ALL] + [(Reading.AVERAGED, Reading.UNKNOWN), tuple(ALL)]
CASES = list(product(PROVEN, READINGS, (False, True), (False, True), (False, True)))


def population(readings, has_link, has_widths, has_counts):
    """Return cells, one row for each kind of people, and the shares of people."""
    if has_widths and readings == (Reading.AVERAGED,):
        y = np.arange(7)
        share = np.append(stats.poisson.pmf(y[:-1], 2), stats.poisson.sf(y[-2], 2))
        # the counts with the largest PITs are the most frequent: lower ends understate the error
        low = 1 - np.append(stats.poisson.cdf(y[:-1], 2), 1.0)
        high = 1 - stats.poisson.cdf(y - 1, 2)
    else:
        low = np.array([0.02, 0.3, 0.45, 0.7, 0.93])
        share = np.full(5, 0.2)
        high = low + 0.06 if has_widths else low.copy()
    reading = np.resize(np.array(readings), low.size)
    known = reading == Reading.AVERAGED
    high = np.where(known, high, np.where(reading == Reading.BEYOND, 1.0, low + 0.2))
    high = np.minimum(high, 1.0)
    count = np.rint(share * 1_000_000).astype(np.int64) if has_counts else None
    if has_link:
        return Cells(low, high, reading=reading, count=count, link=LINK), share
    base = Cells(low, high, reading=reading)
    draws = jittered(low.size, 4, random_state=0)
    served = base.served(LINK, draws)
    return Cells(served.low, served.high, draws=draws, reading=reading, count=count), share


def cdfs(low, high):
    """Return the CDFs at `LEVELS` of positions that are uniform in cells, the mean over columns."""
    width = np.maximum(high - low, 1e-12)
    return np.clip((LEVELS - low[..., None]) / width[..., None], 0.0, 1.0).mean(axis=-2)


def laws(cells):
    """Yield CDFs of each person's served PIT, for positions that unknown ones may have."""
    for place in product((0.0, 0.5, 1.0), repeat=int(cells.unknown.sum())):
        at = np.zeros(cells.n_samples)
        at[cells.unknown] = place
        low, high = cells.low.copy(), cells.high.copy()
        # `at` is 0 for people beyond the horizon: theirs is the CDF of the lower ends
        is_set = (cells.unknown | cells.beyond)[:, None]
        position = low + at[:, None] * (high - low)
        low, high = np.where(is_set, position, low), np.where(is_set, position, high)
        if cells.link is None:
            yield cdfs(low, high)
        else:
            # one base position per person is served under all draws
            yield cdfs(cells.link.ppf(low, DRAWS), cells.link.ppf(high, DRAWS))


def worst_error(cells, share):
    """Return the largest W1 error of any group: a convex function of the group's weights."""
    weights, worst = every_corner(share, MASS), 0.0
    beyond = cells.beyond
    for law in laws(cells):
        # people beyond the horizon have the completion that is best for the group
        most = weights @ law
        least = most - weights[:, beyond] @ law[beyond] if beyond.any() else most
        off = np.maximum(LEVELS - most, 0.0) + np.maximum(least - LEVELS, 0.0)
        worst = max(worst, float(off.mean(axis=-1).max()))
    return worst


def as_sample(cells, share):
    """Return rows of people in the given shares, so many that a bound has a small margin."""
    return cells.take(np.repeat(np.arange(share.size), np.rint(20_000 * share).astype(int)))


def mean_of_worst(values, share):
    return cvar(np.repeat(values.high, np.rint(10_000 * share).astype(int)), MASS)


def ordered(cells, share):
    some = cells if cells.count is not None else as_sample(cells, share)
    return LinkBounds.of(some, 0.95, may_be_unknown=False).group_error(LINK, MASS)


def placed(rows):
    """Return the rows with a uniform position of each person in the cell."""
    ties = np.random.default_rng(1).random(rows.n_samples)
    return Cells(rows.low, rows.high, ties=ties, reading=rows.reading)


def lattice(cells, share):
    some = cells if cells.count is not None else placed(as_sample(cells, share))
    return LatticeBounds.of(some, np.random.default_rng(0)).group_error(LINK, MASS, 0.95)


BOUNDS = {
    "norm": lambda cells, share: mean_of_worst(norm(cells), share),
    "norm under a link": lambda cells, share: mean_of_worst(norm(cells), share),
    "ordered": ordered,
    "lattice": lattice,
    "coverage": lambda cells, share: mean_of_worst(missed(cells, 0.8), share),
    "gap": lambda cells, share: mean_of_worst(gap(cells, (np.arange(cells.n_samples), 0)), share),
}


def worst_miss(cells, share):
    """Return the largest share that 80% intervals miss, in any group and at any position."""
    missing = 1 - covered_whole(cells.at_points(cells.unknown), 0.8)
    if cells.unknown.any():
        ends = np.stack([cells.low, (cells.low + cells.high) / 2, cells.high])
        missing = np.where(
            cells.unknown, (np.abs(ends - 0.5) > 0.4).mean(axis=-1).max(axis=0), missing
        )
    return float((every_corner(share, MASS) @ missing).max())


def worst_gap(cells, share):
    """Return the largest mean distance of a PIT from its draw; beyond the horizon the least one."""
    low, high, r = cells.low[:, 0], cells.high[:, 0], cells.draws[:, 0]
    apart = np.abs(cells.drawn[:, 0] - r)
    ends = np.maximum(np.abs(low - r), np.abs(high - r))
    apart = np.where(cells.unknown, ends, np.where(cells.beyond, np.maximum(low - r, 0), apart))
    return float((every_corner(share, MASS) @ apart).max())


TRUTHS = {"coverage": worst_miss, "gap": worst_gap}


@pytest.mark.parametrize(("bound", "readings", "has_link", "has_widths", "has_counts"), CASES)
def test_a_bound_holds_or_is_refused(bound, readings, has_link, has_widths, has_counts):
    cells, share = population(readings, has_link, has_widths, has_counts)
    if refusal(bound, cells) is not None:
        # of the norm's two rows the cells choose one; the bound of lattices has a link of its own
        if (bound.startswith("norm") and has_link == (bound == "norm")) or (
            bound == "lattice" and not has_link
        ):
            return
        refused(f"the bound '{bound}' is not proven for these cells", BOUNDS[bound], cells, share)
        return
    truth = TRUTHS.get(bound, worst_error)(cells, share)
    found = BOUNDS[bound](cells, share)
    assert truth <= found + 2e-3
    # and it is a bound of these people, not a constant
    assert found < 0.5 or truth > 0.3


def test_the_table_says_what_is_proven():
    """Numbers of cells of the table: readings, by widths of averaged cells, by counts."""
    proven = dict.fromkeys(PROVEN, 0)
    for bound, *case in CASES:
        proven[bound] += refusal(bound, population(*case)[0]) is None
    assert proven == {
        "norm": 5 * 2 * 2,  # served cells of any kind
        "norm under a link": (2 * 2 + 3 * 1) * 2,  # averaged cells without a width
        "ordered": (2 + 1 + 1) * 2,  # nobody beyond the horizon, averaged cells without a width
        "lattice": 2,  # averaged cells, not counted
        "coverage": 5 * 2 * 2,
        "gap": 5 * 2,  # not counted
    }


def test_the_ordered_bound_would_be_too_small_for_counts():
    """Profiles of positions in served cells of counts are in no order (method: 12)."""
    cells, share = population((Reading.AVERAGED,), True, True, False)
    drawn = placed(as_sample(cells, share)).at_points().before(LINK)
    assert ordered(drawn, np.ones(1)) < worst_error(cells, share) - 0.01
