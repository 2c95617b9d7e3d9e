"""LSTM, GRU and simple recurrent networks, with PyTorch's arguments, names of parameters and results."""

import itertools

import oflow

from .. import _core
from . import init
from .layers import _size
from .drawn import Drawn
from .utils.rnn import PackedSequence, runs


class _Recurrent(Drawn):
    _function = None
    _gates = 1
    # Whether h may be narrower than the gates.
    _projects = False
    # h, or h and c.
    _states = 1

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        *,
        device=None,
        placement=None,
        sbp=None,
        dtype=None,
    ):
        super().__init__()
        if proj_size and not self._projects:
            raise ValueError(f"proj_size is for LSTM, not for {type(self).__name__}")
        if not 0.0 <= dropout <= 1.0:
            raise ValueError(f"the probability of dropping is between 0 and 1, not {dropout}")
        self.input_size, self.hidden_size = _size("input_size", input_size), _size("hidden_size", hidden_size, 1)
        self.num_layers, self.bias, self.batch_first = _size("num_layers", num_layers, 1), bool(bias), bool(batch_first)
        self.dropout, self.bidirectional = float(dropout), bool(bidirectional)
        self.proj_size = _size("proj_size", proj_size)
        if proj_size >= hidden_size:
            raise ValueError(f"proj_size {proj_size} is not less than hidden_size {hidden_size}")
        layout, bound = init.where(device, placement, sbp, dtype), 1.0 / hidden_size**0.5
        rows = self._gates * hidden_size
        for layer, end, width in self._parts():
            shapes = {"weight_ih": [rows, width], "weight_hh": [rows, self._output]}
            if bias:
                shapes.update(bias_ih=[rows], bias_hh=[rows])
            if proj_size:
                shapes["weight_hr"] = [proj_size, hidden_size]
            for kind, shape in shapes.items():
                place = layout if len(shape) > 1 else init.of_vectors(layout)
                setattr(self, f"{kind}_l{layer}{end}", init.uniform(shape, bound, **place))

    @property
    def _output(self):
        """The width of the output of one direction, and of h."""
        return self.proj_size or self.hidden_size

    def _parts(self):
        ends = ("", "_reverse") if self.bidirectional else ("",)
        for layer in range(self.num_layers):
            width = self.input_size if layer == 0 else self._output * len(ends)
            for end in ends:
                yield layer, end, width

    def _weights(self):
        kinds = ["weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if self.bias else ()), *(("weight_hr",) if self.proj_size else ())]
        return [getattr(self, f"{kind}_l{layer}{end}") for layer, end, _ in self._parts() for kind in kinds]

    def _zeros(self, x, width):
        shape = [self.num_layers * (2 if self.bidirectional else 1), width]
        if len(x.shape) == 3:
            shape.insert(1, x.shape[0 if self.batch_first else 1])
        return oflow.zeros(shape, dtype=self.weight_ih_l0.dtype, **_core.beside(x))

    def _run(self, x, state):
        return getattr(oflow, self._function)(
            x,
            state,
            self._weights(),
            has_biases=self.bias,
            num_layers=self.num_layers,
            dropout=self.dropout,
            train=self.training,
            bidirectional=self.bidirectional,
            batch_first=self.batch_first,
        )

    def _run_packed(self, packed, states):
        """Packed sequences: ``states`` are [layers, sequences, width] each, or None for zeros. Gives the packed output and the states
        behind the last step of each sequence.

        Each layer and direction runs on the parts of the data in which as many sequences go on, with the states of these."""
        data, parts = packed.data, runs(packed.batch_sizes)
        if data.ndim != 2:
            raise ValueError(f"packed sequences of vectors have data [elements, width], not {data.ndim} dims")
        number = parts[0][1]
        ends = 2 if self.bidirectional else 1
        widths = [self._output, self.hidden_size][: self._states]
        if states is None:
            place = _core.beside(data)
            states = [oflow.zeros([self.num_layers * ends, number, w], dtype=self.weight_ih_l0.dtype, **place) for w in widths]
        else:
            states = list(states)
            for state, width in zip(states, widths):
                if tuple(state.shape) != (self.num_layers * ends, number, width):
                    raise ValueError(f"the state of {number} packed sequences is {(self.num_layers * ends, number, width)}, not {tuple(state.shape)}")
            if packed.sorted_indices is not None:
                states = [s[:, packed.sorted_indices.tolist()] for s in states]
        weights = self._weights()
        each = len(weights) // (self.num_layers * ends)
        last = []
        for layer in range(self.num_layers):
            outputs = []
            for end in range(ends):
                at = layer * ends + end
                found, after = self._along(data, parts, [s.narrow(0, at, 1) for s in states], weights[at * each : (at + 1) * each], end == 1)
                outputs.append(found)
                last.append(after)
            data = oflow.cat(outputs, 1) if ends == 2 else outputs[0]
            if self.dropout and self.training and layer + 1 < self.num_layers:
                data = oflow.dropout(data, self.dropout)
        states = [oflow.cat(of) for of in zip(*last)]
        if packed.unsorted_indices is not None:
            states = [s[:, packed.unsorted_indices.tolist()] for s in states]
        return packed._replace(data=data), states

    def _along(self, data, parts, states, weights, backward):
        """One layer in one direction: the output and the states behind each sequence's last step, [1, sequences, width]."""
        starts = itertools.accumulate((steps * size for steps, size in parts), initial=0)
        outputs, done, now = [], [], None
        parts = [(start, steps, size) for start, (steps, size) in zip(starts, parts)]
        for start, steps, size in reversed(parts) if backward else parts:
            if now is None:
                now = [s.narrow(1, 0, size) for s in states]
            elif size < now[0].shape[1]:
                # Sequences that have ended.
                done.append([s.narrow(1, size, s.shape[1] - size) for s in now])
                now = [s.narrow(1, 0, size) for s in now]
            elif size > now[0].shape[1]:
                # Backward, longer sequences have begun before the shorter ones.
                more = [s.narrow(1, n.shape[1], size - n.shape[1]) for s, n in zip(states, now)]
                now = [oflow.cat([n, m], 1) for n, m in zip(now, more)]
            x = data.narrow(0, start, steps * size).reshape((steps, size, data.shape[1]))
            y, *now = getattr(oflow, self._function)(
                x.flip(0) if backward else x,
                now if self._states == 2 else now[0],
                weights,
                has_biases=self.bias,
                num_layers=1,
                dropout=0.0,
                train=self.training,
                bidirectional=False,
                batch_first=False,
            )
            y = y.flip(0) if backward else y
            outputs.append(y.reshape((steps * size, y.shape[2])))
        done.append(now)
        output = oflow.cat(outputs[::-1] if backward else outputs)
        return output, [oflow.cat(of, 1) for of in zip(*done[::-1])]

    def extra_repr(self):
        return (
            f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}, bias={self.bias}, "
            f"batch_first={self.batch_first}, dropout={self.dropout}, bidirectional={self.bidirectional}"
        )


