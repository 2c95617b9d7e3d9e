"""What test files share."""

import os
import pathlib
import re

import oflow
import pytest


@pytest.fixture
def folder(request, tmp_path):
    """A new folder; where the tests run as ranks of a job, the same on every rank (see test_ranks.py)."""
    if oflow.world_size() == 1:
        return tmp_path
    shared = pathlib.Path(os.environ["OFLOW_TEST_FOLDER"]) / re.sub(r"\W+", "-", request.node.name)
    shared.mkdir(exist_ok=True)
    return shared
