"""Hooks, and what removes them."""

import itertools

_numbers = itertools.count()


class RemovableHandle:
    """Removes a hook: ``remove()``, or the end of a ``with``."""

    def __init__(self, hooks):
        self._hooks, self._number = hooks, next(_numbers)
        self.id = self._number

    def remove(self):
        """Removes the hook. A second call changes nothing."""
        self._hooks.pop(self._number, None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


def added(hooks, hook, prepend=False):
    """Puts a hook into an ordered dict, and returns what removes it."""
    handle = RemovableHandle(hooks)
    hooks[handle._number] = hook
    if prepend:
        hooks.move_to_end(handle._number, last=False)
    return handle
