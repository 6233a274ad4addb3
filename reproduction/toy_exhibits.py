"""Exhibits of the toy study: tables, figures and sentences on its results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from reproduction.study import Exhibit
from reproduction.toy_figures import plot_introduction, plot_two_worlds


def exhibits(values: Mapping[str, Any]) -> list[Exhibit]:
    """Return figures and tables in the order of the page.

    Parameters
    ----------
    values : dict
        `introduction`, `notions`, `averaged` and `resolution` of the forecasters; `floors` and
        `picture` of the worlds; `settings`.
    """
    # the order of the argument: illustration, measurement, and the limits of data
    makers = (_introduction, _notions, _readings, _averaged, _worlds, _floors)
    return [make(values) for make in makers]


def lead(values: Mapping[str, Any]) -> list[str]:
    """Return sentences on the results."""
    row = {one["forecaster"]: one for one in values["notions"]}
    small = row["Small network"]
    paper = row["Paper's network"]
    worst = {name: max(share) for name, share in values["introduction"]["misses"].items()}
    # the largest number of slices, closest to the theoretical limit
    most = values["floors"][-1]
    settings = values["settings"]
    one, many = (
        _served(values["averaged"], "Paper's network", how)
        for how in ("one draw", "average of draws")
    )
    fifth = "worst fifth of x"
    return [
        (
            "The calibration error (W1 of PITs, from 0 to 1/2) of the deterministic network is"
            f" {small['average']:.3f} overall and {small[fifth]:.3f} in the worst fifth of x. At"
            f" the worst x its {settings['level']:.0%} prediction interval misses"
            f" {worst['Deterministic']:.0%} of the outcomes."
        ),
        (
            f"The error of the randomized forecaster (the paper's network, alpha"
            f" {settings['alpha']:g}) is {paper[fifth]:.3f} in its worst fifth of x, and its"
            f" interval misses {worst['Randomized']:.0%} of the outcomes at its worst x. Its log"
            f" score is {paper['price']:.2f} nats worse than that of the true distribution; for the"
            f" deterministic network the difference is {small['price']:.2f}."
        ),
        (
            "If each person is observed once, no data can distinguish a world in which the"
            " deterministic network is calibrated for each person from one in which its error is"
            f" at least {most['least_error']:.3f} for each person"
            f" ({most['least_variation']:.3f} in total variation) and {most['half_error']:.3f} in"
            " one half of the people: its PITs pass a test of uniformity in"
            f" {most['yes']['calibrated']:.1%} of data sets from the first world and"
            f" {most['yes']['sliced']:.1%} from the second."
        ),
        (
            "Averaging the forecasts of the paper's network over draws changes its pathwise error"
            f" from {one['pathwise']:.3f} to {many['pathwise']:.3f}, its error in the worst fifth"
            f" of x from {one[fifth]:.3f} to {many[fifth]:.3f} and its overall error from"
            f" {one['average']:.3f} to {many['average']:.3f}."
        ),
    ]


def _served(rows: Any, name: str, how: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(
        row for row in rows if (row["forecaster"], row["served"]) == (name, how)
    )
    return found


def _introduction(values: Mapping[str, Any]) -> Exhibit:
    shown = values["introduction"]
    settings = values["settings"]
    y = np.asarray(shown["y"])
    count = [int(((y < one["low"]) | (y > one["high"])).sum()) for one in shown["served"]]
    share = {name: sum(misses) / len(misses) for name, misses in shown["misses"].items()}
    promised = shown["promised"]
    spread = np.sqrt(y.size * promised * (1 - promised))
    text = (
        f"{y.size} people in order of x, one outcome each, and their {settings['level']:.0%}"
        f" prediction intervals. The deterministic network has {settings['hidden']} hidden units,"
        " too few for both bumps of the true mean; the randomized forecaster is the paper's network"
        f" with alpha {settings['alpha']:g}. Both were trained on the same {settings['n_train']}"
        f" rows. The intervals miss {count[0]} (deterministic), {count[1]} and {count[2]}"
        " (randomized, two draws) of these people; those of a calibrated forecaster miss"
        f" {y.size * promised:.0f} with a standard deviation of {spread:.1f}. Over all x, outcomes"
        f" and draws, the deterministic network misses {share['Deterministic']:.1%} and the"
        f" randomized forecaster {share['Randomized']:.1%}. The deterministic network always misses"
        " the same people; for the randomized forecaster they depend on the draw."
    )
    alt = (
        "Four panels against x: intervals of a deterministic forecaster; intervals of a randomized"
        " forecaster for two draws; people whose outcomes lie outside are shaded; and the share of"
        " outcomes missed at each x, for both."
    )
    title = "Calibrated on average, and calibrated for each person"
    return Exhibit("introduction", title, text, draw=lambda: plot_introduction(shown), alt=alt)


def _notions(values: Mapping[str, Any]) -> Exhibit:
    table = pd.DataFrame(values["notions"]).rename(columns=_heading)
    text = (
        "W1 distance of PITs to the uniform distribution, from 0 to 1/2, computed on grids with a"
        f" resolution of {values['resolution']:.1g}; smaller values do not differ from 0. Columns:"
        f" overall; in the worst of {values['settings']['n_groups']} named parts of the range of x;"
        " in the worst fifth of x that a search from many starts finds; for each x over outcomes"
        " and draws, mean and maximum; and for each outcome over draws, mean. An error of 0 in one"
        " column implies an error of 0 in the columns before it. The price is the mean log score"
        " minus that of the true distribution. The small network is the deterministic network of"
        " the figure; randomized versions of it and of the true distribution use the entropic link"
        f" with alpha {values['settings']['alpha']:g}."
    )
    return Exhibit(
        "notions", "Notions of calibration, from the weakest to the strongest", text, table=table
    )


def _readings(values: Mapping[str, Any]) -> Exhibit:
    row = {one["forecaster"]: one for one in values["notions"]}
    table = pd.DataFrame(
        {"forecaster": list(row), "interpretation": [_sentence(name, row) for name in row]}
    )
    return Exhibit(
        "readings",
        "Interpretation by forecaster",
        "One sentence for each row of the table above.",
        table=table,
    )


def _sentence(name: str, row: Mapping[str, Mapping[str, float]]) -> str:
    """Return the interpretation of a row of the table."""
    small = row["Small network"]
    own = row[name]
    average, group, fifth, worst = (
        own[key] for key in ("average", "worst named group", "worst fifth of x", "worst x")
    )
    pathwise = own["pathwise"]
    price = own["price"]
    sentences = {
        "True conditional distribution": (
            f"The error is {worst:.3f} for every x. One outcome per x cannot prove this: the"
            f" pathwise error is {pathwise:.3f}."
        ),
        "Constant marginal distribution": (
            f"The error is {average:.3f} overall and {worst:.3f} at the worst x: calibration on"
            " average does not require any use of x."
        ),
        "Small network": (
            f"The error is {average:.3f} overall and {fifth:.3f} in a fifth of x that is not a"
            " named group."
        ),
        "Small network, recalibrated on average": (
            f"Recalibration changes the overall error from {small['average']:.3f} to {average:.3f}"
            f" and that of the worst fifth of x from {small['worst fifth of x']:.3f} to"
            f" {fifth:.3f}."
        ),
        "Small network, recalibrated by group": (
            f"Recalibration changes the error of the worst named group from"
            f" {small['worst named group']:.3f} to {group:.3f} and that of the worst fifth of x"
            f" from {small['worst fifth of x']:.3f} to {fifth:.3f}."
        ),
        "Small network, randomized": (
            f"Without further training, the error of the worst fifth of x changes from"
            f" {small['worst fifth of x']:.3f} to {fifth:.3f}, for"
            f" {price - small['price']:.2f} nats."
        ),
        "Paper's network": (
            f"The error is {fifth:.3f} in the worst fifth of x; the pathwise error, which data can"
            f" prove, is {pathwise:.3f}."
        ),
        "True distribution, randomized": (
            f"The error is still {worst:.3f} for every x; data can now prove a pathwise error of"
            f" {pathwise:.3f}, for {price:.2f} nats."
        ),
        "Trivial forecaster": (
            f"The pathwise error is {pathwise:.3f}, but the forecast is useless, {price:.2f} nats"
            " worse than the true distribution. The formula in the paper has the opposite sign and"
            " gives one minus the draw."
        ),
    }
    return sentences[name]


def _averaged(values: Mapping[str, Any]) -> Exhibit:
    text = (
        "The same randomized forecasters, with one draw per person and with forecasts averaged over"
        " draws. The average is deterministic, so its pathwise error is at least 1/4. It is also"
        " wider than the single forecasts: PITs concentrate around 1/2, and calibration on average"
        " is lost, too."
    )
    table = pd.DataFrame(values["averaged"]).rename(columns=_heading)
    return Exhibit("averaging", "Averaging over draws loses calibration", text, table=table)


def _worlds(values: Mapping[str, Any]) -> Exhibit:
    picture = values["picture"]
    text = (
        "Left: each outcome is drawn from the deterministic network's forecast. Right: the"
        f" forecast distribution is cut into {picture['slices']} slices of equal probability, and"
        " all outcomes of a person come from one slice, which was chosen once at random. If each"
        " person is observed once, both worlds give the same data."
    )
    alt = (
        "Two panels with the same points: on the left with long bars that form a band, on the right"
        " with scattered short bars."
    )
    return Exhibit(
        "worlds", "Two worlds, the same data", text, draw=lambda: plot_two_worlds(picture), alt=alt
    )


def _floors(values: Mapping[str, Any]) -> Exhibit:
    settings = values["settings"]
    rows = [
        {
            "slices": row["slices"],
            "smallest W1 of a person": row["least_error"],
            "lower bound of W1": row["w1_floor"],
            "smallest total variation": row["least_variation"],
            "total variation in theory": row["tv_floor"],
            "W1 of the larger half": row["half_error"],
            "lower bound for the half": row["half_floor"],
            "overall W1": row["average_error"],
            "passed, calibrated world": row["yes"]["calibrated"],
            "passed, sliced world": row["yes"]["sliced"],
        }
        for row in values["floors"]
    ]
    text = (
        "Calibration errors of the deterministic network in the sliced world, and lower bounds for"
        " any deterministic forecaster, with limits 1/4, 1 and 1/8 for many slices. With one slice"
        " both worlds are the same. The two halves are the people with PITs of at least 1/2 and the"
        " others; the larger half contains a group of every size up to 1/2. The last columns are"
        " the shares of data sets whose PITs pass a Kolmogorov-Smirnov test at the 5% level, for"
        f" {settings['n_datasets']} data sets of {settings['n_seen']} people."
    )
    return Exhibit("floors", "Errors that no data can rule out", text, table=pd.DataFrame(rows))


def _heading(key: str) -> str:
    return "price (nats)" if key == "price" else key
