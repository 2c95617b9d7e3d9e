"""Every function of the table is there, with its arguments, errors and documentation."""

import inspect

import numpy as np
import oflow as flow
import pytest
from oflow import _oflow

# Classes and a module have these names in `oflow`; the functions are in `oflow.functional`.
NAMES_OF_CLASSES = {"dtype", "device", "placement", "sbp"}


def names():
    return [name for name in _oflow._function_names() if "." not in name]


def test_every_function_of_the_table_is_there():
    assert len(names()) >= 226
    for name in names():
        function = getattr(flow.functional, name)
        assert callable(function) and function.__name__ == name
        assert function.__doc__, name
        if name not in NAMES_OF_CLASSES:
            assert callable(getattr(flow, name)), name


def test_functions_that_take_a_tensor_first_are_methods():
    count = 0
    for name in names():
        first = [text.split("(")[1].split(")")[0].split(",")[0].split(" ")[0] for text in _oflow._signatures(name)]
        if "Tensor" in first:
            assert hasattr(flow.Tensor, name), name
            count += 1
    assert count >= 190


def test_in_place_forms_return_the_object():
    x = flow.tensor([1.0, 2.0])
    assert x.add_(1) is x
    assert flow.mul_(x, 2) is x
    x += 1
    assert x.tolist() == [5.0, 7.0]


def test_arguments_by_name_and_defaults():
    x = flow.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert flow.sum(x=x, dims=0).tolist() == [4.0, 6.0]
    assert x.sum(dim=1, keepdim=True).tolist() == [[3.0], [7.0]]
    assert x.reshape(4).tolist() == x.reshape((4,)).tolist() == x.reshape(-1).tolist()
    assert x.reshape(1, 2, 2).shape == (1, 2, 2)
    assert flow.zeros(2, 3).shape == flow.zeros((2, 3)).shape == (2, 3)
    assert flow.softplus(x, beta=2.0).shape == (2, 2)
    assert flow.layer_norm(x, None, None).shape == (2, 2)


def test_ranges_begin_where_they_are_told():
    """PyTorch's three forms, of integers and floats, by position and by name."""
    for args in ((5,), (2, 5), (2, 9, 3), (5, 2, -1), (3.0,), (0.0, 1.5), (0, 1.0, 0.25), (0, 0)):
        want = np.arange(*args)
        for got in (flow.arange(*args), flow.arange(**dict(zip(("start", "end", "step") if len(args) > 1 else ("end",), args)))):
            assert got.tolist() == want.tolist() and got.dtype == (flow.int64 if want.dtype.kind == "i" else flow.float32)
    assert flow.arange(2, 5, dtype=flow.float64, device="cpu").dtype == flow.float64
    line = flow.placement.all("cpu")
    assert flow.arange(2, 5, placement=line, sbp="B").tolist() == [2, 3, 4]
    with pytest.raises(flow.ArgumentError, match=r"arange\(5, 2\)"):
        flow.arange(5, 2)


def test_copy_takes_what_broadcasts():
    """Every shape that broadcasts to that of the tensor, on all layouts, and no other."""
    line = flow.placement.all("cpu")
    for layout in ({}, {"placement": line, "sbp": "B"}, {"placement": line, "sbp": "S(0)"}, {"placement": line, "sbp": "S(1)"}):
        for shape in ((), (1,), (3,), (1, 3), (2, 1), (2, 3), (1, 1)):
            source = {**layout, "sbp": "B"} if layout else {}
            value = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
            x, y = flow.zeros((2, 3), **layout), flow.tensor(value, requires_grad=True, **source)
            assert x.copy_(y) is x and x.tolist() == np.broadcast_to(value, (2, 3)).tolist()
            x.sum().backward()
            assert y.grad.tolist() == np.full(shape, 6 / max(value.size, 1)).tolist()
        for shape in ((2,), (3, 2), (1, 2, 3), (0,), (2, 3, 1)):
            with pytest.raises(flow.ShapeError):
                flow.zeros((2, 3), **layout).copy_(flow.zeros(shape, **({**layout, "sbp": "B"} if layout else {})))


def test_the_second_argument_of_variances_is_unbiased():
    """As in PyTorch: keepdim goes by name, or behind it."""
    a = np.array([[1.0, 2.0, 4.0], [3.0, 9.0, 12.0]], dtype=np.float32)
    x = flow.tensor(a)
    forms = {"var": (flow.var, a.var), "std": (flow.std, a.std), "var_mean": (flow.var_mean, a.var), "std_mean": (flow.std_mean, a.std)}
    for name, (ours, theirs) in forms.items():
        calls = [ours, getattr(x, name)] if hasattr(x, name) else [ours]
        for call in calls:
            first = (x,) if call is ours else ()
            for args, named, dim, ddof, keep in (
                ((1, False), {}, 1, 0, False), ((1, True), {}, 1, 1, False), ((1, False, True), {}, 1, 0, True),
                ((), {"dim": 0, "unbiased": False}, 0, 0, False), ((False,), {}, None, 0, False), ((True,), {}, None, 1, False),
                ((1,), {"keepdim": True}, 1, 1, True), ((1,), {"correction": 0}, 1, 0, False), ((), {}, None, 1, False),
                (((0, 1), False), {}, None, 0, False), (([0], True, True), {}, 0, 1, True),
            ):  # fmt: skip
                got = call(*first, *args, **named)
                if name.endswith("mean"):
                    got, mean = got
                    np.testing.assert_allclose(np.array(mean.tolist()), a.mean(dim, keepdims=keep), rtol=1e-5)
                want = theirs(axis=dim, ddof=ddof, keepdims=keep)
                np.testing.assert_allclose(np.array(got.tolist()), want, rtol=1e-5, err_msg=f"{name}{args}{named}")
                assert got.shape == want.shape


