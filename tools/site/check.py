#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at a site that was built.

usage: check.py SITE REPORT

In Chromium, headless, where it is installed: each page opens, its pictures
load, the search finds the terms of search_terms.txt. Without it: the pages are
there with a headline, pictures are pictures, the search's index has the terms.
Always: each link of a page leads to a file, and to a place in it. REPORT gets
the numbers of cases that passed and failed.
"""
import html
import json
import os
import posixpath
import re
import sys
import urllib.parse
import xml.etree.ElementTree

import browser

HERE = os.path.dirname(os.path.realpath(__file__))
SECONDS = 240  # Of the browser, at most.
_LINK = re.compile(r'<(?:a|img|link|script)\b[^>]*?\s(?:href|src)="([^"]*)"')
_ANCHOR = re.compile(r'\b(?:id|name)="([^"]+)"')


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def pages_of(site):
    """Pages of MkDocs, by their paths in the site; the API's are Doxygen's."""
    for folder, folders, names in os.walk(site):
        folders[:] = sorted(d for d in folders if os.path.join(folder, d) != os.path.join(site, "api"))
        for name in sorted(names):
            if name.endswith(".html"):
                yield os.path.relpath(os.path.join(folder, name), site)


class Links:
    """What the links of a site lead to."""

    def __init__(self, site):
        self.site = site
        self.anchors = {}

    def broken(self, page):
        for link in sorted(set(_LINK.findall(read(os.path.join(self.site, page))))):
            place, _, anchor = html.unescape(link).partition("#")
            if re.match(r"[a-z]+:|//", place):
                continue
            path = urllib.parse.unquote(place.partition("?")[0])
            path = path[1:] if path.startswith("/") else posixpath.join(posixpath.dirname(page), path)
            path = posixpath.normpath(path if place else page)
            full = os.path.join(self.site, path)
            if os.path.isdir(full):
                full = os.path.join(full, "index.html")
            if not os.path.isfile(full):
                yield "%s: there is no %s" % (page, link)
            elif anchor and full.endswith(".html") and anchor not in self._anchors(full):
                yield "%s: %s has no such place" % (page, link)

    def _anchors(self, path):
        if path not in self.anchors:
            self.anchors[path] = set(_ANCHOR.findall(read(path)))
        return self.anchors[path]


def terms():
    for line in read(os.path.join(HERE, "search_terms.txt")).split("\n"):
        if line and not line.startswith("#"):
            yield tuple(line.split(": "))


def pictures_of(site, page):
    for src in re.findall(r'<img\b[^>]*?\ssrc="([^"]*)"', read(os.path.join(site, page))):
        if not re.match(r"[a-z]+:", src):
            yield posixpath.normpath(posixpath.join(posixpath.dirname(page), html.unescape(src)))


def in_files(site, pages):
    """(case, what is wrong) without a browser."""
    for page in pages:
        text = read(os.path.join(site, page))
        yield "%s opens" % page, "" if "<h1" in text else "no headline"
        for picture in pictures_of(site, page):
            try:
                xml.etree.ElementTree.parse(os.path.join(site, picture))
                yield "%s on %s" % (picture, page), ""
            except (OSError, xml.etree.ElementTree.ParseError) as error:
                yield "%s on %s" % (picture, page), str(error)
    entries = json.loads(read(os.path.join(site, "search", "search_index.json")))["docs"]
    for term, page in terms():
        is_found = any(e["location"].partition("#")[0] == page and term.lower() in (e["title"] + " " + e["text"]).lower()
                       for e in entries)
        yield "search for %s" % term, "" if is_found else "%s is not found" % page


def in_browser(chromium, site, pages):
    """(case, what is wrong) as Chromium sees it."""
    work = json.dumps({"pages": pages, "terms": list(terms())})
    said = browser.said_of(site, read(os.path.join(HERE, "check.html")).replace("WORK", work), chromium, SECONDS)
    if said is None:
        yield "the browser", "it said nothing in %d s" % SECONDS
        return
    for case, wrong in said:
        yield case, wrong


def main(argv):
    site, report = argv[1:3]
    pages = list(pages_of(site))
    chromium = browser.find()
    print("looking at %d pages %s" % (len(pages), "in " + chromium if chromium else
                                      "by their files alone: there is no Chromium"))
    shown = [page for page in pages if page != "search.html"]
    cases = list(in_browser(chromium, site, shown) if chromium else in_files(site, shown))
    links = Links(site)
    for page in pages:
        cases.append(("links of " + page, "; ".join(links.broken(page))))
    failed = [(case, wrong) for case, wrong in cases if wrong]
    for case, wrong in failed:
        print("failed: %s: %s" % (case, wrong))
    with open(report, "w", encoding="utf-8") as f:
        f.write("%d %d\n" % (len(cases) - len(failed), len(failed)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
