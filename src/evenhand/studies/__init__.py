"""Reruns of the paper's experiments with figures and verdicts, and the lending game."""

from __future__ import annotations

from evenhand.studies.credit import run as run_credit

# parts of the experiments for tests; `__all__` is what the command runs
from evenhand.studies.credit_banks import LINKED as LINKED
from evenhand.studies.credit_banks import bank_earnings as bank_earnings
from evenhand.studies.credit_banks import best_cut as best_cut
from evenhand.studies.credit_banks import deterministic_banks as deterministic_banks
from evenhand.studies.credit_claims import advantages as advantages
from evenhand.studies.credit_claims import choose_cells as choose_cells
from evenhand.studies.credit_claims import credit_claims_of as credit_claims_of
from evenhand.studies.credit_claims import judge_chosen as judge_chosen
from evenhand.studies.credit_people import NOISE as NOISE
from evenhand.studies.credit_people import SHARE_UNQUALIFIED as SHARE_UNQUALIFIED
from evenhand.studies.credit_people import Rollout as Rollout
from evenhand.studies.credit_people import load_people as load_people
from evenhand.studies.crime import run as run_crime
from evenhand.studies.crime_claims import crime_claims_of as crime_claims_of
from evenhand.studies.crime_claims import kinds_of as kinds_of
from evenhand.studies.crime_split import MASSES as MASSES
from evenhand.studies.crime_split import Split as Split
from evenhand.studies.crime_split import errors_as_published as errors_as_published
from evenhand.studies.impossibility import WORLDS as WORLDS
from evenhand.studies.impossibility import TwoWorlds as TwoWorlds
from evenhand.studies.impossibility import measure_floors as measure_floors
from evenhand.studies.impossibility import share_of_yes as share_of_yes
from evenhand.studies.impossibility import theory_of_floors as theory_of_floors
from evenhand.studies.impossibility import two_worlds as two_worlds
from evenhand.studies.study import check_folder
from evenhand.studies.study import compute_parts as compute_parts
from evenhand.studies.sweep import NETWORK as NETWORK
from evenhand.studies.toy import run as run_toy
from evenhand.studies.toy_figures import plot_introduction as plot_introduction
from evenhand.studies.toy_figures import plot_two_worlds as plot_two_worlds
from evenhand.studies.verdicts import interval as interval
from evenhand.studies.verdicts import judge as judge

__all__ = ["check_folder", "run_credit", "run_crime", "run_toy"]
