"""leavers: clients that wait for their turn, most of which go away: of HTTP/1 by closing, of HTTP/2 by a reset of the stream. Exits with 0 if all
that stay are served, and no stretch of time has more served requests than a limit of 10/s with burst 1 allows.

usage: leavers.py PORT HTTP2_PORT PATH LOG WORKERS   (a line of the log: the time in seconds, status, URI)

What is logged late is no fault: of each worker one request may have its turn while the worker does not run.

SPDX-License-Identifier: BSD-2-Clause
"""

import random
import socket
import struct
import sys
import threading
import time

PORT, HTTP2_PORT, PATH, LOG, WORKERS = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5])
ROUNDS, PER_SECOND, BURST = 6, 10, 1
DATA, HEADERS, RST_STREAM, SETTINGS, CANCEL = 0, 1, 3, 4, 8
stayed = 0
served, failed = [], []


def client(run):
    """Starts it in a thread of its own."""

    def guarded():
        try:
            run()
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    return thread


def connect(port):
    connection = socket.create_connection(("127.0.0.1", port))
    connection.settimeout(60)
    return connection


def exactly(connection, n):
    got = b""
    while len(got) < n:
        part = connection.recv(n - len(got))
        if not part:
            raise OSError("the server closed the connection")
        got += part
    return got


def http1(stays):
    with connect(PORT) as connection:
        connection.sendall(f"GET {PATH} HTTP/1.0\r\n\r\n".encode())
        if not stays:
            time.sleep(0.12)
        else:
            served.append(exactly(connection, 12).endswith(b" 200"))


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def http2(streams):
    """Requests side by side in a connection: all are reset but the last."""
    get = b"\x82\x86\x04" + bytes([len(PATH)]) + PATH.encode() + b"\x01\x01h"
    with connect(HTTP2_PORT) as connection:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0))
        ids = [2 * i + 1 for i in range(streams)]
        connection.sendall(b"".join(frame(HEADERS, 5, i, get) for i in ids))
        for i in random.sample(ids[:-1], streams - 1):
            time.sleep(random.uniform(0, 0.05))
            connection.sendall(frame(RST_STREAM, 0, i, struct.pack(">I", CANCEL)))
        while True:
            head = exactly(connection, 9)
            payload = exactly(connection, int.from_bytes(head[:3], "big"))
            if head[3] == HEADERS and int.from_bytes(head[5:], "big") == ids[-1]:
                served.append(payload[:1] == b"\x88")  # ":status: 200"
                return


# Those that come last stay, the line before them goes away, and the next ones come to the same place in it.
staying = []
for n in range(ROUNDS):
    leaving = [client(lambda: http1(False)) for _ in range(20 - 3 * n)]
    staying.append(client(lambda: http2(4)))
    time.sleep(0.04)
    staying += [client(lambda: http1(True)) for _ in range(3)]
    stayed += 4
    for thread in leaving:
        thread.join()
    time.sleep(0.06)
for thread in staying:
    thread.join()
with open(LOG, encoding="ascii") as log:
    words = [line.split() for line in log]
times = sorted(float(word[0]) for word in words if word[1:] == ["200", PATH])
left = sum(word[1:] == ["499", PATH] for word in words)
excess = max(
    j - i + 1 - (BURST + WORKERS + 1 + PER_SECOND * (times[j] - times[i])) for i in range(len(times)) for j in range(i, len(times))
)
if failed or sum(served) != stayed or left < 20 or excess > 0:
    sys.exit(f"of {stayed} that stayed {sum(served)} were served, {left} left, {excess} too many in a stretch of time, {failed}")
print(f"# {stayed} stayed, {left} left, {len(times)} were served in {times[-1] - times[0]:.1f} s, {excess:.1f} too many at the most")
