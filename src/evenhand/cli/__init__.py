"""Command-line interface: parses options, calls the library and prints results."""

from evenhand.cli.arguments import FORECASTS as FORECASTS
from evenhand.cli.arguments import LARGE as LARGE
from evenhand.cli.arguments import OUTPUT as OUTPUT
from evenhand.cli.auditing import audit
from evenhand.cli.commands import app as app
from evenhand.cli.commands import main
from evenhand.cli.comparing import compare
from evenhand.cli.demoing import demo
from evenhand.cli.fitting import features_like_names as features_like_names
from evenhand.cli.fitting import fit
from evenhand.cli.help_page import OTHERS as OTHERS
from evenhand.cli.help_page import Layout as Layout
from evenhand.cli.help_page import command_page as command_page
from evenhand.cli.help_page import description_of as description_of
from evenhand.cli.help_page import name_of as name_of
from evenhand.cli.help_page import panels_of as panels_of
from evenhand.cli.help_page import short_page as short_page
from evenhand.cli.help_page import top_page as top_page
from evenhand.cli.help_page import usage as usage
from evenhand.cli.messages import stopped_by_signals as stopped_by_signals
from evenhand.cli.outcomes import outcomes
from evenhand.cli.pages import PAGES as PAGES
from evenhand.cli.pages import START as START
from evenhand.cli.pages import STEPS as STEPS
from evenhand.cli.planning import plan
from evenhand.cli.randomizing import randomize
from evenhand.cli.recalibrating import recalibrate
from evenhand.cli.replaying import replay
from evenhand.cli.serving import predict
from evenhand.cli.streams import safe_streams as safe_streams
from evenhand.cli.targets import discrete_target as discrete_target
from evenhand.cli.targets import has_classes as has_classes
from evenhand.cli.terminal import has_colour as has_colour
from evenhand.cli.terminal import width_of as width_of
from evenhand.cli.watching import watch

__all__ = [
    "audit",
    "compare",
    "demo",
    "fit",
    "main",
    "outcomes",
    "plan",
    "predict",
    "randomize",
    "recalibrate",
    "replay",
    "watch",
]
