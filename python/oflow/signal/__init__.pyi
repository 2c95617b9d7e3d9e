# Made by `python python/stubs` from the source beside it; do not edit.

from . import windows as windows
