"""Reruns of the paper's experiments with figures and verdicts, and the lending game."""

from __future__ import annotations

from reproduction.credit import run as run_credit

# parts of the experiments for tests; `__all__` is what the command runs
from reproduction.credit_banks import LINKED as LINKED
from reproduction.credit_banks import bank_earnings as bank_earnings
from reproduction.credit_banks import best_cut as best_cut
from reproduction.credit_banks import deterministic_banks as deterministic_banks
from reproduction.credit_claims import advantages as advantages
from reproduction.credit_claims import choose_cells as choose_cells
from reproduction.credit_claims import credit_claims_of as credit_claims_of
from reproduction.credit_claims import judge_chosen as judge_chosen
from reproduction.credit_people import NOISE as NOISE
from reproduction.credit_people import SHARE_UNQUALIFIED as SHARE_UNQUALIFIED
from reproduction.credit_people import Rollout as Rollout
from reproduction.credit_people import load_people as load_people
from reproduction.crime import run as run_crime
from reproduction.crime_claims import crime_claims_of as crime_claims_of
from reproduction.crime_claims import kinds_of as kinds_of
from reproduction.crime_split import MASSES as MASSES
from reproduction.crime_split import Split as Split
from reproduction.crime_split import errors_as_published as errors_as_published
from reproduction.impossibility import WORLDS as WORLDS
from reproduction.impossibility import TwoWorlds as TwoWorlds
from reproduction.impossibility import measure_floors as measure_floors
from reproduction.impossibility import share_of_yes as share_of_yes
from reproduction.impossibility import theory_of_floors as theory_of_floors
from reproduction.impossibility import two_worlds as two_worlds
from reproduction.study import check_folder
from reproduction.study import compute_parts as compute_parts
from reproduction.sweep import NETWORK as NETWORK
from reproduction.toy import run as run_toy
from reproduction.toy_figures import plot_introduction as plot_introduction
from reproduction.toy_figures import plot_two_worlds as plot_two_worlds
from reproduction.verdicts import interval as interval
from reproduction.verdicts import judge as judge

__all__ = ["check_folder", "run_credit", "run_crime", "run_toy"]
