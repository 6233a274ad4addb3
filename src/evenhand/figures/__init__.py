"""Figures of audit results, as matplotlib axes. The numbers are computed in other rooms.

Errors are fractions, and their axes are labelled in percentage points. matplotlib is imported when
a figure is drawn, and the state of pyplot is never used.
"""

from evenhand.figures.audit_figures import (
    plot_calibration,
    plot_groups,
    plot_survival,
    plot_worst_group,
)
from evenhand.figures.price import plot_price_of_proof

# parts of figures and pages in other rooms; `__all__` is the documented reference
from evenhand.figures.style import BLUE as BLUE
from evenhand.figures.style import CERTIFIED as CERTIFIED
from evenhand.figures.style import ERROR_TITLE as ERROR_TITLE
from evenhand.figures.style import GREY as GREY
from evenhand.figures.style import LEARNED as LEARNED
from evenhand.figures.style import ORACLE as ORACLE
from evenhand.figures.style import ORANGE as ORANGE
from evenhand.figures.style import OUTCOMES_TITLE as OUTCOMES_TITLE
from evenhand.figures.style import PIT_BAND as PIT_BAND
from evenhand.figures.style import PIT_TITLE as PIT_TITLE
from evenhand.figures.style import PRICE_TITLE as PRICE_TITLE
from evenhand.figures.style import RED as RED
from evenhand.figures.style import SAME_SEARCH as SAME_SEARCH
from evenhand.figures.style import SIZE_TITLE as SIZE_TITLE
from evenhand.figures.style import as_percent as as_percent
from evenhand.figures.style import as_points as as_points
from evenhand.figures.style import new_figure as new_figure
from evenhand.figures.style import printable as printable
from evenhand.figures.style import tidy as tidy

__all__ = [
    "plot_calibration",
    "plot_groups",
    "plot_price_of_proof",
    "plot_survival",
    "plot_worst_group",
]
