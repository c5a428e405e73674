"""Routes over shortest paths, one next hop for every destination.

Where several next hops are equally near, destinations are dealt out to them in
turn, so that equal traffic to all hosts loads equal links equally. Both
pipelines have the same routes, which makes their links' counters comparable.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Dict, List, Tuple

from graph import Fabric
from plan import Plan


@dataclass(frozen=True)
class Route:
    """The way of one node to one address: the link to take, and the node's side."""

    address: str
    link: int
    side: int
    connected: bool  # the address is at the other end of that link


def distances(fabric: Fabric, host: str) -> Dict[str, int]:
    """The nodes' distances to a host, in links. Hosts do not forward."""
    far = {host: 0}
    queue = deque([host])
    while queue:
        node = queue.popleft()
        if node in fabric.switches or node == host:
            for _, _, other in fabric.neighbours(node):
                if other not in far:
                    far[other] = far[node] + 1
                    queue.append(other)
    return far


def next_hop(fabric: Fabric, far: Dict[str, int], node: str, number: int) -> Tuple[int, int]:
    """The link, and the node's side of it, towards host number, of these distances."""
    nearer = [
        (link, side) for link, side, other in fabric.neighbours(node)
        if far.get(other) == far[node] - 1 and (other in fabric.switches or far[other] == 0)
    ]
    # Switches at neighbouring distances deal by different digits of the number:
    # by the same they would leave paths unused.
    deal = number if far[node] % 2 else number // len(nearer)
    return nearer[deal % len(nearer)]


def routes(plan: Plan) -> Dict[str, List[Route]]:
    """The routes of all nodes to all hosts' addresses.

    A host has an address on each of its links. Hosts that are not connected
    have no route to each other.
    """
    fabric = plan.fabric
    found: Dict[str, List[Route]] = {n: [] for n in fabric.nodes()}
    for number, host in enumerate(fabric.hosts):
        far = distances(fabric, host)
        addresses = {link: plan.address(link, side) for link, side in fabric.ends_of(host)}
        for node in far:
            if node == host:
                continue
            own = dict(fabric.ends_of(node))
            by = next_hop(fabric, far, node, number)
            for link, address in addresses.items():
                if link in own:
                    found[node].append(Route(address, link, own[link], True))
                else:
                    found[node].append(Route(address, by[0], by[1], False))
    return found
