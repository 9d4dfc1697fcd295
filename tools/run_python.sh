#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# For sh_test: runs a Python program as the test. py_test would want a Python
# toolchain, which the two kinds of Bazel find in different ways.
exec python3 -B "$@"
