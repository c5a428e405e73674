#!/usr/bin/python3 -B
"""Runs a fabric of Tributary on Mininet: offload manager, switch agents, hosts.

Switches are namespaces in which the agent reduces (--pipeline soft, which needs
only Debian's packages), or bmv2 with an agent (--pipeline bmv2). run.py measures a
collective on all hosts, reports its transport, its results and the counters of
links and agents, and removes everything at the end.

  sudo ./mininet/run.py --topo fat-tree:4
  sudo ./mininet/run.py --topo docs/examples/leaf-spine.yaml --rate 200mbit --cli
  sudo ./mininet/run.py --topo leaf-spine:4,2,2 --pipeline bmv2 --bytes 1048576 --iterations 3
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import sys
import tempfile
from typing import List, Optional, Set

try:
    from mininet.cli import CLI
except ImportError:
    sys.exit("run.py: %s has no Mininet: apt install mininet, and take Debian's /usr/bin/python3" % sys.executable)

import binaries
import exchanges
import report
import soak
from bench import Bench, Strike
from faults import FAULTS, fault
from graph import GraphError
from lab import Lab, Settings
from pipelines import pipeline_of
from processes import ENDINGS, Failure

BMV2_SOAK = ["--iterations", "5,60", "--without", "polling"]  # it needs all the processors, and takes ten times as long

RATE = re.compile(r"^(\d+(?:\.\d+)?)(k|m|g)?bit$")


def rate(text: str) -> int:
    """Reads a rate as tc does, such as 200mbit."""
    m = RATE.match(text)
    if not m:
        raise argparse.ArgumentTypeError("%r is not like 200mbit or 2.5gbit" % text)
    return round(float(m.group(1)) * {None: 1, "k": 1e3, "m": 1e6, "g": 1e9}[m.group(2)])


def share(text: str) -> float:
    """Reads a share of packets."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError("%r is not a number from 0 to below 1" % text)
    return value


def cores(text: str) -> Set[int]:
    """Reads a list of cores as taskset does, such as 0,2-3."""
    chosen: Set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or last and not last.isdigit():
            raise argparse.ArgumentTypeError("%r is not like 0,2-3" % text)
        chosen.update(range(int(first), int(last or first) + 1))
    absent = chosen - os.sched_getaffinity(0)
    if absent or not chosen:
        raise argparse.ArgumentTypeError("%r: there is no core %s" % (text, ", ".join(map(str, sorted(absent)))))
    return chosen


def options(arguments: Optional[List[str]] = None) -> argparse.Namespace:
    """Reads the command line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    g = p.add_argument_group("fabric")
    g.add_argument("--topo", default="leaf-spine:4,2,2", metavar="FABRIC",
                   help="a specification such as fat-tree:4, a topology file (docs/topology.md), or a file that topology import reads")
    g.add_argument("--pipeline", choices=["soft", "bmv2"], default="soft", help="data plane of the switches")
    g.add_argument("--bmv2", metavar="PATH", help="simple_switch_grpc; by default that on the PATH")
    g.add_argument("--discover", action="store_true",
                   help="give the manager one agent's address instead of a topology (docs/discovery.md)")
    g.add_argument("--rate", type=rate, help="rate of each link in each direction, such as 200mbit")
    g.add_argument("--loss", type=share, default=0.0, help="share of the UDP packets that each link loses")
    g.add_argument("--switch-cores", type=cores, metavar="CORES", help="cores for switches and agents, such as 0,2-3")
    g.add_argument("--host-cores", type=cores, metavar="CORES", help="cores for hosts")
    g = p.add_argument_group("measurement")
    g.add_argument("--hosts", metavar="HOST,...", help="the members, by rank; by default all hosts")
    g.add_argument("--function", default="allreduce", help="allreduce, reduce, broadcast or barrier")
    g.add_argument("--reduction", default="sum", help="such as sum, min or bxor")
    g.add_argument("--type", default="int32", help="element type")
    g.add_argument("--bytes", default="8,65536,1048576", help="sizes of each host's vector, such as 8,64KiB")
    g.add_argument("--iterations", default="5", help="timed operations of each size: one number, or one for each size")
    g.add_argument("--window", default="0", help="most chunks in flight, a power of two; 0: the library's default")
    g.add_argument("--transport", choices=["offload", "host", "auto"], default="offload", help="required transport of operations")
    g.add_argument("--kill", type=fault, metavar="WHAT",
                   help="kill a process during the last size: " + FAULTS)
    g.add_argument("--soak", type=float, metavar="SECONDS",
                   help="cut, move and restore links under operations for so long, and check the map at each step (with --discover)")
    g.add_argument("--measure", action="store_true", help="compare with plain UDP between the hosts, in concurrent pairs")
    g.add_argument("--no-run", action="store_true", help="run no operations (with --cli)")
    g.add_argument("--timeout", type=float, default=600.0, help="seconds for the measurement")
    g = p.add_argument_group("this program")
    g.add_argument("--cli", action="store_true", help="open the Mininet prompt at the end")
    g.add_argument("--format", choices=["text", "json"], default="text")
    g.add_argument("--bin", metavar="DIR", help="directory for the built programs; by default a temporary one")
    g.add_argument("--no-build", action="store_true", help="use the programs in --bin without building")
    g.add_argument("--logs", metavar="DIR", help="directory for configurations and logs")
    o = p.parse_args(arguments)
    if o.no_build and not o.bin:
        p.error("--no-build needs --bin")
    if o.soak and not o.discover:
        p.error("--soak needs --discover")
    if o.measure and o.no_run:
        p.error("--measure and --no-run exclude each other")
    return o


class Prompt(CLI):
    """Mininet's prompt, for names such as leaf-0."""

    identchars = CLI.identchars + "-./"


