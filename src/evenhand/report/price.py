"""What proof costs: the sharpness that is given up, against the error that a group can have."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand._format import at_most, in_full, number, points, points_in_full
from evenhand.report.chart import (
    Frame,
    axes,
    chart,
    known,
    line,
    line_sign,
    nice_ticks,
    plain,
    point,
    sign,
    titled_chart,
)
from evenhand.report.page import Cell, Section, paragraph, section, table
from evenhand.report.sentences import Values


def price_section(audit: Values) -> Section | None:
    """Show the price of proof against the group error; nothing if it is not known."""
    price = audit.get("price")
    if not price:
        return None
    rows = [row for row in price["curve"] if known(row["group_error"], row["price"])]
    if not rows:
        return None
    point_chosen: Values | None = price["chosen"]
    is_shown = point_chosen and known(point_chosen["group_error"], point_chosen["price"])
    chosen = point_chosen if is_shown else None
    mass = in_full(price["mass"])
    explained = [
        paragraph(
            "Proof costs sharpness. The smaller alpha, the more a forecast hangs on its draw: the"
            " less far off any group can be, and the more log score is given up, in nats."
        ),
        paragraph(_chosen_in_words(chosen, mass)),
        paragraph(
            "The curve is what a link promises around forecasts that are calibrated before the"
            " draw; what these rows prove of this model stands under What is proven."
        ),
    ]
    aside = f'<div class="aside">{"".join(explained)}</div>'
    return section(
        "What proof costs",
        f'<div class="pair"><div>{_price_figure(price, rows, chosen)}</div>{aside}</div>',
        key="price",
    )


def _chosen_in_words(chosen: Values | None, mass: str) -> str:
    # a model without a link, such as a deterministic one, has no point on the curve
    if chosen is None:
        return (
            "This model has no link of its own to choose by. The curve shows what a link of each"
            " alpha would cost around a calibrated model."
        )
    return (
        f"Chosen here: alpha {chosen['alpha']:.3g}. Around a calibrated model no group of {mass} of"
        f" people would be off by more than {at_most(chosen['group_error'])} points, for"
        f" {number(chosen['price'])} nats."
    )


def _price_figure(price: Values, rows: Sequence[Values], chosen: Values | None) -> str:
    # the chosen alpha need not be one of the curve, and may lie beyond its ends
    shown = [*rows, chosen] if chosen else list(rows)
    # a little room above the highest point; all prices may be 0
    high = max(row["price"] for row in shown) * 1.05 or 1.0
    reach = max(row["group_error"] for row in shown)
    frame = Frame((0, min(0.5, reach * 1.06) or 0.5), (0, high), height=330)
    mass = in_full(price["mass"])
    points_of = [(row["group_error"], row["price"]) for row in rows]
    parts = [
        axes(
            frame,
            x=f"Groups of {mass} of people off by up to (percentage points)",
            y="Price: log score given up (nats)",
            x_ticks=[v for v in nice_ticks(0, frame.x_range[1]) if v <= 0.5],
            y_ticks=nice_ticks(0, high),
            x_text=points_in_full,
            y_text=plain,
        ),
        (f'<g class="blue">{line(frame, points_of, "path")}</g>'),
        *(_price_mark(frame, row, "circle", "blue", mass) for row in rows),
        _price_mark(frame, chosen, "diamond", "red", mass) if chosen else "",
    ]
    key = [(line_sign("blue", "circle"), f"{price['link']} link, a point for each alpha")]
    key += [(sign("diamond", "red"), "chosen")] if chosen else []
    header = ["alpha", "#group error (points)", "#price (nats)"]
    cells: list[list[Cell]] = [
        [f"{r['alpha']:.3g}", points(r["group_error"]), number(r["price"])] for r in rows
    ]
    numbers = table("Numbers of the price of proof", header, cells)
    alt = "Price of proof against the error that a group can have."
    return titled_chart(
        "Price of proof against group error", chart(frame, alt, parts), key, numbers=numbers
    )


def _price_mark(frame: Frame, row: Values, name: str, kind: str, mass: str) -> str:
    first = "Chosen: alpha" if name == "diamond" else "Alpha"
    label = (
        f"{first} {row['alpha']:.3g}: groups of {mass} off by up to {points(row['group_error'])}"
        f" points, for {number(row['price'])} nats."
    )
    return point(frame, (row["group_error"], row["price"]), name, kind, label)
