# SPDX-License-Identifier: Apache-2.0
"""The page that inspect --watch --html writes, as a browser shows it.

usage: page_test.py INSPECT

In Chromium, headless, where it is installed: the page has its facts, its bars
and its line have a length, and it loads itself again. Without it the page is
read as it is: it is whole, and has them.
"""
import html.parser
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../site"))

import browser

SECONDS = 120  # Of the browser, at most.
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
    chromium = browser.find()
    print("looking in " + chromium if chromium else "reading the page alone: there is no Chromium")
    said = browser.said_of(work, _LOOK, chromium, SECONDS) if chromium else in_text(page)
    assert said is not None, "%s said nothing of the page in %d s" % (chromium, SECONDS)
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
