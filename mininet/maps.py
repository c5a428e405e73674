"""The manager's map beside the fabric that there is."""

from __future__ import annotations

from typing import List, Set

from graph import Fabric


def differences(fabric: Fabric, cut: Set[int], shown: dict) -> List[str]:
    """What is wrong with a map, as "topology show --format json" writes it, of a
    fabric of which some links are cut. A link that is cut may be absent from a map
    that has never seen it up."""
    wrong = []
    for kind, there in (("hosts", set(fabric.hosts)), ("switches", set(fabric.switches))):
        seen = {n["name"] for n in shown[kind] if n["up"]}
        wrong += ["%s is not in the map" % n for n in sorted(there - seen)]
        wrong += ["%s is in the map, and up, although there is no such node" % n for n in sorted(seen - there)]
    up = {frozenset((e["node"], e["port"]) for e in (k["a"], k["b"])) for k in shown["links"] if k["up"]}
    true = {
        frozenset((e.node, e.port) for e in link.ends): link.name()
        for number, link in enumerate(fabric.links) if number not in cut
    }
    wrong += ["link %s is not up in the map" % name for ends, name in sorted(true.items(), key=lambda i: i[1]) if ends not in up]
    wrong += ["link %s is up in the map, and does not exist" % "--".join("%s:%d" % e for e in sorted(ends)) for ends in up - set(true)]
    return wrong
