# SPDX-License-Identifier: Apache-2.0
"""Tensors through DLPack to NumPy and torch and back, in one process.

usage: dlpack_python_test.py LIBRARY   (dlpack_c_api.so)
"""
import ctypes
import gc
import sys
import unittest

try:
    import numpy as np
except ImportError:
    np = None
try:
    import torch
except ImportError:
    torch = None

api = ctypes.CDLL(sys.argv[1])
python = ctypes.pythonapi

P, I64 = ctypes.c_void_p, ctypes.c_int64
for name, result, arguments in [
        ("RillLastError", ctypes.c_char_p, []), ("RillLiveBuffers", I64, []),
        ("RillMakeTensor", P, [ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(I64),
                               ctypes.POINTER(I64), I64, ctypes.c_char_p, I64, ctypes.c_int]),
        ("RillDeleteTensor", None, [P]), ("RillDType", ctypes.c_char_p, [P]),
        ("RillRank", ctypes.c_int, [P]), ("RillSize", I64, [P, ctypes.c_int]),
        ("RillByteStride", I64, [P, ctypes.c_int]), ("RillData", P, [P]),
        ("RillIsWritable", ctypes.c_int, [P]), ("RillCopyElements", I64, [P, P]),
        ("RillToDLPack", P, [P]), ("RillToDLPackVersioned", P, [P]),
        ("RillFromDLPack", P, [P]), ("RillFromDLPackVersioned", P, [P])]:
    getattr(api, name).restype, getattr(api, name).argtypes = result, arguments

PY = ctypes.py_object
for name, result, arguments in [
        ("PyCapsule_New", PY, [P, ctypes.c_char_p, P]),
        ("PyCapsule_IsValid", ctypes.c_int, [PY, ctypes.c_char_p]),
        ("PyCapsule_GetPointer", P, [PY, ctypes.c_char_p]),
        ("PyCapsule_SetName", ctypes.c_int, [PY, ctypes.c_char_p])]:
    getattr(python, name).restype, getattr(python, name).argtypes = result, arguments

# Names of capsules; capsules keep the pointers.
PLAIN, USED = b"dltensor", b"used_dltensor"
VERSIONED, USED_VERSIONED = b"dltensor_versioned", b"used_dltensor_versioned"


class RillTensor:
    """A Tensor of ours; an object that exports DLPack as the protocol wants."""

    def __init__(self, handle):
        if not handle:
            raise ValueError(api.RillLastError().decode())
        self.handle = handle

    def __del__(self):
        if getattr(self, "handle", None):
            api.RillDeleteTensor(self.handle)

    @classmethod
    def make(cls, dtype, shape, strides, raw, offset=0, writable=True):
        sizes = (I64 * max(len(shape), 1))(*shape)
        steps = (I64 * max(len(shape), 1))(*strides)
        return cls(api.RillMakeTensor(dtype.encode(), len(shape), sizes, steps, offset, raw,
                                      len(raw), writable))

    @classmethod
    def take(cls, array, version=(1, 0)):
        """Imports what `array` exports; the capsule is used up either way."""
        try:
            capsule = array.__dlpack__(max_version=version) if version else array.__dlpack__()
        except TypeError:  # From before versions.
            capsule = array.__dlpack__()
        versioned = bool(python.PyCapsule_IsValid(capsule, VERSIONED))
        name, used = (VERSIONED, USED_VERSIONED) if versioned else (PLAIN, USED)
        managed = python.PyCapsule_GetPointer(capsule, name)
        python.PyCapsule_SetName(capsule, used)
        result = cls((api.RillFromDLPackVersioned if versioned else api.RillFromDLPack)(managed))
        result.came_versioned = versioned
        return result

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        versioned = max_version is not None and max_version[0] >= 1
        managed = (api.RillToDLPackVersioned if versioned else api.RillToDLPack)(self.handle)
        if not managed:
            raise BufferError(api.RillLastError().decode())
        return python.PyCapsule_New(managed, VERSIONED if versioned else PLAIN,
                                    ctypes.cast(api.RillFreeUnused, P))

    dtype = property(lambda self: api.RillDType(self.handle).decode())
    data = property(lambda self: api.RillData(self.handle))
    writable = property(lambda self: bool(api.RillIsWritable(self.handle)))
    shape = property(lambda self: tuple(
        api.RillSize(self.handle, d) for d in range(api.RillRank(self.handle))))
    strides = property(lambda self: tuple(
        api.RillByteStride(self.handle, d) for d in range(api.RillRank(self.handle))))

    def tobytes(self):
        out = (ctypes.c_char * 4096)()  # Tests are small.
        size = api.RillCopyElements(self.handle, out)
        return out.raw[:size]


class OldProtocol:
    """The same without the keywords that came with versions."""

    def __init__(self, tensor):
        self.tensor = tensor
        self.__dlpack_device__ = tensor.__dlpack_device__

    def __dlpack__(self, stream=None):
        return self.tensor.__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)


DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
          "uint16", "uint32", "uint64", "complex64", "complex128"]


def counting(dtype, count):
    """0, 1, 0, ... for bool, else 0, 1, 2, ...; as NumPy's array."""
    return (np.arange(count) % (2 if dtype == "bool" else 100)).astype(dtype)


def knows_bool():
    """Whether this NumPy has DLPack's bool (1.25 and later)."""
    try:
        np.zeros(1, bool).__dlpack__()
        return True
    except BufferError:
        return False


def knows_versions():
    try:
        np.zeros(1).__dlpack__(max_version=(1, 0))
        return True
    except TypeError:
        return False


class LifetimeTest(unittest.TestCase):
    """Each test starts and ends without a buffer of ours."""
    library = None

    def setUp(self):
        if self.library is None:
            self.skipTest("%s: no such module for %s" % (self.wants, sys.executable))
        gc.collect()
        self.assertEqual(api.RillLiveBuffers(), 0)

    def tearDown(self):
        if self.library is not None:
            gc.collect()
            self.assertEqual(api.RillLiveBuffers(), 0, "a deleter did not run")


class ToNumPyTest(LifetimeTest):
    library, wants = np, "numpy"

    def dtypes(self):
        return [d for d in DTYPES if d != "bool" or knows_bool()]

    def test_every_dtype_has_its_values(self):
        for dtype in self.dtypes():
            want = counting(dtype, 6).reshape(2, 3)
            ours = RillTensor.make(dtype, want.shape, want.strides, want.tobytes())
            for source in (ours, OldProtocol(ours)):
                got = np.from_dlpack(source)
                self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
                np.testing.assert_array_equal(got, want)
                self.assertEqual(got.ctypes.data, ours.data)

    def test_strides_and_offset(self):
        raw = np.arange(40, dtype=np.int32)
        for shape, strides, offset in [((2, 3), (12, 4), 8), ((3, 2), (4, 12), 0),
                                       ((2, 2, 2), (64, 16, 8), 4), ((4,), (-8,), 28),
                                       ((2, 3), (-12, -4), 100), ((3, 4), (0, 4), 12)]:
            ours = RillTensor.make("int32", shape, strides, raw.tobytes(), offset)
            want = np.ndarray(shape, np.int32, raw, offset, strides)
            got = np.from_dlpack(ours)
            np.testing.assert_array_equal(got, want)
            self.assertEqual(got.strides, strides)

    def test_rank_zero_and_no_elements(self):
        got = np.from_dlpack(RillTensor.make("float64", (), (), np.float64(2.5).tobytes()))
        self.assertEqual((got.shape, float(got)), ((), 2.5))
        got = np.from_dlpack(RillTensor.make("float32", (3, 0, 2), (0, 8, 4), b""))
        self.assertEqual((got.shape, got.dtype), ((3, 0, 2), np.float32))

    def test_bytes_live_as_long_as_the_array(self):
        ours = RillTensor.make("int64", (3,), (8,), np.arange(3).tobytes())
        array = np.from_dlpack(ours)
        part = array[1:]
        del ours, array
        gc.collect()
        self.assertEqual(api.RillLiveBuffers(), 1)
        self.assertEqual(part.tolist(), [1, 2])
        del part
        gc.collect()
        self.assertEqual(api.RillLiveBuffers(), 0)

    def test_an_unused_capsule_frees(self):
        ours = RillTensor.make("int64", (3,), (8,), bytes(24))
        capsules = [ours.__dlpack__(), ours.__dlpack__(max_version=(1, 0))]
        del ours
        self.assertEqual(api.RillLiveBuffers(), 1)
        del capsules[:]
        self.assertEqual(api.RillLiveBuffers(), 0)

    def test_what_numpy_refuses_is_freed(self):
        ours = RillTensor.make("bfloat16", (2,), (2,), bytes(4))
        with self.assertRaises((BufferError, RuntimeError)):
            np.from_dlpack(ours)

    def test_the_read_only_flag(self):
        ours = RillTensor.make("int64", (1,), (8,), bytes(8), writable=False)
        with self.assertRaises(BufferError):
            np.from_dlpack(OldProtocol(ours))
        if not knows_versions():
            self.skipTest("NumPy %s knows no flags" % np.__version__)
        self.assertFalse(np.from_dlpack(ours).flags.writeable)
        ours = RillTensor.make("int64", (1,), (8,), bytes(8))
        array = np.from_dlpack(ours)
        self.assertTrue(array.flags.writeable)
        array[0] = 258
        self.assertEqual(ours.tobytes(), np.int64(258).tobytes())


