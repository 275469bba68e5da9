"""Work that threads, or forked children, of a test do at once.

SPDX-License-Identifier: BSD-2-Clause
"""

import os
import threading


def together(*work):
    """Each in a thread of its own: what they returned."""
    found = []
    threads = [threading.Thread(target=lambda call=call: found.append(call())) for call in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def children(n, work):
    """The sum of what this number of children return; none may fail."""
    reads, writes = os.pipe()
    pids = []
    for _ in range(n):
        pids.append(os.fork())
        if pids[-1] == 0:
            try:
                os.write(writes, b"%d\n" % work())
                os._exit(0)
            finally:
                os._exit(1)
    os.close(writes)
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * n
    with os.fdopen(reads) as pipe:
        return sum(map(int, pipe))
