# open_loop.py SOCKET RATE SECONDS PATIENCE: requests to an HTTP server on a Unix socket at random times (Poisson), RATE a
# second for SECONDS, however fast it answers. Prints how many were asked, served within PATIENCE seconds, served at
# all, and denied; and the 50th and 99th percentile of the times of those that were served, in ms.
#
# SPDX-License-Identifier: BSD-2-Clause
import asyncio
import random
import sys
import time

path, rate, seconds, patience = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
times, denied, failed = [], 0, 0


async def ask():
    global denied, failed
    began = time.monotonic()
    try:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
    except OSError:
        failed += 1
        return
    status = answer[9:12]
    if status == b"200":
        times.append(time.monotonic() - began)
    elif status == b"429":
        denied += 1
    else:
        failed += 1


async def main():
    at = begin = time.monotonic()
    tasks = []
    while at < begin + seconds:
        await asyncio.sleep(max(0, at - time.monotonic()))
        tasks.append(asyncio.create_task(ask()))
        at += random.expovariate(rate)
    await asyncio.gather(*tasks)
    times.sort()
    part = [1000 * times[int(q * (len(times) - 1))] if times else 0 for q in (0.5, 0.99)]
    print(len(tasks), sum(t <= patience for t in times), len(times), denied, failed, "%.0f %.0f" % tuple(part))


asyncio.run(main())