def progress(line: str) -> None:
    """Informs people what goes on, if there are any."""
    try:
        os.write(2, (line + "\n").encode())
    except OSError:
        pass  # a pipe that nobody reads must not keep us from removing everything


def measure(lab: Lab, o: argparse.Namespace) -> bool:
    """Measures and reports; false if something was not as it has to be."""
    fabric = lab.plan.fabric
    hosts = o.hosts.split(",") if o.hosts else fabric.hosts
    unknown = [h for h in hosts if h not in fabric.hosts]
    if unknown:
        raise Failure("--hosts: the fabric has no host %s" % ", ".join(unknown))
    arguments = ["--function", o.function, "--reduction", o.reduction, "--type", o.type, "--iterations", o.iterations,
                 "--window", o.window, "--timeout", "%gs" % o.timeout]
    if o.pipeline == "bmv2":  # needs all the processors, of which polling would take half
        arguments += ["--without", "polling"]
    progress("running %s on %d hosts" % (o.function, len(hosts)))
    strike = None
    if o.kill:
        o.kill.check(lab)
        strike = Strike(lambda tree: o.kill.strike(lab, tree))
    result = Bench(lab, hosts, o.bytes.split(","), arguments, o.transport, o.timeout, strike).run()
    exchange = None
    if o.measure and not result.failure:
        exchange = exchanges.best(lab, hosts, o.timeout)
    if o.format == "json":
        print(report.dump(report.document(fabric, lab.settings.pipeline.name, result, exchange)))
    else:
        print(report.text(fabric, result))
        if exchange:
            print("\n" + exchanges.text(exchange, result))
    sys.stdout.flush()
    return result.failure is None


def soaked(lab: Lab, o: argparse.Namespace) -> bool:
    """Changes links under operations; false if something was not as it has to be."""
    arguments = ["--function", o.function, "--reduction", o.reduction, "--type", o.type]
    arguments += BMV2_SOAK if o.pipeline == "bmv2" else ["--iterations", "100,400"]
    s = soak.Soak(lab, lab.plan.fabric.hosts, arguments, o.soak)
    try:
        s.run()
    finally:
        print(soak.text(s))
        sys.stdout.flush()
    return s.failure is None


def run(o: argparse.Namespace, directory: str) -> bool:
    """Builds the programs and the fabric, and does with it what was asked for."""
    programs = os.path.abspath(o.bin) if o.bin else os.path.join(directory, "bin")
    if not o.no_build:
        progress("building the programs")
        binaries.build(programs)
    binaries.check(programs)
    lab = Lab(Settings(
        topology=o.topo, pipeline=pipeline_of(o.pipeline, o.bmv2), bin=programs, rate=o.rate, loss=o.loss,
        discover=o.discover, splices=bool(o.soak) and o.pipeline == "bmv2", switch_cores=o.switch_cores, host_cores=o.host_cores, logs=o.logs, progress=progress))
    try:
        lab.start()
        right = o.no_run or (soaked(lab, o) if o.soak else measure(lab, o))
        if o.cli:
            Prompt(lab.net)
        return right
    finally:
        for number in ENDINGS:
            signal.signal(number, signal.SIG_IGN)  # this goes to its end
        progress("removing everything")
        lab.stop()


def main() -> int:
    o = options()
    if os.geteuid() != 0:
        progress("run.py: network namespaces take root: run it by sudo")
        return 2
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, frame: sys.exit(128 + n))
    directory = tempfile.mkdtemp(prefix="tributary-mininet-")
    os.chmod(directory, 0o711)  # the programs may be built by another user
    try:
        return 0 if run(o, directory) else 1
    except (Failure, GraphError) as e:
        progress("run.py: %s" % e)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # nobody reads the report
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
