#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What sanitizers have written of an interpreter with Rill's extension.

usage: leaks.py MODULE REPORT ...

Prints the errors, and the leaks of memory that MODULE itself took: the first
frame behind the allocator's is its. An interpreter that ends leaves much of its
own and of other extensions. Ends with 1 where it has printed any.
"""
import re
import sys

ALLOCATORS = re.compile(r" in (operator new|malloc|calloc|realloc|posix_memalign|aligned_alloc|__interceptor_\w+)\b")
ERRORS = re.compile(r"ERROR: AddressSanitizer|WARNING: ThreadSanitizer|runtime error:")


def findings(report, module):
    """The errors of a report, and its leaks that are the module's, as texts."""
    found = [report] if ERRORS.search(report) else []
    for block in re.split(r"\n\s*\n", report):
        if not re.search(r"^(Direct|Indirect) leak of ", block, re.M):
            continue
        frames = [line for line in block.splitlines() if re.match(r"\s*#\d+ ", line)]
        own = next((frame for frame in frames if not ALLOCATORS.search(frame)), "")
        if module in own:
            found.append(block)
    return found


def main(argv):
    total = 0
    for path in argv[1:]:
        with open(path, encoding="utf-8", errors="replace") as file:
            for text in findings(file.read(), argv[0]):
                print(text, flush=True)
                total += 1
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
