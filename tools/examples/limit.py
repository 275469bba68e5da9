#!/usr/bin/env python3
"""One request of one client, limited beside those of every other process on this host.

    shmlimit create web --slots 64K && shmlimit rule set web login --capacity 15 --rate 30/60s
    pip install tools/python && python3 limit.py 203.0.113.9
"""
# SPDX-License-Identifier: BSD-2-Clause
import sys

import shmlimit

with shmlimit.Limiter("web") as limiter:
    answer = limiter.take("login", sys.argv[1])
print("allowed" if answer else "denied", f"{answer.remaining} left, again in {answer.retry_after_ns / 1e9:.1f} s", sep=": ")
sys.exit(0 if answer else 1)
