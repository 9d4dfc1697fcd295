// SPDX-License-Identifier: Apache-2.0
#include "rill/python/bindings/array.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nanobind/nanobind.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/format/array_format.h"
#include "rill/python/bindings/interpreter_lock.h"
#include "rill/python/bindings/status.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace rill::python {
namespace {

namespace nb = nanobind;

// Parts of NumPy that are asked for once, and kept until the process ends.
struct NumPy {
  PyObject* array_type;          // numpy.ndarray
  PyObject* as_array;            // numpy.asarray
  PyObject* contiguous;          // numpy.ascontiguousarray
  PyObject* from_dlpack;         // numpy.from_dlpack
  PyObject* dtypes[kNumDTypes];  // Null where NumPy has none.
  PyObject* zero;
};
NumPy g_numpy;

// --- In ----------------------------------------------------------------------

std::string TypeName(PyObject* object) {
  return nb::borrow<nb::str>(
             nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object)))
                 .attr("__name__"))
      .c_str();
}

[[noreturn]] void ThrowNoArray(PyObject* object, absl::string_view key) {
  std::string got = absl::StrCat("a ", TypeName(object));
  if (PyObject_HasAttrString(object, "dtype") != 0) {
    const nb::object dtype = nb::handle(object).attr("dtype");
    absl::StrAppend(&got, " of dtype ", nb::str(dtype).c_str());
  }
  throw StatusError{InvalidArgument(
      "\"", key, "\": got ", got,
      ", want numbers or bools of the machine's byte order: an array, a tensor "
      "on the CPU, or a list of them")};
}

bool IsPlain(PyObject* object) {
  return PyFloat_Check(object) || PyLong_Check(object) ||
         PyList_Check(object) || PyTuple_Check(object);
}

// The text of the exception that a conversion has set. An interrupt goes on as
// it is.
std::string TakeErrorText() {
  nb::python_error error;
  if (!error.matches(PyExc_Exception)) throw error;
  return absl::StrCat(TypeName(error.value().ptr()), ": ",
                      nb::str(error.value()).c_str());
}

nb::object Call(PyObject* function, PyObject* object, PyObject* dtype) {
  PyObject* args[] = {object, dtype};
  return nb::steal(
      PyObject_Vectorcall(function, args, dtype == nullptr ? 1 : 2, nullptr));
}

// As NumPy's dtype.kind, with 'i' for unsigned ones too.
char KindOf(DType dtype) {
  if (dtype == DType::kBool) return 'b';
  if (IsInteger(dtype)) return 'i';
  return IsFloatingPoint(dtype) ? 'f' : 'c';
}

// Nothing of a number is cut off, and a list of bools, which is a mask, gives
// no places.
bool MayBecome(char from, char to) {
  if (from == 'b') return to != 'i';
  if (from == 'i') return to != 'b';
  if (from == 'f') return to == 'f' || to == 'c';
  return from == to;  // Neither texts nor objects.
}

// A plain number, or a list of them, as `wanted`. Null with an exception set.
nb::object PlainAsArray(PyObject* object, absl::string_view key,
                        std::optional<DType> wanted) {
  PyObject* const dtype =
      wanted.has_value() ? g_numpy.dtypes[static_cast<int>(*wanted)] : nullptr;
  nb::object array;
  char kind = PyFloat_Check(object)  ? 'f'
              : PyBool_Check(object) ? 'b'
              : PyLong_Check(object) ? 'i'
                                     : '\0';
  if (dtype == nullptr || kind == '\0') {
    array = Call(g_numpy.as_array, object, nullptr);
    if (!array.is_valid()) return array;
  }
  if (dtype == nullptr) {
    const nb::object own = array.attr("dtype");
    const int i = static_cast<int>(DType::kFloat64);
    if (!own.is(nb::handle(g_numpy.dtypes[i]))) return array;
    return Call(g_numpy.as_array, array.ptr(),
                g_numpy.dtypes[static_cast<int>(DType::kFloat32)]);
  }
  std::string of;
  if (kind == '\0') {
    const nb::object own = array.attr("dtype");
    kind = *nb::str(own.attr("kind")).c_str();
    if (kind == 'u') kind = 'i';
    // An empty list is of any kind.
    if (nb::cast<int64_t>(array.attr("size")) == 0) kind = KindOf(*wanted);
    of = absl::StrCat(" of dtype ", nb::str(own).c_str());
  }
  if (!MayBecome(kind, KindOf(*wanted))) {
    throw StatusError{InvalidArgument("\"", key, "\": got a ", TypeName(object),
                                      of, ", want ", DTypeName(*wanted))};
  }
  return Call(g_numpy.as_array, object, dtype);
}

