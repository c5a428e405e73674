"""Links that are cut, moved and restored under running collectives, again and
again; the results and the manager's map are checked at each step."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import Callable, List, Optional, Tuple

from bench import Bench, Strike
from graph import End
from lab import Lab
from processes import Failure

PATIENCE = 30.0  # seconds for the map to become right; a map that is late is reported, not failed


@dataclass
class Step:
    """One change: what was done, and how long the map took to follow, in seconds."""

    what: str
    seconds: float


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
    offloaded: int = 0  # rounds that ended over switches
    failure: Optional[str] = None

    def run(self) -> None:
        """Runs until the time is over, or something was wrong."""
        chance = random.Random(self.seed)
        undo: List[Tuple[str, Callable[[], None]]] = []
        ends = time.monotonic() + self.seconds
        while time.monotonic() < ends and not self.failure:
            changes = self._possible() if len(undo) < 2 else []
            what, act = undo.pop(0) if not changes or undo and chance.random() < 0.4 else self._begin(chance, changes, undo)
            self._round(what, act)
            self.lab.settings.progress("%d steps; %s: map right after %.2f s" % (len(self.steps), what, self.steps[-1].seconds))
        while undo and not self.failure:
            what, act = undo.pop(0)
            self._round(what, act)

    def _round(self, what: str, act: Callable[[], None]) -> None:
        """Runs operations, makes the change under them, and checks the map."""
        def strike(_: Optional[dict]) -> str:
            act()
            self.steps.append(Step(what, self.lab.await_map(PATIENCE)))
            return what

        result = Bench(self.lab, self.hosts, ["65536", "65536"], self.arguments, "auto", 120.0, Strike(strike)).run()
        self.failure = result.failure
        if result.struck is None and not self.failure:
            self.failure = "the operations were over before %s" % what
        for m in result.measurements:
            self.operations += int(m.row["iterations"])
        self.offloaded += bool(result.measurements) and "offload" in result.measurements[-1].row["transport"]

    def _possible(self) -> List[int]:
        """Links between switches that are as they were: others stay so that hosts
        are connected."""
        fabric, network = self.lab.plan.fabric, self.lab.network
        return [
            n for n, link in enumerate(fabric.links)
            if n not in network.cut_links and n not in network.moved and all(e.node in fabric.switches for e in link.ends)
        ]

    def _begin(
        self, chance: random.Random, links: List[int], undo: List[Tuple[str, Callable[[], None]]],
    ) -> Tuple[str, Callable[[], None]]:
        """Chooses a change, and notes how it is undone."""
        fabric, network = self.lab.plan.fabric, self.lab.network
        number = chance.choice(links)
        name = fabric.links[number].name()
        if chance.random() < 0.5:
            undo.append(("%s restored" % name, lambda: network.restore(number)))
            return "%s cut" % name, lambda: network.cut(number)
        side = chance.randrange(2)
        before = fabric.links[number].ends[side]
        other = fabric.links[number].ends[1 - side].node
        node = chance.choice([before.node] + [s for s in fabric.switches if s != other])
        to = End(node, fabric.free_port(node))
        undo.append(("%s moved back" % name, lambda: network.move(number, side, before)))
        return "%s moved to %s:%d" % (name, to.node, to.port), lambda: network.move(number, side, to)


def text(soak: Soak) -> str:
    """What came of it, for people."""
    late = sorted(s.seconds for s in soak.steps)
    lines = []
    if late:
        lines.append("%d changes, %d operations, all right; the map followed after %.2f s (median), %.2f s at most; %d of %d rounds ended over switches." % (
            len(late), soak.operations, late[len(late) // 2], late[-1], soak.offloaded, len(late)))
    if soak.failure:
        lines.append("FAILED: %s" % soak.failure)
    return "\n".join(lines)
