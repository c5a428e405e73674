"""What a node's namespace is reported before anything runs in it: a shell script.

One script a node, all run at once, takes a fraction of the time that a command
an interface would.
"""

from __future__ import annotations

import shlex
from typing import List, Optional

from plan import CONTROL_ADDRESS, CONTROL_INTERFACE, CONTROL_PAIRS, Plan
from routes import Route

MTU = 1500  # bytes, of every link

SPLICE_MAC = "06:00:00:00:00:01"  # nothing is sent to it

# Nothing but the fabric's own packets on the links, all routes used, none
# dropped by reverse-path checks.
KERNEL = {"ipv6/conf/*/disable_ipv6": 1, "ipv4/conf/*/rp_filter": 0}

# A token bucket sends so many bytes at once, or what passes in this time, if
# that is more, and lets a packet wait so long at most.
MIN_BURST = 64 << 10
BURST_SECONDS = 0.0005
QUEUE_SECONDS = 0.05


def kernel(forward: bool) -> List[str]:
    """Kernel settings; what a kernel does not have is left."""
    lines = []
    for name, value in dict(KERNEL, **{"ipv4/ip_forward": int(forward)}).items():
        lines.append("for f in /proc/sys/net/%s; do if [ -e $f ]; then echo %d >$f; fi; done" % (name, value))
    return lines + ["ip link set lo up"]


def control(plan: Plan, node: str) -> List[str]:
    """The node's side of its control pair."""
    theirs, own = plan.control_addresses(node)
    return _batch("ip -batch -", [
        "link set %s up" % CONTROL_INTERFACE,
        "address add %s/31 dev %s" % (own, CONTROL_INTERFACE),
        "route add %s/32 via %s" % (CONTROL_ADDRESS, theirs),
        "route add %s via %s" % (CONTROL_PAIRS, theirs),
    ])


def control_node(plan: Plan) -> List[str]:
    """The control node: its own address, and its side of all pairs, between which it
    forwards."""
    lines = ["address add %s/32 dev lo" % CONTROL_ADDRESS]
    for node in plan.fabric.nodes():
        interface = plan.control_interface(node)
        own = plan.control_addresses(node)[0]
        lines += ["link set %s up" % interface, "address add %s/31 dev %s" % (own, interface)]
    return kernel(True) + _batch("ip -batch -", lines)


def ports(plan: Plan, node: str) -> List[str]:
    """The node's data ports, set up without addresses."""
    return _batch("ip -batch -", [_up(plan, link, side) for link, side in plan.fabric.ends_of(node)])


def end(plan: Plan, link: int, side: int) -> List[str]:
    """One end of a cable that was plugged in while the fabric runs."""
    return _batch("ip -batch -", [_up(plan, link, side)] + _addressed(plan, link, side, "replace"))


def _up(plan: Plan, link: int, side: int) -> str:
    return "link set %s mtu %d up" % (plan.interface(link, side), MTU)


def _addressed(plan: Plan, link: int, side: int, verb: str) -> List[str]:
    """The address of an end, which may be there already where the verb is replace, and
    its neighbour."""
    interface = plan.interface(link, side)
    return [
        "address %s %s/31 dev %s" % (verb, plan.address(link, side), interface),
        "neighbour replace %s lladdr %s dev %s nud permanent"
        % (plan.address(link, 1 - side), plan.mac(link, 1 - side), interface),
    ]


def splice_interface(link: int, side: int) -> str:
    """The control node's interface at one end of a splice."""
    return "splice%d-%d" % (link, side)


def splice(link: int) -> List[str]:
    """Joins the two halves of a link in the control node."""
    ends = [splice_interface(link, side) for side in (0, 1)]
    lines = []
    for come, go in (ends, ends[::-1]):
        lines += ["qdisc add dev %s ingress" % come,
                  "filter add dev %s parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev %s" % (come, go)]
    return [splice_state(link, "up")] + _batch("tc -batch -", lines)


def splice_state(link: int, state: str) -> str:
    """Sets both ends of a splice up or down, by which those of the link have a carrier or
    none."""
    return "; ".join("ip link set %s %s" % (splice_interface(link, side), state) for side in (0, 1))


def loop(out: str, back: str) -> List[str]:
    """A cable from a switch to itself, that has no part in the fabric."""
    return _batch("ip -batch -", [
        "link add %s type veth peer name %s" % (out, back), "link set %s up" % out, "link set %s up" % back,
    ])


def addresses(plan: Plan, node: str, routes: List[Route]) -> List[str]:
    """Addresses, neighbours and routes of a node whose kernel forwards or ends
    the fabric's packets. Neighbours are reported, so that nobody has to ask."""
    lines = []
    for link, side in plan.fabric.ends_of(node):
        lines += _addressed(plan, link, side, "add")
    lines += [
        "route add %s/32 via %s dev %s" % (r.address, plan.address(r.link, 1 - r.side), plan.interface(r.link, r.side))
        for r in routes if not r.connected
    ]
    return _batch("ip -batch -", lines)


def shaping(plan: Plan, node: str, rate: Optional[int]) -> List[str]:
    """A token bucket on what each port sends, of rate bit/s."""
    if not rate:
        return []
    burst = max(MIN_BURST, int(rate / 8 * BURST_SECONDS))
    limit = int(rate / 8 * QUEUE_SECONDS) + burst
    return _batch("tc -batch -", [
        "qdisc add dev %s root tbf rate %dbit burst %d limit %d" % (plan.interface(link, side), rate, burst, limit)
        for link, side in plan.fabric.ends_of(node)
    ])


def loss(plan: Plan, node: str, share: float, hook: str) -> List[str]:
    """Loses a share of the UDP packets at each port, where hook is ingress or
    egress. It takes no netem: a classic BPF program, which every kernel of a
    distribution has, draws a number for each packet."""
    if not share:
        return []
    program = loss_program(share)
    lines: List[str] = []
    for link, side in plan.fabric.ends_of(node):
        interface = plan.interface(link, side)
        lines += ["qdisc add dev %s clsact" % interface,
                  "filter add dev %s %s bpf da bytecode %s" % (interface, hook, shlex.quote(program))]
    return _batch("tc -batch -", lines)


def loss_program(share: float) -> str:
    """Classic BPF over an Ethernet frame: a share of the IPv4 packets of UDP is
    dropped, all else goes on. An operation is code, jumps if true and if false,
    operand."""
    random = 0xFFFFF000 + 56  # SKF_AD_OFF + SKF_AD_RANDOM
    threshold = min(0xFFFFFFFF, round(share * (1 << 32)))
    program = [
        (0x28, 0, 0, 12),  # load the EtherType
        (0x15, 0, 5, 0x0800),  # not IPv4: to the last
        (0x30, 0, 0, 23),  # load the protocol
        (0x15, 0, 3, 17),  # not UDP: to the last
        (0x20, 0, 0, random),  # load a random number of 32 bits
        (0x35, 1, 0, threshold),  # not below the threshold: to the last
        (0x06, 0, 0, 2),  # TC_ACT_SHOT
        (0x06, 0, 0, 0xFFFFFFFF),  # TC_ACT_UNSPEC
    ]
    return ",".join([str(len(program))] + ["%d %d %d %d" % op for op in program])


def script(parts: List[List[str]]) -> str:
    """Joins the parts to a script that ends at the first failure."""
    return "\n".join(["set -e"] + [line for part in parts for line in part]) + "\n"


def _batch(command: str, lines: List[str]) -> List[str]:
    """Runs many commands of a tool in one process of it."""
    return ["%s <<'END'" % command] + lines + ["END"] if lines else []