// An array of something that has no buffer.
nb::object AsArray(PyObject* object, absl::string_view key,
                   std::optional<DType> wanted) {
  nb::object array;
  if (IsPlain(object)) {
    array = PlainAsArray(object, key, wanted);
  } else if (PyObject_HasAttrString(object, "__array__") == 0 &&
             PyObject_HasAttrString(object, "__dlpack__") != 0) {
    array = Call(g_numpy.from_dlpack, object, nullptr);
  } else {
    array = Call(g_numpy.as_array, object, nullptr);
  }
  if (array.is_valid()) return array;
  throw StatusError{InvalidArgument("\"", key, "\": got a ", TypeName(object),
                                    " that is no array: ", TakeErrorText())};
}

// --- Out ---------------------------------------------------------------------

// The `base` of an array: it exports the bytes of that array at the moment when
// the array is made, and keeps the owner of them all.
struct Exporter {
  std::shared_ptr<const void> owner;
  void* data = nullptr;
  Py_ssize_t bytes = 0;
  bool is_read_only = false;
};

int ExportBytes(PyObject* self, Py_buffer* view, int flags) {
  const Exporter* exporter = nb::inst_ptr<Exporter>(nb::handle(self));
  return PyBuffer_FillInfo(view, self, exporter->data, exporter->bytes,
                           exporter->is_read_only ? 1 : 0, flags);
}

PyType_Slot g_exporter_slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(&ExportBytes)}, {0, nullptr}};

nb::object TupleOf(absl::Span<const int64_t> numbers) {
  nb::object tuple = Own(PyTuple_New(static_cast<Py_ssize_t>(numbers.size())));
  for (size_t i = 0; i < numbers.size(); ++i) {
    PyObject* number = PyLong_FromLongLong(numbers[i]);
    CheckPython(number != nullptr);
    CheckPython(
        PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(i), number) == 0);
  }
  return tuple;
}

}  // namespace

bool ArrayBytes::TryTake(PyObject* object) {
  if (PyObject_GetBuffer(object, &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) !=
      0) {
    PyErr_Clear();
    return false;
  }
  is_taken_ = true;
  // Without a format it is bytes.
  const std::optional<DType> dtype = DTypeOfExport(
      view_.format == nullptr ? "B" : view_.format, view_.itemsize,
      absl::MakeConstSpan(view_.shape, static_cast<size_t>(view_.ndim)),
      view_.len);
  const auto address = reinterpret_cast<uintptr_t>(view_.buf);
  if (!dtype.has_value() ||
      address %
              static_cast<uintptr_t>(std::min<Py_ssize_t>(view_.itemsize, 8)) !=
          0) {
    Release();
    return false;
  }
  dtype_ = *dtype;
  return true;
}

void ArrayBytes::Take(PyObject* object, absl::string_view key,
                      std::optional<DType> wanted) {
  Release();
  // A float of NumPy's is one of Python's too, and takes the wanted dtype.
  if (!IsPlain(object) && !PyBytes_Check(object) && TryTake(object)) return;
  if (PyBytes_Check(object) || PyUnicode_Check(object) || object == Py_None) {
    ThrowNoArray(object, key);
  }
  nb::object array = AsArray(object, key, wanted);
  if (TryTake(array.ptr())) return;
  // Gaps, or bytes that are not aligned: a copy has neither.
  array = Call(g_numpy.contiguous, array.ptr(), nullptr);
  CheckPython(array.is_valid());
  if (TryTake(array.ptr())) return;
  const nb::object copy = array.attr("copy")();
  if (!TryTake(copy.ptr())) ThrowNoArray(array.ptr(), key);
}

void ArrayBytes::TakePlace(PyObject* object, absl::string_view key) {
  Release();
  bool is_place = false;
  if (!IsPlain(object)) {
    is_place = TryTake(object);
    if (!is_place) {
      // Two arrays of one memory: what is written to a copy would be lost.
      const nb::object array = AsArray(object, key, std::nullopt);
      const nb::object again = AsArray(object, key, std::nullopt);
      ArrayBytes other;
      is_place = other.TryTake(again.ptr()) && TryTake(array.ptr()) &&
                 (data() == other.data() || size_bytes() == 0);
    }
  }
  if (is_place && view_.readonly == 0) return;
  throw StatusError{InvalidArgument(
      "\"", key, "\": got a ", TypeName(object),
      ", want a writable, C-contiguous array of numbers or bools")};
}

void ArrayBytes::Release() {
  if (is_taken_) PyBuffer_Release(&view_);
  is_taken_ = false;
}

