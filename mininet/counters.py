"""What links and agents have counted."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from typing import Dict, List, Tuple

from graph import Fabric
from plan import Plan

TIMEOUT = 10  # seconds for an agent to answer in


@dataclass(frozen=True)
class Count:
    """What one end of a link has sent: bytes (Ethernet headers included), packets."""

    bytes: int = 0
    packets: int = 0

    def __sub__(self, before: "Count") -> "Count":
        return Count(self.bytes - before.bytes, self.packets - before.packets)

    def __add__(self, other: "Count") -> "Count":
        return Count(self.bytes + other.bytes, self.packets + other.packets)


Counts = List[Tuple[Count, Count]]  # by link, then by the side that has sent


def parse_devices(text: str) -> Dict[str, Count]:
    """Reads /proc/net/dev: what each interface has sent."""
    counts = {}
    for line in text.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        column = [int(n) for n in numbers.split()]
        counts[name.strip()] = Count(column[8], column[9])
    return counts


def links(plan: Plan, pids: Dict[str, int]) -> Counts:
    """What all links have carried so far, by a process in each node."""
    sent = {}
    for node, pid in pids.items():
        with open("/proc/%d/net/dev" % pid) as f:
            sent[node] = parse_devices(f.read())
    return [
        tuple(sent[end.node][plan.interface(number, side)] for side, end in enumerate(link.ends))  # type: ignore[misc]
        for number, link in enumerate(plan.fabric.links)
    ]


def since(now: Counts, before: Counts) -> Counts:
    return [(a[0] - b[0], a[1] - b[1]) for a, b in zip(now, before)]


def total(all_counts: List[Counts], fabric: Fabric) -> Counts:
    """The sums of several measurements."""
    sums: Counts = [(Count(), Count())] * len(fabric.links)
    for counts in all_counts:
        sums = [(a[0] + b[0], a[1] + b[1]) for a, b in zip(sums, counts)]
    return sums


_SAMPLE = re.compile(r"^tributary_agent_(\w+?)(?:_total)?(?:\{\w+=\"([^\"]*)\"\})? (\S+)$")


def parse_metrics(text: str) -> Dict[str, float]:
    """Reads an agent's metrics (docs/metrics.md): "contributions", "drops.late"
    and so on. What is zero and has a label is left out."""
    values = {}
    for line in text.splitlines():
        m = _SAMPLE.match(line)
        if m and (m.group(2) is None or float(m.group(3)) != 0):
            values[m.group(1) + ("." + m.group(2) if m.group(2) else "")] = float(m.group(3))
    return values


def silent(switch: str, why: object) -> str:
    """Says that an agent could not be asked."""
    if isinstance(why, ConnectionRefusedError):
        why = "it has ended"
    return "The agent of %s does not report what it has counted: %s." % (switch, why)


def fetch(urls: Dict[str, str]) -> Dict[str, Dict[str, float]]:
    """Asks agents, by switch, from where they can be reached. An agent that does
    not answer is left out."""
    from urllib.error import URLError
    from urllib.request import ProxyHandler, build_opener

    opener = build_opener(ProxyHandler({}))
    answers = {}
    for switch, url in urls.items():
        try:
            with opener.open(url, timeout=TIMEOUT) as response:
                answers[switch] = parse_metrics(response.read().decode())
        except (URLError, OSError) as e:
            print(silent(switch, getattr(e, "reason", e)), file=sys.stderr)
    return answers


if __name__ == "__main__":  # in the control node: it reads where, and says what
    json.dump(fetch(json.load(sys.stdin)), sys.stdout)
