# SPDX-License-Identifier: Apache-2.0
"""The page that inspect --watch --html writes, as a browser shows it.

usage: page_test.py INSPECT

In Chromium, headless, where it is installed: the page has its facts, its bars
and its line have a length, and it loads itself again. Without it the page is
read as it is: it is whole, and has them.
"""
import functools
import html.parser
import http.server
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import threading

SECONDS = 120  # Of the browser, at most.
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_WANTED = {"new priorities": "1, 0.5/s; rows 20/s", "wait for batches": "50% of the time", "live rows": "5 of 8"}

# Loads the page twice: the second time by itself.
_LOOK = """<!doctype html><iframe id="view" width="1000" height="800"></iframe><script>
const view = document.getElementById('view');
let loads = 0;
view.onload = async () => {
  if (++loads < 2) return;
  const seen = view.contentDocument;
  const facts = [...seen.querySelectorAll('tr')].map((row) => [...row.cells].map((cell) => cell.textContent));
  const bars = [...seen.querySelectorAll('.bar')].map((bar) => bar.getBoundingClientRect().width);
  const lines = [...seen.querySelectorAll('polyline')].map((line) => line.getBBox().width);
  const wide = seen.documentElement.scrollWidth;
  await fetch('/said', {method: 'POST', body: JSON.stringify({facts, bars, lines, wide})});
};
view.src = '/page.html';
</script>"""


def crc32c(data, crc):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def varint(value):
    parts = []
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(parts + [value])


def write_log(path):
    """As docs/formats/flight_log.md says: 1 s until a batch comes, and 1 s until 40 priorities."""
    zigzag = lambda numbers: b"".join(varint(n << 1 ^ n >> 63) for n in numbers)
    bodies = [varint(0) + varint(0) + varint(0),
              b"\x02\x00" + varint(1000000) + zigzag([0, 1, 4, 0, 4, 0]),
              b"\x0a\x00" + varint(1000000) + zigzag([40, 0, -1, 10, 30])]
    crc = 0
    with open(path, "wb") as f:
        f.write(b"RILLFLOG\x01")
        for body in bodies:
            crc = crc32c(body, crc)
            f.write(varint(len(body)) + body + struct.pack("<I", crc))


class Handler(http.server.SimpleHTTPRequestHandler):
    said = None

    def do_GET(self):
        if self.path != "/look":
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(_LOOK.encode())

    def do_POST(self):
        type(self).said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()
        self.server.done.set()

    def log_message(self, *args):
        pass


def in_browser(browser, folder):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
    server.handle_error = lambda *args: None  # A browser that goes on before it has all.
    server.done = threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        process = subprocess.Popen(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
             "--disable-background-networking", "--user-data-dir=" + profile,
             "http://127.0.0.1:%d/look" % server.server_port],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        is_done = server.done.wait(SECONDS)
        process.terminate()
        process.wait()
        server.shutdown()
        shutil.rmtree(profile, ignore_errors=True)
        os.makedirs(profile, exist_ok=True)
    if not is_done:
        sys.exit("%s said nothing of the page in %d s" % (browser, SECONDS))
    return Handler.said


class Page(html.parser.HTMLParser):
    """What the browser would say, as far as the text has it."""
    _ALONE = ("meta", "!doctype")

    def __init__(self):
        super().__init__()
        self.open, self.said = [], {"facts": [], "bars": [], "lines": [], "wide": 0}

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag not in self._ALONE:
            self.open.append(tag)
        if tag == "tr":
            self.said["facts"].append([])
        elif tag == "td":
            self.said["facts"][-1].append("")
        elif attributes.get("class") == "bar":
            self.said["bars"].append(float(attributes["style"][len("width:"):-len("px")]))
        elif tag == "polyline":
            xs = [float(point.split(",")[0]) for point in attributes["points"].split()]
            self.said["lines"].append(max(xs) - min(xs))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if "td" in self.open:
            self.said["facts"][-1][-1] += data


def in_text(path):
    page = Page()
    with open(path, encoding="utf-8") as f:
        page.feed(f.read())
    assert not page.open, page.open
    return page.said


def main(argv):
    work = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    write_log(work + "/log")
    shutil.copytree("formats/torchrl/testdata/replay_buffer/a", work + "/rows")
    page = work + "/page.html"
    subprocess.run([argv[1], "--watch", work + "/log", work + "/rows", "--looks=1", "--every=0", "--html=" + page],
                   check=True)
    browser = next((b for b in map(shutil.which, _BROWSERS) if b), None)
    print("looking in " + browser if browser else "reading the page alone: there is no Chromium")
    said = in_browser(browser, work) if browser else in_text(page)
    print(json.dumps(said))
    facts = {row[0]: row[-1] for row in said["facts"] if len(row) == 2}
    for name, value in _WANTED.items():
        assert facts.get(name, "").startswith(value), (name, facts.get(name))
    # 10 rows and 30.
    assert [round(width) for width in said["bars"]] == [134, 400], said["bars"]
    assert said["wide"] <= 1000
    print("PASSED")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
