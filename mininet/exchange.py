#!/usr/bin/python3 -B
"""One host of an exchange: sends packets to a partner, and takes as many from it.

It is the yardstick of an allreduce on the same network: plain UDP of the same
size, in a window of the same kind. A host sends packet n + W only after it has
had packets 0 to n of its partner, as a member does with the results of its
tree. What is missing is asked for again.

It says "ready", waits for a line, exchanges, says what came of it in a line of
JSON, and answers its partner until its standard input ends.
"""

from __future__ import annotations

import argparse
import json
import select
import socket
import struct
import sys
import time
from typing import Set, Tuple

HEADER = struct.Struct("!BI")
DATA, WANT = 0, 1

PATIENCE = 0.05  # seconds without a packet after which the missing one is asked for
REORDERED = 3  # packets after a missing one by which it is held for lost
BUFFER = 4 << 20  # bytes of the socket's receive buffer, as far as the kernel allows


class Exchange:
    """The state of one side. Its methods return what is to be sent."""

    def __init__(self, packets: int, window: int) -> None:
        self.packets, self.window = packets, window
        self.sent = 0  # packets sent at least once
        self.had = 0  # packets of the partner's that were there, and all before them
        self.later: Set[int] = set()  # packets that came before earlier ones
        self.asked = -1  # the packet last asked for by number of later ones
        self.resent = 0

    def done(self) -> bool:
        return self.had == self.packets

    def fill(self) -> range:
        """The packets that may be sent now."""
        end = min(self.packets, self.had + self.window)
        new = range(self.sent, max(end, self.sent))
        self.sent = new.stop
        return new

    def take(self, number: int) -> bool:
        """Takes a packet; true if the first missing one is to be asked for."""
        if number >= self.had:
            self.later.add(number)
        while self.had in self.later:
            self.later.remove(self.had)
            self.had += 1
        ask = len(self.later) >= REORDERED and self.asked != self.had
        if ask:
            self.asked = self.had
        return ask

    def answer(self, number: int) -> bool:
        """Whether a packet that the partner lacks is to be sent again."""
        again = number < self.sent
        self.resent += again
        return again


def run(sock: socket.socket, exchange: Exchange, size: int) -> None:
    """Exchanges until all is there, and answers until standard input ends."""
    filling = b"\0" * (size - HEADER.size)
    readers = [sock, sys.stdin]
    started = time.monotonic()
    reported = False

    def send(numbers: range) -> None:
        for n in numbers:
            sock.send(HEADER.pack(DATA, n) + filling)

    send(exchange.fill())
    while True:
        if exchange.done() and not reported:
            print(json.dumps({"seconds": time.monotonic() - started, "resent": exchange.resent}), flush=True)
            reported = True
        ready, _, _ = select.select(readers, [], [], None if reported else PATIENCE)
        if sys.stdin in ready:
            return
        if not ready:
            sock.send(HEADER.pack(WANT, exchange.had))
            continue
        kind, number = HEADER.unpack_from(sock.recv(1 << 16))
        if kind == WANT:
            if exchange.answer(number):
                send(range(number, number + 1))
        elif exchange.take(number):
            sock.send(HEADER.pack(WANT, exchange.had))
        send(exchange.fill())


def address(text: str) -> Tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--listen", type=address, required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--partner", type=address, required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--packets", type=int, required=True)
    parser.add_argument("--size", type=int, required=True, help="bytes of a packet, above UDP")
    parser.add_argument("--window", type=int, required=True, help="packets")
    options = parser.parse_args()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        sock.bind(options.listen)
        sock.connect(options.partner)
        print("ready", flush=True)
        if sys.stdin.readline():
            run(sock, Exchange(options.packets, options.window), options.size)


if __name__ == "__main__":
    main()