class FromNumPyTest(LifetimeTest):
    library, wants = np, "numpy"

    def check(self, array, version=(1, 0)):
        ours = RillTensor.take(array, version)
        self.assertEqual((ours.dtype, ours.shape), (str(array.dtype), array.shape))
        self.assertEqual(ours.tobytes(), array.tobytes())
        if array.size:
            self.assertEqual(ours.data, array.ctypes.data)
        return ours

    def test_every_dtype(self):
        for dtype in DTYPES:
            if dtype != "bool" or knows_bool():
                self.check(counting(dtype, 12).reshape(3, 4))
                self.check(counting(dtype, 12).reshape(3, 4), None)

    def test_views(self):
        base = np.arange(120, dtype=np.float32).reshape(4, 5, 6)
        for view in [base.T, base[1:3, ::2, 1:5:3], base[::-1], base[:, ::-2, ::-1],
                     base.transpose(1, 0, 2)[2], base[2, 3, 4:5], base[:, None, 2],
                     np.broadcast_to(base[0, 0], (3, 6)) if knows_versions() else base[0]]:
            ours = self.check(view)
            got = [s for s, n in zip(ours.strides, ours.shape) if n > 1]
            self.assertEqual(got, [s for s, n in zip(view.strides, view.shape) if n > 1])

    def test_no_elements_and_rank_zero(self):
        self.check(np.zeros((0,), np.int8))
        self.check(np.zeros((3, 0, 2), np.complex128))
        self.check(np.zeros((5, 4), np.int32)[2:2, ::-1])
        self.check(np.array(3.5))

    def test_a_rank_above_ours_is_refused(self):
        array = np.zeros((1,) * 9)
        count = sys.getrefcount(array)
        with self.assertRaisesRegex(ValueError, "ndim: got 9"):
            RillTensor.take(array)
        self.assertEqual(sys.getrefcount(array), count)

    def test_the_array_is_held_until_the_tensor_goes(self):
        array = np.arange(6)
        count = sys.getrefcount(array)
        ours = RillTensor.take(array)
        self.assertEqual(sys.getrefcount(array), count + 1)
        array[2] = 99
        self.assertEqual(ours.tobytes(), array.tobytes())
        del ours
        self.assertEqual(sys.getrefcount(array), count)

    def test_the_read_only_flag(self):
        array = np.arange(3)
        self.assertTrue(RillTensor.take(array).writable)
        if not knows_versions():
            self.skipTest("NumPy %s knows no flags" % np.__version__)
        self.assertTrue(RillTensor.take(array).came_versioned)
        array.flags.writeable = False
        self.assertFalse(RillTensor.take(array).writable)

    def test_there_and_back(self):
        base = np.arange(24, dtype=np.uint16).reshape(4, 6)[::-1, 1:]
        again = np.from_dlpack(RillTensor.take(base))
        np.testing.assert_array_equal(again, base)
        self.assertEqual((again.ctypes.data, again.strides), (base.ctypes.data, base.strides))


class TorchTest(LifetimeTest):
    library, wants = torch, "torch"

    def dtypes(self):
        return [d for d in DTYPES + ["bfloat16"] if hasattr(torch, d)]

    def test_every_dtype_to_torch(self):
        for dtype in self.dtypes():
            want = torch.arange(6).remainder(2).to(getattr(torch, dtype)).reshape(2, 3)
            raw = want.view(torch.uint8).numpy().tobytes()
            size = want.element_size()
            ours = RillTensor.make(dtype, (2, 3), (3 * size, size), raw)
            for source in (ours, OldProtocol(ours)):
                got = torch.from_dlpack(source)
                self.assertEqual((got.dtype, got.data_ptr()), (want.dtype, ours.data))
                self.assertTrue(torch.equal(got, want), dtype)

    def test_every_dtype_from_torch(self):
        for dtype in self.dtypes():
            array = torch.arange(6).remainder(2).to(getattr(torch, dtype)).reshape(3, 2)
            ours = RillTensor.take(array)
            self.assertEqual((ours.dtype, ours.shape, ours.data),
                             (dtype, (3, 2), array.data_ptr()))
            self.assertEqual(ours.tobytes(), array.view(torch.uint8).numpy().tobytes())

    def test_strides_and_no_elements(self):
        base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
        for view in [base.T, base[1:, ::2], base[2], base[2, 3], base[:, 2:2],
                     base[0].expand(3, 6)]:
            ours = RillTensor.take(view)
            self.assertEqual(ours.shape, tuple(view.shape))
            self.assertEqual(ours.tobytes(), view.contiguous().numpy().tobytes())
            again = torch.from_dlpack(ours)
            self.assertTrue(torch.equal(again, view))
        raw = bytes(range(64))
        ours = RillTensor.make("uint8", (3, 4), (16, 2), raw, 5)
        self.assertEqual(torch.from_dlpack(ours).tolist(),
                         [[5 + 16 * i + 2 * j for j in range(4)] for i in range(3)])

    def test_bytes_live_as_long_as_the_tensor(self):
        array = torch.from_dlpack(RillTensor.make("int64", (2,), (8,), bytes(16)))
        gc.collect()
        self.assertEqual(api.RillLiveBuffers(), 1)
        array += 1
        self.assertEqual(array.tolist(), [1, 1])
