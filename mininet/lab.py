"""A whole fabric that runs: network, manager, agents, and hosts that wait."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, List, Optional, Set

import counters
import documents
import maps
import wiring
from graph import Fabric, fabric_of
from network import Network, new_net
from pipelines import Pipeline
from plan import AGENT_PORT, CONTROL, CONTROL_INTERFACE, MANAGER_PORT, Plan
from processes import Failure, Process, kill_children, stop, undisturbed, until
from routes import Route, routes


@dataclass
class Settings:
    """What fabric to run. Rate is in bit/s, loss a share, patience in seconds."""

    topology: str
    pipeline: Pipeline
    bin: str
    rate: Optional[int] = None
    loss: float = 0.0
    patience: float = 60.0
    switch_cores: Optional[Set[int]] = None
    host_cores: Optional[Set[int]] = None
    discover: bool = False  # the manager gets one agent's address, and no topology
    splices: bool = False  # links between switches can be cut without setting an interface of theirs down
    logs: Optional[str] = None  # a directory that stays; None: one that goes
    progress: Callable[[str], None] = field(default=lambda line: None)


class Lab:
    """A fabric. Its owner starts it, and stops it whatever has happened."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.directory = settings.logs or tempfile.mkdtemp(prefix="tributary-mininet-")
        os.makedirs(self.directory, exist_ok=True)
        self.processes: List[Process] = []
        self.targets: Dict[str, Process] = {}
        self.agents: Dict[str, Process] = {}
        self.manager: Optional[Process] = None
        self.routes: Dict[str, List[Route]] = {}
        self.cores: Dict[str, Optional[Set[int]]] = {}  # by node
        self.net = new_net()
        self.control = self.net[CONTROL]

    # Starting

    def start(self) -> None:
        """Builds the fabric, and waits until the manager has all agents."""
        s = self.settings
        self.plan = Plan(self._read())
        s.pipeline.check(self.plan)
        fabric = self.plan.fabric
        self.cores.update({h: s.host_cores for h in fabric.hosts}, **{w: s.switch_cores for w in fabric.switches})
        s.progress("building %s: %d hosts, %d switches, %d links" % (
            fabric.name, len(fabric.hosts), len(fabric.switches), len(fabric.links)))
        self.routes = routes(self.plan)
        self.network = Network(self.net, self.plan, s.splices)
        self.network.build()
        self.network.plain_ports()
        self.network.configure(self._scripts())
        self.network.ease(s.bin)
        s.progress("starting manager and agents (%s)" % s.pipeline.name)
        if not s.discover:
            self._start_manager()
        self.start_targets(fabric.switches)
        for switch in fabric.switches:
            self.start_agent(switch)
        if s.discover:
            self._discover()
        until(lambda: not self.absent(), s.patience,
              lambda: "the manager did not reach the agents of %s" % ", ".join(self.absent()), self.processes)

    def _discover(self) -> None:
        """Starts hosts' LLDP, and then the manager with the address of one agent."""
        for host in self.plan.fabric.hosts:
            self.launch(host, "LLDP of %s" % host, ["offload-manager", "lldp", "--name", host, "--exclude", CONTROL_INTERFACE])
        for switch, agent in self.agents.items():
            until(lambda: agent.listens(AGENT_PORT), self.settings.patience, lambda: "the agent of %s did not come up" % switch, [agent])
        begun = time.monotonic()
        self._start_manager()
        self.await_map(self.settings.patience)
        self.settings.progress("the map is complete %.2f s after the manager was started" % (time.monotonic() - begun))

    def _read(self) -> Fabric:
        """Has a manager read the topology, and asks it what it has read."""
        source = given = self.settings.topology
        if os.path.exists(source):
            source = self._imported(os.path.abspath(source))
        self.control.cmd("ip link set lo up")
        address = "127.0.0.1:%d" % MANAGER_PORT
        path = self.write("read.yaml", {"version": 1, "topology": source, "listen": address})
        reader = self.launch(CONTROL, "reader of the topology", ["offload-manager", "serve", "--config", path])
        try:
            until(lambda: reader.listens(MANAGER_PORT), self.settings.patience, lambda: "no manager came up", [reader])
            fabric = fabric_of(self.ask("topology", "show", manager=address))
            fabric.name = fabric.name or os.path.splitext(os.path.basename(given))[0]
            return fabric
        finally:
            self.processes.remove(reader)
            stop([reader])

    def _imported(self, path: str) -> str:
        """A topology file of what another program has written, such as the
        topology.json of the P4 tutorials; the file itself if it is no such thing."""
        made = os.path.join(self.directory, "imported.yaml")
        command = [os.path.join(self.settings.bin, "offload-manager"), "topology", "import", "--output", made, path]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        if done.returncode == 0:
            self.settings.progress(done.stdout.strip())
            return made
        if "detect the format" in done.stdout:  # the manager says better what is wrong with a file of the project's own
            return path
        raise Failure(done.stdout.strip())

    def _scripts(self) -> Dict[str, str]:
        """How each node's namespace is wired."""
        plan, s = self.plan, self.settings
        scripts = {CONTROL: wiring.script([wiring.control_node(plan)])}
        for name in plan.fabric.nodes():
            parts = [wiring.kernel(name in plan.fabric.switches and s.pipeline.kernel_forwards()),
                     wiring.control(plan, name)]
            if name in plan.fabric.switches:
                parts += s.pipeline.wire(plan, name, self.routes[name])
            else:
                parts += [wiring.ports(plan, name), wiring.addresses(plan, name, self.routes[name])]
            parts.append(wiring.shaping(plan, name, s.rate))
            if not s.pipeline.loses_itself:
                parts.append(wiring.loss(plan, name, s.loss, "ingress"))
            elif name in plan.fabric.switches:
                parts.append(wiring.loss(plan, name, s.loss, "egress"))
            scripts[name] = wiring.script(parts)
        return scripts

    def _start_manager(self) -> None:
        if self.settings.discover:
            seed = next(iter(self.plan.fabric.switches))
            document = documents.discovering_manager(documents.agent_address(self.plan, seed))
        else:
            topology = self.write("fabric.yaml", documents.topology(self.plan, self.settings.rate))
            document = documents.manager(self.plan, topology)
        path = self.write("manager.yaml", document)
        manager = self.manager = self.launch(CONTROL, "manager", ["offload-manager", "serve", "--config", path])
        until(lambda: manager.listens(MANAGER_PORT), self.settings.patience,
              lambda: "the manager did not come up", [manager])

    def start_targets(self, switches: Iterable[str]) -> None:
        """Starts the targets of some switches, where the pipeline has any."""
        s = self.settings
        self.targets.update(s.pipeline.start(self.plan, switches, self.launch, s.patience))

    def start_agent(self, switch: str) -> None:
        """Starts the agent of a switch."""
        document = self.settings.pipeline.agent(self.plan, switch, self.settings.discover)
        path = self.write("agent-%d.yaml" % self.plan.index(switch), document)
        self.agents[switch] = self.launch(switch, "agent of %s" % switch, ["switch-agent", "run", "--config", path])

    def launch(self, node: str, name: str, command: List[str], talks: bool = False) -> Process:
        """Starts a process in a node; the project's programs are found by name."""
        own = os.path.join(self.settings.bin, command[0])
        if os.path.exists(own):
            command = [own] + command[1:]
        log = os.path.join(self.directory, "".join(c if c.isalnum() or c in ".-" else "-" for c in name) + ".log")
        if log not in [p.log for p in self.processes] and os.path.exists(log):
            os.remove(log)  # of an earlier run
        with undisturbed():
            process = Process(self.net[node], name, command, log, self.cores.get(node), talks)
            self.processes.append(process)
        return process

    def write(self, name: str, document: Any) -> str:
        """Writes a file for the processes; documents that are no text as JSON."""
        path = os.path.join(self.directory, name)
        with open(path, "w") as f:
            f.write(document if isinstance(document, str) else json.dumps(document, indent=1) + "\n")
        return path

    # Asking

    def ask(self, *command: str, manager: Optional[str] = None) -> Any:
        """Asks the manager by an offload-manager command that prints JSON."""
        arguments = [os.path.join(self.settings.bin, "offload-manager"), *command, "--format", "json",
                     "--manager", manager or documents.manager_address()]
        said, errors, status = self.control.pexec(arguments)
        if status:
            raise Failure(errors.strip() or "offload-manager %s: status %d" % (" ".join(command), status))
        return json.loads(said)

    def absent(self) -> List[str]:
        """The switches whose agent the manager has not, or that cannot reduce yet
        although they are to."""
        wanted = self.plan.fabric.switches
        return [
            s["name"] for s in self.ask("switch", "list")
            if not s["connected"] or wanted[s["name"]].slots > 0 and s["slots"] == 0
        ]

    def member_address(self, host: str) -> str:
        """Where other members reach a host. Where links are cut and moved, that is
        over the control network: the fabric's routes are static."""
        return self.plan.control_address(host) if self.settings.discover else self.plan.host_address(host)

    def await_map(self, seconds: float) -> None:
        """Waits until the manager's map is the fabric."""
        daemons = [p for p in (self.manager, *self.agents.values()) if p]
        until(lambda: not self.wrong(), seconds,
              lambda: "the manager's map did not become right: %s" % "; ".join(self.wrong()), daemons)

    def wrong(self) -> List[str]:
        """What differs between the manager's map and the fabric."""
        return maps.differences(self.plan.fabric, self.network.cut_links, self.ask("topology", "show"))

    def links(self) -> counters.Counts:
        """What all links have carried so far."""
        return counters.links(self.plan, self.network.pids())

    def agents_counters(self) -> Dict[str, Dict[str, float]]:
        """What all agents have counted so far, by switch."""
        asked = self.control.popen(
            [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "counters.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said, errors = asked.communicate(json.dumps(documents.metrics_urls(self.plan)).encode())
        if asked.returncode:
            raise Failure("asking the agents: " + errors.decode(errors="replace").strip())
        for line in errors.decode(errors="replace").splitlines():
            self.settings.progress(line)
        return json.loads(said)

    # Ending

    def stop(self) -> None:
        """Ends all processes, and removes namespaces and files."""
        if self.manager:
            stop([self.manager])  # first: it would report every agent that goes
        stop(self.processes)
        for node in self.net.values():
            if node.waiting:  # for a command of the prompt, which a signal to this program has broken off
                kill_children(node.shell.pid)
                node.waitOutput()
        self.net.stop()
        if not self.settings.logs:
            shutil.rmtree(self.directory, ignore_errors=True)
