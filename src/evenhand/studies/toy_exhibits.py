"""Exhibits of the toy study: tables, figures and sentences, all from the numbers given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from evenhand.studies.study import Exhibit
from evenhand.studies.toy_figures import plot_introduction, plot_two_worlds


def exhibits(values: Mapping[str, Any]) -> list[Exhibit]:
    """Put figures and tables in the order of the page.

    Parameters
    ----------
    values : dict
        `introduction`, `notions`, `averaged` and `resolution` of the forecasters; `floors` and
        `picture` of the worlds; `settings`.
    """
    # the order of the argument: what is seen, how it is measured, why no data can show it
    makers = (_introduction, _notions, _readings, _averaged, _worlds, _floors)
    return [make(values) for make in makers]


def lead(values: Mapping[str, Any]) -> list[str]:
    """Sentences on the results, one or two for each."""
    row = {one["forecaster"]: one for one in values["notions"]}
    small = row["Small network"]
    paper = row["Paper's network"]
    worst = {name: max(share) for name, share in values["introduction"]["misses"].items()}
    # the largest number of slices, nearest to the limit of theory
    most = values["floors"][-1]
    settings = values["settings"]
    one, many = (
        _served(values["averaged"], "Paper's network", how)
        for how in ("one draw", "average of draws")
    )
    fifth = "worst fifth of x"
    return [
        (
            f"The deterministic network is off by {small['average']:.3f} on average (W1 of its"
            f" PITs, 0 to 1/2) and by {small[fifth]:.3f} for the worst fifth of x; at the worst x"
            f" its {settings['level']:.0%} interval misses {worst['Deterministic']:.0%} of the"
            " outcomes."
        ),
        (
            f"The randomized one (the paper's network, alpha {settings['alpha']:g}) is off by"
            f" {paper[fifth]:.3f} for its worst fifth of x and misses {worst['Randomized']:.0%} at"
            f" its worst x. It gives up {paper['price']:.2f} nats of log score against the true"
            f" distribution, the deterministic one {small['price']:.2f}."
        ),
        (
            "Where each person is seen once, no data tell a world that the deterministic network"
            f" is calibrated for from one where it is off by at least {most['least_error']:.3f} for"
            f" each person ({most['least_variation']:.3f} in total variation) and by"
            f" {most['half_error']:.3f} for one half of them: a test of its PITs passes it"
            f" {most['yes']['calibrated']:.1%} of the times in the first and"
            f" {most['yes']['sliced']:.1%} in the other."
        ),
        (
            "Averaging the draws of the paper's network takes its pathwise error from"
            f" {one['pathwise']:.3f} to {many['pathwise']:.3f}, its error for the worst fifth of x"
            f" from {one[fifth]:.3f} to {many[fifth]:.3f} and its average error from"
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
        f" intervals. The deterministic network has {settings['hidden']} hidden units, too few for"
        " both bumps of the truth; the randomized one is the paper's at alpha"
        f" {settings['alpha']:g}. Both were trained on the same {settings['n_train']} rows. They"
        f" miss {count[0]}, {count[1]} and {count[2]} of these people, where chance allows a"
        f" calibrated forecaster {y.size * promised:.0f}, give or take {spread:.1f}. Over all x,"
        f" outcomes and draws the deterministic one misses {share['Deterministic']:.1%} and the"
        f" randomized one {share['Randomized']:.1%}. The deterministic one misses the same people"
        " whenever it is asked; whom the randomized one misses is up to the draw."
    )
    alt = (
        "Four panels over x: intervals of a deterministic forecaster; intervals of two draws of a"
        " randomized one; people whose outcomes lie outside are shaded; and the share of outcomes"
        " missed at each x, for both."
    )
    title = "Calibrated on average, and for each person"
    return Exhibit("introduction", title, text, draw=lambda: plot_introduction(shown), alt=alt)


def _notions(values: Mapping[str, Any]) -> Exhibit:
    table = pd.DataFrame(values["notions"]).rename(columns=_heading)
    text = (
        "W1 distance of PITs to uniform, from 0 to 1/2, computed on grids and therefore exact up"
        f" to {values['resolution']:.1g}, so that less is no different from 0: over everybody; in"
        f" the worst of {values['settings']['n_groups']} named parts of the range of x; in the"
        " worst fifth of x that a search from many starts can put together; for each x over"
        " outcomes and draws, the mean and the worst; and for each outcome over draws alone, the"
        " mean. An error of 0 in one notion implies an error of 0 in those before it. The price is"
        " the mean log score given up against the true distribution. The small network is the"
        " deterministic one of the figure; where it or the truth is randomized, it is through an"
        f" entropic link at alpha {values['settings']['alpha']:g}."
    )
    return Exhibit(
        "notions", "Notions of calibration, from the weakest to the strongest", text, table=table
    )


def _readings(values: Mapping[str, Any]) -> Exhibit:
    row = {one["forecaster"]: one for one in values["notions"]}
    table = pd.DataFrame(
        {"forecaster": list(row), "what it shows": [_sentence(name, row) for name in row]}
    )
    return Exhibit(
        "readings", "What each forecaster shows", "The table above, read line by line.", table=table
    )


def _sentence(name: str, row: Mapping[str, Mapping[str, float]]) -> str:
    """Say what a row of the table shows."""
    small = row["Small network"]
    own = row[name]
    average, group, fifth, worst = (
        own[key] for key in ("average", "worst named group", "worst fifth of x", "worst x")
    )
    pathwise = own["pathwise"]
    price = own["price"]
    sentences = {
        "True conditional distribution": (
            f"At {worst:.3f} for every x. One outcome of each x cannot prove it: for the "
            f"outcomes alone the error is {pathwise:.3f}."
        ),
        "Constant marginal distribution": (
            f"At {average:.3f} on average and {worst:.3f} at the worst x: calibration on "
            "average does not ask for any use of x."
        ),
        "Small network": (
            f"At {average:.3f} on average, {fifth:.3f} for a fifth of x that nobody named."
        ),
        "Small network, recalibrated on average": (
            f"The average goes from {small['average']:.3f} to {average:.3f}, the "
            f"worst fifth of x from {small['worst fifth of x']:.3f} to {fifth:.3f}."
        ),
        "Small network, recalibrated by group": (
            f"The worst named group goes from {small['worst named group']:.3f} to {group:.3f}, the"
            f" worst fifth of x from {small['worst fifth of x']:.3f} to {fifth:.3f}."
        ),
        "Small network, randomized": (
            f"The worst fifth of x goes from {small['worst fifth of x']:.3f} to {fifth:.3f}, "
            f"without training, for {price - small['price']:.2f} nats more."
        ),
        "Paper's network": (
            f"At {fifth:.3f} for the worst fifth of x, and {pathwise:.3f} for the outcomes alone,"
            " which data can prove."
        ),
        "True distribution, randomized": (
            f"At {worst:.3f} for every x as before; now data can prove {pathwise:.3f}, "
            f"for {price:.2f} nats."
        ),
        "Trivial forecaster": (
            f"At {pathwise:.3f} for the outcomes alone and of no use, {price:.2f} nats behind. The "
            "paper prints it with the sign that gives one minus the draw."
        ),
    }
    return sentences[name]


def _averaged(values: Mapping[str, Any]) -> Exhibit:
    text = (
        "The same randomized forecasters, with one draw for each person and with the forecast"
        " averaged over draws. The average is deterministic, so its pathwise error is 1/4 at the"
        " least. And it is less certain than its parts: the PITs crowd in the middle, and"
        " calibration on average is lost with the rest."
    )
    table = pd.DataFrame(values["averaged"]).rename(columns=_heading)
    return Exhibit("averaging", "Averaging over draws gives calibration away", text, table=table)


def _worlds(values: Mapping[str, Any]) -> Exhibit:
    picture = values["picture"]
    text = (
        "Left, each outcome is drawn from the deterministic network's forecast. Right, the"
        f" forecast's probability is cut into {picture['slices']} slices, and all outcomes of a"
        " person come from one slice, picked once at random. Who sees each person once sees the"
        " same data."
    )
    alt = (
        "Two panels with the same points: among long bars that form a band, and among short bars"
        " that lie scattered."
    )
    return Exhibit(
        "worlds", "Two worlds, the same data", text, draw=lambda: plot_two_worlds(picture), alt=alt
    )


def _floors(values: Mapping[str, Any]) -> Exhibit:
    settings = values["settings"]
    rows = [
        {
            "slices": row["slices"],
            "least W1 of a person": row["least_error"],
            "in theory at least": row["w1_floor"],
            "least total variation": row["least_variation"],
            "variation in theory": row["tv_floor"],
            "W1 of the larger half": row["half_error"],
            "half in theory at least": row["half_floor"],
            "W1 of everybody": row["average_error"],
            "passed, calibrated world": row["yes"]["calibrated"],
            "passed, sliced world": row["yes"]["sliced"],
        }
        for row in values["floors"]
    ]
    text = (
        "How far the deterministic network is from calibrated in the sliced world, and what theory"
        " says of any deterministic forecaster; in the limit of many slices 1/4, 1 and 1/8. With"
        " one slice the world is the calibrated one. The halves are the people with PITs from 1/2"
        " up and the others; the larger is a group of every mass that is asked for up to 1/2. The"
        " last columns are the shares of data sets whose PITs pass a Kolmogorov-Smirnov test at"
        f" the 5% level, {settings['n_datasets']} data sets of {settings['n_seen']} people."
    )
    return Exhibit("floors", "What no data can rule out", text, table=pd.DataFrame(rows))


def _heading(key: str) -> str:
    return "price (nats)" if key == "price" else key
