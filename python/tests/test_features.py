"""What ops of a program take and refuse: a call for each feature of docs/seed-features.md that has no test elsewhere."""

import numpy as np
import oflow as flow
import pytest

B = flow.sbp.broadcast


def test_ops_take_attributes_of_every_kind():
    """The kernel is given what the call gives, of each type of the signature."""
    seen = {}

    def kernel(inputs, outputs, attrs):
        seen.update(attrs)
        outputs[0][...] = inputs[0] + len(inputs)

    kinds = {
        "Int i=3": 7,
        "Float f=0.5": 1.5,
        "Bool b=false": True,
        'String t="a"': "word",
        "Scalar s=1": 2.5,
        "IntList il=[]": (1, 2),
        "FloatList fl=[]": (0.5, 1.5),
        "BoolList bl=[]": (True, False),
        "StringList sl=[]": ("x", "y"),
        "Shape sh=[]": (2, 3),
        "DataType d=f32": flow.int64,
        "Device device=cpu": "cpu",
        "Int? n": 5,
    }
    text = ", ".join(kinds)
    takes = flow.op(f"takes(Tensor x, Tensor? w, *, {text}) -> Tensor", kernel=kernel, domain="features", inputs="f32|f64", dtype="same")
    x = flow.tensor([1.0, 2.0])
    names = [k.split("=")[0].split()[-1] for k in kinds]
    given = dict(zip(names, kinds.values()))
    takes(x, **given)
    for name, value in given.items():
        have = seen[name]
        have = tuple(have) if isinstance(have, list) else have
        assert have == value or str(have) == str(value), (name, have, value)
    takes(x, x)
    assert seen["n"] is None and seen["i"] == 3 and seen["t"] == "a"


def test_functions_take_placements_and_layouts():
    @flow.function("features.lay(Tensor x, Placement placement, Sbp sbp, *, SbpList others) -> Tensor")
    def lay(x, placement, sbp, others):
        for other in others:
            x = flow.distribute(x, placement, other) if not x.is_global else x.to_global(sbp=other)
        return flow.distribute(x, placement, sbp) if not x.is_global else x.to_global(sbp=sbp)

    mesh = flow.placement.all("cpu")
    y = lay(flow.arange(4), mesh, (B,), others=[(flow.sbp.split(0),)])
    assert y.sbp == (B,) and y.tolist() == [0, 1, 2, 3]


def test_variadic_inputs_have_gradients():
    def kernel(inputs, outputs, attrs):
        outputs[0][...] = sum((k + 1) * x for k, x in enumerate(inputs))

    weighted = flow.op(
        "weighted(TensorTuple xs) -> Tensor",
        kernel=kernel,
        domain="features",
        inputs="f64",
        dtype="same",
        gradient=lambda dy, *xs: tuple(dy * float(k + 1) for k in range(len(xs))),
    )
    xs = [flow.tensor(np.full(2, float(k)), requires_grad=True) for k in range(3)]
    y = weighted(xs)
    assert y.tolist() == [8, 8]
    y.sum().backward()
    assert [x.grad.tolist() for x in xs] == [[1, 1], [2, 2], [3, 3]]


def test_local_and_global_tensors_do_not_mix():
    x = flow.ones(2, placement=flow.placement.all("cpu"), sbp=B)
    with pytest.raises(flow.Error, match=r"(?s)local.*global|global.*local") as e:
        x + flow.ones(2)
    assert "help" in str(e.value) or "to_global" in str(e.value)


def test_quantised_to_32_bits():
    q = flow.tensor([1.0, -2.5]).quantize_per_tensor(0.5, 0, "qint32")
    assert q.dequantize().tolist() == [1.0, -2.5] and "qint32" in repr(q)
