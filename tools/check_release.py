"""Build the sdist and the wheel of a release into dist/, and check both.

The sdist contains every tracked file, and the wheel every file of the package. Both pass the checks
of twine, are installed in environments of their own and used. Tests run from the unpacked sdist.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

from check_wheel import ROOT, build, use

TESTS = ("tests/test_front_door.py", "tests/test_links.py")
"""Tests that are run from the unpacked sdist; all others are collected."""


def tracked(folder: str = ".") -> set[str]:
    """Return the tracked files of a folder, as paths below the root of the repository."""
    command = ["git", "-C", str(ROOT), "ls-files", folder]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return set(listed.splitlines())


def check_contents(sdist: Path, wheel: Path) -> None:
    """Compare the files of both archives with the tracked ones."""
    with tarfile.open(sdist) as archive:
        names = [member.name for member in archive.getmembers() if member.isfile()]
    packed = {name.partition("/")[2] for name in names} - {"PKG-INFO"}
    check_same(sdist.name, packed, tracked())
    with zipfile.ZipFile(wheel) as archive:
        installed = {name for name in archive.namelist() if ".dist-info/" not in name}
    check_same(wheel.name, installed, {name.removeprefix("src/") for name in tracked("src")})


def check_same(name: str, found: set[str], expected: set[str]) -> None:
    """Stop if an archive lacks a file or has one too many."""
    if found != expected:
        missing, extra = sorted(expected - found), sorted(found - expected)
        raise SystemExit(f"{name} lacks {missing} and has {extra} besides")


def check_metadata(archives: list[Path]) -> None:
    """Run `twine check`, in an environment of its own, as nothing else needs twine."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "twine>=6"], check=True)
        command = [python, "-m", "twine", "check", "--strict", *map(str, archives)]
        subprocess.run(command, check=True)


def check_tests(sdist: Path) -> None:
    """Unpack the sdist, collect all of its tests, and run a few."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        (source,) = Path(folder).iterdir()
        settings = os.environ | {"PYTHONPATH": str(source / "src")}
        pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        for options in (["--collect-only", "-qq"], list(TESTS)):
            subprocess.run(
                [*pytest, *options], check=True, cwd=source, env=settings, stdout=subprocess.DEVNULL
            )
    print(f"tests of {sdist.name} are collected, and {' and '.join(TESTS)} pass")


def main() -> None:
    """Build, check, install, use."""
    target = ROOT / "dist"
    shutil.rmtree(target, ignore_errors=True)
    # the wheel is built from the sdist, as an installer would
    build(target)
    (sdist,), (wheel,) = target.glob("*.tar.gz"), target.glob("*.whl")
    check_contents(sdist, wheel)
    check_metadata([sdist, wheel])
    use(sdist)
    use(wheel)
    check_tests(sdist)


if __name__ == "__main__":
    main()
