"""Tests of the comparison of pipelines, and of what bmv2 is started with."""

import os
import stat
import tempfile
import unittest

import measure
from pipelines import Bmv2, Pipeline, pipeline_of
from plan import Plan
from processes import Failure
from graph import GraphError
from test_plan import fabric, leaf_spine


def shown(packets, **counted):
    """A report of one size, with the packets of two links."""
    links = [{"link": name, "packets": p} for name, p in zip(("a--b", "b--c"), packets)]
    return {"measurements": [{"bytes": 8, "links": links}], "agents": {"b": dict(counted)}}


class Comparison(unittest.TestCase):
    def test_equal_but_for_repairs(self):
        soft = shown([[100, 100], [0, 0]], contributions=100)
        bmv2 = shown([[103, 100], [0, 0]], **{"repairs.probe": 2, "drops.duplicate": 1, "drops.cookie": 7})
        rows = measure.rows(soft, bmv2)
        self.assertEqual(rows, [(8, "a--b", [100, 100], [103, 100])])
        self.assertEqual((measure.repairs(soft), measure.repairs(bmv2)), (0, 3))
        self.assertEqual(measure.excess(rows, 3), [])
        self.assertEqual(measure.excess(rows, 2), rows)


    def test_repairs_that_hide_everything(self):
        """What repairs explain is no more than a small share: a run in which
        everything was sent again is no comparison."""
        rows = [(8, "a--b", [1000, 1000], [60000, 1000]), (8, "b--c", [1000, 1000], [1000, 1000])]
        self.assertEqual(measure.excess(rows, 59000), [])  # and yet
        self.assertTrue(measure.many(rows, 59000, 3))
        self.assertTrue(measure.many(rows, 81, 2))
        self.assertFalse(measure.many(rows, 80, 2))


class Targets(unittest.TestCase):
    def setUp(self):
        self.program = tempfile.NamedTemporaryFile(prefix="simple_switch_grpc")
        self.addCleanup(self.program.close)
        os.chmod(self.program.name, stat.S_IRWXU)

    def test_command(self):
        command = Bmv2(self.program.name).command(Plan(leaf_spine(1, 2, 1)), "leaf-1")
        self.assertEqual(command, [
            self.program.name, "--no-p4", "--device-id", "4", "-i", "1@leaf-1-eth1", "-i", "2@leaf-1-eth2",
            "-i", "508@loop-out", "-i", "509@loop-in", "--", "--grpc-server-addr", "127.0.0.1:9559", "--cpu-port", "510"])

    def test_ports(self):
        bmv2 = Bmv2(self.program.name)
        many = ["h%d" % i for i in range(508)]
        bmv2.check(Plan(fabric(["%s s" % h for h in many[:507]], many[:507], ["s"])))
        with self.assertRaisesRegex(GraphError, "port 508 of s"):
            bmv2.check(Plan(fabric(["%s s" % h for h in many], many, ["s"])))

    def test_choice(self):
        self.assertIs(type(pipeline_of("soft", None)), Pipeline)
        self.assertEqual(pipeline_of("bmv2", self.program.name).program, self.program.name)
        with self.assertRaisesRegex(Failure, "no /no/such"):
            pipeline_of("bmv2", "/no/such")


if __name__ == "__main__":
    unittest.main()
