#!/usr/bin/env python3
"""dashboard.py SEGMENT SECONDS: draw the Grafana dashboard of tools/grafana as SVG, without Grafana.

A Prometheus server on this host scrapes `shmlimit metrics` while clients are limited: at first users, then a scraper, then a
flood of new keys. Each panel above the dashboard's row asks it the panel's own queries, and gnuplot draws the answers.

SPDX-License-Identifier: BSD-2-Clause
"""

import json
import pathlib
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

import exporter
import shmlimit

SEGMENT, SECONDS = sys.argv[1], int(sys.argv[2])
DASHBOARD = pathlib.Path(__file__).parents[2] / "tools/grafana/shmlimit.json"
COLORS = "#1b6ca8", "#d1495b", "#3b8f5a", "#c98a00", "#6b4fa0", "#59636e"
RULES = "page --capacity 20 --rate 5/s", "login --capacity 3 --rate 3/h", "api --capacity 10 --rate 4/s --mode dry-run"
COLUMN, ROW, HEAD = 40, 24, 30  # pixels of the dashboard's grid


def shown(text, labels):
    return re.sub(r"\{\{(\w+)\}\}", lambda m: labels.get(m[1], ""), text)


def load(limiter, begin):
    """The requests of SECONDS, in rounds of 50 ms."""
    rounds = SECONDS * 20
    for i in range(rounds):
        for user in range(i % 40, 200, 40):
            limiter.take("page", f"user:{user}")
        limiter.take("login", f"user:{i % 300}")
        limiter.take("api", f"key:{i % 3}")
        for _ in range(20 if rounds / 4 < i < rounds / 2 else 0):
            limiter.take("page", "203.0.113.9")
        for _ in range(30 if i > rounds * 2 / 3 else 0):
            limiter.take("login", f"new:{i}:{_}")
        time.sleep(max(0, begin + (i + 1) * 0.05 - time.monotonic()))


def ask(port, expr, **span):
    expr = expr.replace("$__rate_interval", "5s").replace("$segment", SEGMENT).replace("$rule", ".*")
    query = urllib.parse.urlencode({"query": expr, **span})
    url = f"http://127.0.0.1:{port}/api/v1/query{'_range' if span else ''}?{query}"
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url) as answer:
        return json.load(answer)["data"]["result"]


def is_scraped(port):
    try:
        return any(series["value"][1] == "1" for series in ask(port, "up"))
    except OSError:
        return False


def draw(panel, port, start, end):
    """The lines of gnuplot that draw a panel."""
    at = panel["gridPos"]
    x, y, w, h = at["x"] * COLUMN, at["y"] * ROW + HEAD, at["w"] * COLUMN, at["h"] * ROW
    yield f"set lmargin at screen {(x + 60) / WIDTH}; set rmargin at screen {(x + w - 100) / WIDTH}"
    yield f"set tmargin at screen {1 - (y + 26) / HEIGHT}; set bmargin at screen {1 - (y + h - 24) / HEIGHT}"
    yield f"set title {json.dumps(panel['title'])} offset 0,-0.6"
    if panel["type"] == "stat":
        found = ask(port, panel["targets"][0]["expr"])
        value = float(found[0]["value"][1]) if found else None
        form = ".1%" if panel["fieldConfig"]["defaults"]["unit"] == "percentunit" else "g"
        text = "No data" if value is None else format(value, form)
        yield f"unset border; unset xtics; unset ytics; set label 1 '{text}' at graph 0.5,0.35 center font ',24'"
        yield "plot [0:1] [0:1] -1 notitle; unset label 1; set border 3; set xtics nomirror; set ytics nomirror"
        return
    lines, plots = [], []
    for target in panel["targets"]:
        for series in ask(port, target["expr"], start=start, end=end, step=2):
            name = shown(target["legendFormat"], series["metric"]).removeprefix(SEGMENT).strip() or "all"
            lines += [f"{t - start:.0f} {v}" for t, v in series["values"]] + ["e"]
            plots.append(f"'-' with lines lw 1.5 lc rgb '{COLORS[len(plots) % len(COLORS)]}' title {json.dumps(name)}")
    yield f"plot [0:{SECONDS}] [0:*] " + (", ".join(plots) or "-1 notitle")
    yield from lines


panels = json.loads(DASHBOARD.read_text())["panels"]
panels = panels[: next(i for i, panel in enumerate(panels) if panel["type"] == "row")]
WIDTH = 24 * COLUMN
HEIGHT = HEAD + ROW * max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)

threading.Thread(target=exporter.server.serve_forever, daemon=True).start()
subprocess.run(["shmlimit", "create", SEGMENT, "--slots", "4K"], check=True)
with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
    try:
        for rule in RULES:
            subprocess.run(["shmlimit", "rule", "set", SEGMENT, *shlex.split(rule)], check=True)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        pathlib.Path(folder, "prometheus.yml").write_text(
            "global: { scrape_interval: 1s }\nscrape_configs: [ { job_name: shmlimit, static_configs: "
            f'[ {{ targets: [ "127.0.0.1:{exporter.server.server_port}" ] }} ] }} ]\n'
        )
        server = subprocess.Popen(
            ["prometheus", "--config.file", f"{folder}/prometheus.yml", "--storage.tsdb.path", f"{folder}/data"]
            + ["--log.level", "error", "--web.listen-address", f"127.0.0.1:{port}"]
        )
        try:
            until = time.monotonic() + 60
            while not is_scraped(port):
                if server.poll() is not None or time.monotonic() > until:
                    sys.exit("prometheus does not scrape")
                time.sleep(0.1)
            start = time.time()
            load(shmlimit.Limiter(SEGMENT), time.monotonic())
            script = [f"set terminal svg size {WIDTH},{HEIGHT} noenhanced font 'sans-serif,11' background '#ffffff'"]
            script += ["set multiplot", "set border 3 lc rgb '#59636e'; set xtics nomirror; set ytics nomirror"]
            script += ["set key at graph 1.03,1 left top Left reverse samplen 1"]
            script += [f"set label 9 'The segment web, in {SECONDS} seconds of a demonstration' at screen 0.5,{1 - 14 / HEIGHT} center"]
            for number, panel in enumerate(panels):
                script += ["unset label 9"] * (number == 1) + list(draw(panel, port, start, start + SECONDS))
            svg = subprocess.run(["gnuplot"], input="\n".join(script), text=True, capture_output=True, check=True).stdout
            sys.stdout.write(re.sub(r"<title>gnuplot_plot_\w+</title>|<g fill[^>]*>\n</g>\n", "", svg))
        finally:
            server.terminate()
            server.wait()
    finally:
        subprocess.run(["shmlimit", "destroy", SEGMENT], check=True)
