"""endings: a client whose request ends in one of the ways of endings.txt. Exits with 0 if the request held a place while it was in
progress, where that can be seen, and all places are free afterwards.

usage: endings.py PORT ENDING PLACES COMMAND... (the command prints "remaining: N", as shmlimit peek does)

The server has a path for each ending. /slow responds when the file exists that ENDINGS_GO names: no server has to see earlier that its
client is gone. /stream goes on until its client is gone.

SPDX-License-Identifier: BSD-2-Clause
"""

import os
import socket
import subprocess
import sys
import time

PORT, ENDING, PLACES = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
GO = os.environ["ENDINGS_GO"]
UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)
# Of a client, so they are masked, here with zeros: the text "x", and the end.
TEXT, CLOSE = b"\x81\x81\0\0\0\0x", b"\x88\x80\0\0\0\0"


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


def held(why):
    if free() != PLACES - 1:
        sys.exit(f"{ENDING}: {why}: {free()} places are free, and not {PLACES - 1}")


def connect():
    connection = socket.create_connection(("127.0.0.1", PORT))
    connection.settimeout(60)
    return connection


def send(connection, path, method="GET", fields="Connection: close\r\n", body=b""):
    connection.sendall(f"{method} /{path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n".encode() + body)


def read(connection, until):
    """What arrives until that is part of it, or the server closes."""
    got = b""
    while until is None or until not in got:
        try:
            part = connection.recv(65536)
        except ConnectionError:
            break
        if not part:
            break
        got += part
    return got


def status(answer, *expected):
    got = answer.split()[1].decode() if answer else "none"
    if got not in expected:
        sys.exit(f"{ENDING}: the status is {got}, and not {' or '.join(expected)}")


def ask(path, *expected, until=None, **options):
    with connect() as connection:
        send(connection, path, **options)
        status(read(connection, until), *expected)


def go():
    open(GO, "w").close()


def keep_alive():
    with connect() as connection:
        for _ in range(3):
            send(connection, "normal", fields="")
            answer = read(connection, b"ok\n")
            status(answer, "200")
            within(PLACES, "when a response was sent, and its connection stays open")


def gone_before():
    with connect() as connection:
        send(connection, "slow")
        within(PLACES - 1, "while the application works")
    go()


def gone_during():
    with connect() as connection:
        send(connection, "stream")
        status(read(connection, b"part"), "200")
        held("while the response streams")


def body_abandoned():
    with connect() as connection:
        send(connection, "body", "POST", "Content-Length: 1000000\r\n", b"begin")
    go()


def timeout():
    with connect() as connection:
        send(connection, "timeout")
        within(PLACES - 1, "while the application works")
        status(read(connection, None), "504", "500", "502", "503", "408", "none")


def websocket(close):
    with connect() as connection:
        send(connection, f"websocket?{close}", fields=UPGRADE)
        status(read(connection, b"\r\n\r\n"), "101")
        connection.sendall(TEXT)
        read(connection, b"x")
        held("while a WebSocket is open")
        if close == "client":
            connection.sendall(CLOSE)
        else:
            connection.sendall(TEXT)
            read(connection, None)


endings = {
    "normal": lambda: ask("normal", "200"),
    "keep_alive": keep_alive,
    "stream": lambda: ask("parts", "200"),
    "head": lambda: ask("parts", "200", method="HEAD"),
    "exception": lambda: ask("exception", "500", "502", "none"),
    "exception_during": lambda: ask("exception-during", "200", "500", "502", "none"),
    "denied": lambda: ask("denied", "429"),
    "redirect": lambda: ask("redirect", "301", "302", "303", "307"),
    "error": lambda: ask("error", "404"),
    "internal": lambda: ask("internal", "200"),
    "gone_before": gone_before,
    "gone_during": gone_during,
    "body_abandoned": body_abandoned,
    "timeout": timeout,
    "websocket": lambda: websocket("client"),
    "websocket_server": lambda: websocket("server"),
    "websocket_refused": lambda: ask("websocket-refused", "403", "400", "404", until=b"\r\n\r\n", fields=UPGRADE),
}
if os.path.exists(GO):
    os.remove(GO)
within(PLACES, "before")
endings[ENDING]()
within(PLACES, "afterwards")
