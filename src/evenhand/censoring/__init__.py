"""Times that are cut off: what is known of them, and the Kaplan-Meier estimate (outcomes: 5)."""

from __future__ import annotations

from evenhand.censoring.times import ISO_DATES as ISO_DATES
from evenhand.censoring.times import CensoredTimes, KaplanMeier
from evenhand.censoring.times import check_horizon as check_horizon
from evenhand.censoring.times import given_times as given_times
from evenhand.censoring.times import parsed_dates as parsed_dates

__all__ = ["CensoredTimes", "KaplanMeier"]
