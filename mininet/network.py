"""The fabric as a Mininet network of namespaces."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Dict, Optional, Set

from mininet.link import Intf, Link
from mininet.net import Mininet
from mininet.node import Host, Node, Switch

import offloads
import wiring
from graph import End
from plan import CONTROL, CONTROL_ADDRESS, CONTROL_INTERFACE, MANAGER_PORT, Plan
from processes import Failure

CONTROL_PORT = 1 << 16  # beyond a port's largest number; the first port stays the node's own
SPLICE_PORT = 1 << 17  # the control node's first port of a splice


class SwitchNode(Switch):
    """A switch in a namespace of its own; what makes it one runs in it."""

    def start(self, controllers: list) -> None:
        """Nothing: who built the network starts what runs in it."""

    def defaultIntf(self) -> Intf:
        """The first port, as on hosts."""
        return Node.defaultIntf(self)


class ControlNode(Node):
    """Where the manager runs: Mininet's controller, as far as it has a say."""

    def start(self) -> None:
        """Nothing, as for switches."""


class Wire(Link):
    """A veth pair that goes with its namespaces, without being deleted singly."""

    def stop(self) -> None:
        pass


class Network:
    """The nodes and links of a plan in a Mininet network that has a control node.

    With splices, links between switches pass the control node, where they can be cut
    without setting an interface of a switch down."""

    def __init__(self, net: Mininet, plan: Plan, splices: bool = False) -> None:
        self.net, self.plan, self.splices = net, plan, splices
        self.cut_links: Set[int] = set()

    def node(self, name: str) -> Node:
        return self.net[name]

    def build(self) -> None:
        """Makes nodes and links. Addresses and routes are yet to come."""
        plan, fabric = self.plan, self.plan.fabric
        for host in fabric.hosts:
            self.net.addHost(host, cls=Host, ip=None)
        for switch in fabric.switches:
            self.net.addSwitch(switch, cls=SwitchNode, inNamespace=True, dpid="%x" % (plan.index(switch) + 1))
        for number, link in enumerate(fabric.links):
            if self._spliced(number):
                wires = [self._join(
                    self.node(end.node), end.port, plan.interface(number, side), plan.mac(number, side),
                    self.node(CONTROL), SPLICE_PORT + 2 * number + side, wiring.splice_interface(number, side), wiring.SPLICE_MAC)
                    for side, end in enumerate(link.ends)]
                ends = [wire.intf1 for wire in wires]
            else:
                wires = [self._plug(number)]
                ends = [wires[0].intf1, wires[0].intf2]
            self.net.links += wires
            for side, interface in enumerate(ends):
                interface.ip, interface.prefixLen = plan.address(number, side), "31"
        for name in fabric.nodes():
            self._join(
                self.node(name), CONTROL_PORT, CONTROL_INTERFACE, None,
                self.node(CONTROL), plan.index(name), plan.control_interface(name), None)
        spliced = [n for n in range(len(fabric.links)) if self._spliced(n)]
        self.configure({CONTROL: wiring.script([wiring.splice(n) for n in spliced])})
        self.net.built = True

    def _spliced(self, number: int) -> bool:
        return self.splices and all(e.node in self.plan.fabric.switches for e in self.plan.fabric.links[number].ends)

    def _plug(self, number: int) -> Wire:
        """Makes the cable of a link."""
        plan, (a, b) = self.plan, self.plan.fabric.links[number].ends
        return self._join(
            self.node(a.node), a.port, plan.interface(number, 0), plan.mac(number, 0),
            self.node(b.node), b.port, plan.interface(number, 1), plan.mac(number, 1))

    @staticmethod
    def _join(
        a: Node, a_port: int, a_name: str, a_mac: Optional[str],
        b: Node, b_port: int, b_name: str, b_mac: Optional[str],
    ) -> Wire:
        """Makes a pair, one end in each node; wiring sets it up."""
        return Wire(
            a, b, port1=a_port, port2=b_port, intfName1=a_name, intfName2=b_name, addr1=a_mac, addr2=b_mac,
            intf=Intf, up=None)

    def cut(self, number: int) -> None:
        """Cuts a cable: both its ends lose the carrier."""
        if self._spliced(number):
            self._run(CONTROL, wiring.splice_state(number, "down"))
        else:
            self._set(number, 0, "down")
        self.cut_links.add(number)

    def restore(self, number: int) -> None:
        """Ends cut."""
        if self._spliced(number):
            self._run(CONTROL, wiring.splice_state(number, "up"))
        else:
            self._set(number, 0, "up")
            self.configure({end.node: wiring.script([wiring.end(self.plan, number, side)])
                            for side, end in enumerate(self.plan.fabric.links[number].ends)})
        self.cut_links.discard(number)

    def _set(self, number: int, side: int, state: str) -> None:
        end = self.plan.fabric.links[number].ends[side]
        self._run(end.node, "ip link set %s %s" % (self.plan.interface(number, side), state))

    def move(self, number: int, side: int, end: End) -> None:
        """Pulls one end of a cable out, and plugs it into another port. Its
        address goes with it: it is that of the cable's subnet."""
        plan = self.plan
        old = plan.fabric.links[number].ends[side]
        self._run(old.node, "ip link delete %s" % plan.interface(number, side))
        plan.fabric.move(number, side, end)
        self._plug(number)
        a, b = plan.fabric.links[number].ends
        for at, e in enumerate((a, b)):
            offloads.switch_off(self.node(e.node).pid, [plan.interface(number, at)])
        self.configure({e.node: wiring.script([wiring.end(plan, number, at)]) for at, e in enumerate((a, b))})

    def _run(self, node: str, command: str) -> None:
        self.configure({node: command + "\n"})

    def configure(self, scripts: Dict[str, str]) -> None:
        """Runs a script in each node's namespace, several at a time."""
        def run(name: str) -> None:
            pipe = subprocess.PIPE
            popen = self.node(name).popen(["sh"], stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT)
            said, _ = popen.communicate(scripts[name].encode())
            if popen.returncode:
                raise Failure("wiring %s: %s" % (name, said.decode(errors="replace").strip()))

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(run, scripts))

    def plain_ports(self) -> None:
        """Switches the offloads of all data ports off: packets on the links are
        those that a wire would carry."""
        for name in self.plan.fabric.nodes():
            interfaces = [self.plan.interface(*end) for end in self.plan.fabric.ends_of(name)]
            offloads.switch_off(self.node(name).pid, interfaces)

    def ease(self, bin_directory: str) -> None:
        """Lets the Mininet prompt find the project's commands, and these their
        manager."""
        for name in [CONTROL] + self.plan.fabric.nodes():
            self.node(name).cmd(
                "export PATH=%s:$PATH TRIBUTARY_MANAGER=%s:%d" % (bin_directory, CONTROL_ADDRESS, MANAGER_PORT))

    def pids(self) -> Dict[str, int]:
        """A process in each node's namespace, by the node's name."""
        return {name: self.node(name).pid for name in self.plan.fabric.nodes()}


def new_net() -> Mininet:
    """A Mininet network of a control node alone, without Open vSwitch."""
    net = Mininet(topo=None, controller=None, switch=SwitchNode, link=Wire, build=False)
    net.addController(CONTROL, controller=ControlNode)
    return net
