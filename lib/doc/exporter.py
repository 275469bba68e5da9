"""exporter.py SEGMENT: print a port of 127.0.0.1, and answer each request there with what `shmlimit metrics` prints.

SPDX-License-Identifier: BSD-2-Clause
"""

import http.server
import subprocess
import sys


class Exporter(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = subprocess.run(["shmlimit", "metrics", sys.argv[1]], capture_output=True, check=False).stdout
        self.send_response(200)
        self.send_header("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
if __name__ == "__main__":
    print(server.server_port, flush=True)
    server.serve_forever()
