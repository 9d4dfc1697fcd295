# SPDX-License-Identifier: Apache-2.0
"""Dictionaries to pyarrow and back, in one process.

usage: arrow_python_test.py LIBRARY   (arrow_c_api.so)
"""
import ctypes
import os
import sys
import unittest

# Before Debian's NumPy, which is too old for pyarrow.
sys.path[:0] = filter(None, [os.environ.get("RILL_PYARROW_PATH")])
try:
    import numpy as np
    import pyarrow as pa
except ImportError:
    pa = None

LIBRARY = os.path.abspath(sys.argv[1])


class Structs:
    """An ArrowSchema and an ArrowArray, by their sizes."""

    def __init__(self):
        self.memory = [(ctypes.c_int64 * 9)(), (ctypes.c_int64 * 10)()]
        self.schema, self.array = map(ctypes.addressof, self.memory)


@unittest.skipIf(pa is None, "no pyarrow")
class ArrowPythonTest(unittest.TestCase):
    def setUp(self):
        self.library = ctypes.CDLL(LIBRARY)
        for name in ("rill_export", "rill_import", "rill_sum"):
            getattr(self.library, name).restype = ctypes.c_char_p

    def call(self, name, *arguments):
        error = getattr(self.library, name)(*arguments)
        if error is not None:
            raise ValueError(error.decode())

    def hand_over(self, batch):
        structs = Structs()
        batch._export_to_c(structs.array, structs.schema)
        self.call("rill_import", ctypes.c_void_p(structs.schema), ctypes.c_void_p(structs.array))

    def sum(self):
        total = ctypes.c_int64()
        self.call("rill_sum", ctypes.byref(total))
        return total.value

    def test_python_reads_what_rill_exports(self):
        structs = Structs()
        self.call("rill_export", ctypes.c_void_p(structs.schema), ctypes.c_void_p(structs.array))
        batch = pa.RecordBatch._import_from_c(structs.array, structs.schema)
        batch.validate(full=True)
        np.testing.assert_array_equal(
            batch.column("x").to_numpy_ndarray(), np.arange(6, dtype=np.float32).reshape(3, 2))
        self.assertEqual(batch.column("next").field("y").to_pylist(), [7, 8, 9])

    def test_rill_reads_what_python_exports_and_keeps_it(self):
        before = pa.total_allocated_bytes()
        values = pa.array(range(1000), pa.int64())
        self.hand_over(pa.RecordBatch.from_arrays([values], names=["z"]))
        del values
        self.assertGreater(pa.total_allocated_bytes(), before)
        self.assertEqual(self.sum(), 499500)
        self.library.rill_forget()
        self.assertEqual(pa.total_allocated_bytes(), before)

    def test_what_is_no_tensor_is_an_error(self):
        with self.assertRaisesRegex(ValueError, '"z": got null values'):
            self.hand_over(pa.RecordBatch.from_arrays([pa.array([1, None])], names=["z"]))
