"""An audit as page with charts, as text, short and in full, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import msgspec

from evenhand._escape import short, visible
from evenhand._format import (
    UNKNOWN,
    at_most,
    band,
    confidence_in_full,
    count,
    in_full,
    percent,
    points,
    points_in_full,
    whole,
)
from evenhand._table import (
    SCREEN,
    folded_command,
    labelled,
    line_width,
    wrapped,
)
from evenhand.report import tables
from evenhand.report.charts import (
    OUTCOMES_TITLE,
    PIT_BAND,
    PIT_TITLE,
    Area,
    Axis,
    Bar,
    Bars,
    Chart,
    Label,
    Layer,
    Line,
    Point,
    Points,
    Row,
    Side,
    nice_ticks,
    plain,
    top_axis,
)
from evenhand.report.document import (
    Bullets,
    Document,
    Facts,
    Paragraph,
    Part,
    Section,
    Sentence,
    Status,
    about_facts,
    document_html,
    document_markdown,
    document_text,
    embedded,
    headed,
)
from evenhand.report.kinds import IN_FEATURES, Kind, one_line
from evenhand.report.next_steps import Step
from evenhand.report.slots import SMALLER, Slots, capitalized, name_of
from evenhand.results import AuditRows, Finding

# --- the document of an audit: its slots, a picture, the worst groups, and folded details


def audit_html(rows: AuditRows) -> str:
    """Return an audit as one HTML page that opens offline; it contains nobody's id.

    Parameters
    ----------
    rows : AuditRows
        The rows of an audit. Unknown numbers are omitted or shown as "-".

    Returns
    -------
    str
        Page with tables and SVG charts. Its script sorts and searches tables, and its content
        security policy blocks everything else. The page is readable without the script. Text from
        data is escaped.
    """
    return document_html(audit_document(rows))


def audit_document(rows: AuditRows) -> Document:
    """Return the document of an audit."""
    slots, kind = Slots(rows), Kind.of(rows)
    first, others = tables.first_groups(rows)
    # a page embeds the groups that it lists
    listed = {one.group for one in (*first, *others)}
    named = (*rows.groups[:1], *(one for one in rows.named if one.group in listed))
    scan = tuple(one for one in rows.scan if one.group in listed)
    shown = msgspec.structs.replace(rows, groups=named, scan=scan)
    data = embedded(msgspec.to_builtins(shown))
    about = [rows.about.get(key) for key in ("population", "period", "purpose")]
    facts = [count(rows.n_samples, "row"), *about, rows.provenance.get("date")]
    opening: list[Part] = [Bullets([Sentence(text, f"{name}: ") for name, text in slots.others])]
    opening += [Paragraph(text, "warn") for text in slots.cautions]
    if lead := f"{slots.lead} {slots.found_on}".strip():
        opening.insert(0, Paragraph(lead))
    chart, picture = overview(rows), None
    if chart is not None:
        unit = Paragraph(f"Error: {kind.point[:1].lower()}{kind.point[1:]}", "hint")
        picture = Section(chart.title, [replace(chart, title=""), unit])
    folds = [*_groups(rows, first, others), *_folds(slots, rows, kind), _provenance(rows)]
    return Document(
        title=f"Audit of {short(rows.name, 200)}",
        facts=[short(one) for one in facts if one],
        status=Status(slots.badge.capitalize(), slots.tone, slots.verdict),
        lead=slots.title,
        opening=opening,
        picture=picture,
        next_step=list(_steps(slots.next[:1], rows)),
        cards=list(_cards(slots, rows, kind)),
        sections=[one for one in folds if one.parts],
        footer="Works offline, without ids of people. The JSON of this audit has all digits.",
        data=data,
    )


WIDTH = 88
"""Most characters of a line of a command."""


def _steps(steps: Sequence[Step], rows: AuditRows) -> Iterator[Part]:
    """Yield what to do, as a command if the audit was made by one."""
    for step in steps:
        yield Paragraph(step.what)
        is_shell, code = step.code(rows.has_command)
        if code:
            yield Paragraph(folded_command(code, WIDTH) if is_shell else code, "code")


def _cards(slots: Slots, rows: AuditRows, kind: Kind) -> Iterator[Section]:
    """Yield what stands beside the picture."""
    if rows.bound:  # what can be proven without a draw is in a fold
        unions = rows.certificate is not None and rows.certificate.unions is not None
        yield Section("What is proven", [Bullets.of(slots.proven[unions:][:1])])
    everyone = [text for text in slots.everyone if text != slots.title]
    if everyone:
        yield Section("Everyone", [Bullets.of(everyone)])
    source, known, times = rows.provenance, rows.censoring, None
    if known is not None:
        times = count(known.n_events, "event")
        if kind.horizon:
            times += f" by {kind.horizon}, {known.n_reached:,} seen without it until then"
        lost = percent(known.n_lost / known.n_people) if known.n_people else "-"
        times += f", {known.n_lost:,} lost before ({lost})"
    kinds = {
        "by the forecast": rows.by_forecast,
        "named": rows.named,
        "by features": rows.scanned,
        "found by search": rows.learned,
    }
    groups = [f"{len(found):,} {name}" for name, found in kinds.items() if found]
    named = dict.fromkeys((rows.target, rows.about.get("unit")))
    facts = {
        "Model": (source.get("model") or {}).get("name") or rows.name,
        "Data": (source.get("data") or {}).get("name"),
        "Forecast of": ", ".join(short(one, 60) for one in named if one) or kind.outcome,
        "Forecasts": f"randomized, {count(rows.n_draws, 'draw')} per row"
        if rows.is_randomized
        else None,
        "Times": times,
        "Groups": "; ".join(["everyone", *groups]),
        "Tolerance": f"{points_in_full(rows.tolerance)} points",
    }
    yield Section("What was examined", [Facts(facts)])
    yield Section("What is not covered", [Bullets.of(slots.not_tested)])


# --- sections of an audit


def _section(key: str, title: str, hint: str, *parts: Part | None) -> Section:
    """Return a section of the parts that there are; it is folded if it has a hint."""
    return Section(title, [part for part in parts if part is not None], key, hint=hint)


def _groups(
    rows: AuditRows, first: Sequence[Finding], others: Sequence[Finding]
) -> Iterator[Section]:
    """Yield the first groups, the worst first, then the other groups, folded."""
    confidence = confidence_in_full(rows.confidence)
    slope = ", or a slope outside 0.8 to 1.25" if rows.is_event else ""
    note = (
        f"Sorted by the lower end of the error. In brackets: joint {confidence} intervals. Problem:"
        f" a significant error over {points_in_full(rows.tolerance)} points{slope}."
    )
    shown = [*tables.everyone(rows), *first]
    yield _section("groups", "Groups", "", tables.groups("Groups", shown, rows, note=note))
    n = sum(one.problem and one.same_as is None for one in others)
    hint = f"{n:,} with a problem found, {len(others) - n:,} without" if n else "no problem found"
    total = len(rows.named) + len(rows.scanned) + len(rows.learned)
    listed = len(first) + len(others)
    rest = f"The first {listed:,} of {total:,} groups are listed, problems before others."
    table = tables.groups("Other groups", others, rows, note=rest if total > listed else "")
    yield _section("others", "The other groups", hint, table)


PITS = (
    "With right forecasts a tenth of outcomes falls into each tenth of the predicted distribution."
    " Higher bars on the left mean that outcomes are lower than forecast, on the right that they"
    " are higher; a U shape means that forecasts are too narrow, a hump that they are too wide."
)
"""How to read the distribution of PITs."""


def _folds(slots: Slots, rows: AuditRows, kind: Kind) -> Iterator[Section]:
    """Yield the folded sections: what is proven, then details."""
    # a guarantee for every group comes before the details of the groups that were examined
    proven = _proven(slots, rows, kind)
    if rows.bound:
        yield proven
    note, given = "", rows.given_forecast
    if given is not None and rows.given is not None:
        reach = tables.estimate(rows.given.size, points)
        note = f"People with the same forecast: mean error {reach}; right forecasts would show"
        note += f" {points(given.chance)}."
    table = tables.groups("Groups by the forecast", rows.by_forecast, rows, note=note)
    hint = "are low and high forecasts equally right?"
    yield _section("own", "By the forecast itself", hint, table)
    hint, title = "the continuous part of the forecasts", f"Outcomes other than {kind.atom}"
    part = rows.positive_part[: tables.LISTED]
    table = tables.groups("Groups without the atom", part, rows)
    yield _section("positive", title, hint, table)
    title, table = "Predicted probabilities and rates", tables.reliability(rows)
    chart = _calibration_chart(rows, of_rates=True)
    yield _section("rates", title, "by group", chart, table)
    drawn = _calibration_chart(rows, of_rates=False), _pit_chart(rows)
    if any(drawn) and not kind.has_rates:
        assumed = f" This assumes that {IN_FEATURES}." if kind.has_range else ""
        parts = *drawn, Paragraph(f"{PITS}{assumed}")
        yield _section("calibration", "Calibration of everyone", "distribution of PITs", *parts)
    chart = None if _is_survival(rows) else _survival_chart(rows)
    title, hint = f"Rates of the event by {kind.horizon}", "predicted and observed"
    yield _section("survival", title, hint, chart, tables.survival(rows))
    texts = map(Paragraph, slots.decided)
    hint = "one rule, one family of tests"
    yield _section(
        "decided", "How this was decided", hint, *texts, *headed([Bullets.of(slots.gate)])
    )
    hint = "smaller log scores and CRPS are better"
    yield _section("scores", "Scores", hint, tables.scores(rows), tables.probability_scores(rows))
    if not rows.bound:
        yield proven
    more = tables.miscoverage(rows), tables.membership(rows), tables.worst_groups(rows)
    hint = "; ".join(table.label.lower() for table in more if table is not None)
    yield _section("more", "More about groups", hint, *headed(more))
    notes = [f"{one.text[:1].upper()}{one.text[1:]}" for one in rows.notes]
    yield _section(
        "notes", "Notes", "what was left out or done otherwise", *headed([Bullets.of(notes)])
    )


def _proven(slots: Slots, rows: AuditRows, kind: Kind) -> Section:
    """Show what is proven for named groups, for unions of them, and for every group."""
    proof = rows.certificate
    hint = "bounds, assumptions and limits" if rows.bound else "without a draw: lower bounds only"
    title = "What is proven for groups that nobody named"
    if proof is None:
        return _section("proof", title, hint)
    people = count(proof.n_samples, "person", "people")
    each = "together" if proof.link_bound is not None else "each by itself"
    texts = [*slots.proven]
    if proof.average_error is not None:
        texts.append(f"All people together: off by at most {at_most(proof.average_error)} points.")
    of_part = f" Bounds for every group are about {kind.people}." if kind.people != "people" else ""
    texts.append(
        f"From {people}; bounds hold {each}, with {confidence_in_full(proof.confidence)}"
        f" confidence.{of_part} Method: {proof.method}."
    )
    # every interval of a yes or no that is not a single value covers everything
    plain = () if kind.has_rates else rows.plain_intervals
    shown = [
        Bullets.of(texts),
        tables.every_group(proof.every_group, plain) if rows.bound else None,
        tables.plain_intervals(plain, may_be_lost=rows.censoring is not None),
        tables.event_bounds(proof.events or ()),
        tables.unions(proof.unions["cells"] if proof.unions else ()),
        tables.named_bounds(proof.groups),
        tables.questions(proof.questions),
        Bullets.of(proof.assumptions, "Assumed"),
        Bullets.of(proof.not_covered, "Not covered"),
    ]
    parts = list(headed(shown))
    if slots.next[1:]:
        parts += [Paragraph("To prove more", "heading"), *_steps(slots.next[1:], rows)]
    return _section("proof", title, hint, *parts)


def _provenance(rows: AuditRows) -> Section:
    """Show what is needed to repeat an audit, and its description."""
    known = rows.provenance
    model, source = known.get("model") or {}, known.get("data") or {}
    packages = {"evenhand": known.get("evenhand"), "Python": known.get("python")}
    packages |= known.get("packages") or {}
    versions = [f"{name} {version}" for name, version in packages.items() if version]
    n, n_parts = source.get("n_rows"), source.get("n_parts")
    in_parts = f" in {whole(n_parts)} parts, {whole(source.get('n_searched'))} searched"
    seed = known.get("random_state")
    facts = {
        "Command": f"`{known['command']}`" if known.get("command") else "none: made from Python",
        "Model": ", ".join(filter(None, [model.get("name"), model.get("kind")])) or None,
        # the hash stored in a model folder, which matches a report with its model
        "Hash of the model": model.get("sha256"),
        "Data": source.get("name"),
        "Rows": None if n is None else f"{whole(n)}{in_parts if n_parts else ''}",
        "Hash of the data": source.get("sha256"),
        "Hash of the values": known.get("values_sha256"),
        "Draws": known.get("draws"),
        "Seed": str("not set: bootstrap and simulations vary" if seed is None else seed),
        "Software": ", ".join(versions) or None,
        "Layout": rows.schema,
    }
    shown = [about_facts(rows.about, known, rows.target), Facts(facts)] if known else []
    return _section("provenance", "Where this comes from", "data, model, command", *shown)


# --- charts of an audit

DRAWN = 8
"""Most rows of a chart."""

NAME = 60
"""Most characters of the name of a row, so that its two lines fit beside its mark."""

LEVEL = 0.8
"""The interval whose coverage is drawn."""


def overview(rows: AuditRows) -> Chart | None:
    """Return the picture of a page, by what is known: rates, coverage, or errors of groups."""
    kind, leading = Kind.of(rows), rows.leading
    tenths = [one for one in rows.by_forecast if None not in (one.predicted, one.rate)]
    if kind.has_rates and len(tenths) > 1:
        return _tenths_chart(tenths, rows)
    if _is_survival(rows):
        return _survival_chart(rows)
    drawn = [one for one in _groups_drawn(rows) if one.size.value is not None]
    is_covered = not kind.has_rates and all(one.coverage_80 is not None for one in drawn)
    # a mark at 80% must not stand for a problem of another kind
    is_plain = leading is None or abs((leading.coverage_80 or LEVEL) - LEVEL) > rows.tolerance
    return _groups_chart(drawn, rows, is_covered=is_covered and is_plain) if drawn else None


def _is_survival(rows: AuditRows) -> bool:
    """Whether the picture has rates by the horizon: those of the worst group are known."""
    known = {one.group for one in rows.survival}
    return bool(known) and (rows.leading is None or rows.leading.group in known)


def _groups_drawn(rows: AuditRows) -> list[Finding]:
    """Return everyone, the worst groups that share no feature, named groups, then others."""
    named = sorted(rows.named, key=lambda one: one.rank)
    others = sorted(rows.examined, key=lambda one: one.rank)
    # a group by features and one found by search may have the same name: the worse one is drawn
    found: dict[str, Finding] = {}
    for one in (*rows.overall, *rows.listed, *named, *others):
        is_shown = one in rows.overall or one.is_judged
        # the people of a positive part are not those of the other groups
        if is_shown and one.same_as is None and one not in rows.positive_part:
            found.setdefault(name_of(one, rows), one)
        if len(found) == DRAWN:
            break
    return list(found.values())


def _row(one: Finding, rows: AuditRows, values: Sequence[str], summary: str = "") -> Row:
    name = "everyone" if one is rows.everyone else name_of(one, rows)
    # the range of a group by the forecast is in the table
    name = name.partition(" (")[0] if one.key is not None else name
    return Row(short(capitalized(name), NAME), whole(one.n), values, one is rows.leading, summary)


def _marks(places: Iterable[tuple[Finding, Point]], rows: AuditRows) -> list[Layer]:
    """Return marks with their results: red squares where a problem was found, else circles."""
    layers: dict[bool, list[Point]] = {False: [], True: []}
    for one, point in places:
        result = tables.result(one, rows).text
        tip = f"{one_line(name_of(one, rows))}: {point.tip} ({count(one.n, 'row')}); {result}."
        layers[one.problem].append(replace(point, tip=tip))
    return [
        Points(layers[False], "none found", "grey", "hollow"),
        Points(layers[True], "problem found", "red", "square"),
    ]


def _groups_chart(drawn: Sequence[Finding], rows: AuditRows, *, is_covered: bool) -> Chart:
    """Draw what the 80% interval covers by group, or errors; errors and intervals stand beside."""
    named, marks, n = [], [], len(drawn)
    for i, one in enumerate(drawn):
        error = tables.estimate(one.size, points)
        values = (error.text, "" if error.below == UNKNOWN else error.below)
        named.append(_row(one, rows, values, "" if is_covered else str(error)))
        low, value = one.size.low, max(one.size.value or 0.0, 0.0)
        # without an upper end, the whisker reaches from the lower end to the estimate
        high = value if one.size.high is None else one.size.high
        across = None if low is None else (max(low, 0.0), high)
        mark = Point(value, -i - 0.5, f"off by {error} points", across=across)
        if is_covered:
            x = one.coverage_80 or 0.0
            tip = f"the 80% interval covers {percent(x)}"
            mark = Point(x, -i - 0.5, tip, stem=(LEVEL, x))
        marks.append(mark)
    if is_covered:
        # room for the label left of the least mark
        least = max(0.0, int(10 * min(0.5, *(one.x - 0.1 for one in marks))) / 10)
        ticks = [tick for tick in nice_ticks(least, 1.0, 6) if abs(tick - LEVEL) > 0.01]
        title, axis = "How many outcomes does the 80% interval cover?", Axis(least, 1.0, "", ticks)
        axis = replace(axis, show=in_full)
        below: list[Layer] = [Line([(LEVEL, -n), (LEVEL, 0)])]
        above = [Label(LEVEL, 0, "should be 80%", "above", is_reference=True)]
        for x, y in ((mark.x, mark.y) for mark in marks):
            above.append(Label(x, y, percent(x), "left" if x < LEVEL else "right"))
    else:
        ends = [end for one in marks for end in (one.x, *(one.across or ()))]
        title, axis = "Error of the forecasts in points, by group.", top_axis(max(ends))
        axis = replace(axis, title="0 is perfect", show=points_in_full)
        edge = min(rows.tolerance, axis.high)
        zone = f"tolerance: up to {points_in_full(rows.tolerance)} points"
        below, above = [Area([(0, -n), (0, 0)], [(edge, -n), (edge, 0)], zone)], []
    n_groups = sum(one is not rows.everyone and one is not rows.given for one in drawn)
    note = f"Everyone and {n_groups} of {count(len(rows.examined), 'group')}. Small number: rows."
    note += " Bold: largest lower end of the error." * (rows.leading in drawn)
    return Chart(
        f"{title} The table has the numbers.",
        axis,
        [*below, *_marks(zip(drawn, marks, strict=True), rows), *above],
        title=title.rstrip("."),
        note=note,
        rows=named,
        heads=("error in points", "interval"),
    )


def _tenths_chart(tenths: Sequence[Finding], rows: AuditRows) -> Chart:
    """Draw predicted and observed rates by tenth of the probability."""
    n, part = len(tenths), "tenth" if len(tenths) == 10 else "part"
    layers: list[Layer] = []
    marks = []
    for i, one in enumerate(tenths, 1):
        predicted, rate = one.predicted or 0.0, one.rate or 0.0
        tip = f"{percent(predicted)} predicted, {percent(rate)} observed"
        ends = [predicted + end for end in (one.bias_low, one.bias_high) if end is not None]
        upright = (max(ends[0], 0.0), min(ends[1], 1.0)) if len(ends) == 2 else None
        marks.append(Point(i, rate, tip, upright=upright))
        label = "predicted" if i == 1 else ""
        layers.append(Line([(i - 0.36, predicted), (i + 0.36, predicted)], label, "level"))
    worst = min((one for one in tenths if one.problem), key=lambda one: one.rank, default=None)
    if worst is not None:
        i, predicted = tenths.index(worst), worst.predicted or 0.0
        # above and below all marks of this tenth, so that no mark is covered
        low, high = marks[i].upright or (marks[i].y, marks[i].y)
        sides: tuple[Side, Side] = (
            ("above", "below") if marks[i].y > predicted else ("below", "above")
        )
        place = {"above": max(high, predicted), "below": min(low, predicted)}
        layers += [
            Label(i + 1, place[sides[0]], percent(marks[i].y), sides[0]),
            Label(i + 1, place[sides[1]], percent(predicted), sides[1], is_reference=True),
        ]
    most = max(end for point in marks for end in (point.y, *(point.upright or ())))
    title = f"{part} of the forecast, lowest to highest"
    return Chart(
        f"Predicted and observed rate, by {part} of the forecast; the table has the numbers.",
        Axis(0.5, n + 0.5, title, range(1, n + 1), plain),
        [*layers, *_marks(zip(tenths, marks, strict=True), rows)],
        top_axis(max([most, *(one.predicted or 0.0 for one in tenths)])),
        title=f"Predicted and observed, by {part} of the forecast",
        note="Mark: observed, with its interval.",
    )


def _survival_chart(rows: AuditRows) -> Chart | None:
    """Draw predicted and observed rates by the horizon by group; None without rates."""
    drawn = tables.survival_rows(rows)[:DRAWN]
    if not drawn:
        return None
    known = {one.group: one for one in rows.groups}
    found = [known.get(one.group) or Finding(group=one.group, n=one.n) for one in drawn]
    layers: list[Layer] = []
    marks = []
    for i, one in enumerate(drawn):
        predicted, observed, y = one.predicted or 0.0, one.observed or 0.0, -i - 0.5
        label = "" if i else "predicted"
        layers.append(Line([(predicted, y - 0.22), (predicted, y + 0.22)], label, "level"))
        reach = band(percent, one.low, one.high)
        tip = f"{percent(predicted)} predicted, {percent(observed)} observed ({reach})"
        across = None if one.low is None or one.high is None else (one.low, one.high)
        marks.append(Point(observed, y, tip, across=across))
    ends = [end or 0.0 for one in drawn for end in (one.predicted, one.observed, one.high)]
    return Chart(
        "Predicted and observed rate by the horizon, by group; the table has the numbers.",
        top_axis(max(ends)),
        [*layers, *_marks(zip(found, marks, strict=True), rows)],
        title=f"Predicted and observed rate of the event by {Kind.of(rows).horizon}",
        note="Mark: observed (Kaplan-Meier), with its interval. Small number: rows.",
        rows=[
            _row(
                *(group, rows, (percent(one.predicted), percent(one.observed))),
                f"{percent(one.predicted)} predicted, {percent(one.observed)} observed",
            )
            for group, one in zip(found, drawn, strict=True)
        ],
        heads=("predicted", "observed"),
    )


# --- calibration of everyone


def _calibration_chart(rows: AuditRows, *, of_rates: bool) -> Chart | None:
    """Draw observed shares, or rates of an event, by predicted probability; None if unknown."""
    places = [
        (one.probability, one.rate, one) if of_rates else (one.level, one.observed, one)
        for one in rows.calibration
    ]
    curve = [(x, y, one.low, one.high) for x, y, one in places if x is not None and y is not None]
    # of events, bins of people are marked; the curve is isotonic
    bins = [one for one in rows.reliability if one.group == rows.reliability[0].group]
    seen = [
        (one.probability, one.rate, one.low, one.high)
        for one in bins
        if of_rates and one.probability is not None and one.rate is not None
    ]
    if not (seen or curve):
        return None
    show = percent if of_rates else in_full
    marks = [
        Point(
            x,
            y,
            f"Predicted {show(x)}: observed {percent(y)} ({band(percent, low, high)}).",
            # intervals and bands hold for all marks at once: one that excludes x is evidence
            not (low or 0.0) <= x <= (1.0 if high is None else high),
        )
        for x, y, low, high in seen or curve
    ]
    ends = [end or 0.0 for one in (*seen, *curve) for end in (one[0], one[1], one[3])]
    axis = top_axis(max(ends), "Predicted probability")
    band_of = [(x, low, high) for x, _, low, high in curve or seen]
    title = "Observed rate" if of_rates else "Share of outcomes at or below the quantile"
    return Chart(
        f"{title} by predicted probability, of everyone.",
        axis,
        [
            Area.of(band_of, "95% band of the curve" if curve else "95% intervals"),
            Line([(0, 0), (axis.high, axis.high)], "right forecasts"),
            Line([(x, y) for x, y, _, _ in curve], "isotonic curve" * of_rates, "curve"),
            Points(marks, "observed", off_label="interval excludes the predicted probability"),
        ],
        replace(axis, title=title),
        title="Reliability diagram" if of_rates else "Calibration curve",
    )


def _pit_chart(rows: AuditRows) -> Chart | None:
    """Draw the distribution of PITs with its band under calibration; None if it is not known."""
    bins = [one for one in rows.pit if one.share is not None]
    if not bins:
        return None
    bars = []
    for one in bins:
        is_off = not (one.low or 0.0) <= (one.share or 0.0) <= (1 if one.high is None else one.high)
        tip = (
            f"PIT {in_full(one.start)} to {in_full(one.end)}: {percent(one.share)} of outcomes;"
            f" under calibration {band(percent, one.low, one.high)}."
        )
        tip += " Outside the band." * is_off
        bars.append(Bar(one.start, one.end, one.share or 0.0, tip, is_off))
    top = max(end or 0.0 for one in bins for end in (one.share, one.high)) * 1.08 or 1.0
    # steps along the ends of the band
    area = Area.of(((x, one.low, one.high) for one in bins for x in (one.start, one.end)), PIT_BAND)
    # bins are equally wide, so each contains the same share of uniform PITs
    even = 1 / len(bins)
    return Chart(
        "Histogram of PITs. Under calibration, all bars are as high as the dashed line.",
        top_axis(1.0, PIT_TITLE),
        [
            area,
            Bars(bars, "share of outcomes", "outside the band"),
            # the ends of the band again, on top of the bars
            Line(area.low, kind="edge"),
            Line(area.high, kind="edge"),
            Line([(0, even), (1, even)], "calibrated"),
        ],
        Axis(0, top, OUTCOMES_TITLE, nice_ticks(0.0, top, 4), in_full),
        title="Distribution of PITs",
    )


# --- short text of an audit: verdict, worst case, other cases, what was not tested, next step

LINES = 12
"""Most lines, beside what a reader must not miss."""

LABEL = 18
"""Most characters of the column of labels."""


def audit_text(rows: AuditRows, *, full: bool = False) -> str:
    """Return an audit as text of about 12 lines, or in full with all tables."""
    if full:
        return document_text(audit_document(rows))
    slots, width = Slots(rows), line_width(SCREEN)
    # without a problem, the verdict is followed by what the rows would have shown
    shown = "" if slots.name else slots.lead.removesuffix(SMALLER)
    verdict = f"{slots.badge} {slots.verdict}" if slots.verdict else f"{slots.badge}."
    heading = f"{slots.heading} (all: {slots.more})"
    head = [wrapped(heading, width), wrapped(f"{verdict} {shown}".strip(), width), ""]
    step = slots.next[0]
    code = "\n".join(map(visible, step.code(rows.has_command)[1].split("\n")))
    code = folded_command(code, width - 2) if code.startswith("evenhand ") else code
    last = wrapped(f"Next  {step.what[:-1]}:" if code else f"Next  {step.what}", width)
    last += "\n  " + code.replace("\n", "\n  ") if code else ""
    blocks = list(_blocks(slots, rows))
    while True:
        beside = labelled([one[1:] for one in blocks], width, LABEL)
        text = "\n".join([*head, beside, last])
        least = max(blocks, key=lambda one: one[0])
        if text.count("\n") < LINES or not least[0]:
            break
        blocks.remove(least)
    return text


def _blocks(slots: Slots, rows: AuditRows) -> Iterator[tuple[int, str, str]]:
    """Yield rank, label and text; of several, those of high rank are left out first."""
    if slots.name:
        yield 0, slots.name, f"{capitalized(slots.fact)}. {slots.lead}".strip()
    for i, (name, text) in enumerate(slots.others):
        yield 2 + 4 * i, "" if i else "Also", f"{name}: {text.split('; ')[0].removesuffix('.')}"
    if rows.leading is None or rows.leading not in rows.overall:
        n = 1 if rows.is_event or rows.survival else 2
        yield 0, "Everyone", " ".join(slots.everyone[:n])
        yield from ((1, "", text) for text in filter(None, [" ".join(slots.everyone[n:4])]))
    yield from ((0, "Caution", text) for text in slots.cautions)
    if slots.proven:
        yield 0 if rows.bound else 3, "Proven", slots.proven[0]
    tested = (one.rstrip(".") for one in slots.not_tested[: 3 if rows.censoring else 2])
    yield 0, "Not tested", "; ".join(f"{one[:1].lower()}{one[1:]}" for one in tested)
    yield from ((0, "Gate", text) for text in slots.gate)


def audit_markdown(rows: AuditRows) -> str:
    """Return an audit as Markdown: its page without folds, the guarantees and a gate's values."""
    slots, document = Slots(rows), audit_document(rows)
    more = {"What is proven": slots.proven, "Gate": slots.gate}
    sections = [Section(title, [Bullets.of(texts)]) for title, texts in more.items() if texts]
    cards = [one for one in document.cards if one.title not in more]
    return document_markdown(replace(document, cards=[*sections, *cards]))
