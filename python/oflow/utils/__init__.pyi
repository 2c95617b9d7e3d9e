# Made by `python python/stubs` from the source beside it; do not edit.

from . import checkpoint as checkpoint, data as data
