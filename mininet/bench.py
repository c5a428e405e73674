"""A collective, measured by collbench on all hosts at once."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional, Set, Tuple

import counters
import documents
from lab import Lab
from plan import HOST_PORT
from processes import SHUTDOWN, Failure, Process, describe, stop

GROUP = "collbench"  # the group's name


@dataclass
class Measurement:
    """One size: collbench's row, where the tree was, what links carried."""

    row: Dict[str, str]
    tree: Optional[dict]  # as "group show" has it; None: none
    refusal: str  # why there is none, if the manager has a reason
    carried: counters.Counts


@dataclass
class Result:
    """What came of it; failure says what was wrong, and is None if nothing was."""

    measurements: List[Measurement] = field(default_factory=list)
    failure: Optional[str] = None
    struck: Optional[str] = None  # what was killed
    agents: Dict[str, Dict[str, float]] = field(default_factory=dict)  # what they have counted


@dataclass
class Strike:
    """Something that happens in the middle of the last size: when the first
    host has sent a quarter of its vector. Act gets the tree, if there is one,
    and returns what it has done."""

    act: Callable[[Optional[dict]], str]
    quarter: int = 0  # bytes
    tree: Optional[dict] = None
    before: counters.Counts = field(default_factory=list)
    armed: bool = False

    def arm(self, size: int, tree: Optional[dict], before: counters.Counts) -> None:
        self.quarter, self.tree, self.before, self.armed = size // 4, tree, before, True


class Bench:
    """One run of collbench on some of a lab's hosts, the first of which talks."""

    def __init__(
        self, lab: Lab, hosts: List[str], sizes: List[str], arguments: List[str], transport: str, seconds: float,
        strike: Optional[Strike] = None,
    ) -> None:
        self.lab, self.hosts, self.sizes, self.transport = lab, hosts, sizes, transport
        self.arguments = arguments + ["--bytes", ",".join(sizes)]
        self.deadline = time.monotonic() + seconds
        self.strike = strike
        self.result = Result()
        self._failed_at: Optional[float] = None

    def run(self) -> Result:
        """Measures. It fails only if nothing can be said about the run."""
        members = self.lab.write("members", documents.members(self.hosts, self.lab.member_address))
        processes = [self._start(rank, host, members) for rank, host in enumerate(self.hosts)]
        try:
            self._talk(processes)
            self._await(processes)
            self.result.agents = self.lab.agents_counters()
        finally:
            stop(processes)
            processes[0].fall_silent()
        return self.result

    def _start(self, rank: int, host: str, members: str) -> Process:
        plan, settings = self.lab.plan, self.lab.settings
        command = [
            "collbench", "run", "--host", host, "--members", members, "--name", GROUP, "--transport", self.transport,
            "--listen", "%s:%d" % (self.lab.member_address(host), HOST_PORT), "--manager", documents.manager_address(),
        ] + self.arguments
        if len(plan.fabric.ends_of(host)) > 1 or settings.discover:
            command += ["--data", "0.0.0.0"]  # each link has an address of its own
        if settings.pipeline.loses_itself:
            command += ["--loss", repr(settings.loss)]
        talks = rank == 0
        return self.lab.launch(host, "collbench of %s" % host, command + ["--marks"] * talks, talks)

    def _talk(self, processes: List[Process]) -> None:
        """Hears the first host, which waits for an answer at the beginning and
        end of each size."""
        before: counters.Counts = []
        carried: counters.Counts = []
        tree: Optional[dict] = None
        refusal, begun = "", 0
        header: List[str] = []
        for line in processes[0].lines(lambda: self._goes_on(processes)):
            words = line.split()
            if words[0] != "MARK":
                cells = line.split(",")
                if header:
                    self.result.measurements.append(Measurement(dict(zip(header, cells)), tree, refusal, carried))
                header = header or cells
                continue
            if words[1] == "begins":
                tree, refusal = self.tree()
                before = self.lab.links()
                begun += 1
                if self.strike and begun == len(self.sizes):
                    self.strike.arm(int(words[2]), tree, before)
            else:
                carried = counters.since(self.lab.links(), before)
            processes[0].send_line("go on")

    def _goes_on(self, processes: List[Process]) -> bool:
        """Whether the first host may still have something to say."""
        now = time.monotonic()
        if now > self.deadline:
            raise Failure("collbench was not done in time (--timeout)")
        if any(p.ended() not in (None, 0) for p in processes):
            self._failed_at = self._failed_at or now
        self._watch()
        return self._failed_at is None or now - self._failed_at < SHUTDOWN

    def _watch(self) -> None:
        """Strikes, when it is time."""
        strike = self.strike
        if not strike or not strike.armed:
            return
        carried = counters.since(self.lab.links(), strike.before)
        sent = sum(carried[link][side].bytes for link, side in self.lab.plan.fabric.ends_of(self.hosts[0]))
        if sent > strike.quarter:
            strike.armed = False
            self.result.struck = strike.act(strike.tree)

    def _await(self, processes: List[Process]) -> None:
        """Waits for all hosts to end, and keeps what was wrong with the first
        that says so."""
        for p in processes:
            patience = SHUTDOWN if self._failed_at else self.deadline - time.monotonic()
            try:
                status = p.popen.wait(max(0.0, patience))
            except subprocess.TimeoutExpired:
                if not self._failed_at:
                    raise Failure("%s was not done in time (--timeout)" % p.name) from None
                continue  # another has failed, and it waits for that one
            if status and not self.result.failure:
                self.result.failure = "%s ended with %s: %s" % (p.name, describe(status), p.last_words(1))
        if not self.result.failure and any(m.row["result"] != "right" for m in self.result.measurements):
            self.result.failure = "a result is wrong"

    def tree(self) -> Tuple[Optional[dict], str]:
        """Where the manager has put the group's tree, or why it has none."""
        if self.transport == "host":
            return None, ""
        groups = [g for g in self.lab.ask("group", "list") if g["name"].startswith(GROUP + "/")]
        if not groups:
            return None, "the manager has no such group"
        group = self.lab.ask("group", "show", str(max(g["group"] for g in groups)))
        active = [t for t in group["trees"] if t["epoch"] == group["epoch"]]
        return (active[0], "") if active else (None, group.get("refusal", ""))


def tree_pairs(tree: Optional[dict]) -> Set[frozenset]:
    """The pairs of neighbours that a tree joins."""
    if not tree:
        return set()
    pairs = {frozenset((v["switch"], v["parent"])) for v in tree["switches"] if v.get("parent")}
    return pairs | {frozenset((m["host"], m["switch"])) for m in tree["members"]}


def root_of(tree: Optional[dict]) -> Optional[str]:
    """The switch at the top of a tree; None: there is none."""
    return next((v["switch"] for v in tree["switches"] if not v.get("parent")), None) if tree else None
