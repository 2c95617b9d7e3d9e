"""Builds the wheel of oflow: maturin's module, and beside it the programs `oflaunch` and `oflow`, which an install puts into the
environment's `bin`.

`MATURIN_PEP517_ARGS`, as `--profile dev`, is for both.
"""

import os
import pathlib
import shlex
import shutil
import subprocess

import maturin

PYTHON = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ("oflaunch", "oflow")
# Maturin puts what lies here into the wheel's scripts.
SCRIPTS = PYTHON / "oflow.data" / "scripts"


def _profile():
    """The profile of cargo, and the folder that its programs are built into."""
    given = shlex.split(os.environ.get("MATURIN_PEP517_ARGS", ""))
    profile = "release"
    for i, argument in enumerate(given):
        if argument == "--profile" and i + 1 < len(given):
            profile = given[i + 1]
        elif argument.startswith("--profile="):
            profile = argument.partition("=")[2]
    return profile, "debug" if profile == "dev" else profile


def _build_programs():
    profile, folder = _profile()
    root = PYTHON.parent
    subprocess.run(["cargo", "build", "--quiet", "--profile", profile, "-p", "oflaunch", "--bins"], cwd=root, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        shutil.copy2(root / target / folder / program, SCRIPTS / program)
        if profile != "dev":
            subprocess.run(["strip", str(SCRIPTS / program)], check=False)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """The wheel with the module and the programs."""
    _build_programs()
    try:
        return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    finally:
        shutil.rmtree(SCRIPTS.parent, ignore_errors=True)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """The wheel's metadata; the folder of the programs must be there, and may be empty."""
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def _without_programs(build):
    """A build of which the programs are no part."""

    def built(*args, **kwargs):
        SCRIPTS.mkdir(parents=True, exist_ok=True)
        try:
            return build(*args, **kwargs)
        finally:
            shutil.rmtree(SCRIPTS.parent, ignore_errors=True)

    return built


build_editable = _without_programs(maturin.build_editable)
prepare_metadata_for_build_editable = _without_programs(maturin.prepare_metadata_for_build_editable)
build_sdist = maturin.build_sdist
get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
get_requires_for_build_sdist = maturin.get_requires_for_build_sdist
get_requires_for_build_editable = maturin.get_requires_for_build_editable
