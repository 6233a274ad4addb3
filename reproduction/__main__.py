"""Command `python -m reproduction STUDY`."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from evenhand import InputError

STUDIES = {
    "toy": "the paper's introduction, on a task with a known true distribution; about a minute",
    "crime": "Communities and Crime, the first application; about five minutes on two cores",
    "credit": "Give Me Some Credit and the lending game; under ten minutes on two cores",
    "impossibility": "two worlds that agree on all data, of which one is calibrated; seconds",
}
REPETITIONS = {"crime": "splits", "credit": "rollouts"}
FILES = {"crime": "communities.data, if it cannot be downloaded", "credit": "cs-training.csv"}


def main() -> None:
    """Run a study, and print its results and where its files are."""
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    studies = parser.add_subparsers(dest="study", required=True, metavar="STUDY")
    for name, summary in STUDIES.items():
        study = studies.add_parser(name, help=summary, argument_default=argparse.SUPPRESS)
        study.add_argument(
            "--out",
            type=Path,
            default=Path("results", name),
            help=f"folder to write, results/{name} by default; an interrupted run is resumed",
        )
        study.add_argument("--seed", type=int, help="seed of the study or of its first repetition")
        if name in REPETITIONS:
            many = REPETITIONS[name]
            study.add_argument("--data", type=Path, help=FILES[name])
            study.add_argument(f"--{many}", type=int, help=f"number of {many}, at least 2")
            study.add_argument("--jobs", type=int, help="number of processes, 2 by default")
    options = vars(parser.parse_args())
    run = importlib.import_module(f"reproduction.{options.pop('study')}").run
    try:
        print(run(**options))
    except (InputError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
