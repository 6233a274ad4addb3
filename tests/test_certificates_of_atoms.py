"""Certificates of outcomes with atoms, in worlds of finitely many outcomes, by quadrature."""

from functools import lru_cache

import numpy as np
import pytest
from scipy import stats

from complaints import refused
from discrete_laws import SLACK, CountWorld
from evenhand._validate import InputError
from evenhand.calibration import Cells, count_pits, pathwise_errors
from evenhand.certificates import (
    EventPart,
    OffAtom,
    certify_counts,
    certify_events,
    certify_link,
    certify_pit,
    certify_rows,
    count_events,
)
from evenhand.distributions import OutcomeKind
from evenhand.draws import jittered
from evenhand.links import Entropic, Gaussian
from repeats import most_failures, repeats, statistical
from sharp_laws import group_error

MASSES = (0.1, 0.2, 0.5, 1.0)
LEVEL = 0.8
N_DRAWS = 16


def top_coded(law, largest):
    """Probabilities of 0, ..., `largest`, where larger outcomes are recorded as `largest`."""
    return tuple(np.diff(np.concatenate(([0.0], law.cdf(np.arange(largest)), [1.0]))))


SCORES = (0.05, 0.15, 0.3, 0.35, 0.15)
LOWER = (0.3, 0.3, 0.2, 0.15, 0.05)


def poisson_world(link, mean, largest, forecast=None):
    true = stats.poisson(mean)
    laws = (top_coded(law, largest) for law in (true, forecast or true))
    return CountWorld(link, *((law,) for law in laws))


WORLDS = {
    "Poisson(0.5)": poisson_world(Entropic(0.12), 0.5, 5),
    "Poisson(0.5), forecast 0.9": poisson_world(Entropic(0.12), 0.5, 5, stats.poisson(0.9)),
    "Poisson(2)": poisson_world(Gaussian(0.12), 2, 8),
    "Poisson(2), forecast 3": poisson_world(Entropic(0.05), 2, 8, stats.poisson(3)),
    "Poisson(20)": poisson_world(Entropic(0.12), 20, 50),
    "Poisson(20), forecast too wide": poisson_world(
        Entropic(0.05), 20, 60, stats.nbinom(10, 1 / 3)
    ),
    "ordinal of 5": CountWorld(Entropic(0.12), (SCORES, LOWER), (SCORES, LOWER)),
    "ordinal of 5, one forecast for two kinds": CountWorld(
        Entropic(0.3), (SCORES, LOWER), (SCORES, SCORES)
    ),
}


def served_cells(world, n, rng):
    """Cells of the served PITs, draws, kinds of people, and cells of the base's PITs."""
    low, high, kind = world.sample(n, rng)
    r = jittered(n, N_DRAWS, rng)
    ends = world.link.ppf(low[:, None], r), world.link.ppf(high[:, None], r)
    return ends, r, kind, (low, high)


@lru_cache
def count_truths(name):
    world = WORLDS[name]
    coverages = np.array([world.coverages(mass, LEVEL) for mass in MASSES])
    first = np.array([world.weights[: len(world.true[0])]])
    return {
        "worst": np.array([world.worst(mass) for mass in MASSES]),
        "least bound": np.array([world.least_bound(mass) for mass in MASSES]),
        "least": coverages[:, 0],
        "largest": coverages[:, 1],
        "first": group_error(first / first.sum(), world.cdfs[: first.size]),
    }