class LSTM(_Recurrent):
    """A long short-term memory over sequences ``[T, B, input]`` (``batch_first``: ``[B, T, input]``), or ``[T, input]``: gives the output
    and the states ``(h, c)`` behind the last step. Packed sequences (``nn.utils.rnn``) give a packed output, and the states behind the last
    step of each. With ``proj_size`` a matrix ``weight_hr`` takes h to that width."""

    _function, _gates, _projects, _states = "lstm", 4, True, 2

    def forward(self, input, hx=None):
        if isinstance(input, PackedSequence):
            output, states = self._run_packed(input, hx)
            return output, tuple(states)
        h, c = hx if hx is not None else [self._zeros(input, self._output), self._zeros(input, self.hidden_size)]
        output, h, c = self._run(input, [h, c])
        return output, (h, c)


class GRU(_Recurrent):
    """Gated recurrent units over sequences, with the shapes of ``LSTM``: gives the output and the state behind the last step."""

    _function, _gates = "gru", 3

    def forward(self, input, hx=None):
        if isinstance(input, PackedSequence):
            output, (h,) = self._run_packed(input, None if hx is None else [hx])
            return output, h
        return self._run(input, hx if hx is not None else self._zeros(input, self.hidden_size))


class RNN(_Recurrent):
    """A simple recurrent network of ``nonlinearity`` ``"tanh"`` or ``"relu"``, with the shapes and results of ``GRU``."""

    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", *args, **options):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f'the nonlinearity is "tanh" or "relu", not {nonlinearity!r}')
        super().__init__(input_size, hidden_size, num_layers, *args, **options)
        self.nonlinearity = nonlinearity

    @property
    def _function(self):
        return "rnn_" + self.nonlinearity

    def forward(self, input, hx=None):
        if isinstance(input, PackedSequence):
            output, (h,) = self._run_packed(input, None if hx is None else [hx])
            return output, h
        return self._run(input, hx if hx is not None else self._zeros(input, self.hidden_size))


class _Cell(Drawn):
    _gates = 1

    def __init__(self, input_size, hidden_size, bias=True, *, device=None, placement=None, sbp=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size = _size("input_size", input_size), _size("hidden_size", hidden_size, 1)
        self.bias = bool(bias)
        layout, bound = init.where(device, placement, sbp, dtype), 1.0 / hidden_size**0.5
        rows = self._gates * hidden_size
        self.weight_ih = init.uniform([rows, input_size], bound, **layout)
        self.weight_hh = init.uniform([rows, hidden_size], bound, **layout)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, init.uniform([rows], bound, **init.of_vectors(layout)) if bias else None)

    def _zeros(self, x):
        return oflow.zeros([*x.shape[:-1], self.hidden_size], dtype=self.weight_ih.dtype, **_core.beside(x))

    def _weights(self):
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def extra_repr(self):
        return f"{self.input_size}, {self.hidden_size}, bias={self.bias}"


class LSTMCell(_Cell):
    """One step of a long short-term memory: gives ``(h, c)``."""

    _gates = 4

    def forward(self, input, hx=None):
        h, c = hx if hx is not None else [self._zeros(input)] * 2
        return oflow.lstm_cell(input, [h, c], *self._weights())


class GRUCell(_Cell):
    """One step of gated recurrent units."""

    _gates = 3

    def forward(self, input, hx=None):
        return oflow.gru_cell(input, hx if hx is not None else self._zeros(input), *self._weights())


class RNNCell(_Cell):
    """One step of a simple recurrent network."""

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", **options):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f'the nonlinearity is "tanh" or "relu", not {nonlinearity!r}')
        super().__init__(input_size, hidden_size, bias, **options)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        step = oflow.rnn_tanh_cell if self.nonlinearity == "tanh" else oflow.rnn_relu_cell
        return step(input, hx if hx is not None else self._zeros(input), *self._weights())
