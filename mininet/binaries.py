"""The project's programs, built by go."""

from __future__ import annotations

import os
import shutil
import subprocess

from processes import Failure

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODULES = {".": ("offload-manager", "switch-agent"), "bench": ("collbench",)}  # and their programs
USUAL_GO = "/usr/local/go/bin/go"  # sudo takes it off the PATH


def build(directory: str) -> None:
    """Builds all programs into a directory.

    Under sudo go runs as the user who called it: it finds its caches there, and
    leaves nothing there that is root's. Git may not trust the checkout of another
    user, and is not asked.
    """
    go = shutil.which("go") or (USUAL_GO if os.access(USUAL_GO, os.X_OK) else None)
    if go is None:
        raise Failure("go is neither on the PATH nor %s: give ready programs by --bin DIR --no-build" % USUAL_GO)
    new = not os.path.isdir(directory)
    os.makedirs(directory, exist_ok=True)
    user, as_user = os.environ.get("SUDO_USER", "root"), []
    if os.geteuid() == 0 and user != "root":
        as_user = ["sudo", "--user", user, "--set-home"]
        if new:
            os.chown(directory, int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"]))
    environment = dict({"HOME": "/root"}, **os.environ)  # go keeps its cache at home
    output = os.path.join(os.path.abspath(directory), "")
    for module, programs in MODULES.items():
        command = as_user + [go, "build", "-C", module, "-buildvcs=false", "-o", output] + ["./cmd/" + p for p in programs]
        built = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if built.returncode:
            raise Failure("go build:\n" + built.stdout.decode(errors="replace").strip())


def check(directory: str) -> None:
    """Fails if a program is not there."""
    for program in (p for programs in MODULES.values() for p in programs):
        if not os.access(os.path.join(directory, program), os.X_OK):
            raise Failure("there is no %s in %s: leave --no-build out" % (program, directory))
