"""upstream: an application behind a proxy, which ends each request as its path says, see endings.txt.

usage: upstream.py FILE (which gets the port). /slow and /body respond when the file exists that ENDINGS_GO names. A path that ends in
"?work" works first, see endings_random.py.

SPDX-License-Identifier: BSD-2-Clause
"""

import base64
import hashlib
import os
import re
import select
import socket
import sys
import threading
import time

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n"


def answer(status, body=b"ok\n"):
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


def wait(connection):
    """Until the peer closes, or the file is there."""
    while not os.path.exists(os.environ["ENDINGS_GO"]):
        if select.select([connection], [], [], 0.02)[0] and not connection.recv(65536):
            break


def work(connection):
    """Until the socket ENDINGS_WORK gives a byte, or the peer closes: then OSError."""
    with socket.socket(socket.AF_UNIX) as given:
        given.connect(os.environ["ENDINGS_WORK"])
        while given not in (ready := select.select([given, connection], [], [])[0]):
            if ready and not connection.recv(65536):
                raise ConnectionAbortedError


def stream(connection):
    """Until the peer closes."""
    connection.sendall(CHUNKED)
    while True:
        connection.sendall(CHUNKED[-9:])
        time.sleep(0.02)


def websocket(connection, head):
    key = re.search(rb"(?i)\nsec-websocket-key: (\S+)", head)[1]
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    connection.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n"
        % accept
    )
    connection.recv(7)
    connection.sendall(b"\x81\x01x")
    # What comes next is another text, or the end.
    connection.recv(7)


def handle(connection, head):
    """Returns whether the connection goes on."""
    method, target, _ = head.split(b" ", 2)
    path, _, query = target.partition(b"?")
    # A response in parts begins before its work. To HEAD, it would be over then.
    part = b"" if method == b"HEAD" or path not in (b"/parts", b"/exception-during") else CHUNKED
    connection.sendall(part)
    if query == b"work":
        work(connection)
    elif path in (b"/slow", b"/timeout", b"/body"):
        wait(connection)
    if path in (b"/slow", b"/timeout", b"/body"):
        connection.sendall(answer(b"200 OK"))
    elif path == b"/stream":
        stream(connection)
    elif path == b"/parts":
        connection.sendall(b"4\r\npart\r\n0\r\n\r\n" if part else CHUNKED.partition(b"4\r")[0])
        return True
    elif path == b"/websocket":
        websocket(connection, head)
    elif path == b"/websocket-refused":
        connection.sendall(answer(b"403 Forbidden"))
    elif path == b"/redirect":
        connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /normal\r\nContent-Length: 0\r\n\r\n")
        return True
    elif path == b"/internal":
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Accel-Redirect: /normal\r\nContent-Length: 0\r\n\r\n")
        return True
    elif path == b"/error":
        connection.sendall(answer(b"404 Not Found"))
        return True
    elif path not in (b"/exception", b"/exception-during"):
        connection.sendall(answer(b"200 OK"))
        return True
    return False


def serve(connection):
    with connection:
        received = b""
        try:
            while part := connection.recv(65536):
                received += part
                while b"\r\n\r\n" in received:
                    head, _, received = received.partition(b"\r\n\r\n")
                    if not handle(connection, head):
                        return
        except OSError:
            pass


server = socket.create_server(("127.0.0.1", 0), backlog=100)
with open(sys.argv[1] + ".new", "w") as out:
    print(server.getsockname()[1], file=out)
os.rename(sys.argv[1] + ".new", sys.argv[1])
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