@statistical
@pytest.mark.parametrize("name", WORLDS)
def test_bounds_for_counts_have_their_confidence(name):
    world, truth = WORLDS[name], count_truths(name)
    assert (truth["worst"] <= truth["least bound"] + SLACK).all()
    rng = np.random.default_rng(len(name))
    n_sets = repeats(1000, shorter=50)
    failures = dict.fromkeys(("every group", "least bound", "coverage", "overall", "named"), 0)
    for _ in range(n_sets):
        ends, r, kind, _ = served_cells(world, 300, rng)
        pits = Cells(*ends, ties=rng.uniform(size=300), draws=r)
        proof = certify_pit(pits, groups={"first": kind == 0}, random_state=rng)
        bounds = np.array([proof.group_error(mass) for mass in MASSES])
        low, high = np.array([proof.coverage(LEVEL, mass) for mass in MASSES]).T
        failures["every group"] += bool((bounds < truth["worst"] - SLACK).any())
        failures["least bound"] += bool((bounds < truth["least bound"] - SLACK).any())
        outside = (low > truth["least"] + SLACK) | (high < truth["largest"] - SLACK)
        failures["coverage"] += bool(outside.any())
        failures["overall"] += proof.average_error() < truth["worst"][-1] - SLACK
        failures["named"] += proof.named("first") < truth["first"][0] - SLACK
    assert max(failures.values()) <= most_failures(n_sets), failures


def test_a_lattice_has_no_sharp_bounds_of_its_link_and_keeps_its_intervals():
    world, rng = WORLDS["ordinal of 5"], np.random.default_rng(7)
    ends, r, _, (low, high) = served_cells(world, 500, rng)
    pits = Cells(*ends, ties=rng.uniform(size=500), draws=r)
    base = Cells(low, high, link=world.link)
    proof = certify_pit(pits, base=base, random_state=0)
    assert (proof.link, proof.bound, str(proof.kind)) == (world.link, None, "count")
    assert proof.group_error(0.2) >= world.worst(0.2)
    assert proof.coverage(LEVEL, 0.2) == certify_pit(pits, random_state=0).coverage(LEVEL, 0.2)
    (first, *_) = proof.plain_intervals(0.2)
    assert first.covered == np.mean((high >= 0.05) & (low < 0.95))
    # bounds of points are not proven for positions in cells, nor is it known what intervals cover
    with pytest.raises(InputError, match="base must have the cells of outcomes with atoms"):
        certify_pit(pits, base=Cells(base.high, link=world.link))


@pytest.mark.parametrize("step", [0.5, 2.0])
def test_coverage_of_rounded_outcomes_is_that_of_positions_in_their_cells(step):
    # an interval of 80% meets the cells of up to 99.7% of outcomes, and covers 80% of them
    rng = np.random.default_rng(9)
    n = 3000
    cell = np.floor(rng.normal(size=n) / step)
    ends = stats.norm.cdf(cell * step), stats.norm.cdf((cell + 1) * step)
    pits = Cells(*ends, ties=rng.uniform(size=n))
    proof = certify_pit(pits, kind="continuous")
    low, high = proof.coverage(0.8, 1.0)
    assert low < 0.8 < high < 0.83
    points = certify_pit(pits.drawn)
    assert proof.coverage(0.8, 0.5) == points.coverage(0.8, 0.5)
    assert proof.plain_intervals(0.5) == points.plain_intervals(0.5)
    # around a link, too
    link = Entropic(0.12)
    r = jittered(n, 4, rng)
    low_end, high_end = (link.ppf(end[:, None], r) for end in ends)
    served = Cells(low_end, high_end, ties=rng.uniform(size=n), draws=r)
    base = Cells(*ends, pits.drawn, link=link)
    randomized = certify_pit(served, kind="continuous", base=base)
    assert randomized.plain_intervals(0.5) == points.plain_intervals(0.5)
    own, drawn = certify_pit(served, kind="continuous"), certify_pit(Cells(served.drawn, draws=r))
    assert own.coverage(0.8, 0.5) == drawn.coverage(0.8, 0.5)


def certify_hurdle(whole, inner, positive, probability, base=None, **options):
    return certify_rows(
        whole,
        kind=OutcomeKind.HURDLE,
        off_atom=OffAtom(np.flatnonzero(positive), inner, base, at=0.0),
        event=EventPart.of(probability, positive),
        **options,
    )