Shape ArrayBytes::shape(absl::string_view key) const {
  std::array<int64_t, 64> sizes;  // NumPy's limit.
  for (int d = 0; d < view_.ndim && d < 64; ++d) sizes[d] = view_.shape[d];
  absl::StatusOr<Shape> shape = Shape::Create(
      absl::MakeConstSpan(sizes.data(), static_cast<size_t>(view_.ndim)));
  if (!shape.ok()) {
    throw StatusError{
        InvalidArgument("\"", key, "\": ", shape.status().message())};
  }
  return *shape;
}

Tensor ArrayBytes::MoveToTensor(absl::string_view key) {
  const Shape shape = this->shape(key);
  struct Held {
    Py_buffer view;
    ~Held() {
      // A thread that outlives the interpreter leaves the bytes alone.
      if (Py_IsInitialized() == 0) return;
      const Locked lock;
      PyBuffer_Release(&view);
    }
  };
  const auto held = std::make_shared<Held>();
  held->view = view_;
  is_taken_ = false;
  return Value(Tensor::View(
      Buffer::Wrap(held->view.buf, held->view.len, Device::Cpu(),
                   MemoryKind::kPageable, held, held->view.readonly == 0),
      dtype_, shape, /*offset_bytes=*/0));
}

nb::object ShapeTuple::Get(const Shape& shape) {
  if (tuple_.is_valid() && shape == shape_) return tuple_;
  // Another thread may get one meanwhile.
  nb::object tuple = TupleOf(shape.sizes());
  tuple_ = tuple;
  shape_ = shape;
  return tuple;
}

ArrayMaker::ArrayMaker(std::shared_ptr<const void> owner)
    : exporter_(nb::cast(Exporter{.owner = std::move(owner)})) {}

nb::object ArrayMaker::Make(const Tensor& tensor, absl::string_view key,
                            ShapeTuple* shape) {
  if (!tensor.is_host()) {
    throw StatusError{FailedPrecondition(
        "\"", key, "\": got a tensor on ", tensor.device().ToString(),
        ", want one on the CPU: NumPy has no others")};
  }
  const DType dtype = tensor.dtype();
  PyObject* const kind = g_numpy.dtypes[static_cast<int>(dtype)];
  if (kind == nullptr) {
    throw StatusError{InvalidArgument("\"", key, "\": got ", DTypeName(dtype),
                                      ", which NumPy does not have; store "
                                      "float32 or float16")};
  }
  Exporter* exporter = nb::inst_ptr<Exporter>(exporter_);
  exporter->data = tensor.raw_data();
  exporter->is_read_only = !tensor.is_writable();
  const nb::object sizes = shape->Get(tensor.shape());
  if (tensor.is_contiguous()) {
    exporter->bytes = tensor.size_bytes();
    PyObject* args[] = {sizes.ptr(), kind, exporter_.ptr()};
    return Own(PyObject_Vectorcall(g_numpy.array_type, args, 3, nullptr));
  }
  int64_t bytes = DTypeSize(dtype);
  for (int d = 0; d < tensor.rank(); ++d) {
    if (tensor.strides_bytes()[d] < 0) {
      throw StatusError{
          InvalidArgument("\"", key, "\": got a stride below 0, want none")};
    }
    bytes += (tensor.shape()[d] - 1) * tensor.strides_bytes()[d];
  }
  exporter->bytes = bytes;
  const nb::object strides = TupleOf(tensor.strides_bytes());
  PyObject* args[] = {sizes.ptr(), kind, exporter_.ptr(), g_numpy.zero,
                      strides.ptr()};
  return Own(PyObject_Vectorcall(g_numpy.array_type, args, 5, nullptr));
}

std::shared_ptr<const void> OwnerOf(PyObject* array) {
  nb::object object = nb::borrow(array);
  // A view's base is the array that it is of, whose base is the exporter.
  while (object.is_valid() && !object.is_none()) {
    if (nb::isinstance<Exporter>(object)) {
      return nb::inst_ptr<Exporter>(object)->owner;
    }
    if (PyObject_HasAttrString(object.ptr(), "base") == 0) break;
    object = object.attr("base");
  }
  return nullptr;
}

void BindArray(nb::module_& module) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  const auto take = [&](const char* name) {
    return nb::object(numpy.attr(name)).release().ptr();
  };
  g_numpy.array_type = take("ndarray");
  g_numpy.as_array = take("asarray");
  g_numpy.contiguous = take("ascontiguousarray");
  g_numpy.from_dlpack = take("from_dlpack");
  g_numpy.zero = nb::int_(0).release().ptr();
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype == DType::kBFloat16) continue;
    const std::string name(DTypeName(dtype));
    g_numpy.dtypes[i] = numpy.attr("dtype")(name.c_str()).release().ptr();
  }
  nb::class_<Exporter>(module, "Bytes", nb::type_slots(g_exporter_slots),
                       "The memory behind arrays of one batch.");
}

}  // namespace rill::python
