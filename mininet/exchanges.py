"""All hosts exchange equal packets in pairs at once: an allreduce's yardstick.

An allreduce sends each chunk up once and down once on each host's link. The
same number of plain UDP packets of the same size, each host with a partner half
the hosts away, in another leaf of a leaf-spine, is what the same switches can
do without reducing.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import List

import counters
from bench import Result
from lab import Lab
from processes import Failure, Process, stop
from report import goodput

PORT = 7103
SIZE = 1472  # bytes above UDP: a packet of 1,500
PAYLOAD = 1432  # of them a chunk, as in packets of trees
PACKETS = 2000  # from each host
WINDOWS = (4, 16, 64)  # packets


def best(lab: Lab, hosts: List[str], seconds: float, packets: int = PACKETS) -> dict:
    """The exchange with the window by which it was the fastest."""
    if len(hosts) % 2:
        raise Failure("--measure pairs the hosts: an even number is needed, not %d" % len(hosts))
    runs = []
    for window in WINDOWS:
        lab.settings.progress("exchanging packets in pairs, window %d" % window)
        runs.append(once(lab, hosts, packets, window, seconds))
    return max(runs, key=lambda r: r["goodput_mbit_per_second"])


def once(lab: Lab, hosts: List[str], packets: int, window: int, seconds: float) -> dict:
    """One exchange. Its goodput is that of a host, all taking as long as the
    slowest."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "exchange.py")
    half = len(hosts) // 2
    processes: List[Process] = []
    deadline = time.monotonic() + seconds
    try:
        for i, host in enumerate(hosts):
            partner = hosts[(i + half) % len(hosts)]
            processes.append(lab.launch(host, "exchange of %s" % host, [
                sys.executable, program, "--listen", "%s:%d" % (lab.plan.host_address(host), PORT),
                "--partner", "%s:%d" % (lab.plan.host_address(partner), PORT),
                "--packets", str(packets), "--size", str(SIZE), "--window", str(window),
            ], talks=True))
        for p in processes:
            p.line(deadline)  # it is ready
        before = lab.links()
        for p in processes:
            p.send_line("go")
        outcomes = [json.loads(p.line(deadline)) for p in processes]
        carried = counters.since(lab.links(), before)
    finally:
        stop(processes)
        for p in processes:
            p.fall_silent()
    slowest = max(o["seconds"] for o in outcomes)
    return {
        "hosts": len(hosts), "packets": packets, "window": window, "seconds": slowest,
        "goodput_mbit_per_second": 8 * PAYLOAD * packets / slowest / 1e6, "resent": sum(o["resent"] for o in outcomes),
        "links": [
            {"link": link.name(), "packets": [a.packets, b.packets], "bytes": [a.bytes, b.bytes]}
            for link, (a, b) in zip(lab.plan.fabric.links, carried)
        ],
    }


def text(exchange: dict, result: Result) -> str:
    """Compares with the largest size that was measured."""
    line = "All %(hosts)d hosts exchanging packets at once: %(goodput_mbit_per_second).1f Mbit/s a host " \
        "(window %(window)d, %(resent)d packets sent again)." % exchange
    if result.measurements:
        largest = max(result.measurements, key=lambda m: int(m.row["bytes"]))
        line += "\nThe collective of %s bytes: %.1f Mbit/s, %.2f of it." % (
            largest.row["bytes"], goodput(largest), goodput(largest) / exchange["goodput_mbit_per_second"])
    return line
