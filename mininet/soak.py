"""Links that are cut, moved and restored under running collectives, again and
again; the results and the manager's map are checked at each step."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Callable, List, Optional

from bench import Bench, Strike, tree_pairs
from graph import End
from lab import Lab
from processes import until

PATIENCE = 30.0  # seconds for the map to become right; a map that is late is reported, not failed


@dataclass
class Step:
    """One change, with times in seconds since it."""

    what: str
    map: float  # until the map is right
    tree: Optional[float] = None  # until a tree without the link is committed, if the tree had it
    longest: float = 0.0  # of the operations of the round


@dataclass
class Change:
    """What is done to a link, and what undoes it."""

    number: int
    what: str
    act: Callable[[], None]
    undone: str = ""
    undo: Optional[Callable[[], None]] = None  # None: it undoes another


@dataclass
class Soak:
    """Rounds of operations with a change in the middle of each."""

    lab: Lab
    hosts: List[str]
    arguments: List[str]
    seconds: float
    seed: int = 1
    steps: List[Step] = field(default_factory=list)
    operations: int = 0
    transports: Counter = field(default_factory=Counter)  # rounds by their operations' transport
    failure: Optional[str] = None

    def run(self) -> None:
        """Runs until the time is over, or something was wrong."""
        self.chance = random.Random(self.seed)
        self.done: List[Change] = []  # to be undone
        ends = time.monotonic() + self.seconds
        while (time.monotonic() < ends or self.done) and not self.failure:
            self._round(over=time.monotonic() >= ends)
            if self.steps:
                s = self.steps[-1]
                self.lab.settings.progress("%d: %s: map %.2f s%s, longest operation %.2f s" % (
                    len(self.steps), s.what, s.map, "" if s.tree is None else ", tree %.2f s" % s.tree, s.longest))

    def _round(self, over: bool) -> None:
        """Runs operations, makes a change under them, and checks the map."""
        steps = len(self.steps)

        def strike(tree: Optional[dict]) -> str:
            change = self._choose(tree, over)
            breaks = change.undo is not None and self._on(tree, change.number)
            begun = time.monotonic()
            change.act()
            self.lab.await_map(PATIENCE)
            step = Step(change.what, time.monotonic() - begun)
            if breaks:
                until(lambda: replaced(bench.tree()[0], tree), PATIENCE,
                      lambda: "no other tree was committed after %s" % change.what)
                step.tree = time.monotonic() - begun
            self.steps.append(step)
            return change.what

        bench = Bench(self.lab, self.hosts, ["65536", "65536"], self.arguments, "auto", 120.0, Strike(strike))
        result = bench.run()
        self.failure = result.failure
        if len(self.steps) == steps and not self.failure:
            self.failure = "the operations were over before a change"
        for m in result.measurements:
            self.operations += int(m.row["iterations"])
        if result.measurements and len(self.steps) > steps:
            row = result.measurements[-1].row
            self.steps[-1].longest = float(row["max_us"]) / 1e6
            self.transports[row["transport"]] += 1

    def _choose(self, tree: Optional[dict], over: bool) -> Change:
        """A link, every second time one of the tree; or the end of an earlier change. At
        most two links, of four nodes, are changed at once, so that there is a way to
        every host; a host's own is moved."""
        fabric, network = self.lab.plan.fabric, self.lab.network
        if over or len(self.done) == 2 or self.done and self.chance.random() < 0.4:
            before = self.done.pop(0)
            assert before.undo
            return Change(before.number, before.undone, before.undo)
        touched = {e.node for c in self.done for e in fabric.links[c.number].ends}
        links = [n for n, link in enumerate(fabric.links) if all(
            e.node not in touched and (e.node in fabric.switches or not network.splices) for e in link.ends)]
        used = [n for n in links if self._on(tree, n)]
        number = self.chance.choice(used if used and self.chance.random() < 0.5 else links)
        name = fabric.links[number].name()
        is_hosts = any(e.node not in fabric.switches for e in fabric.links[number].ends)
        if network.splices or not is_hosts and self.chance.random() < 0.5:
            change = Change(number, "%s cut" % name, lambda: network.cut(number), "%s restored" % name, lambda: network.restore(number))
        else:
            side = self.chance.choice([s for s, e in enumerate(fabric.links[number].ends) if e.node in fabric.switches])
            before_, other = fabric.links[number].ends[side], fabric.links[number].ends[1 - side].node
            node = self.chance.choice([before_.node] + [s for s in fabric.switches if s != other])
            to = End(node, fabric.free_port(node))
            change = Change(number, "%s moved to %s:%d" % (name, to.node, to.port), lambda: network.move(number, side, to),
                            "%s moved back" % name, lambda: network.move(number, side, before_))
        self.done.append(change)
        return change

    def _on(self, tree: Optional[dict], number: int) -> bool:
        """Whether a tree uses a link."""
        return frozenset(e.node for e in self.lab.plan.fabric.links[number].ends) in tree_pairs(tree)


def replaced(now: Optional[dict], before: Optional[dict]) -> bool:
    """Whether another tree is active than before."""
    return bool(now and before and now["epoch"] != before["epoch"])


def text(soak: Soak) -> str:
    """What came of it, for people."""
    def spread(seconds: List[float]) -> str:
        return "%.2f s (median), %.2f s at most" % (seconds[len(seconds) // 2], seconds[-1])

    lines = []
    if soak.steps:
        lines.append("%d changes, %d operations; operations under a change ran by %s." % (
            len(soak.steps), soak.operations, ", ".join("%s %d times" % t for t in soak.transports.most_common())))
        lines.append("From a change to the right map: %s." % spread(sorted(s.map for s in soak.steps)))
        broken = [s for s in soak.steps if s.tree is not None]
        if broken:
            lines.append("From a change to another committed tree, %d times: %s." % (
                len(broken), spread(sorted(s.tree for s in broken if s.tree is not None))))
            lines.append("The longest operation of such a round: %s." % spread(sorted(s.longest for s in broken)))
    lines.append("FAILED: %s" % soak.failure if soak.failure else "All results are right, and so was the map after each change.")
    return "\n".join(lines)
