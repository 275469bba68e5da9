"""endings_http2: requests side by side in one connection of HTTP/2, which end in one of several ways. Exits with 0 if they held all places while they
were in progress, and all places are free afterwards.

usage: endings_http2.py PORT ENDING PLACES COMMAND... (the command prints "remaining: N", as shmlimit peek does)

The server has the paths of endings.py. ENDING "held" streams until this program is killed, and says when all places are held.

SPDX-License-Identifier: BSD-2-Clause
"""

import os
import socket
import struct
import subprocess
import sys
import time

PORT, ENDING, PLACES = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
GO = os.environ["ENDINGS_GO"]
HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 1, 3, 4, 6, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1
CANCEL = struct.pack(">I", 8)


def free():
    # A peek that is denied exits with 1.
    said = subprocess.run(sys.argv[4:], capture_output=True, text=True, check=False).stdout
    return int(said.split("remaining:")[1].split()[0])


def within(places, why):
    for _ in range(400):
        if free() == places:
            return
        time.sleep(0.05)
    sys.exit(f"{ENDING}: {why}: {free()} places are free, and not {places}")


class Connection:
    def __init__(self):
        self.socket = socket.create_connection(("127.0.0.1", PORT))
        self.socket.settimeout(60)
        self.next, self.open = 1, []
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        self.send(SETTINGS, 0, 0)

    def send(self, kind, flags, stream, payload=b""):
        self.socket.sendall(struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload)

    def exactly(self, n):
        got = b""
        while len(got) < n:
            part = self.socket.recv(n - len(got))
            if not part:
                sys.exit(f"{ENDING}: the server closed the connection")
            got += part
        return got

    def ask(self, path, method=b"\x82", flags=END_STREAM):
        """A request whose body follows, if flags is 0."""
        self.send(HEADERS, flags | END_HEADERS, self.next, method + b"\x86\x04" + bytes([len(path)]) + path.encode() + b"\x01\x01h")
        self.open.append(self.next)
        self.next += 2

    def reset(self):
        for stream in self.open:
            self.send(RST_STREAM, 0, stream, CANCEL)
        self.open.clear()

    def until_answered(self):
        """Until all streams have ended."""
        while self.open:
            head = self.exactly(9)
            self.exactly(int.from_bytes(head[:3], "big"))
            kind, flags, stream = struct.unpack(">BBI", head[3:])
            if kind == SETTINGS and not flags & ACK:
                self.send(SETTINGS, ACK, 0)
            if stream in self.open and (kind == RST_STREAM or (kind < 2 and flags & END_STREAM)):
                self.open.remove(stream)


def hold(connection, path="/stream", **how):
    for _ in range(PLACES):
        connection.ask(path, **how)
    within(0, "while all of them are in progress")


def normal(connection):
    for _ in range(10):
        connection.ask("/normal")
    connection.until_answered()


def reset(connection):
    hold(connection)
    connection.reset()
    within(PLACES, "when all streams are reset, and the connection stays open")
    normal(connection)


def reset_before(connection):
    hold(connection, "/slow")
    connection.reset()
    open(GO, "w").close()


def reset_body(connection):
    hold(connection, "/body", method=b"\x83", flags=0)
    connection.reset()
    open(GO, "w").close()


def reset_at_once(connection):
    for _ in range(30):
        connection.ask("/stream")
        connection.reset()


def goaway(connection):
    hold(connection)
    connection.send(GOAWAY, 0, 0, bytes(8))


def held(connection):
    hold(connection)
    print("held", flush=True)
    while connection.socket.recv(65536):
        pass
    time.sleep(600)


endings = {f.__name__: f for f in (normal, reset, reset_before, reset_body, reset_at_once, goaway, held)}
endings["gone"] = hold
if os.path.exists(GO):
    os.remove(GO)
within(PLACES, "before")
connection = Connection()
endings[ENDING](connection)
connection.socket.close()
within(PLACES, "afterwards")
