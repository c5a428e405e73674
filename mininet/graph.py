"""The fabric as a graph, as the offload manager has read it.

There is one reader of topologies, and it is the project's: this module takes
what "offload-manager topology show --format json" writes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Tuple


class GraphError(Exception):
    """A fabric that cannot be built here; the message says why."""


@dataclass(frozen=True)
class End:
    """Where a link ends: a node's name, and the number of the port there."""

    node: str
    port: int


@dataclass(frozen=True)
class Link:
    """A link: bandwidth in bit/s for each direction, latency in seconds."""

    ends: Tuple[End, End]
    bandwidth: int
    latency: float

    def name(self) -> str:
        a, b = self.ends
        return "%s:%d--%s:%d" % (a.node, a.port, b.node, b.port)


@dataclass(frozen=True)
class Capability:
    """What a switch can do; functions and types are "all", "none" or names."""

    functions: str
    types: str
    slots: int
    children: int
    chunk: int  # largest payload of a packet, in bytes
    window: int = 0  # largest of a tree, in chunks; 0: any


@dataclass
class Fabric:
    """Hosts, switches and links, in the manager's order."""

    name: str
    hosts: List[str]
    switches: Dict[str, Capability]
    links: List[Link]
    _at: Dict[str, List[Tuple[int, int]]] = field(default_factory=dict, repr=False)
    _last: Dict[str, int] = field(default_factory=dict, repr=False)  # that free_port gave

    def __post_init__(self) -> None:
        self._at = {node: [] for node in self.nodes()}
        for number, link in enumerate(self.links):
            for side, end in enumerate(link.ends):
                if end.node not in self._at:
                    raise GraphError("link %s has an unknown node %s" % (link.name(), end.node))
                self._at[end.node].append((number, side))

    def move(self, number: int, side: int, end: End) -> None:
        """Plugs one side of a link in elsewhere."""
        link = self.links[number]
        self._at[link.ends[side].node].remove((number, side))
        ends = (end, link.ends[1]) if side == 0 else (link.ends[0], end)
        self.links[number] = Link(ends, link.bandwidth, link.latency)
        self._at[end.node].append((number, side))

    def free_port(self, node: str) -> int:
        """A port that no link has or had: those that were moved away may come back."""
        self._last[node] = 1 + max([self._last.get(node, 0)] + [self.links[n].ends[s].port for n, s in self._at[node]])
        return self._last[node]

    def nodes(self) -> List[str]:
        return self.hosts + list(self.switches)

    def ends_of(self, node: str) -> List[Tuple[int, int]]:
        """The node's links, each with the side (0 or 1) that the node is."""
        return self._at[node]

    def neighbours(self, node: str) -> Iterator[Tuple[int, int, str]]:
        """Like ends_of, with the name of the node at the other side."""
        for number, side in self._at[node]:
            yield number, side, self.links[number].ends[1 - side].node


def fabric_of(shown: dict) -> Fabric:
    """Reads what "topology show --format json" writes."""
    switches = {
        s["name"]: Capability(s["functions"], s["types"], s["slots"], s["children"], s["chunk_bytes"], s["window"])
        for s in shown["switches"]
    }
    links = [
        Link(
            (End(k["a"]["node"], k["a"]["port"]), End(k["b"]["node"], k["b"]["port"])),
            k["bandwidth_bits_per_second"],
            k["latency_seconds"],
        )
        for k in shown["links"]
    ]
    return Fabric(shown["name"], [h["name"] for h in shown["hosts"]], switches, links)
