"""endings_random: clients whose requests end at random in the ways of endings.txt, while workers are killed. Exits with 0 if never more
requests were at work than there are places, and all places are free at the end.

usage: endings_random.py PORT MASTER PLACES WORK KINDS COMMAND... (the command prints "remaining: N", as shmlimit peek does; KINDS are
    some of the names below, with commas; workers are the children of the process MASTER)

REQUESTS in the environment is how many that are not denied for want of a place (300), KILLS how many workers are killed by SIGKILL while they run (4), SEED what is drawn.

A request whose path ends in "?work" is at work while its application has a connection to the Unix socket WORK, which the kernel closes
when the worker is killed. It reads a byte from there, and gets it when its work is to end. So all work ends by this program's will,
or with its worker or client, and more than PLACES at once are more for as long as this program waits: nothing here depends on speed.

SPDX-License-Identifier: BSD-2-Clause
"""

import os
import random
import re
import selectors
import signal
import socket
import subprocess
import sys
import time

PORT, MASTER, PLACES, WORK, KINDS = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5].split(",")
REQUESTS, KILLS = int(os.environ.get("REQUESTS", 300)), int(os.environ.get("KILLS", 4))
SEED = int(os.environ.get("SEED", time.time_ns() % 2**32))
CLIENTS = PLACES + 8
# Those of clients that go away: while the application works, while the response streams, and while the body is sent.
GONE = {"gone_before": "normal", "gone_during": "parts", "body_abandoned": "body"}
PATHS = {"stream": "parts", "head": "parts", "exception_during": "exception-during", "keep_alive": "normal", **GONE}

draw = random.Random(SEED)
events = selectors.DefaultSelector()
clients, works = [], []
counts = dict.fromkeys("begun done kills hits denied cut_off given_up at_work".split(), 0)


def peek():
    # A peek that is denied exits with 1.
    said = subprocess.run(sys.argv[6:], capture_output=True, text=True, check=False).stdout
    return int(said.split("remaining:")[1].split()[0])


def close(connections, connection):
    events.unregister(connection)
    connections.remove(connection)
    connection.close()


class Client(socket.socket):
    def __init__(self):
        super().__init__()
        self.kind, self.got, self.again, self.waits = draw.choice(KINDS), b"", False, 0
        self.setblocking(False)
        self.connect_ex(("127.0.0.1", PORT))
        events.register(self, selectors.EVENT_WRITE)
        clients.append(self)

    def ask(self):
        method = {"head": "HEAD", "body_abandoned": "POST"}.get(self.kind, "GET")
        self.again = self.kind == "keep_alive" and not self.again
        fields = "" if self.again else "Connection: close\r\n"
        if method == "POST":
            fields += "Content-Length: 1000000\r\n"
        path = PATHS.get(self.kind, self.kind)
        self.sendall(f"{method} /{path}?work HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n".encode())
        events.modify(self, selectors.EVENT_READ)

    def read(self):
        part = self.recv(65536)
        self.got += part
        if not part or (self.again and self.is_answered() and not self.got.startswith(b"HTTP/1.1 200")):
            self.end()
        elif self.again and self.is_answered():
            self.got = b""
            self.ask()

    def is_answered(self):
        """Of a response after which the connection stays open. A denied request is not followed by another."""
        head, end, body = self.got.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\ncontent-length: *(\d+)", head)
        return end and (len(body) >= int(length[1]) if length else body.endswith(b"0\r\n\r\n"))

    def end(self):
        status = self.got.split(b" ", 2)[1:2]
        counts["denied"] += status == [b"429"] and self.kind != "denied"
        counts["cut_off"] += not status
        counts["done"] += 1
        close(clients, self)

    def ready(self, mask):
        try:
            self.ask() if mask & selectors.EVENT_WRITE else self.read()
        except ConnectionRefusedError:
            # The server is between two processes.
            close(clients, self)
            counts["begun"] -= 1
            time.sleep(0.01)
        except OSError:
            self.end()