def test_where_as_a_method_takes_the_condition_first():
    """As in PyTorch: ``x.where(condition, other)`` keeps x where the condition is true."""
    x, mask = flow.tensor([1.0, 0.0, 2.0]), flow.tensor([True, True, False])
    assert x.where(mask, flow.zeros(3) - 1).tolist() == [1.0, 0.0, -1.0] == flow.where(mask, x, flow.zeros(3) - 1).tolist()
    assert x.where(condition=mask, other=flow.tensor(7.0)).tolist() == [1.0, 0.0, 7.0]
    with pytest.raises(TypeError):
        x.where(mask)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x: flow.softplus(x, 1.0), "softplus(): takes 1 positional argument but 2 were given"),
        (lambda x: x.relu(1), "relu(): takes 1 positional argument but 2 were given"),
        (lambda x: flow.relu(), "relu(): missing a required argument: 'x'"),
        (lambda x: flow.relu(y=x), "relu(): got an unexpected keyword argument 'y'"),
        (lambda x: flow.relu(x, x=x), "relu(): got multiple values for argument 'x'"),
        (lambda x: flow.matmul(x, "a"), "matmul(): argument 'b' (position 2) must be Tensor, not str"),
        (lambda x: flow.sum(x, "a"), "sum(): argument 'dims' (position 2) must be int or a tuple of ints, not str"),
        (lambda x: flow.sum(x, keepdim=1), "sum(): argument 'keepdim' must be bool, not int"),
        (lambda x: flow.zeros(2, device="cpu", sbp="B"), "give a device for a local tensor, or placement and sbp for a global"),
        (lambda x: flow.one_hot(x, True), "one_hot(): argument 'classes' (position 2) must be int, not bool"),
        (lambda x: flow.cat(x), "cat(): argument 'xs' (position 1) must be a list or tuple of Tensors, not Tensor"),
    ],
)
def test_what_does_not_fit_is_a_type_error(call, text):
    with pytest.raises(TypeError) as error:
        call(flow.ones(2, 2))
    assert text in str(error.value)
    assert "test_table.py:" in str(error.value)


def test_several_overloads_are_listed():
    with pytest.raises(TypeError) as error:
        flow.add(flow.ones(2), "a")
    assert "add() received an invalid combination of arguments - got (Tensor, str), but expected one of:" in str(error.value)
    assert "add(a: Tensor, b: Tensor) -> Tensor" in str(error.value)
    assert "argument 's' (position 2) must be Number, not str" in str(error.value)


def test_signatures_are_read_by_inspect():
    assert str(inspect.signature(flow.softmax)) == "(x, dim=-1)"
    assert str(inspect.signature(flow.leaky_relu)) == "(x, alpha=0.01)"
    assert list(inspect.signature(flow.zeros).parameters)[:1] == ["shape"]
    for name in names():
        function = getattr(flow.functional, name)
        if len(_oflow._signatures(name)) == 1:
            inspect.signature(function)


def test_integers_beyond_64_bits_are_refused():
    with pytest.raises(OverflowError, match="does not fit into 64 bits with a sign"):
        flow.ones(2).add(1 << 70)
    with pytest.raises(OverflowError):
        flow.ones(2).reshape(1 << 70)


class Two:
    """An integer by its ``__index__``."""

    def __index__(self):
        return 2


class Raises:
    def __index__(self):
        raise KeyError("inside")


def test_what_counts_as_an_integer():
    x = flow.ones(2, 3)
    assert x.reshape(Two(), 3).shape == x.reshape((Two(), 3)).shape == (2, 3) and x[:, Two()].shape == (2,)
    assert x.sum(dim=np.int64(1)).shape == (2,) and x.mul(np.float32(3))[0, 0].item() == 3 and x.add(np.bool_(True))[0, 0].item() == 2
    for call in (lambda: x.reshape(Raises()), lambda: x[Raises()], lambda: x[Raises() :]):
        with pytest.raises(KeyError, match="inside"):
            call()
    for bad in (True, 1.0, "1", flow.tensor(1), Two, None):
        with pytest.raises(TypeError):
            x.argmax(bad)


def test_names_of_pytorch_that_are_not_here_say_what_is():
    with pytest.raises(AttributeError, match="poisson"):
        flow.poisson
    with pytest.raises(AttributeError):
        flow.ones(2).no_such_method
    with pytest.raises(AttributeError):
        flow.no_such_function


def test_results_with_names():
    x = flow.ones(2, 3)
    r = flow.functional.layer_norm_grad(x, x, flow.ones(2), flow.ones(2), None)
    assert r._fields == ("dx", "dweight", "dbias") and r.dx is r[0]
    parts = flow.split(x, 2, 1)
    assert isinstance(parts, tuple) and [p.shape for p in parts] == [(2, 2), (2, 1)]
    assert flow.functional.assign(flow.ones(2), flow.zeros(2)) is None
    assert flow.numel(x) == 6 and flow.functional.shape(x) == (2, 3)
