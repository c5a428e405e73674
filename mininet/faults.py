"""What can be killed in the middle of an operation, as kill -9 does it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Dict, Optional

from bench import root_of
from lab import Lab
from processes import Failure, Process

FAULTS = "manager, agent:SWITCH or target:SWITCH (bmv2, which is restarted); SWITCH may be root, the tree's root"

ROOT = "root"


@dataclass(frozen=True)
class Fault:
    """What is to be killed: a kind of process, and the switch that it serves."""

    kind: str
    switch: str

    def check(self, lab: Lab) -> None:
        """Fails if the lab has no such process."""
        victims = self._victims(lab)
        if self.switch not in list(victims) + [ROOT] * bool(victims):
            raise Failure("--kill: there is no %s of %s; possible are %s" % (
                self.kind, self.switch, ", ".join([ROOT] * bool(victims) + list(victims)) or "none"))

    def strike(self, lab: Lab, tree: Optional[dict]) -> str:
        """Kills it, and says what was killed."""
        switch = root_of(tree) if self.switch == ROOT else self.switch
        if switch is None:
            return "nothing was killed, for there was no tree with a root"
        self._victims(lab)[switch].kill()
        what = "the %s%s was killed" % (self.kind, switch and " of " + switch)
        if self.kind != "target":
            return what
        lab.start_targets([switch])  # as a supervisor does it; without it hosts would be cut off
        return what + ", and started again"

    def _victims(self, lab: Lab) -> Dict[str, Process]:
        if self.kind == "manager":
            return {"": lab.manager} if lab.manager else {}
        return lab.agents if self.kind == "agent" else lab.targets


def fault(text: str) -> Fault:
    """Reads what is to be killed."""
    kind, _, switch = text.partition(":")
    if kind not in ("manager", "agent", "target") or (kind == "manager") == bool(switch):
        raise argparse.ArgumentTypeError("%r is none of %s" % (text, FAULTS))
    return Fault(kind, switch)
