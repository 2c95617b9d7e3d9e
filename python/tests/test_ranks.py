"""Files of tests whose tests hold on any number of ranks, run on two: global tensors then have shards, and losses are reduced."""

import pathlib

import oflow
import pytest
from jobs import Job

if oflow.world_size() > 1:
    pytest.skip("these are the ranks", allow_module_level=True)

HERE = pathlib.Path(__file__).parent
FILES = [
    "test_beside_pytorch.py",
    "test_checkpoint.py",
    "test_data.py",
    "test_derivatives.py",
    "test_global.py",
    "test_golden.py",
    "test_indexing.py",
    "test_less_memory.py",
    "test_meshes.py",
    "test_more_layers.py",
    "test_nn.py",
    "test_numpy.py",
    "test_operators.py",
    "test_optim.py",
    "test_out.py",
    "test_packed.py",
    "test_supplied.py",
]


@pytest.mark.parametrize("file", FILES)
def test_on_two_ranks(tmp_path, file):
    if "pytorch" in file or "importorskip(\"torch\")" in (HERE / file).read_text():
        pytest.importorskip("torch")
    args = ["-q", "-p", "no:cacheprovider", "-k", "not under_oflaunch", HERE / file]
    job = Job(tmp_path, "-n", 2, "-t", 1, "-m", "pytest", "--", *args, OFLOW_TEST_FOLDER=str(tmp_path)).finish()
    passed = [line for line in job.out.splitlines() if " passed" in line and " failed" not in line]
    assert job.code == 0 and len(passed) == 2, job.out + job.err
