"""Assumptions of numbers on times that are cut off (outcomes: 5)."""

from __future__ import annotations

IN_GROUP = (
    "in each group, censoring is independent of how early or late the event is for its forecast"
)
"""Assumption of Kaplan-Meier estimates of PITs."""

IN_FEATURES = (
    "for people with the same features, censoring is independent of the time until the event"
)
"""Assumption of tests of randomized PITs."""

IN_TIME = "in each group, censoring is independent of the time until the event"
"""Assumption of Kaplan-Meier estimates of the rate of the event."""

WITHOUT = "without an assumption on why times are cut off"
"""Condition of bounds that hold whatever the unknown times are."""

NO_HORIZON = (
    "Without a horizon nothing can be proven for every group: all times that are cut off may be in"
    " one group, whose error then may be 50 points."
)
"""Why there is no guarantee for every group without a horizon."""
