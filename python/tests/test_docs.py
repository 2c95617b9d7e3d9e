"""The snippets of the pages on Python run, alone and on two ranks."""

import re

import pytest
from jobs import ROOT, run

SNIPPETS = [
    pytest.param(code, id=f"{page}-{number}")
    for page in ("python", "coming-from")
    for number, code in enumerate(re.findall(r"^```python\n(.*?)^```$", (ROOT / f"docs/{page}.md").read_text(), re.M | re.S))
]


def test_there_are_snippets():
    assert len(SNIPPETS) >= 9


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("code", SNIPPETS)
def test_a_snippet_runs(tmp_path, code, ranks):
    if "import torch" in code:
        pytest.importorskip("torch")
    if "import numpy" in code:
        pytest.importorskip("numpy")
    job = run(tmp_path, code, ranks=ranks)
    assert job.code == 0, job.err
