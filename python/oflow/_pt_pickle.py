"""Reads the pickles of PyTorch's files. It runs no code of the file: it knows the instructions that dicts, lists, numbers, texts and tensors
need, and the few names that stand for them; everything else is refused.

Python's own ``pickle`` is not used: with its names restricted it still builds values of any depth, whose hash ends the process.
"""

import struct
from collections import OrderedDict

from ._errors import StorageError

DEEPEST = 100
"""Levels of lists and dicts in each other."""
_MOST_STEPS = 4_000_000
# Instructions make objects of up to 72 bytes from one byte of the file.


class Refused(StorageError):
    """A file that is damaged, or holds what is not read."""


class Global:
    """A name in a pickle, and what it makes of its arguments; ``make`` is None for names that are arguments."""

    def __init__(self, name, make=None, value=None):
        self.name, self.make, self.value = name, make, value


def _text(data):
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise Refused("the pickle has a text that is not UTF-8") from None


def _is_key(value, room=8):
    """Whether a value may be hashed: numbers, texts, and tuples of these that are not deep."""
    if type(value) is tuple:
        return room > 0 and all(_is_key(v, room - 1) for v in value)
    return value is None or type(value) in (bool, int, float, complex, str, bytes)


class _Machine:
    """The stack, the marks and the memo of one pickle."""

    def __init__(self, data, names, storage):
        self.data, self.at, self.names, self.storage = data, 0, names, storage
        self.stack, self.marks, self.memo = [], [], {}

    # Reading.

    def bytes(self, count):
        end = self.at + count
        if count < 0 or end > len(self.data):
            raise Refused("the pickle ends in the middle of a value")
        found = self.data[self.at : end]
        self.at = end
        return found

    def number(self, form):
        return struct.unpack("<" + form, self.bytes(struct.calcsize("<" + form)))[0]

    def line(self):
        end = self.data.find(b"\n", self.at, self.at + 512)
        if end < 0:
            raise Refused("the pickle has a name without an end")
        found = self.data[self.at : end]
        self.at = end + 1
        return _text(found)

    # The stack.

    def push(self, value):
        self.stack.append(value)

    def pop(self):
        if not self.stack:
            raise Refused("the pickle takes a value where there is none")
        return self.stack.pop()

    def top(self, *kinds):
        if not self.stack:
            raise Refused("the pickle takes a value where there is none")
        value = self.stack[-1]
        if not isinstance(value, kinds):
            raise Refused(f"the pickle changes a {type(value).__name__}")
        return value

    def mark(self):
        self.marks.append(self.stack)
        self.stack = []

    def marked(self):
        if not self.marks:
            raise Refused("the pickle takes values behind a mark where there is none")
        values, self.stack = self.stack, self.marks.pop()
        return values

    def run(self):
        for _ in range(_MOST_STEPS):
            code = self.bytes(1)
            if code == b".":
                if self.marks or len(self.stack) != 1:
                    raise Refused("the pickle leaves more or less than one value")
                return self.stack[0]
            step = _STEPS.get(code)
            if step is None:
                raise Refused(f"the pickle has the instruction {code!r}, which none of the values that are read needs")
            step(self)
        raise Refused(f"the pickle has more than {_MOST_STEPS} instructions")

    # Instructions.

    def long(self, form):
        count = self.number(form)
        if not 0 <= count <= 1024:
            raise Refused(f"the pickle has a number of {count} bytes")
        self.push(int.from_bytes(self.bytes(count), "little", signed=True))

    def tuple(self, count):
        values = [self.pop() for _ in range(count)][::-1]
        self.push(tuple(values))

    def put(self, key):
        if not self.stack:
            raise Refused("the pickle takes a value where there is none")
        self.memo[key] = self.stack[-1]

    def get(self, key):
        if key not in self.memo:
            raise Refused("the pickle names a value that it has not made")
        self.push(self.memo[key])

    def set_items(self, pairs):
        target = self.top(dict)
        for key, value in pairs:
            if not _is_key(key):
                raise Refused(f"a dict has a key that is a {type(key).__name__}; keys are numbers, texts, and tuples of these")
            target[key] = value

    def items(self):
        values = self.marked()
        if len(values) % 2:
            raise Refused("the pickle has a key without a value")
        self.set_items(zip(values[::2], values[1::2]))

    def extend(self, values):
        self.top(list).extend(values)

    def members(self, values):
        target = self.top(set)
        if not all(map(_is_key, values)):
            raise Refused("a set has members that are not numbers, texts, or tuples of these")
        target.update(values)

    def name(self, module, name):
        # Protocol 2 has the names of Python 2.
        module = {"__builtin__": "builtins"}.get(module, module)
        found = self.names.get((module, name))
        if found is None:
            raise Refused(
                f"it holds {module}.{name}. Tensors, dicts, lists, tuples, sets, numbers and texts are read: in PyTorch save the state_dict() of a "
                "model, and plain values"
            )
        self.push(found)

    def stack_name(self):
        name, module = self.pop(), self.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise Refused("the pickle has a name of another type than text")
        self.name(module, name)

    def call(self):
        given, function = self.pop(), self.pop()
        if not isinstance(function, Global) or function.make is None or not isinstance(given, tuple):
            raise Refused("the pickle calls an object where a function was expected")
        self.push(function.make(*[v.value if isinstance(v, Global) and v.make is None else v for v in given]))

    def build(self):
        state = self.pop()
        target = self.top(OrderedDict)
        if not isinstance(state, dict):
            raise Refused("an OrderedDict has a state of another type than dict")
        # State dicts have the versions of their modules.
        if isinstance(state.get("_metadata"), dict):
            target._metadata = state["_metadata"]

    def persistent(self):
        said = self.pop()
        if not (isinstance(said, tuple) and len(said) == 5 and said[0] == "storage" and isinstance(said[1], Global)):
            raise Refused("the pickle refers to an object where a storage was expected")
        self.push(self.storage(said[1].value, said[2], said[4]))


