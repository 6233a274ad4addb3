"""Promises of certificates: what is bounded, which files contain it, and what promises nothing."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from complaints import refused
from evenhand import Forecast, randomize
from evenhand.calibration import Cells
from evenhand.certificates import (
    Choice,
    EventPart,
    OffAtom,
    Promise,
    certify_events,
    certify_link,
    certify_pit,
    certify_rows,
)
from evenhand.distributions import OutcomeKind
from evenhand.links import Entropic, Laplace
from evenhand.monitoring import promise_of
from repeats import most_failures, repeats, statistical

LINK = Entropic(0.12)
U = np.random.default_rng(0).uniform(size=2000)
ALL_MASSES = (0.1, 0.2, 0.5, 1.0)


@pytest.mark.parametrize("link", [LINK, Laplace(0.2)])
def test_a_link_promises_its_bound_of_group_errors_about_mean_pits(link):
    proof = certify_link(U, link)
    for mass in ALL_MASSES:
        promise = proof.promise(mass)
        expected = (proof.group_error(mass), link, "mean_pit", mass, 0.95)
        found = (promise.target, promise.link, promise.statistic, promise.mass)
        assert (*found, promise.confidence) == expected
        assert promise.envelope is not None


@statistical
def test_envelopes_hold_jointly_with_the_confidence_of_the_certificate():
    # uniform PITs with atoms at both ends: P(U <= t) = 0.05 + 0.9 t
    runs = repeats(300)
    rng = np.random.default_rng(1)
    n_broken = 0
    for _ in range(runs):
        kind = rng.uniform(size=300)
        u = np.where(kind < 0.05, 0.0, np.where(kind > 0.95, 1.0, rng.uniform(size=300)))
        envelope = certify_link(u, LINK, confidence=0.9).promise(0.3).envelope
        assert min(len(envelope.low), len(envelope.high)) > 1
        both = np.array([*envelope.low, *envelope.high])
        n_broken += bool((0.05 + 0.9 * both[:, 0] > both[:, 1]).any())
    assert n_broken <= most_failures(runs, 0.1)


def test_an_envelope_has_bounds_up_to_the_group_size():
    for mass in (0.05, 0.2, 0.5):
        envelope = certify_link(U, LINK).promise(mass).envelope
        for side in (envelope.low, envelope.high):
            tails, bounds = np.array(side).T
            assert (np.diff(tails) > 0).all()
            assert (np.diff(bounds) > 0).all()
            # the band lies above the distribution of the rows
            assert (tails < bounds).all()
            assert bounds[-1] <= mass
            assert bounds[-1] > 0.9 * mass


def drawn_pits(rng, n):
    u = rng.uniform(size=n)
    r = rng.uniform(size=n)
    return LINK.ppf(u, r), r


@statistical
@pytest.mark.parametrize("method", ["local-levels", "betting"])
def test_gaps_of_a_randomized_forecaster_without_a_link_are_bounded_with_confidence(method):
    pit, r = drawn_pits(np.random.default_rng(2), 400_000)
    gaps = np.sort(np.abs(pit - r))[::-1]
    truth = gaps[: gaps.size // 5].mean()
    runs = repeats(300)
    rng = np.random.default_rng(3)
    targets = []
    for _ in range(runs):
        pit, r = drawn_pits(rng, 300)
        mass = 0.2 if method == "betting" else None
        pits = Cells(pit[:, None], draws=r[:, None])
        promise = certify_pit(pits, method=method, mass=mass, random_state=0).promise(0.2)
        assert (promise.statistic, promise.link) == ("gap", None)
        targets.append(promise.target)
    # the simulated truth is exact to 0.0005
    assert (np.array(targets) < truth - 0.0005).sum() <= most_failures(runs, 0.05)
    assert np.median(targets) < truth + 0.15
    # at least the mean pathwise error of the worst people
    assert truth > LINK.pathwise_cvar(0.2)


def test_a_certificate_with_the_pits_inside_a_link_promises_what_the_link_does():
    r = np.random.default_rng(4).uniform(size=U.size)
    pits = Cells(LINK.ppf(U, r)[:, None], draws=r[:, None])
    proof = certify_pit(pits, base=Cells(U, link=LINK), random_state=0)
    assert proof.promise(0.2) == certify_link(U, LINK).promise(0.2)


def test_a_sequence_of_tests_promises_its_target_for_links_only():
    proof = replace(certify_link(U, LINK), choice=Choice("tested", 0.3, 0.2))
    assert proof.promise(0.5) == Promise("mean_pit", 0.5, 0.3, 0.95, LINK)
    refused(r"mass must be at least 0\.2", proof.promise, 0.1)
    refused(r"not a link .* certify_pit", replace(proof, link=None).promise, 0.2)


def test_amounts_with_an_atom_promise_the_bound_of_their_positive_part():
    rng = np.random.default_rng(5)
    n = 1500
    positive = rng.uniform(size=n) < 0.5
    u = rng.uniform(size=int(positive.sum()))
    r = rng.uniform(size=(n, 1))
    served = LINK.ppf(u[:, None], r[positive])
    low, high = np.zeros((n, 1)), np.full((n, 1), 0.5)
    low[positive] = high[positive] = 0.5 + served / 2
    whole = Cells(low, high, ties=rng.uniform(size=n), draws=r)
    rows, inner = np.flatnonzero(positive), Cells(served, draws=r[positive])
    options = {"kind": OutcomeKind.HURDLE, "event": EventPart.of(np.full(n, 0.5), positive)}
    off_atom = OffAtom(rows, inner, Cells(u, link=LINK), at=0.0)
    proof = certify_rows(whole, off_atom=off_atom, **options)
    assert proof.promise(0.2) == replace(certify_link(u, LINK).promise(0.2), atom=0.0)
    # without a link the gaps of the positive part are certified, and are not in a log
    plain = certify_rows(whole, off_atom=off_atom._replace(base=None), **options)
    refused("for the positive part alone", plain.promise, 0.2)


def test_events_promise_the_bounds_of_both_sides_of_the_bias():
    rng = np.random.default_rng(6)
    p = rng.beta(1, 9, size=2000)
    event = rng.uniform(size=2000) < p
    proof = certify_events(p, event)
    for mass in ALL_MASSES:
        low, high = proof.bias(mass)
        expected = Promise("bias", mass, max(high, -low), 0.95, targets=(high, -low))
        assert proof.promise(mass) == expected


def test_deterministic_forecasts_promise_nothing():
    refused(r"deterministic.*evenhand\.randomize", certify_pit(U).promise, 0.2)


def features(n):
    return pd.DataFrame({"x": np.random.default_rng(0).normal(size=n)})


@pytest.mark.parametrize("goal", [{"goal": 0.4}, {"max_wider": 0.5}])
def test_a_selected_link_of_counts_promises_its_tested_bound(goal):
    X = features(400)
    y = np.random.default_rng(8).poisson(np.exp(3 + 0.1 * X["x"].to_numpy()))
    chosen = randomize(
        lambda X: Forecast.from_poisson(np.exp(3 + 0.1 * np.asarray(X)[:, 0])),
        X,
        y,
        **goal,
        random_state=0,
    )
    promise = promise_of(chosen)
    assert (promise.statistic, promise.target) == ("mean_pit", chosen.group_error)
    assert promise.link == Entropic(chosen.alpha)


def test_promises_of_certificates_have_the_certified_size_or_20_percent():
    proof = certify_link(U, LINK)
    assert promise_of(proof) == proof.promise(0.2)
    tested = replace(proof, mass=0.35, choice=Choice("tested", 0.3, 0.35))
    assert promise_of(tested).mass == 0.35
    promise = proof.promise(0.1)
    assert promise_of(promise) is promise
    refused("a path, got int", promise_of, 3)


def test_a_promise_survives_json():
    proof = certify_link(U, LINK)
    both = Promise.of_bias(-0.1, 0.3, 0.2, 0.95)
    for promise in (proof.promise(0.2), Promise("gap", 0.2, 0.3, 0.95), both):
        assert Promise.from_dict(json.loads(json.dumps(promise.to_dict()))) == promise


def test_certified_events_promise_their_bias(evenhand, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    p = stats.norm.cdf(features(600)["x"])
    event = (np.random.default_rng(9).uniform(size=600) < p).astype(int)
    table = pd.DataFrame({"p": p, "event": event, "id": np.arange(600)})
    table.to_csv("t.csv", index=False)
    done = evenhand(
        *("randomize", "t.csv", "--forecast", "probability=p", "--target", "event", "--id", "id"),
        *("--group-mass", "0.3", "--out", "m", "--json"),
    ).done()
    low, high = json.loads(done.out)["bias"]
    expected = Promise("bias", 0.3, max(high, -low), 0.95, targets=(high, -low))
    path = tmp_path / "m" / "certificate.json"
    assert promise_of("m") == promise_of(path) == Promise.from_dict(json.loads(done.out)["promise"])
    assert promise_of("m") == expected
    content = json.loads(path.read_text())
    for promise, message in (
        ({"mass": 0.2}, r"certificate\.json.*Promise\.to_dict"),
        (None, "nothing is promised"),
    ):
        path.write_text(json.dumps(content | {"promise": promise}))
        refused(message, promise_of, "m")
