# SPDX-License-Identifier: Apache-2.0
"""What MkDocs does besides: names and headers in spans of code lead to the API."""
import html
import json
import os
import posixpath
import re

_CODE = re.compile(r"(<a\b[^>]*>.*?</a>|<pre\b.*?</pre>|<h\d\b.*?</h\d>)|<code>([^<]+)</code>", re.S)


def _links():
    with open(os.environ["RILL_SITE_NAMES"], encoding="utf-8") as f:
        return json.load(f)


_NAMES = None


def on_page_content(content, page, config, files):
    global _NAMES
    _NAMES = _NAMES or _links()
    up = posixpath.relpath("api", posixpath.dirname(page.url) or ".")

    def link(match):
        if match.group(1):
            return match.group(1)
        name = html.unescape(match.group(2))
        for prefix in ("", "rill/"):
            place = _NAMES.get(prefix + name)
            if place:
                return '<a class="api" href="%s/%s">%s</a>' % (up, place, match.group(0))
        return match.group(0)

    return _CODE.sub(link, content)
