"""Tests of what is pure reckoning: addresses, routes, files, scripts."""

import ipaddress
import itertools
import json
import unittest

import documents
import maps
import routes
import wiring
from graph import Capability, End, Fabric, GraphError, Link, fabric_of
from plan import Plan

ALL = Capability("all", "all", 4096, 64, 8928)


def fabric(links, hosts, switches):
    """A fabric of links such as "h0 leaf-0", its ports numbered as they come."""
    ports = {n: itertools.count(1) for n in hosts + switches}
    return Fabric("trial", hosts, {s: ALL for s in switches}, [
        Link(tuple(End(n, next(ports[n])) for n in link.split()), 10**9, 5e-7) for link in links])


def leaf_spine(per_leaf, leaves, spines):
    hosts = ["h%d" % i for i in range(per_leaf * leaves)]
    switches = ["leaf-%d" % i for i in range(leaves)] + ["spine-%d" % i for i in range(spines)]
    links = ["%s leaf-%d" % (h, i // per_leaf) for i, h in enumerate(hosts)]
    links += ["leaf-%d spine-%d" % pair for pair in itertools.product(range(leaves), range(spines))]
    return fabric(links, hosts, switches)


def fat_tree(k):
    half = k // 2
    hosts, switches, links = [], ["core-%d" % c for c in range(half * half)], []
    for p in range(k):
        for i in range(half):
            switches += ["edge-%d-%d" % (p, i), "agg-%d-%d" % (p, i)]
            links += ["edge-%d-%d agg-%d-%d" % (p, i, p, j) for j in range(half)]
            links += ["agg-%d-%d core-%d" % (p, i, i * half + j) for j in range(half)]
            for _ in range(half):
                hosts.append("h%d" % len(hosts))
                links.append("edge-%d-%d %s" % (p, i, hosts[-1]))
    return fabric(links, hosts, switches)


TWO_LINKS = fabric(["a s1", "a s2", "s1 t", "s2 t", "b t", "b t", "c s1"], ["a", "b", "c"], ["s1", "s2", "t"])
FABRICS = [leaf_spine(1, 1, 0), leaf_spine(4, 2, 2), leaf_spine(3, 4, 3), fat_tree(4), TWO_LINKS]


def shown(fabric, links):
    """A map as the manager shows it, of some links of a fabric."""
    return {
        "hosts": [{"name": h, "up": True} for h in fabric.hosts],
        "switches": [{"name": s, "up": True} for s in fabric.switches],
        "links": [{"a": vars(k.ends[1]), "b": vars(k.ends[0]), "up": True} for k in links],
    }


class Maps(unittest.TestCase):
    """A map beside the fabric."""

    def setUp(self):
        self.fabric = leaf_spine(2, 2, 2)

    def test_right(self):
        links = self.fabric.links
        self.assertEqual(maps.differences(self.fabric, set(), shown(self.fabric, links)), [])
        self.assertEqual(maps.differences(self.fabric, {5}, shown(self.fabric, links[:5] + links[6:])), [])

    def test_wrong(self):
        seen = shown(self.fabric, self.fabric.links)
        self.assertEqual(maps.differences(self.fabric, {4}, seen),
                         ["link leaf-0:3--spine-0:1 is up in the map, and does not exist"])
        seen["links"][4]["up"] = False
        self.assertEqual(maps.differences(self.fabric, {4}, seen), [])
        self.assertEqual(maps.differences(self.fabric, set(), seen), ["link leaf-0:3--spine-0:1 is not up in the map"])
        seen["hosts"][0]["name"] = "other"
        seen["switches"][0]["up"] = False
        self.assertEqual(maps.differences(self.fabric, {4}, seen), [
            "h0 is not in the map", "other is in the map, and up, although there is no such node", "leaf-0 is not in the map"])

    def test_moved(self):
        seen = shown(self.fabric, list(self.fabric.links))
        port = self.fabric.free_port("spine-1")
        self.assertEqual(port, 3)
        self.fabric.move(4, 1, End("spine-1", port))
        self.assertEqual(self.fabric.ends_of("spine-1")[-1], (4, 1))
        self.assertEqual(len(self.fabric.ends_of("spine-0")), 1)
        self.assertEqual(len(maps.differences(self.fabric, set(), seen)), 2)
        self.fabric.move(4, 1, End("spine-0", 1))
        self.assertEqual(maps.differences(self.fabric, set(), seen), [])


class Shown(unittest.TestCase):
    """Reading what the manager shows."""

    def test_reads(self):
        shown = {
            "name": "f", "hosts": [{"name": "h", "up": True}],
            "switches": [{
                "name": "s", "functions": "sum,max", "types": "none", "slots": 7, "children": 3, "chunk_bytes": 100,
                "window": 16}],
            "links": [{"a": {"node": "h", "port": 1}, "b": {"node": "s", "port": 9},
                       "bandwidth_bits_per_second": 1000, "latency_seconds": 1.2e-6}],
        }
        f = fabric_of(shown)
        self.assertEqual(f.switches, {"s": Capability("sum,max", "none", 7, 3, 100, 16)})
        self.assertEqual(f.links[0].name(), "h:1--s:9")
        self.assertEqual(list(f.neighbours("s")), [(0, 1, "h")])

    def test_unknown_node(self):
        with self.assertRaisesRegex(GraphError, "unknown node x"):
            Fabric("f", ["h"], {}, [Link((End("h", 1), End("x", 1)), 1, 0.0)])


class Addresses(unittest.TestCase):
    """The address plan."""

    def test_each_link_is_a_subnet(self):
        for f in FABRICS:
            plan = Plan(f)
            nets = set()
            for number in range(len(f.links)):
                ends = [ipaddress.ip_interface(plan.address(number, side) + "/31") for side in (0, 1)]
                self.assertEqual(ends[0].network, ends[1].network)
                self.assertNotEqual(ends[0], ends[1])
                nets.add(ends[0].network)
            self.assertEqual(len(nets), len(f.links))
            macs = {plan.mac(number, side) for number in range(len(f.links)) for side in (0, 1)}
            self.assertEqual(len(macs), 2 * len(f.links))

    def test_hosts_have_odd_addresses(self):
        for f in FABRICS:
            plan = Plan(f)
            for host in f.hosts:
                for end in f.ends_of(host):
                    self.assertEqual(int(ipaddress.ip_address(plan.address(*end))) % 2, 1)
                self.assertEqual(plan.host_address(host), plan.address(*f.ends_of(host)[0]))

    def test_control_is_apart(self):
        for f in FABRICS:
            plan = Plan(f)
            pairs = [plan.control_addresses(n) for n in f.nodes()]
            data = {plan.address(number, side) for number in range(len(f.links)) for side in (0, 1)}
            control = set(itertools.chain(*pairs))
            self.assertEqual(len(control), 2 * len(f.nodes()))
            self.assertFalse(control & data)

    def test_interfaces(self):
        long = "a-switch-of-a-long-name"
        f = fabric(["h0 " + long, "a/b " + long], ["h0", "a/b"], [long])
        plan = Plan(f)
        names = [plan.interface(*end) for end in ((0, 0), (0, 1), (1, 0), (1, 1))]
        self.assertEqual(names, ["h0-eth1", "eth1", "eth1", "eth2"])

    def test_refuses(self):
        for f, why in (
            (fabric(["manager s"], ["manager"], ["s"]), "as the control node is"),
            (fabric(["a s"], ["a", "b"], ["s"]), "host b has no link"),
        ):
            with self.assertRaisesRegex(GraphError, why):
                Plan(f)


class Routes(unittest.TestCase):
    """Ways to hosts."""

    @staticmethod
    def oracle(f):
        """All distances, by relaxing every link until nothing changes; hosts do
        not forward."""
        far = {(n, h): 0 if n == h else 10**6 for n in f.nodes() for h in f.hosts}
        changed = True
        while changed:
            changed = False
            for link in f.links:
                for a, b in (link.ends, link.ends[::-1]):
                    for h in f.hosts:
                        if (b.node == h or b.node in f.switches) and far[b.node, h] + 1 < far[a.node, h]:
                            far[a.node, h], changed = far[b.node, h] + 1, True
        return far

    def test_shortest(self):
        for f in FABRICS:
            plan = Plan(f)
            found, far = routes.routes(plan), self.oracle(f)
            by = {(n, r.address): r for n in f.nodes() for r in found[n]}
            self.assertEqual(len(by), sum(len(rs) for rs in found.values()))
            for host in f.hosts:
                for link, side in f.ends_of(host):
                    address = plan.address(link, side)
                    for node in f.nodes():
                        at, steps = node, 0
                        while at != host:
                            r = by[at, address]
                            self.assertEqual(f.links[r.link].ends[r.side].node, at)
                            at = f.links[r.link].ends[1 - r.side].node
                            steps += 1
                            self.assertEqual(r.connected, at == host and r.link == link)
                        self.assertEqual(steps, far[node, host])

    def test_equal_paths_are_all_used(self):
        for f in (leaf_spine(4, 2, 2), fat_tree(4)):
            plan = Plan(f)
            found = routes.routes(plan)
            used = {(r.link, r.side) for n in f.switches for r in found[n]}
            trunks = {(number, side) for number, link in enumerate(f.links) for side in (0, 1)
                      if all(e.node in f.switches for e in link.ends)}
            self.assertLessEqual(trunks, used)

    def test_islands(self):
        f = fabric(["a s", "b t"], ["a", "b"], ["s", "t"])
        found = routes.routes(Plan(f))
        self.assertEqual(found["a"], [])
        self.assertEqual([r.address for r in found["s"]], ["10.0.0.1"])


class Documents(unittest.TestCase):
    """The files that processes read."""

    def setUp(self):
        self.plan = Plan(leaf_spine(1, 2, 1))

    def test_topology(self):
        t = documents.topology(self.plan)
        self.assertEqual(t["links"][0], {
            "between": ["h0", "leaf-0"], "ports": [1, 1], "addresses": ["10.0.0.1", "10.0.0.0"],
            "bandwidth": 10**9, "latency": "500ns"})
        self.assertEqual(documents.topology(self.plan, 200_000_000)["links"][1]["bandwidth"], 200_000_000)
        self.assertEqual(documents.capability(Capability("sum,max", "none", 1, 2, 3, 4)),
                         {"functions": ["sum", "max"], "types": "none", "slots": 1, "children": 2, "chunk": 3, "window": 4})
        json.dumps(t)

    def test_p4_agent(self):
        a = documents.p4_agent(self.plan, "leaf-1", "127.0.0.1:9559", False)
        self.assertEqual(a["ports"], [{"interface": "leaf-1-eth1"}, {"interface": "leaf-1-eth2"}])
        self.assertEqual(a["p4runtime"]["address"], "127.0.0.1:9559")
        self.assertNotIn("routes", a)

    def test_members(self):
        self.assertEqual(documents.members(["h1", "h0"], self.plan.host_address), "h1 10.0.0.3:7102\nh0 10.0.0.1:7102\n")


def run_bpf(program, packet, draw):
    """A slow machine for what loss_program uses of classic BPF."""
    ops = [tuple(map(int, op.split())) for op in program.split(",")[1:]]
    a = pc = 0
    while True:
        code, jt, jf, k = ops[pc]
        pc += 1
        if code == 0x06:
            return k
        if code == 0x20:
            a = draw
        elif code == 0x28:
            a = int.from_bytes(packet[k:k + 2], "big")
        elif code == 0x30:
            a = packet[k]
        else:
            holds = a == k if code == 0x15 else a >= k
            pc += jt if holds else jf


class Scripts(unittest.TestCase):
    """What namespaces are reported."""

    def test_routes_of_a_leaf(self):
        plan = Plan(leaf_spine(1, 2, 1))
        lines = wiring.addresses(plan, "leaf-0", routes.routes(plan)["leaf-0"])
        self.assertEqual(lines, [
            "ip -batch - <<'END'",
            "address add 10.0.0.0/31 dev leaf-0-eth1",
            "neighbour replace 10.0.0.1 lladdr 02:00:00:00:00:01 dev leaf-0-eth1 nud permanent",
            "address add 10.0.0.4/31 dev leaf-0-eth2",
            "neighbour replace 10.0.0.5 lladdr 02:00:00:00:02:02 dev leaf-0-eth2 nud permanent",
            "route add 10.0.0.3/32 via 10.0.0.5 dev leaf-0-eth2",
            "END",
        ])

    def test_nothing_to_shape_or_lose(self):
        plan = Plan(leaf_spine(1, 1, 0))
        self.assertEqual(wiring.shaping(plan, "h0", None) + wiring.loss(plan, "h0", 0.0, "ingress"), [])

    def test_shaping(self):
        lines = wiring.shaping(Plan(leaf_spine(1, 1, 0)), "h0", 200_000_000)
        self.assertIn("qdisc add dev h0-eth1 root tbf rate 200000000bit burst 65536 limit 1315536", lines)

    def test_loss(self):
        udp, tcp, arp = (bytes(12) + e + bytes(9) + p + bytes(20)
                         for e, p in ((b"\x08\0", b"\x11"), (b"\x08\0", b"\x06"), (b"\x08\x06", b"\x11")))
        for share in (0.03, 0.5, 0.9999999999):
            program = wiring.loss_program(share)
            below = min(int(share * 2**32), 2**32 - 2)
            for packet, draw, dropped in (
                (udp, 0, True), (udp, below - 1, True), (udp, below + 2, False), (udp, 2**32 - 1, False),
                (tcp, 0, False), (arp, 0, False),
            ):
                if draw < 2**32:
                    self.assertEqual(run_bpf(program, packet, draw) == 2, dropped, (share, draw))


if __name__ == "__main__":
    unittest.main()