def begin_work():
    try:
        connection = listener.accept()[0]
    except BlockingIOError:
        return False
    connection.setblocking(False)
    events.register(connection, selectors.EVENT_READ)
    works.append(connection)
    return True


def end_works():
    """Those whose application has closed them, or was killed."""
    for connection in works[:]:
        try:
            if not connection.recv(1):
                close(works, connection)
        except BlockingIOError:
            pass
        except OSError:
            close(works, connection)


def count_works():
    """What is about to end needs a moment: this program ends nothing until then, so what is too many then is so for ever."""
    for _ in range(1000):
        while begin_work():
            pass
        end_works()
        if len(works) <= PLACES:
            counts["at_work"] = max(counts["at_work"], len(works))
            return
        time.sleep(0.02)
    sys.exit(f"{len(works)} requests are at work, and there are {PLACES} places; SEED={SEED}; {counts}")


def kill():
    workers = subprocess.run(["pgrep", "-P", MASTER], capture_output=True, text=True).stdout.split()
    if not workers:
        return
    try:
        os.kill(int(draw.choice(workers)), signal.SIGKILL)
    except ProcessLookupError:
        # It has ended since.
        return
    counts["kills"] += 1
    counts["hits"] += bool(works)


def end_one():
    """A work ends, or a client goes away."""
    gone = [client for client in clients if client.kind in GONE]
    if works and (not gone or draw.random() < 0.7):
        try:
            draw.choice(works).send(b".")
        except OSError:
            pass
    elif gone:
        draw.choice(gone).end()


def served():
    return counts["done"] - counts["denied"]


def happened():
    return counts["denied"] and (counts["hits"] or not KILLS) and counts["kills"] >= KILLS and counts["at_work"] == PLACES


listener = socket.socket(socket.AF_UNIX)
listener.bind(WORK)
os.chmod(WORK, 0o666)
listener.listen(1000)
listener.setblocking(False)
events.register(listener, selectors.EVENT_READ)

# Turn by turn: requests begin until one is denied, so all places are taken, and then some end.
to_end, denied, quiet = 0, 0, 0
while clients or works or served() < REQUESTS:
    finishing = served() >= REQUESTS and (happened() or served() >= 10 * REQUESTS)
    while len(clients) < CLIENTS and not finishing:
        counts["begun"] += 1
        Client()
    ready = events.select(0 if works and (to_end or finishing) else 0.005)
    for key, mask in ready:
        if isinstance(key.fileobj, Client) and key.fileobj in clients:
            key.fileobj.ready(mask)
    count_works()
    quiet = 0 if ready else quiet + 1
    if quiet % 40 == 39:
        # A server may have lost connections together with the worker that had them: those that wait for long go away.
        for client in clients[:]:
            client.waits += 1
            if client.waits > 4:
                counts["given_up"] += 1
                client.end()
        if counts["given_up"] > 100 + CLIENTS * counts["kills"]:
            sys.exit(f"requests do not end; SEED={SEED}; {counts}")
    if to_end == 0 and (counts["denied"] > denied or quiet > 40):
        to_end, denied = draw.randint(1, 2 * PLACES), counts["denied"]
        if counts["kills"] < KILLS and served() * KILLS >= counts["kills"] * REQUESTS:
            kill()
    if to_end or finishing:
        to_end = max(to_end - 1, 0)
        end_one()
print(f"# {PLACES} places, SEED={SEED}:", ", ".join(f"{name} {number}" for name, number in counts.items()))
if not happened():
    sys.exit(f"not all that this is about has happened: {counts}")
# The request of a client that went away may begin only now.
for _ in range(400):
    while begin_work():
        pass
    for connection in works:
        try:
            connection.send(b".")
        except OSError:
            pass
    end_works()
    if peek() == PLACES:
        sys.exit(0)
    time.sleep(0.05)
sys.exit(f"{peek()} places are free at the end, and not {PLACES}; SEED={SEED}")
