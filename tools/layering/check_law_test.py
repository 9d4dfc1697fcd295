# SPDX-License-Identifier: Apache-2.0
"""What check_law.py says about labels, as each kind of Bazel writes them."""
import contextlib
import io
import os
import tempfile
import unittest

import check_law


class CheckLawTest(unittest.TestCase):

    def check(self, labels, *allowed):
        """(exit status, what it printed) for //samplers:samplers."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "deps")
            with open(path, "w", encoding="utf-8") as f:
                f.write("\n".join(labels) + "\n")
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                status = check_law.main("//samplers:samplers", path, *allowed)
            return status, out.getvalue()

    def test_allowed_packages_third_parties_and_tools_pass(self):
        status, out = self.check([
            "//samplers:samplers", "//base:rng", "//tools/cuda:enabled",
            "@com_google_absl//absl/status:status", "@@abseil-cpp~//absl/status:status",
            "@bazel_tools//tools/cpp:toolchain"], "samplers", "base")
        self.assertEqual((status, out), (0, ""))

    def test_forbidden_package_is_named_with_the_way_to_it(self):
        status, out = self.check(["//samplers:samplers", "//storage:dense_storage"],
                                 "samplers", "base")
        self.assertEqual(status, 1)
        self.assertIn("reaches //storage:dense_storage: storage is not among samplers base", out)
        self.assertIn("somepath(//samplers:samplers, //storage:dense_storage)", out)

    def test_cuda_is_out_of_reach_even_of_those_who_may_reach_device(self):
        for label in ("//device/cuda:cuda_backend", "//device/cuda/kernels:fill",
                      "@local_cuda//:cudart", "@@_main~cuda~local_cuda//:cudart",
                      "@local_cuda_wheels//:nvcc"):
            status, out = self.check(["//samplers:samplers", label], "samplers", "device")
            self.assertEqual(status, 1, label)
            self.assertIn("CUDA", out)

    def test_a_library_has_one_package(self):
        for library, package, labels in (
                ("LibTorch", "libtorch", ("@local_torch//:torch", "@@_main~torch~local_torch//:torch")),
                ("ONNX Runtime", "onnx", ("@local_onnx//:onnxruntime", "@local_onnx_wheels//:library"))):
            for label in labels:
                status, out = self.check(["//samplers:samplers", label], "samplers", "base")
                self.assertEqual(status, 1, label)
                self.assertIn(library, out)
                self.assertIsNone(check_law.verdict(label, [package, "base"]))

    def test_own_labels_are_known_with_a_repository_too(self):
        self.assertEqual(check_law.verdict("@@//storage:x", ["base"]), "storage")
        self.assertEqual(check_law.verdict("@rill//storage:x", ["base"]), "storage")
        self.assertIsNone(check_law.verdict("@rilling//storage:x", ["base"]))

    def test_list_without_the_target_proves_nothing(self):
        with self.assertRaises(SystemExit):
            self.check(["//base:rng"], "samplers", "base")
