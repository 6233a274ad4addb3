"""Draw the picture of the README and of the documentation's front page, from a run of the demo.

The file carries the coverages that it shows, which a test compares with those of a new demo.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib as mpl

PICTURE = Path(__file__).parents[1] / "docs" / "_static" / "coverage.png"
PANELS = {"before": "Before the repair", "repaired": "After the repair"}
LABELS = {
    "everyone": "Everyone",
    "sex = man": "Men",
    "sex = woman": "Women",
    "clinic = village": "Patients of villages",
}
"""Names of groups in the picture; the one group beside them is the worst that the audit found."""

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#666666"


def coverages(folder: Path) -> dict[str, dict[str, list[float]]]:
    """Return the coverage of 80% intervals, in %, with its interval, by panel and group."""
    shown: dict[str, dict[str, list[float]]] = {}
    for panel in PANELS:
        audit = json.loads((folder / f"audit-{panel}.json").read_text(encoding="utf-8"))
        rows = {row["group"]: row for row in audit["groups"]}
        found = [name for name in rows if " and " in name]
        shown[panel] = {
            name: [round(100 * rows[name][f"coverage_80{end}"], 1) for end in ("", "_low", "_high")]
            for name in [*list(LABELS)[:1], *found, *list(LABELS)[1:]]
        }
    return shown


def draw(shown: dict[str, dict[str, list[float]]]) -> None:
    """Draw two panels: the coverage of each group before and after the repair."""
    from matplotlib import pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=(8.8, 2.9), layout="constrained", sharey=True)
    for ax, (panel, groups) in zip(axes, shown.items(), strict=True):
        ax.axvline(80, color=GREY, linestyle="--", linewidth=1, zorder=0)
        for row, (covered, low, high) in enumerate(groups.values()):
            color = ORANGE if high < 80 else BLUE
            ax.hlines(row, low, high, color=color, linewidth=3)
            ax.plot(covered, row, "s" if high < 80 else "o", color=color, markersize=8)
            white = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
            ax.text(covered, row - 0.35, f"{covered:.1f}%", color=color, ha="center", bbox=white)
        ax.set_title(PANELS[panel], weight="bold")
        ax.set(xlim=(38, 100), ylim=(4.4, -0.75), xticks=(40, 60, 80))
        ax.set_yticks(range(len(groups)), [LABELS.get(name, "Women over 60") for name in groups])
        ax.xaxis.set_major_formatter("{x:.0f}%")
        ax.spines[["top", "right"]].set_visible(False)
    fig.supxlabel(
        "outcomes in the 80% interval (bars: 95% confidence, for all groups at once)", size=10
    )


def main() -> None:
    """Run the demo and save the picture."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "evenhand", "demo", "--out", "demo"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        shown = coverages(Path(folder, "demo"))
    draw(shown)
    plt.savefig(PICTURE, dpi=170, metadata={"Description": json.dumps(shown)})


if __name__ == "__main__":
    main()