def hurdle_rows(n, atom, link, rng):
    """Right forecasts: Cells of all, of the people off the atom, who they are, and base PITs."""
    positive = rng.uniform(size=n) > atom
    u = rng.uniform(size=int(positive.sum()))
    r = jittered(n, 4, rng)
    served = link.ppf(u[:, None], r[positive])
    low, high = np.zeros((n, 4)), np.full((n, 4), atom)
    low[positive] = high[positive] = atom + (1 - atom) * served
    whole = Cells(low, high, ties=rng.uniform(size=n), draws=r)
    return whole, Cells(served, draws=r[positive]), positive, u


def test_group_errors_of_a_hurdle_are_those_of_the_people_off_the_atom():
    n, link = 1200, Entropic(0.12)
    whole, inner, positive, u = hurdle_rows(n, 0.5, link, np.random.default_rng(10))
    p = np.full(n, 0.5)
    proof = certify_hurdle(whole, inner, positive, p, Cells(u, link=link), random_state=0)
    own = certify_link(u, link)
    events = certify_events(p, positive)
    assert proof.n_samples == n
    assert proof.n_positive == positive.sum()
    for mass in MASSES:
        assert proof.group_error(mass) == own.group_error(mass)
        assert proof.coverage(LEVEL, mass) == own.coverage(LEVEL, mass)
        assert proof.bias(mass) == events.bias(mass)
    assert (proof.link, proof.bound) == (link, "sharp")
    assert 0 < proof.average_error() < 0.1
    assert list(proof.table()["group_error"]) == [own.group_error(mass) for mass in MASSES]
    # without a base, errors of several draws per person
    plain = certify_hurdle(whole, inner, positive, p, random_state=0)
    assert plain.group_error(0.2) == certify_pit(inner, random_state=0).group_error(0.2)
    assert plain.coverage(LEVEL, 0.2) == certify_pit(inner, random_state=0).coverage(LEVEL, 0.2)
    assert plain.mpaic(0.3) < 0.5
    assert plain.own.all_errors.high == pytest.approx(pathwise_errors(inner))


def test_rows_of_the_same_person_are_chosen_before_the_atom_is_left_out():
    rng = np.random.default_rng(12)
    people = 400
    positive = rng.uniform(size=2 * people) > 0.4
    person = np.repeat(np.arange(people), 2)
    u = rng.uniform(size=int(positive.sum()))
    low, high = np.zeros(2 * people), np.full(2 * people, 0.4)
    low[positive] = high[positive] = 0.4 + 0.6 * u
    whole = Cells(low, high, ties=rng.uniform(size=2 * people))
    p = np.full(2 * people, 0.6)
    proof = certify_hurdle(whole, Cells(u), positive, p, person=person, random_state=0)
    assert proof.n_samples == proof.events.n_people == people
    assert proof.n_positive == proof.events.n_events < positive.sum()
    assert proof.one_row_each
    assert not proof.is_randomized
    assert "shares of people" in proof.summary()


def test_people_at_the_atom_alone_certify_nothing():
    half, nobody = np.full(4, 0.5), np.zeros(4, dtype=bool)
    whole = Cells(np.zeros(4), half)
    refused("every outcome is the atom", certify_hurdle, whole, whole.take(nobody), nobody, half)


# --- tables in parts, whose bounds tests/test_audit_kinds.py compares with those of rows


def test_counts_that_do_not_fit_each_other_are_refused():
    whole, _, positive, _ = hurdle_rows(200, 0.3, Entropic(0.12), np.random.default_rng(14))
    counts, events = count_pits(whole, random_state=0), count_events(np.full(200, 0.7), positive)
    cases = [
        ("events must contain 200 people", {"events": count_events([0.5], [1])}),
        (f"off_atom must contain {positive.sum()} people", {"off_atom": counts, "events": events}),
        ("off_atom is given without events", {"off_atom": counts}),
        ("link must be None for counts of outcomes", {"kind": "count", "link": Entropic(0.1)}),
    ]
    for message, other in cases:
        refused(message, certify_counts, counts, is_randomized=True, **other)
