#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the site: pages by MkDocs, the API of all public headers by Doxygen.

usage: build.py ROOT WORK OUT

WORK is a folder of its own for what is made on the way. Any warning of either
tool is an error, which names the page or the header.
"""
import ast
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lint"))
sys.path.insert(0, HERE)
import api  # noqa: E402: beside this file, wherever it is run.
import check  # noqa: E402
import lint  # noqa: E402
import names  # noqa: E402
import pages  # noqa: E402

# No pages for readers.
SKIPPED = re.compile(r"(^|/)testdata/|^testing/(fixtures|consumer)/|^tools/peer/")
_LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")


class SiteError(Exception):
    """A sentence that says what broke."""


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def public_headers(root, paths):
    """Headers that public targets have, themselves or by a bundle."""
    found = pages.Pages((), lambda path: os.path.exists(os.path.join(root, path)))
    for path in paths:
        if os.path.basename(path) == "BUILD":
            found.add_build(path, ast.parse(read(root, path)))
    return found.public_headers()


def check_names(root, paths, headers):
    """Ends where a page, or a comment of a public header, names what is nowhere."""
    words = set()
    for path in paths:
        if not path.endswith(".md"):
            words.update(names.words_of(path, read(root, path)))
    others = set(re.sub("(?m)^#.*", "", read(HERE, "names_of_others.txt")).split())
    found = [f for path in paths if path.endswith(".md") and not SKIPPED.search(path)
             for f in names.unknown(path, read(root, path), words, others, paths)]
    found += [f for path in headers for f in names.unknown_in_comments(path, read(root, path), words)]
    for path, sources in names.COPIED_FIGURES.items():
        found += names.strange_figures(path, read(root, path), [read(root, source) for source in sources])
    if found:
        raise SiteError("names and figures: \n" + "\n".join(found))


def stage_headers(root, work, headers):
    for path in headers:
        write(os.path.join(work, "headers", "rill", path),
              api.converted(read(root, path), lint.strip_code))


def page_text(text):
    """Markdown as MkDocs wants it: a list begins behind a blank line."""
    lines, is_code = [], False
    for line in text.split("\n"):
        is_code ^= line.lstrip().startswith("```")
        before = lines[-1] if lines else ""
        if (not is_code and re.match(r"([-*]|\d+\.) ", line) and before.strip() and
                not re.match(r"(([-*]|\d+\.) |\s)", before)):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def stage_pages(root, work, paths):
    """Pages, and the files that they link to, at their places in the tree."""
    staged = [p for p in paths if p.endswith(".md") and not SKIPPED.search(p)]
    others = set()
    for path in staged:
        text = read(root, path)
        write(os.path.join(work, "pages", path), page_text(text))
        for match in _LINK.finditer(re.sub(r"```.*?```", "", text, flags=re.S)):
            target = os.path.normpath(os.path.join(os.path.dirname(path), match.group(1)))
            if not target.endswith(".md") and os.path.isfile(os.path.join(root, target)):
                others.add(target)
    for path in others:
        place = os.path.join(work, "pages", path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        shutil.copyfile(os.path.join(root, path), place)
    return staged


def run(name, command, **more):
    """Runs it; its words are those of the error."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    words = [line for line in done.stdout.split("\n")
             if re.search(r"WARNING|ERROR|warning|error|Aborted", line)]
    if done.returncode or words:
        raise SiteError("%s: \n%s" % (name, "\n".join(words or done.stdout.split("\n")[-20:])))


def make_api(work):
    settings = read(HERE, "Doxyfile") + "".join('%s = "%s"\n' % pair for pair in (
        ("INPUT", work + "/headers"), ("OUTPUT_DIRECTORY", work + "/api"),
        ("STRIP_FROM_PATH", work + "/headers"), ("STRIP_FROM_INC_PATH", work + "/headers"),
        ("GENERATE_TAGFILE", work + "/api.tag"),
        ("LAYOUT_FILE", HERE + "/layout.xml")))
    write(work + "/Doxyfile", settings)
    os.makedirs(work + "/api", exist_ok=True)
    run("doxygen", ["doxygen", work + "/Doxyfile"])


