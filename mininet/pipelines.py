"""What reduces in a switch: the agent's own software, or bmv2 beside it.

A pipeline says how a switch's namespace is wired, what runs in it before the
agent, and what the agent's file says. A target of another kind is one more
class here.
"""

from __future__ import annotations

import os
import shutil
from typing import Callable, Dict, Iterable, List, Optional

import documents
import wiring
from graph import GraphError
from plan import P4RUNTIME_PORT, Plan
from processes import Failure, Process, until
from routes import Route

Launch = Callable[[str, str, List[str]], Process]  # node, the process's name, command


class Pipeline:
    """The agent reduces by itself; the kernel forwards."""

    name = "soft"
    loses_itself = False  # hosts and switches lose packets where they send them, not where they arrive

    def check(self, plan: Plan) -> None:
        """Fails if a fabric cannot be built with this pipeline."""

    def wire(self, plan: Plan, switch: str, routes: List[Route]) -> List[List[str]]:
        """The parts of the script that wires a switch's data ports."""
        return [wiring.ports(plan, switch), wiring.addresses(plan, switch, routes)]

    def kernel_forwards(self) -> bool:
        return True

    def start(self, plan: Plan, switches: Iterable[str], launch: Launch, seconds: float) -> Dict[str, Process]:
        """Starts what the agents of some switches need to find, by switch, and
        waits for it."""
        return {}

    def agent(self, plan: Plan, switch: str, addresses: bool) -> dict:
        """The agent's file; with addresses if the manager has no topology that has them."""
        return documents.soft_agent(plan, switch)


class Bmv2(Pipeline):
    """bmv2 reduces and forwards; its ports have no addresses for the kernel."""

    name = "bmv2"
    loses_itself = True

    MAX_PORT = 507  # what the program leaves of 9 bits
    LOOP = {508: "loop-out", 509: "loop-in"}  # a packet that is to grow goes round there: p4/stages/loop.p4
    CPU_PORT = 510

    def __init__(self, program: Optional[str]) -> None:
        found = shutil.which(program or "simple_switch_grpc")
        if not found:
            raise Failure(
                "--pipeline bmv2 needs bmv2's simple_switch_grpc, and there is no %s; give its path by --bmv2, "
                "or take --pipeline soft" % (program or "simple_switch_grpc on the PATH"))
        self.program = found

    def check(self, plan: Plan) -> None:
        for link in plan.fabric.links:
            for end in link.ends:
                if end.node in plan.fabric.switches and end.port > self.MAX_PORT:
                    raise GraphError("port %d of %s: bmv2's ports end at %d" % (end.port, end.node, self.MAX_PORT))

    def wire(self, plan: Plan, switch: str, routes: List[Route]) -> List[List[str]]:
        return [wiring.ports(plan, switch), wiring.loop(*self.LOOP.values())]

    def kernel_forwards(self) -> bool:
        return False

    def command(self, plan: Plan, switch: str) -> List[str]:
        """How simple_switch_grpc is run: without a program, which the agent
        brings, on ports that have the topology's numbers."""
        command = [self.program, "--no-p4", "--device-id", str(plan.index(switch) + 1)]
        for link, side in plan.fabric.ends_of(switch):
            port = plan.fabric.links[link].ends[side].port
            command += ["-i", "%d@%s" % (port, plan.interface(link, side))]
        for port, interface in self.LOOP.items():
            command += ["-i", "%d@%s" % (port, interface)]
        return command + ["--", "--grpc-server-addr", self.p4runtime(), "--cpu-port", str(self.CPU_PORT)]

    @staticmethod
    def p4runtime() -> str:
        return "127.0.0.1:%d" % P4RUNTIME_PORT

    def start(self, plan: Plan, switches: Iterable[str], launch: Launch, seconds: float) -> Dict[str, Process]:
        started = {s: launch(s, "bmv2 of %s" % s, self.command(plan, s)) for s in switches}
        for process in started.values():
            self._await(process, seconds)
        return started

    @staticmethod
    def _await(process: Process, seconds: float) -> None:
        until(lambda: process.listens(P4RUNTIME_PORT), seconds,
              lambda: "the P4Runtime server of %s did not come up" % process.name, [process])

    def agent(self, plan: Plan, switch: str, addresses: bool) -> dict:
        return documents.p4_agent(plan, switch, self.p4runtime(), addresses)


def pipeline_of(name: str, bmv2: Optional[str]) -> Pipeline:
    return Bmv2(bmv2 and os.path.abspath(bmv2)) if name == Bmv2.name else Pipeline()
