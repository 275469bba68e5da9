"""Calls that wait for their turn: how evenly 40 processes begin calls at 7/s while five of them are killed, beside one process, and
what 1,000 tasks cost that wait at 10/s.

    PYTHONPATH=tools/python LD_LIBRARY_PATH=build python3 tools/python/bench/pace.py [SECONDS]

Default 60 seconds each. Of all calls it prints how many began, the longest time between two that follow one another, and the most
in a second. The processor time is that of the process, in percent of a core.

SPDX-License-Identifier: BSD-2-Clause
"""

import asyncio
import os
import signal
import sys
import time

import shmlimit
from shmlimit import limit

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
SEGMENT = f"bench-{os.getpid()}"


def begins(paced, writes):
    """In a child, which ends by a signal."""
    try:
        while True:
            paced.acquire()
            os.write(writes, b"%15.6f\n" % time.monotonic())
    finally:
        os._exit(1)


def even(processes, kills):
    paced, (reads, writes) = limit("7/s", rule=f"even.{processes}", segment=SEGMENT), os.pipe()
    paced.peek()
    pids, begun = [], time.monotonic()
    for _ in range(processes):
        pids.append(os.fork())
        if pids[-1] == 0:
            begins(paced, writes)
    os.close(writes)
    for _ in range(kills):
        time.sleep(SECONDS / (kills + 1))
        os.kill(pids[0], signal.SIGKILL)
        os.waitpid(pids.pop(0), 0)
    time.sleep(max(begun + SECONDS - time.monotonic(), 0))
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    with os.fdopen(reads, "rb") as pipe:
        times = sorted(at for at in map(float, pipe.read().split()) if at < begun + SECONDS)
    gaps = [later - at for at, later in zip(times, times[1:])]
    most = max(sum(at <= other < at + 1 for other in times) for at in times)
    print(f"{processes} processes, {kills} killed: {len(times)} calls, longest gap {max(gaps):.3f} s, most in a second {most}")


async def waiting(tasks):
    paced = limit("10/s burst 1", rule="waiting", segment=SEGMENT, max_wait_s=None)
    all_tasks = [asyncio.create_task(paced.acquire_async()) for _ in range(tasks)]
    while paced.queued < tasks - 20:
        await asyncio.sleep(0.1)
    used, begun = time.process_time(), time.monotonic()
    await asyncio.sleep(SECONDS)
    used, took = time.process_time() - used, time.monotonic() - begun
    print(f"{tasks} tasks that wait: {used / took:.2%} of a core")
    for task in all_tasks:
        task.cancel()
    await asyncio.gather(*all_tasks, return_exceptions=True)


try:
    even(1, 0)
    even(40, 5)
    asyncio.run(waiting(1000))
finally:
    shmlimit.destroy(SEGMENT)