def names_of(tags):
    """{name: page of the API} of Doxygen's tag file, and (name, page) of all compounds."""
    places, found = collections.defaultdict(list), []
    for compound in xml.etree.ElementTree.parse(tags).getroot():
        kind, name = compound.get("kind"), compound.findtext("name")
        if kind not in ("class", "struct", "union", "file", "namespace"):
            continue
        if kind != "file" and not name.startswith("rill"):  # A base that is not public.
            continue
        page = compound.findtext("filename")
        page += "" if page.endswith(".html") else ".html"
        if kind == "file":
            name = (compound.findtext("path") + name).rpartition("/headers/")[2]
        if kind != "namespace":
            places[name].append(page)
            found.append((name, page))
        for member in compound.findall("member"):
            if kind == "file":  # Where it is in a namespace, it is there.
                continue
            place = "%s#%s" % (member.findtext("anchorfile"), member.findtext("anchor"))
            places[name + "::" + member.findtext("name")].append(place)
            if kind == "namespace" and member.get("kind") == "function":
                found.append((name + "::" + member.findtext("name"), place))
    links = {}
    for name, where in places.items():
        links.setdefault(name, where[0])
        if name.startswith("rill::"):
            links.setdefault(name[len("rill::"):], where[0])
        elif name.startswith("rill/"):
            links.setdefault(name[len("rill/"):], where[0])
    return links, found


def add_to_search(out, found):
    """The classes, functions and headers of the API are found beside the pages."""
    path = os.path.join(out, "search", "search_index.json")
    index = json.loads(read(out, "search/search_index.json"))
    for name, page in sorted(set(found)):
        short = name.rsplit("::", 1)[-1]
        index["docs"].append({"location": "api/" + page, "title": short + " (API)", "text": re.sub("::|/", " ", name)})
    write(path, json.dumps(index, separators=(",", ":")))


def make_pages(work, out, links):
    write(work + "/names.json", json.dumps(links))
    style = subprocess.run([sys.executable, "-m", "pygments", "-S", "default", "-f", "html", "-a",
                            ".codehilite"], check=True, stdout=subprocess.PIPE, text=True).stdout
    write(work + "/pages/site.css", style + read(HERE, "site.css"))
    for stand_in in ("annotated", "files", "namespacerill"):  # So that the sidebar may name them.
        write(work + "/pages/api/%s.html" % stand_in, "")
    run("mkdocs", [sys.executable, "-m", "mkdocs", "build", "--clean", "--strict", "--quiet", "-f", HERE + "/mkdocs.yml"],
        env=dict(os.environ, RILL_SITE_PAGES=work + "/pages", RILL_SITE_OUT=out,
                 RILL_SITE_NAMES=work + "/names.json"))


def main(argv):
    root, work, out = (os.path.abspath(a) for a in argv[1:4])
    paths = sorted(lint.files(root))
    headers = public_headers(root, paths)
    for folder in ("headers", "pages", "api"):
        shutil.rmtree(os.path.join(work, folder), ignore_errors=True)
    stage_headers(root, work, headers)
    check_names(root, paths, headers)
    staged = stage_pages(root, work, paths)
    make_api(work)
    links, found = names_of(work + "/api.tag")
    make_pages(work, out, links)
    shutil.rmtree(out + "/api", ignore_errors=True)
    shutil.copytree(work + "/api", out + "/api")
    add_to_search(out, found)
    links = check.Links(out)
    broken = [b for page in check.pages_of(out) for b in links.broken(page)]
    if broken:
        raise SiteError("links: \n" + "\n".join(broken))
    print("%d pages, %d public headers, %d names of the API" % (len(staged), len(headers), len(found)))


if __name__ == "__main__":
    try:
        main(sys.argv)
    except SiteError as error:
        sys.exit(str(error))
