"""Ctrl-C during a search is noted, not raised into a kernel."""

import os
import signal
import threading

import pytest

from mcmpart.search.interrupt import is_pressed, noted_interrupts


def test_the_first_is_noted_and_the_second_raised():
    """One Ctrl-C sets the flag; another one is a KeyboardInterrupt."""
    before = signal.getsignal(signal.SIGINT)
    with noted_interrupts():
        assert not is_pressed()
        os.kill(os.getpid(), signal.SIGINT)
        assert is_pressed()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_each_search_starts_afresh():
    """A flag of an earlier search does not stop the next one."""
    with noted_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
    with noted_interrupts():
        assert not is_pressed()


def test_within_itself_it_changes_nothing():
    """A search within another one keeps the flag of the outer one."""
    with noted_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        with noted_interrupts():
            assert is_pressed()
        assert is_pressed()


def test_other_threads_change_nothing():
    """A search in another thread leaves the signal handler alone."""
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def search():
        with noted_interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=search)
    thread.start()
    thread.join()
    assert seen == [before]
