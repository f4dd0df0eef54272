"""Ctrl-C during a search: noted, and acted on between two kernels.

A KeyboardInterrupt that comes up while a kernel hands its result to Python can crash
the process: numba does not expect an exception while it makes a named tuple. So during
a search the first Ctrl-C only sets a flag.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_pressed = threading.Event()
_noting = threading.Event()


def is_pressed() -> bool:
    """Return whether Ctrl-C was pressed since the search began."""
    return _pressed.is_set()


@contextmanager
def noted_interrupts() -> Iterator[None]:
    """Note the first Ctrl-C; the second raises KeyboardInterrupt at once.

    Within itself, and outside the main thread, where Python delivers no signals, it
    changes nothing.
    """
    if threading.current_thread() is not threading.main_thread() or _noting.is_set():
        yield
        return
    _noting.set()

    def note(signum: int, frame: FrameType | None) -> None:
        if _pressed.is_set():
            raise KeyboardInterrupt
        _pressed.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        _noting.clear()
        _pressed.clear()
