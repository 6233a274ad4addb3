"""Details of single groups: histogram of PITs, calibration curve, and ids for download."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from evenhand.report.charts import Area, Chart, Layer, Line, mini_axis
from evenhand.report.document import Details, Download, Paragraph, Part, Row
from evenhand.report.names import tip_name
from evenhand.report.page_data import MemberLists
from evenhand.report.records import Values
from evenhand.report.terms import Terms

PIT = mini_axis(title="PIT")
SHARES = {top: mini_axis(top, "Share of outcomes") for top in (0.2, 0.4, 1.0)}
PREDICTED = mini_axis(title="Predicted probability")
OBSERVED = mini_axis(title="Share of outcomes at or below")
RATE = mini_axis(title="Event rate")
"""Axes of small charts; the end of that of shares is the smallest that fits."""

MINI_AXES = (*((PIT, share) for share in SHARES.values()), (PREDICTED, OBSERVED), (PREDICTED, RATE))
"""Pairs of axes, which a page draws once."""

EVEN = Line([(0, 0), (1, 1)])
"""Curve of calibrated forecasts."""

EXPLAINED = (
    "Open a group for its histogram of PITs in ten equal bins and its calibration curve. Grey areas"
    " are simultaneous 95% bands, each for the group by itself; under calibration the bars lie"
    " within the band, and the dashed line lies within the band of the curve."
)
EXPLAINED_EVENTS = (
    "Open a group for its event rate by predicted probability, with simultaneous intervals; under"
    " calibration the dashed line lies within them."
)
EXPLAINED_TIMES = f"{EXPLAINED} Where a time is cut off, its PIT is drawn above its lower limit."
"""Explanations of the charts of single groups."""


@dataclass(frozen=True)
class GroupDetails:
    """Details of the groups of an audit.

    Parameters
    ----------
    profiles : dict
        Rows of `Audit.profiles` by table and by name or mass.
    members : MemberLists or None
        Ids of members that the page contains.
    """

    profiles: Mapping[tuple[str, Any], Values]
    members: MemberLists | None

    @classmethod
    def of(cls, audit: Values, members: MemberLists | None) -> GroupDetails:
        """Return the details that an audit contains."""
        rows = audit.get("profiles") or ()
        by_key = {(str(row["table"]), row["group"] or row["mass"]): row for row in rows}
        return cls(by_key, members)

    def has_table(self, table: str) -> bool:
        """Whether a group of a table has charts."""
        return any(key[0] == table for key in self.profiles)

    def of_group(
        self, table: str, key: object, name: str, mass: float | None = None
    ) -> Details | None:
        """Return the details of a group; None if there are none.

        Parameters
        ----------
        table : {"groups", "scan", "learned"}
            Table that lists the group.
        key : str or float
            Its name, or the mass of a learned group.
        name : str
            Name of its list of members.
        mass : float, optional
            Size of a learned group.
        """
        profile = self.profiles.get((table, key))
        charts = [] if profile is None else _charts(profile, str(key))
        place = None if self.members is None else self.members.place(name, mass)
        parts: list[Part] = [Row(charts)] if charts else []
        if place is not None and self.members is not None:
            n = self.members.groups[place].n
            parts.append(Download(f"Download {n:,} ids (csv)", place))
        if not parts:
            return None
        what = "charts" if place is None else "charts and ids" if charts else "ids"
        return Details(f"Show {what}", f" of {tip_name(name)}", parts)

    def explained(self, terms: Terms) -> Paragraph:
        """Return the explanation of the charts of single groups."""
        text = EXPLAINED_EVENTS if terms.is_event else EXPLAINED
        text = EXPLAINED_TIMES if terms.is_time else text
        ids = "" if self.members is None else f" {self.members}"
        return Paragraph(f"{text}{ids}", "hint")


def _charts(profile: Values, name: str) -> list[Chart]:
    if profile.get("reliability"):
        return [_reliability(profile["reliability"], name)]
    if not profile.get("share"):
        return []
    return [_histogram(profile, name), _curve(profile, name)]


def _histogram(profile: Values, name: str) -> Chart:
    share: Sequence[float] = profile["share"]
    even = 1 / len(share)
    top = next((top for top in SHARES if max(share) <= top), 1.0)
    corners = [
        (x, min(value, top)) for i, value in enumerate(share) for x in (i * even, (i + 1) * even)
    ]
    band = Area.of(((x, profile["low"], profile["high"]) for x in (0.0, 1.0)), "")
    layers: list[Layer] = [
        Area([(0, 0), (1, 0)], corners, color="blue"),
        band,
        # the ends of the band again, on top of the bars
        Line(band.low, kind="edge"),
        Line(band.high, kind="edge"),
        Line([(0, even), (1, even)]),
    ]
    alt = f"Histogram of PITs of {tip_name(name)}"
    return Chart(alt, PIT, layers, SHARES[top], title="PIT histogram", size="mini")


def _curve(profile: Values, name: str) -> Chart:
    share: Sequence[float] = profile["share"]
    levels = [i / len(share) for i in range(len(share) + 1)]
    observed = [0.0, *accumulate(share)]
    margin = profile["margin"]
    points = list(zip(levels, observed, strict=True))
    ends = [(x, max(y - margin, 0.0), min(y + margin, 1.0)) for x, y in points]
    layers: list[Layer] = [Area.of(ends, ""), EVEN, Line(points, kind="curve")]
    alt = f"Calibration curve of {tip_name(name)}"
    return Chart(alt, PREDICTED, layers, OBSERVED, title="Calibration curve", size="mini")


def _reliability(bins: Sequence[Sequence[float]], name: str) -> Chart:
    area = Area.of(((p, low, high) for p, _, low, high in bins), "")
    rates = Line([(p, rate) for p, rate, _, _ in bins], kind="curve")
    alt = f"Event rate by predicted probability of {tip_name(name)}"
    return Chart(alt, PREDICTED, [area, EVEN, rates], RATE, title="Event rate", size="mini")
