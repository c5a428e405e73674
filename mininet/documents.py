"""The files that the fabric's processes read.

They are JSON, which is YAML too: Debian's Mininet comes without a writer of
YAML. docs/topology.md and docs/examples explain the fields.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Union

from graph import Capability
from plan import ADMIN_PORT, AGENT_PORT, CONTROL_ADDRESS, CONTROL_INTERFACE, CONTROL_PAIRS, HOST_PORT, MANAGER_PORT, Plan


def manager_address() -> str:
    return "%s:%d" % (CONTROL_ADDRESS, MANAGER_PORT)


def topology(plan: Plan, rate: Optional[int] = None) -> dict:
    """The fabric with the addresses of all links' ends; rate is in bit/s."""
    fabric = plan.fabric
    return {
        "version": 1,
        "name": fabric.name,
        "hosts": fabric.hosts,
        "switches": [dict(name=name, **capability(c)) for name, c in fabric.switches.items()],
        "links": [
            {
                "between": [end.node for end in link.ends],
                "ports": [end.port for end in link.ends],
                "addresses": [plan.address(number, side) for side in (0, 1)],
                "bandwidth": rate or link.bandwidth,
                "latency": "%dns" % round(link.latency * 1e9),
            }
            for number, link in enumerate(fabric.links)
        ],
    }


def capability(c: Capability) -> dict:
    return {
        "functions": _listed(c.functions), "types": _listed(c.types),
        "slots": c.slots, "children": c.children, "chunk": c.chunk, "window": c.window,
    }


def _listed(names: str) -> Union[str, List[str]]:
    return names if names in ("all", "none") else names.split(",")


def manager(plan: Plan, topology_file: str) -> dict:
    """The configuration of a manager with a topology."""
    return _manager(topology=topology_file, agents={s: agent_address(plan, s) for s in plan.fabric.switches})


def discovering_manager(seed: str) -> dict:
    """The configuration of a manager that knows one agent's address, and discovers
    the fabric from there."""
    return _manager(discovery={"seeds": [seed], "allow": [str(CONTROL_PAIRS)]})


def _manager(**what: Any) -> dict:
    """The control network is nobody else's, and so nobody shows certificates."""
    return dict(what, version=1, listen=manager_address(), plaintext=True)


def agent_address(plan: Plan, switch: str) -> str:
    return "%s:%d" % (plan.control_address(switch), AGENT_PORT)


def agent(plan: Plan, switch: str) -> dict:
    """The configuration of a switch's agent, whichever pipeline it has."""
    own = plan.control_address(switch)
    return {
        "version": 1,
        "switch": switch,
        "listen": agent_address(plan, switch),
        "plaintext": True,
        "admin": {"listen": "%s:%d" % (own, ADMIN_PORT), "remote": True},
        "lldp": {"exclude": [CONTROL_INTERFACE]},
    }


def soft_agent(plan: Plan, switch: str) -> dict:
    """The agent that reduces by itself, on all its ports' addresses."""
    return dict(agent(plan, switch), data="0.0.0.0", capability=capability(plan.fabric.switches[switch]))


def p4_agent(plan: Plan, switch: str, p4runtime: str, addresses: bool) -> dict:
    """The agent beside a P4 target whose ports are the switch's data interfaces; the
    routes come from the manager and, unless they are to be given here, the ports'
    addresses from its topology. What the target can do, it knows by itself."""
    return dict(
        agent(plan, switch),
        pipeline="p4",
        p4runtime={"address": p4runtime, "device": plan.index(switch) + 1},
        ports=[
            dict({"interface": plan.interface(link, side)}, **({"address": plan.address(link, side)} if addresses else {}))
            for link, side in plan.fabric.ends_of(switch)
        ],
    )


def members(hosts: List[str], address: Callable[[str], str]) -> str:
    """The list of members that collbench reads: a line each, by rank."""
    return "".join("%s %s:%d\n" % (h, address(h), HOST_PORT) for h in hosts)


def metrics_urls(plan: Plan) -> Dict[str, str]:
    """Where the agents' counters are, by switch."""
    return {s: "http://%s:%d/metrics" % (plan.control_address(s), ADMIN_PORT) for s in plan.fabric.switches}
