"""What a notebook shows of tensors and placements: ``_repr_html_``."""

import html.parser

import oflow as flow
import pytest
from jobs import run


class Checked(html.parser.HTMLParser):
    """Checks that elements are closed in order, and collects them and the texts."""

    def __init__(self, text):
        super().__init__()
        self.open, self.all, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.all.append((tag, dict(attributes)))

    def handle_startendtag(self, tag, attributes):
        self.all.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data.strip())

    def text(self):
        return " ".join(self.texts)

    def tags(self, tag):
        return [attributes for name, attributes in self.all if name == tag]


def shown(value):
    page = Checked(value._repr_html_())
    # Styles of a page hold for all of the notebook; links and programs have no place.
    assert {tag for tag, _ in page.all} <= {"div", "b", "span", "pre", "svg", "title", "g", "rect", "text"}
    assert not any(name.startswith("on") or name in ("href", "src", "id") for _, attributes in page.all for name in attributes)
    return page


def test_local_tensors():
    page = shown(flow.arange(6).reshape(2, 3))
    text = page.text()
    assert "Tensor" in text and "(2, 3)" in text and "oflow.int64" in text and "cpu" in text and page.tags("svg") == []
    assert "[[0, 1, 2],\n [3, 4, 5]]" in page.texts
    assert "[1.5000, 2.0000]" in shown(flow.tensor([1.5, 2.0])).texts
    assert "7" in shown(flow.tensor(7)).texts and "[]" in shown(flow.ones(3, 0)).texts
    assert "requires grad" in shown(flow.ones(2, requires_grad=True)).text()
    assert "in graph" in shown(flow.ones(2, requires_grad=True) * 2).text()
    # Values are an excerpt, as in `repr`.
    large = flow.arange(2_000_000).reshape(1000, 2000)._repr_html_()
    assert len(large) < 2000 and "..." in large


def test_subclasses_have_their_name():
    class Mine(flow.Tensor):
        pass

    Mine.__name__ = "<img src=x onerror=alert(1)>"
    assert Mine.__name__ in shown(Mine(flow.ones(2))).texts
    assert "Parameter" in shown(flow.nn.Parameter(flow.ones(2))).texts


def test_a_global_tensor_of_one_rank():
    mesh = flow.placement("cpu", [0])
    for shape in [(), (3,), (2, 3), (2, 3, 4, 5), (1 << 20, 4)]:
        for sbp in ("B", "P(sum)", "P(max)", *[f"S({d})" for d in range(len(shape))]):
            x = flow.zeros(shape, placement=mesh, sbp=sbp)
            page = shown(x)
            assert len(page.tags("rect")) == 1 and f"[{sbp}]" in page.text() and "cpu[1]" in page.text()
            # No values, as in `repr`: reading them is a collective.
            assert page.tags("pre") == []
    empty = shown(flow.zeros((0, 3), placement=mesh, sbp="S(0)"))
    assert empty.tags("svg") == [] and "no rank holds anything: a dim has no elements" in empty.texts


def test_nothing_is_communicated():
    mesh = flow.placement.all("cpu")
    x = flow.ones((4, 4), placement=mesh, sbp="P(sum)")
    flow.take_comm_trace()
    x._repr_html_()
    assert flow.take_comm_trace() == []


def test_tensors_without_data():
    pages = []

    @flow.graph
    def f(x):
        pages.append(shown(x))
        return x + 1

    f(flow.ones(3))
    assert "without data" in pages[0].text() and pages[0].tags("pre") == []


def test_placements():
    page = shown(flow.placement("cpu", [[4, 5, 6], [9, 8, 7]]))
    assert [n for n in page.texts if n in set("456789")] == list("456987") and len(page.tags("rect")) == 6
    assert "axis 0" in page.texts and "axis 1" in page.texts
    page = shown(flow.placement("cpu", range(8)).mesh(pp=2, dp=2, tp=2))
    assert {"pp: 0", "pp: 1", "dp", "tp"} <= set(page.texts) and len(page.tags("rect")) == 8
    name = "<script>alert(1)</script>"
    assert name in shown(flow.placement("cpu", [0, 1]).mesh(**{name: 2})).texts
    long = flow.placement("cpu", [0, 1]).mesh(**{'&"' * 5000: 2})
    assert len(long._repr_html_()) < 10_000 and shown(long)


@pytest.mark.parametrize("sizes", [(256,), (4096,), (16, 16), (64, 64), (4, 8, 8), (16, 16, 16)])
def test_many_ranks(sizes):
    count = 1
    for n in sizes:
        count *= n
    p = flow.placement("cpu", range(count)).mesh(**{f"a{i}": n for i, n in enumerate(sizes)})
    page = shown(p)
    assert len(p._repr_html_()) < 100_000 and len(page.tags("rect")) <= 256 and "…" in page.text()
    assert float(page.tags("svg")[0]["width"]) < 600
    # Ranks in any order have a long text.
    assert len(flow.placement("cpu", range(count - 1, -1, -1))._repr_html_()) < 20_000


PROGRAM = """
import oflow as flow
world, rank = flow.world_size(), flow.rank()
mesh = flow.placement.all("cpu")
def drawn(shape, placement, *sbp):
    return flow.zeros(shape, placement=placement, sbp=sbp)._repr_html_()
def holds(page, *texts):
    assert all(f">{t}</text>" in page for t in texts), page
holds(drawn((8, 6), mesh, "S(0)"), 0, 1, 2, "dim 0", "dim 1", 3, 6, 8)
holds(drawn((8, 6), mesh, "P(sum)"), "0 + 1 + 2")
holds(drawn((8,), mesh, "P(max)"), "max(0, 1, 2)")
holds(drawn((), mesh, "B"), "0, 1,", "2")
page = drawn((2, 6), mesh, "S(0)")
holds(page, 0, 1)
assert "rank 2: nothing" in page
# Also a rank that is not in the placement shows it.
part = flow.placement("cpu", [1, 2])
page = drawn((4,), part, "S(0)")
holds(page, 1, 2)
assert ">0</text></g>" not in page and "of ranks [1, 2]" in page
if rank == 0:
    flow.zeros(3)._repr_html_()
import hashlib
pages = drawn((8, 6), mesh, "S(1)") + page
digest = int(hashlib.sha256(pages.encode()).hexdigest()[:8], 16)
same = flow.tensor([digest]).to_global(mesh, "P(max)") - flow.tensor([digest]).to_global(mesh, "P(min)")
assert same.item() == 0
"""


def test_three_ranks_show_the_same(tmp_path):
    job = run(tmp_path, PROGRAM, ranks=3)
    assert job.code == 0, job.err
