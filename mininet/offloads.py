"""Segmentation, receive and checksum offloads, switched off.

A veth pair passes packets without checksums, and several packets as one, as
long as both its ends are in one kernel. A raw socket of bmv2 sees them as they
are, and plain UDP is lost; counters count them as one. What ethtool would do is
done here by the same system call, for Debian's Mininet comes without ethtool.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import socket
import struct
import threading
from typing import Iterable, List

SIOCETHTOOL = 0x8946
CLONE_NEWNET = 0x40000000

# ETHTOOL_S...: receive checksums, transmit checksums, scatter and gather, TCP
# segmentation, generic segmentation, generic receive.
FEATURES = {"rx": 0x15, "tx": 0x17, "sg": 0x19, "tso": 0x1F, "gso": 0x24, "gro": 0x2C}

_libc = ctypes.CDLL(None, use_errno=True)


def switch_off(pid: int, interfaces: Iterable[str]) -> None:
    """Switches the offloads of interfaces off, in the namespace of a process."""
    failed: List[BaseException] = []

    def work() -> None:
        try:
            with _socket_in(pid) as s:
                for interface in interfaces:
                    _switch_off(s, interface)
        except OSError as e:
            failed.append(e)

    thread = threading.Thread(target=work)  # ends, and with it its stay in the namespace
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def _socket_in(pid: int) -> socket.socket:
    """A socket in another network namespace, which this thread enters for good."""
    space = os.open("/proc/%d/ns/net" % pid, os.O_RDONLY)
    try:
        if _libc.setns(space, CLONE_NEWNET) != 0:
            error = ctypes.get_errno()
            raise OSError(error, "entering the namespace of process %d: %s" % (pid, os.strerror(error)))
    finally:
        os.close(space)
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def _switch_off(s: socket.socket, interface: str) -> None:
    for name, command in FEATURES.items():
        value = array.array("B", struct.pack("II", command, 0))
        pointer, _ = value.buffer_info()
        request = struct.pack("16sP", interface.encode(), pointer)
        try:
            fcntl.ioctl(s, SIOCETHTOOL, request.ljust(40, b"\0"))
        except OSError as e:
            raise OSError(e.errno, "switching %s of %s off: %s" % (name, interface, e.strerror)) from e
