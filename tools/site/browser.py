# SPDX-License-Identifier: Apache-2.0
"""A folder as Chromium shows it: what a page with a script of its own says of it."""
import functools
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def find():
    """The path of a Chromium that is installed; None where there is none."""
    return next((b for b in map(shutil.which, _BROWSERS) if b), None)


class _Handler(http.server.SimpleHTTPRequestHandler):
    """The folder, the page that looks at it, and what that page says."""

    def do_GET(self):
        if not self.path.startswith("/look/"):
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.server.look)

    def do_POST(self):
        self.server.said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()
        self.server.done.set()

    def log_message(self, *args):
        pass


def said_of(folder, look, browser, seconds):
    """What `look` posts, as JSON, to any path: a page of text beside the folder's
    files, in the path /look/. None where it says nothing in so many seconds."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, directory=folder))
    server.handle_error = lambda *args: None  # A browser that goes on before it has all.
    server.look, server.said, server.done = look.encode(), None, threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        process = subprocess.Popen(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
             "--disable-background-networking", "--user-data-dir=" + profile,
             "http://127.0.0.1:%d/look/" % server.server_port],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        server.done.wait(seconds)
        process.terminate()
        process.wait()
        server.shutdown()
        shutil.rmtree(profile, ignore_errors=True)
        os.makedirs(profile, exist_ok=True)
    return server.said
