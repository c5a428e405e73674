#!/usr/bin/python3 -B
"""Compares bmv2 with the software pipeline, packet by packet, and with itself.

The same collective runs on the same fabric with both pipelines. Each link must
carry the same number of packets in both, except for a few repairs; on bmv2 the
collective is compared with plain UDP through the same switches. Arguments are
those of run.py, without --pipeline, --format and --measure.

  sudo ./mininet/measure.py --topo leaf-spine:4,2,2 --bytes 1048576 --iterations 5
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Dict, List, Tuple

import binaries
from processes import Failure
from report import table

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.py")
SHARE = 0.9  # of the exchange's goodput, which the collective is to have

REPAIRS = 0.02  # of the packets, which repairs may be at most: a comparison that allows for more says nothing

Row = Tuple[int, str, List[int], List[int]]  # bytes, link, packets of the software pipeline, of bmv2


def report(pipeline: str, arguments: List[str]) -> dict:
    """What a run of a pipeline has shown."""
    command = [sys.executable, "-B", RUN, "--pipeline", pipeline, "--format", "json"] + arguments
    run = subprocess.run(command, stdout=subprocess.PIPE)
    if not run.stdout:
        raise Failure("run.py --pipeline %s: status %d" % (pipeline, run.returncode))
    shown = json.loads(run.stdout)
    if shown["failure"]:
        raise Failure("run.py --pipeline %s: %s" % (pipeline, shown["failure"]))
    return shown


def rows(soft: dict, bmv2: dict) -> List[Row]:
    """The links that carried something, by size."""
    found = []
    for a, b in zip(soft["measurements"], bmv2["measurements"]):
        other = {link["link"]: link["packets"] for link in b["links"]}
        found += [(a["bytes"], link["link"], link["packets"], other[link["link"]])
                  for link in a["links"] if any(link["packets"] + other[link["link"]])]
    return found


def repairs(shown: dict) -> int:
    """The packets of repair of a run, as its agents have counted them."""
    counted: Dict[str, float] = {}
    for values in shown["agents"].values():
        for name, value in values.items():
            counted[name] = counted.get(name, 0) + value
    return int(sum(v for k, v in counted.items() if k.startswith("repairs.") or k in ("drops.duplicate", "drops.late")))


def many(found: List[Row], repaired: int, side: int) -> bool:
    """Whether repairs are more than a small share of what a pipeline's links have
    carried; side is 2 for the software pipeline, 3 for bmv2."""
    return repaired > REPAIRS * sum(sum(row[side]) for row in found)


def excess(found: List[Row], allowed: int) -> List[Row]:
    """The links whose packets differ by more than what repairs explain."""
    return [row for row in found if any(abs(x - y) > allowed for x, y in zip(row[2], row[3]))]


def main() -> int:
    arguments = sys.argv[1:]
    if {"-h", "--help"} & set(arguments):
        print(__doc__)
        return 0
    with tempfile.TemporaryDirectory(prefix="tributary-mininet-") as directory:
        os.chmod(directory, 0o711)  # the programs may be built by another user
        try:
            if "--no-build" not in arguments:
                programs = os.path.join(directory, "bin")
                binaries.build(programs)
                arguments += ["--bin", programs, "--no-build"]
            soft, bmv2 = report("soft", arguments), report("bmv2", arguments + ["--measure"])
        except Failure as e:
            print("measure.py: %s" % e, file=sys.stderr)
            return 1
    found, allowed = rows(soft, bmv2), repairs(soft) + repairs(bmv2)
    head = ("BYTES", "LINK", "SOFT >", "SOFT <", "BMV2 >", "BMV2 <")
    print(table([head] + [(n, link, *x, *y) for n, link, x, y in found]))
    print("\nPackets of repair: %d by the software pipeline, %d on bmv2." % (repairs(soft), repairs(bmv2)))
    different = excess(found, allowed)
    troubled = [name for name, shown, side in (("the software pipeline", soft, 2), ("bmv2", bmv2, 3))
                if many(found, repairs(shown), side)]
    for name in troubled:
        print("Of %s that is more than %g %% of the packets: links cannot be compared" % (name, 100 * REPAIRS))
    for n, link, _, _ in different:
        print("%s, %d bytes: the packets differ by more than that" % (link, n))
    largest = max(bmv2["measurements"], key=lambda m: m["bytes"])
    whole, part = bmv2["exchange"]["goodput_mbit_per_second"], largest["goodput_mbit_per_second"]
    print("On bmv2, %d bytes: %.1f Mbit/s a host, %.2f of the %.1f of all hosts exchanging packets at once." % (
        largest["bytes"], part, part / whole, whole))
    return 1 if different or troubled or part < SHARE * whole else 0


if __name__ == "__main__":
    sys.exit(main())
