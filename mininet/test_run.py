"""Runs of the whole: as root, with Mininet and go. They say what they lack."""

import glob
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import binaries

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.py")
MARK = "TRIBUTARY_TRIAL"  # in the environment of all that a run starts
PATIENCE = 60  # seconds for anything


def lacking():
    """What this machine lacks for these tests, or None."""
    if os.geteuid() != 0:
        return "network namespaces take root"
    mininet = importlib.util.find_spec("mininet")
    if mininet is None or mininet.origin is None:  # this directory is called so, too
        return "%s has no Mininet (Debian: mininet, for /usr/bin/python3)" % sys.executable
    if not shutil.which("go") and not os.access(binaries.USUAL_GO, os.X_OK):
        return "go is not there"
    return None


def setUpModule():
    if lacking():
        raise unittest.SkipTest(lacking())
    Runs.directory = tempfile.mkdtemp(prefix="tributary-trial-")
    unittest.addModuleCleanup(shutil.rmtree, Runs.directory)
    binaries.build(os.path.join(Runs.directory, "bin"))


class Runs(unittest.TestCase):
    """What a user does, and what stays."""

    directory = ""

    def setUp(self):
        self.mark = "%s=%d-%s" % (MARK, os.getpid(), self.id())
        self.temporary = tempfile.mkdtemp(dir=self.directory)

    def start(self, *arguments):
        name, _, value = self.mark.partition("=")
        return subprocess.Popen(
            [sys.executable, "-B", RUN, "--bin", os.path.join(self.directory, "bin"), "--no-build", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(os.environ, TMPDIR=self.temporary, **{name: value}),
            # Ignored where a shell runs these tests in the background.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def run_json(self, *arguments):
        """Runs, and returns status, what was reported, and what was reported."""
        run = self.start("--format", "json", *arguments)
        out, err = run.communicate(timeout=5 * PATIENCE)
        self.assertEqual(self.left(), [])
        self.assertEqual(os.listdir(self.temporary), [])
        return run.returncode, json.loads(out) if out else None, err.decode()

    def left(self):
        """The processes that a run has left."""
        found = []
        for path in glob.glob("/proc/[0-9]*/environ"):
            try:
                with open(path, "rb") as f:
                    if self.mark.encode() in f.read().split(b"\0"):
                        found.append(int(path.split("/")[2]))
            except OSError:
                continue  # it has ended
        return found

    def wait_for(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.02)

    def check_on_tree(self, report):
        """Every link of the tree has carried every chunk in both directions."""
        for m in report["measurements"]:
            self.assertTrue(m["right"])
            self.assertEqual(m["transport"], "offload")
            chunks = -(-m["bytes"] // 1432) * m["iterations"]
            on = [link for link in m["links"] if link["on_tree"]]
            self.assertTrue(on)
            for link in on:
                self.assertGreaterEqual(min(link["packets"]), chunks, link)

    def check_reduced_by(self, report, pipeline):
        """What is said of the pipeline is so by the agents' counters: those whose
        CPU reduced took every contribution by it, others took none."""
        on_tree = set()
        for m in report["measurements"]:
            self.assertEqual(m["reduced_by"], [pipeline])
            on_tree |= set(m["reducers"])
        self.assertTrue(on_tree)
        for switch in on_tree:
            values = report["agents"][switch]
            handed = values["handed_packets"]
            if pipeline == "agent-cpu":
                self.assertGreaterEqual(handed, values["contributions"] / 2)
                self.assertGreater(handed, 0)
            else:
                self.assertEqual(handed, 0)

    def test_soft(self):
        status, report, output = self.run_json("--topo", "leaf-spine:2,2,2", "--bytes", "8,65536", "--iterations", "3")
        self.assertEqual(status, 0, output)
        self.assertEqual([m["bytes"] for m in report["measurements"]], [8, 65536])
        self.check_on_tree(report)
        self.check_reduced_by(report, "software")
        taken = sum(a["contributions"] for a in report["agents"].values())
        self.assertGreaterEqual(taken, 6 * 3 * (1 + 46))  # of 4 hosts and 2 leaves

    def test_file_with_several_links(self):
        """A file of its own: names, ports, a host with two links."""
        path = os.path.join(self.directory, "fabric.yaml")
        with open(path, "w") as f:
            f.write("version: 1\nname: odd\nhosts: [red, blue, both]\n"
                    "switches: [{name: a-switch-of-a-long-name}, {name: s2, slots: 512}]\nlinks:\n"
                    "- {between: [red, a-switch-of-a-long-name], ports: [3, 44]}\n- {between: [blue, s2]}\n"
                    "- {between: [both, a-switch-of-a-long-name]}\n- {between: [both, s2]}\n"
                    "- {between: [a-switch-of-a-long-name, s2]}\n- {between: [s2, a-switch-of-a-long-name]}\n")
        status, report, output = self.run_json("--topo", path, "--bytes", "1432", "--iterations", "2")
        self.assertEqual(status, 0, output)
        self.assertEqual(report["measurements"][0]["transport"], "offload")

    def test_loss(self):
        status, report, output = self.run_json(
            "--topo", "leaf-spine:2,2,1", "--loss", "0.05", "--bytes", "131072", "--iterations", "2")
        self.assertEqual(status, 0, output)
        repairs = sum(v for a in report["agents"].values() for k, v in a.items() if k.startswith("repairs."))
        self.assertGreater(repairs, 0)

    def test_hosts_only(self):
        status, report, output = self.run_json(
            "--topo", "leaf-spine:2,2,1", "--transport", "host", "--bytes", "4096", "--hosts", "h3,h0")
        self.assertEqual(status, 0, output)
        self.assertEqual([(m["transport"], m["hosts"]) for m in report["measurements"]], [("host-tree", 2)])

    def test_killed_agent(self):
        """The operation ends right over hosts, which is not what was asked for."""
        status, report, output = self.run_json(
            "--topo", "leaf-spine:1,2,1", "--rate", "50mbit", "--bytes", "2097152", "--iterations", "1",
            "--kill", "agent:root")
        self.assertEqual(status, 1)
        self.assertEqual(report["struck"], "the agent of spine-0 was killed", output)
        self.assertIn("another transport", report["failure"])
        self.assertTrue(report["measurements"][0]["right"])

    def test_exchange(self):
        status, report, output = self.run_json(
            "--topo", "leaf-spine:1,2,1", "--rate", "50mbit", "--bytes", "65536", "--measure")
        self.assertEqual(status, 0, output)
        self.assertGreater(report["exchange"]["goodput_mbit_per_second"], 1)
        self.assertLess(report["exchange"]["goodput_mbit_per_second"], 50)

    def test_cli(self):
        run = self.start("--topo", "leaf-spine:1,2,1", "--no-run", "--cli")
        typed = b"pingall\nmanager offload-manager switch list\nleaf-0 hostname -I\n"
        _, err = run.communicate(typed, timeout=5 * PATIENCE)
        self.assertEqual(run.returncode, 0, err)
        self.assertIn(b"0% dropped", err)
        self.assertEqual(err.count(b" connected "), 3, err)
        self.assertIn(b"10.0.0.0 10.0.0.4 172.16.", err)
        self.assertEqual(self.left(), [])

    def test_cli_ended_in_a_command(self):
        """A signal while a command of the prompt runs ends it all, in good order."""
        run = self.start("--topo", "leaf-spine:1,2,1", "--no-run", "--cli")
        run.stdin.write(b"leaf-0 echo begun; sleep 1000\n")
        run.stdin.flush()
        said = b""
        while b"begun" not in said:
            more = os.read(run.stderr.fileno(), 1 << 16)
            self.assertTrue(more, said)
            said += more
        run.send_signal(signal.SIGTERM)
        _, err = run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, 128 + signal.SIGTERM)
        self.assertNotIn(b"Traceback", err)
        self.assertEqual(self.left(), [])

    def test_tutorial(self):
        """The topology.json of the P4 tutorials is taken as it is."""
        path = os.path.join(self.directory, "triangle.json")
        with open(path, "w") as f:
            json.dump({
                "hosts": {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": []},
                          "h2": {"ip": "10.0.2.2/24", "mac": "08:00:00:00:02:22"}},
                "switches": {"s1": {"runtime_json": "s1-runtime.json"}, "s2": {"runtime_json": "s2-runtime.json"}},
                "links": [["h1", "s1-p1"], ["s1-p2", "s2-p2"], ["h2", "s2-p1"]]}, f)
        status, report, output = self.run_json("--topo", path, "--bytes", "1432", "--iterations", "2")
        self.assertEqual(status, 0, output)
        self.assertEqual((report["fabric"], report["measurements"][0]["transport"]), ("triangle", "offload"))
        self.assertIn("building triangle: 2 hosts", output)

    def test_refusals(self):
        for arguments, words in (
            (["--topo", "fat-tree:3"], "fat-tree: k = 3"),
            (["--topo", "no-such-file"], "neither a specification"),
            (["--hosts", "h0,h9"], "no host h9"),
            (["--kill", "agent:leaf-9"], "no agent of leaf-9"),
            (["--pipeline", "bmv2", "--bmv2", "/no/such/switch"], "/no/such/switch"),
        ):
            status, report, output = self.run_json("--bytes", "8", *arguments)
            self.assertEqual((status, report), (1, None), arguments)
            self.assertIn(words, output)
        status, report, _ = self.run_json("--topo", "leaf-spine:1,2,1", "--bytes", "7")
        self.assertEqual(status, 1)
        self.assertIn("a multiple of the 4", report["failure"])

    def test_interrupted(self):
        """Nothing stays after Ctrl-C or kill, in the middle of an operation."""
        for number, status in (
            (signal.SIGINT, 130), (signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL),
        ):
            run = self.start("--topo", "leaf-spine:1,2,1", "--bytes", "65536", "--iterations", "1000000")
            for line in run.stderr:
                if line.startswith(b"running"):
                    break
            run.send_signal(number)
            run.communicate(timeout=PATIENCE)
            self.assertEqual(run.returncode, status)
            self.wait_for(lambda: not self.left(), "processes that stay")

    def test_nobody_listens(self):
        """A reader that goes, such as head, is no reason to leave anything."""
        run = self.start("--topo", "leaf-spine:1,2,1", "--bytes", "8")
        run.stdout.close()
        run.stderr.close()
        run.stdin.close()
        run.wait(PATIENCE)
        self.assertEqual(run.returncode, 1)
        self.assertEqual(self.left(), [])
        self.assertEqual(os.listdir(self.temporary), [])

    def run_bmv2(self, *arguments):
        """run_json on bmv2; the test is skipped where there is none."""
        program = os.environ.get("TRIBUTARY_BMV2") or "simple_switch_grpc"
        if not shutil.which(program):
            self.skipTest("there is no %s (bmv2): put it on the PATH, or its path into TRIBUTARY_BMV2" % program)
        return self.run_json("--pipeline", "bmv2", "--bmv2", program, "--topo", "leaf-spine:2,2,2", *arguments)

    def test_bmv2(self):
        status, report, output = self.run_bmv2("--bytes", "8,65536", "--iterations", "3")
        self.assertEqual(status, 0, output)
        self.check_on_tree(report)
        self.check_reduced_by(report, "p4")

    def test_bmv2_hands_over(self):
        """Sums of float32 are the agents', and are said to be."""
        status, report, output = self.run_bmv2("--type", "float32", "--bytes", "8192", "--iterations", "2")
        self.assertEqual(status, 0, output)
        self.check_on_tree(report)
        self.check_reduced_by(report, "agent-cpu")

    def test_bmv2_loses(self):
        """Packets that links lose are repaired by the target, and results are right."""
        status, report, output = self.run_bmv2("--loss", "0.03", "--transport", "auto", "--bytes", "65536", "--iterations", "3")
        self.assertEqual(status, 0, output)
        self.assertTrue(all(m["right"] for m in report["measurements"]))
        repairs = sum(v for a in report["agents"].values() for k, v in a.items() if k.startswith("repairs."))
        self.assertGreater(repairs, 0)

    def test_bmv2_is_killed(self):
        """A target that is killed in the middle of an operation takes the tree with
        it, and nothing else: the operation ends right."""
        status, report, output = self.run_bmv2(
            "--kill", "target:root", "--transport", "auto", "--bytes", "4194304", "--iterations", "1")
        self.assertEqual(status, 0, output)
        self.assertRegex(report["struck"], "^the target of .* was killed, and started again$")
        self.assertTrue(report["measurements"][0]["right"])
        self.assertIn(report["measurements"][0]["transport"], ("mixed", "offload"))  # the next tree may finish it


if __name__ == "__main__":
    unittest.main()
