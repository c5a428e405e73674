"""Processes in the nodes of the network: started, watched, ended."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Callable, Iterable, Iterator, List, Optional, Set, TypeVar

if TYPE_CHECKING:
    from mininet.node import Node

SHUTDOWN = 5.0  # seconds that a process has to end in by itself before it is killed
POLL = 0.02  # seconds between two looks at a condition
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None)
T = TypeVar("T")


ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # what reports this program to end


class Failure(Exception):
    """Something did not come about; the message says what, and what to look at."""


@contextmanager
def undisturbed() -> Iterator[Set[int]]:
    """Puts signals that end this program off, for what must not be left half
    done; gives the mask that was."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    try:
        yield before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Process:
    """A process in a node's namespace. What it says goes to a file; one that
    talks has its standard input and output here instead."""

    def __init__(
        self, node: Node, name: str, command: List[str], log: str,
        cores: Optional[Set[int]] = None, talks: bool = False,
    ) -> None:
        def prepare() -> None:
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # nothing stays when we are killed
            for number in ENDINGS:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            if cores:
                os.sched_setaffinity(0, cores)

        self.name, self.log = name, log
        self._rest = b""  # of what it has said, an unfinished line
        # An exception that a signal raises while Python forks would be lost.
        with open(log, "ab") as said, undisturbed() as mask:
            self.popen: subprocess.Popen = node.popen(
                command, preexec_fn=prepare, stderr=said,
                stdin=subprocess.PIPE if talks else subprocess.DEVNULL, stdout=subprocess.PIPE if talks else said)

    @property
    def pid(self) -> int:
        return self.popen.pid

    def ended(self) -> Optional[int]:
        """The exit status, or None while it runs."""
        return self.popen.poll()

    def check(self) -> None:
        """Fails if the process has ended."""
        if self.ended() is not None:
            ended = describe(self.popen.returncode)
            raise Failure("%s has ended (%s); it said:\n%s" % (self.name, ended, self.last_words()))

    def last_words(self, lines: int = 8) -> str:
        with open(self.log, errors="replace") as f:
            return "".join(f.readlines()[-lines:]).rstrip() or "nothing"

    def listens(self, port: int) -> bool:
        """Whether somebody in the process's namespace listens on a TCP port."""
        return any(_listens("/proc/%d/net/%s" % (self.pid, table), port) for table in ("tcp", "tcp6"))

    def kill(self) -> None:
        """Ends the process as kill -9 does."""
        if self.ended() is None:
            self.popen.kill()
        self.popen.wait()

    # Of one that talks

    def send_line(self, line: str) -> None:
        """Writes a line to its standard input."""
        assert self.popen.stdin
        try:
            self.popen.stdin.write(line.encode() + b"\n")
            self.popen.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, and its status says why

    def lines(self, goes_on: Callable[[], bool]) -> Iterator[str]:
        """The lines that it writes, until it has ended, or goes_on, which is
        asked again and again, is false."""
        assert self.popen.stdout
        while goes_on():
            if not select.select([self.popen.stdout], [], [], POLL)[0]:
                continue
            data = os.read(self.popen.stdout.fileno(), 1 << 16)
            if not data:
                return
            *whole, self._rest = (self._rest + data).split(b"\n")
            for line in whole:
                yield line.decode(errors="replace")

    def line(self, deadline: float) -> str:
        """The next line that it writes, at the latest at a time of the monotonic
        clock. It is for one who waits for an answer: no other may follow."""
        for line in self.lines(lambda: time.monotonic() < deadline):
            return line
        raise Failure("%s has not answered in time; it said:\n%s" % (self.name, self.last_words()))

    def fall_silent(self) -> None:
        """Ends the talk."""
        for pipe in (self.popen.stdin, self.popen.stdout):
            if pipe:
                pipe.close()


def _listens(table: str, port: int) -> bool:
    try:
        with open(table) as f:
            rows = [line.split() for line in f.readlines()[1:]]
    except OSError:
        return False  # the process has ended, or the kernel has no IPv6
    return any(row[3] == "0A" and int(row[1].rsplit(":", 1)[1], 16) == port for row in rows)


def describe(status: int) -> str:
    return "signal %d" % -status if status < 0 else "status %d" % status


def kill_children(pid: int) -> None:
    """Kills the processes that a process has started, and not those of theirs."""
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        for child in f.read().split():
            os.kill(int(child), signal.SIGKILL)


def stop(processes: Iterable[Process]) -> None:
    """Asks processes to end, and kills those that do not."""
    running = [p for p in processes if p.ended() is None]
    for p in running:
        p.popen.terminate()
    deadline = time.monotonic() + SHUTDOWN
    for p in running:
        try:
            p.popen.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            p.kill()


def until(condition: Callable[[], T], seconds: float, what: Callable[[], str], alive: Iterable[Process] = ()) -> T:
    """Waits until the condition holds, and returns what it returned.

    It fails after so many seconds with what(), and at once when one of the
    processes has ended.
    """
    deadline = time.monotonic() + seconds
    watched = list(alive)
    while True:
        value = condition()
        if value:
            return value
        for p in watched:
            p.check()
        if time.monotonic() > deadline:
            raise Failure("%s within %g s" % (what(), seconds))
        time.sleep(POLL)
