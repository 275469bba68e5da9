"""load.py PORT N KIND: N requests of a kind, over 16 connections; some clients go away at once, or in the middle.

SPDX-License-Identifier: BSD-2-Clause
"""

import http.client
import random
import socket
import sys
import threading

PORT, N, KIND = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
PATHS = "large packed/large proxied/large direct/large jump absent parts early both/large index.html".split()


# The request number i: its method, URL and header, and for a client that goes away how much it reads before.
def used(i):
    return "GET", f"/used?tokens={random.choice((0, 1, 9, 10, 11, 500))}", {}, 0 if i % 100 == 7 else None


def sent(i):
    headers = {"Accept-Encoding": "gzip"} | ({"Range": "bytes=100-70000"} if i % 10 == 3 else {})
    read = random.choice((1, 100, 5000, 50000)) if i % 10 == 7 else None
    return "HEAD" if i % 10 == 4 else "GET", f"/{PATHS[i // 10 % len(PATHS)]}?key=load", headers, read


def ask():
    connection = None
    while True:
        with lock:
            i = next(left, None)
        if i is None:
            return
        method, url, headers, read = {"used": used, "sent": sent}[KIND](i)
        try:
            if read is not None:
                with socket.create_connection(("127.0.0.1", PORT)) as gone:
                    gone.sendall(f"GET {url} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
                    if read:
                        gone.recv(read)
                continue
            connection = connection or http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
            connection.request(method, url, headers=headers)
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            connection = None


left, lock = iter(range(N)), threading.Lock()
threads = [threading.Thread(target=ask) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
