"""Tests of what is read from the kernel and from agents, and of the exchange."""

import contextlib
import io
import random
import socket
import unittest

import counters
from counters import Count
from exchange import Exchange

DEVICES = """Inter-|   Receive                                 |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo:    0       0    0    0    0     0          0         0      0       0    0    0    0     0       0          0
h0-eth1: 1514      2    0    0    0     0          0         0 3028000   2000    0    0    0     0       0          0
"""

METRICS = """# HELP tributary_agent_contributions_total contributions that were taken
# TYPE tributary_agent_contributions_total counter
tributary_agent_contributions_total 42
tributary_agent_drops_total{reason="fault-version"} 0
tributary_agent_drops_total{reason="late"} 3
tributary_agent_packets_total{direction="in"} 1.5e+06
tributary_agent_trees 0
go_goroutines 12
"""


class Counters(unittest.TestCase):
    def test_devices(self):
        self.assertEqual(counters.parse_devices(DEVICES), {"lo": Count(0, 0), "h0-eth1": Count(3028000, 2000)})

    def test_metrics(self):
        self.assertEqual(counters.parse_metrics(METRICS), {
            "contributions": 42, "drops.late": 3, "packets.in": 1.5e6, "trees": 0})

    def test_since(self):
        before, now = [(Count(1, 2), Count(3, 4))], [(Count(11, 12), Count(3, 5))]
        self.assertEqual(counters.since(now, before), [(Count(10, 10), Count(0, 1))])


class Silence(unittest.TestCase):
    def test_ended_agent(self):
        """One that has ended is reported in a sentence."""
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))  # bound, and nobody listens
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                answers = counters.fetch({"leaf-0": "http://127.0.0.1:%d/metrics" % s.getsockname()[1]})
        self.assertEqual(answers, {})
        self.assertEqual(said.getvalue(), "The agent of leaf-0 does not report what it has counted: it has ended.\n")


class Exchanges(unittest.TestCase):
    """Two sides over a network that loses and reorders."""

    def pair(self, packets, window, loss, seed):
        """Runs both sides to the end; returns them and the most in flight."""
        rng = random.Random(seed)
        sides = [Exchange(packets, window) for _ in range(2)]
        wire = [[], []]  # towards each side
        ahead = 0

        def send(side, kind, numbers):
            wire[1 - side].extend((kind, n) for n in numbers if rng.random() >= loss)

        for side in (0, 1):
            send(side, "data", sides[side].fill())
        for _ in range(1000 * (packets + 1)):
            if all(s.done() for s in sides):
                break
            side = rng.randrange(2)
            me = sides[side]
            if not wire[side]:
                send(side, "want", [me.had])  # its patience has ended
                continue
            kind, number = wire[side].pop(rng.randrange(min(2, len(wire[side]))))
            if kind == "want":
                send(side, "data", [number] if me.answer(number) else [])
            elif me.take(number):
                send(side, "want", [me.had])
            send(side, "data", me.fill())
            ahead = max(ahead, me.sent - me.had)
        return sides, ahead

    def test_all_arrives(self):
        trials = [(0, 4, 0.0), (1, 4, 0.0), (100, 1, 0.0), (300, 16, 0.0), (300, 16, 0.1), (200, 64, 0.3)]
        for seed, (packets, window, loss) in enumerate(trials):
            sides, ahead = self.pair(packets, window, loss, seed)
            for s in sides:
                self.assertTrue(s.done(), (packets, window, loss))
                self.assertEqual(s.sent, packets)
            self.assertLessEqual(ahead, window)

    def test_nothing_is_sent_twice_without_loss(self):
        one = Exchange(100, 8)
        self.assertEqual(one.fill(), range(0, 8))
        self.assertEqual(one.fill(), range(8, 8))
        self.assertFalse(one.take(1))
        self.assertEqual(one.fill(), range(8, 8))
        self.assertFalse(one.take(0))
        self.assertEqual(one.fill(), range(8, 10))

    def test_asks_once_for_what_is_overtaken(self):
        one = Exchange(100, 8)
        self.assertEqual([one.take(n) for n in (1, 2, 3, 4)], [False, False, True, False])


if __name__ == "__main__":
    unittest.main()
