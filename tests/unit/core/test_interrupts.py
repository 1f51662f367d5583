"""Signals ask first and raise later; whoever listens gives the handlers back."""

import contextlib
import os
import signal
import threading

import pytest

from discrax.core.interrupts import Interrupts


def send(number) -> None:
    os.kill(os.getpid(), number)
    signal.getsignal(number)  # a line at which Python may look


BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])


@pytest.fixture(autouse=True)
def handlers():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@BOTH
def test_the_first_signal_asks_and_the_second_raises(number):
    with Interrupts() as interrupts:
        assert not interrupts.requested
        os.kill(os.getpid(), number)
        assert interrupts.requested
        with pytest.raises(KeyboardInterrupt):
            interrupts.raise_if_requested()
        with pytest.raises(KeyboardInterrupt):
            send(number)


@BOTH
def test_handlers_are_given_back_also_after_an_error(number):
    before = signal.getsignal(number)

    def fail():
        with Interrupts():
            assert signal.getsignal(number) != before
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert signal.getsignal(number) == before


@BOTH
def test_the_innermost_block_hears_the_signal_and_then_those_around_it(number):
    with Interrupts() as outermost:
        with Interrupts() as outer:
            with Interrupts() as inner:
                os.kill(os.getpid(), number)
                assert inner.requested
                assert not outer.requested
            assert outer.requested
            assert not outermost.requested
        assert outermost.requested
        with pytest.raises(KeyboardInterrupt):
            send(number)


def test_what_ends_for_another_reason_does_not_end_those_around_it():
    with Interrupts() as outer:
        with Interrupts() as inner:
            inner.requested = True  # by a user's callback, or for want of memory
        assert not outer.requested


def test_a_handler_of_the_program_stays():
    heard = []
    signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
    with Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGTERM)
        signal.getsignal(signal.SIGTERM)
    assert heard == [1]
    assert not interrupts.requested


def test_a_signal_that_is_ignored_stays_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGINT)
    assert not interrupts.requested


def test_other_threads_do_not_listen():
    found = []

    def work():
        with Interrupts() as interrupts:
            found.append(interrupts.requested)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]


@BOTH
def test_a_command_is_left_at_once(number):
    with Interrupts(raises=True) as interrupts:
        with pytest.raises(KeyboardInterrupt):
            send(number)
        assert interrupts.requested


@BOTH
def test_a_request_that_was_swallowed_ends_what_begins_after_it(number):
    """An exception in somebody's clean-up is ignored there; the next run must not go to its end."""
    with Interrupts(raises=True):
        with contextlib.suppress(KeyboardInterrupt):
            send(number)
        with Interrupts() as run:
            assert run.requested
    with Interrupts() as later:
        assert not later.requested