_STEPS = {
    b"\x80": lambda m: m.bytes(1),
    b"\x95": lambda m: m.bytes(8),
    b"(": _Machine.mark,
    b"}": lambda m: m.push({}),
    b"]": lambda m: m.push([]),
    b")": lambda m: m.push(()),
    b"\x8f": lambda m: m.push(set()),
    b"N": lambda m: m.push(None),
    b"\x88": lambda m: m.push(True),
    b"\x89": lambda m: m.push(False),
    b"J": lambda m: m.push(m.number("i")),
    b"K": lambda m: m.push(m.number("B")),
    b"M": lambda m: m.push(m.number("H")),
    b"\x8a": lambda m: m.long("B"),
    b"\x8b": lambda m: m.long("i"),
    b"G": lambda m: m.push(struct.unpack(">d", m.bytes(8))[0]),
    b"X": lambda m: m.push(_text(m.bytes(m.number("I")))),
    b"\x8c": lambda m: m.push(_text(m.bytes(m.number("B")))),
    b"\x8d": lambda m: m.push(_text(m.bytes(m.number("Q")))),
    b"B": lambda m: m.push(m.bytes(m.number("I"))),
    b"C": lambda m: m.push(m.bytes(m.number("B"))),
    b"\x8e": lambda m: m.push(m.bytes(m.number("Q"))),
    b"t": lambda m: m.push(tuple(m.marked())),
    b"\x85": lambda m: m.tuple(1),
    b"\x86": lambda m: m.tuple(2),
    b"\x87": lambda m: m.tuple(3),
    b"q": lambda m: m.put(m.number("B")),
    b"r": lambda m: m.put(m.number("I")),
    b"\x94": lambda m: m.put(len(m.memo)),
    b"h": lambda m: m.get(m.number("B")),
    b"j": lambda m: m.get(m.number("I")),
    b"a": lambda m: m.extend([m.pop()]),
    b"e": lambda m: m.extend(m.marked()),
    b"s": lambda m: m.set_items([(m.pop(), m.pop())[::-1]]),
    b"u": _Machine.items,
    b"\x90": lambda m: m.members(m.marked()),
    b"c": lambda m: m.name(m.line(), m.line()),
    b"\x93": _Machine.stack_name,
    b"R": _Machine.call,
    b"b": _Machine.build,
    b"Q": _Machine.persistent,
}


def read(data, names, storage):
    """The value of a pickle. ``names`` has a :class:`Global` for each pair of a module and a name, ``storage(kind, key, count)`` makes what
    tensors are views of."""
    value = _Machine(data, names, storage).run()
    return _finished(value)


def _inside(value):
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, (list, tuple)) else ()


def _finished(value):
    """The value, if it is of plain objects that are not too deep and contain no cycle."""
    if isinstance(value, Global):
        if value.make is not None:
            raise Refused(f"it holds the function {value.name}, not a value")
        return value.value
    # Depths of what is done; a list may be there under many names.
    depths, path = {}, set()
    todo = [(value, False)]
    while todo:
        at, is_done = todo.pop()
        key = id(at)
        if is_done:
            path.discard(key)
            depths[key] = 1 + max((depths.get(id(v), 0) for v in _inside(at)), default=0)
            if depths[key] > DEEPEST:
                raise Refused(f"it holds more than {DEEPEST} levels of lists and dicts in each other")
            _replace_names(at)
        elif key in path:
            raise Refused(f"it holds a {type(at).__name__} that contains itself")
        elif key not in depths and isinstance(at, (dict, list, tuple)):
            path.add(key)
            todo.append((at, True))
            todo.extend((v, False) for v in _inside(at) if isinstance(v, (dict, list, tuple)))
    return value


def _replace_names(container):
    """Puts values in the place of the names of dtypes."""
    if isinstance(container, tuple):
        if any(isinstance(v, Global) for v in container):
            raise Refused("it holds a tuple of names")
        return
    for key, value in container.items() if isinstance(container, dict) else enumerate(container):
        if isinstance(value, Global):
            if value.make is not None:
                raise Refused(f"it holds the function {value.name}, not a value")
            container[key] = value.value
