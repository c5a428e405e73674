"""The address plan: pure reckoning.

Every link is a subnet of its own, a /31, so that what is sent to the address of
one of its ends arrives over that link and no other (docs/topology.md). The
control network is apart from it: a pair of interfaces between each node and
the control node, which carries what manager, agents and hosts report each other.
"""

from __future__ import annotations

import ipaddress
from typing import Dict, List

from graph import Fabric, GraphError

CONTROL = "manager"  # the control node's name
CONTROL_INTERFACE = "ctl"  # every other node's interface towards it

LINKS = ipaddress.ip_network("10.0.0.0/9")
CONTROL_PAIRS = ipaddress.ip_network("172.16.0.0/13")
CONTROL_ADDRESS = ipaddress.ip_address("172.24.0.1")  # the control node's own

MAX_INTERFACE_NAME = 15  # characters, the kernel's bound

MANAGER_PORT = 7100
AGENT_PORT = 7101
HOST_PORT = 7102
ADMIN_PORT = 7481
P4RUNTIME_PORT = 9559


class Plan:
    """Addresses, hardware addresses and interfaces of a fabric's link ends.

    An end is a pair of the link's number and the side, 0 or 1.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        if 2 * len(fabric.links) > LINKS.num_addresses or len(fabric.links) >= 1 << 24:
            raise GraphError("%d links are more than the address plan has room for" % len(fabric.links))
        for host in fabric.hosts:
            if not fabric.ends_of(host):
                raise GraphError("host %s has no link" % host)
        self._index: Dict[str, int] = {n: i for i, n in enumerate(fabric.nodes())}
        if CONTROL in self._index:
            raise GraphError("a node is called %s, as the control node is: give it another name" % CONTROL)

    def address(self, link: int, side: int) -> str:
        """The IP address of an end. A host's is the odd one of the two."""
        ends = self.fabric.links[link].ends
        odd = side if ends[0].node not in self.fabric.hosts else 1 - side
        return str(LINKS[2 * link + odd])

    @staticmethod
    def mac(link: int, side: int) -> str:
        """The hardware address of an end: locally administered, by the link."""
        return ":".join("%02x" % b for b in bytes([2, 0]) + link.to_bytes(3, "big") + bytes([side + 1]))

    def interface(self, link: int, side: int) -> str:
        """The name of the interface at an end: NODE-ethPORT where it fits."""
        end = self.fabric.links[link].ends[side]
        name = "%s-eth%d" % (end.node, end.port)
        if len(name) > MAX_INTERFACE_NAME or "/" in name:
            name = "eth%d" % end.port
        return name

    def host_address(self, host: str) -> str:
        """The address by which other hosts reach a host: that of its first link."""
        link, side = self.fabric.ends_of(host)[0]
        return self.address(link, side)

    def control_addresses(self, node: str) -> List[str]:
        """The addresses of a node's control pair: the control node's, the node's."""
        index = self._index[node]
        return [str(CONTROL_PAIRS[2 * index]), str(CONTROL_PAIRS[2 * index + 1])]

    def control_address(self, node: str) -> str:
        return self.control_addresses(node)[1]

    def control_interface(self, node: str) -> str:
        """The name of the control node's interface towards a node."""
        return "node%d" % self._index[node]

    def index(self, node: str) -> int:
        return self._index[node]
