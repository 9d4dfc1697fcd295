// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_ARRAY_H_
#define RILL_PYTHON_BINDINGS_ARRAY_H_

#include <cstddef>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nanobind/nanobind.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::python {

// NumPy's arrays as tensors and back, by the buffer protocol: no header of
// NumPy's, and any of its versions. All calls hold the interpreter's lock.

// The bytes of an array, C-contiguous and of a dtype that Rill has, held until
// this goes. The lock is held then.
class ArrayBytes {
 public:
  ArrayBytes() = default;
  ArrayBytes(const ArrayBytes&) = delete;
  ArrayBytes& operator=(const ArrayBytes&) = delete;
  ~ArrayBytes() { Release(); }

  // `object` has the buffer protocol, DLPack or __array__, or it is a number or
  // a list of them. Elements with gaps, or not aligned, are copied. Plain
  // numbers and lists become `wanted`, without it bool, int64 and float32, as
  // in torch. A float becomes no integer, a bool none either, a number no bool.
  // Throws INVALID_ARGUMENT, which names `key`.
  void Take(PyObject* object, absl::string_view key,
            std::optional<DType> wanted);
  // The bytes of `object` itself, to be written: a writable array that lies as
  // above, or a tensor. Throws INVALID_ARGUMENT, which names `key`, of others.
  void TakePlace(PyObject* object, absl::string_view key);
  void Release();

  DType dtype() const { return dtype_; }
  std::byte* data() const { return static_cast<std::byte*>(view_.buf); }
  size_t size_bytes() const { return static_cast<size_t>(view_.len); }
  int rank() const { return view_.ndim; }
  Py_ssize_t size(int dim) const { return view_.shape[dim]; }
  Shape shape(absl::string_view key) const;
  // A tensor of these bytes, which it holds from here on, in any thread.
  Tensor MoveToTensor(absl::string_view key);

 private:
  bool TryTake(PyObject* object);

  Py_buffer view_ = {};
  bool is_taken_ = false;
  DType dtype_ = DType::kBool;
};

// The sizes of a leaf as Python's tuple, made when they change.
class ShapeTuple {
 public:
  nanobind::object Get(const Shape& shape);

 private:
  Shape shape_;
  nanobind::object tuple_;
};

// Arrays that show the tensors of one owner, and keep it.
class ArrayMaker {
 public:
  explicit ArrayMaker(std::shared_ptr<const void> owner);

  // A view of host memory. Throws FAILED_PRECONDITION of other memory, and
  // INVALID_ARGUMENT of bfloat16, which NumPy does not have. `key` is for the
  // text.
  nanobind::object Make(const Tensor& tensor, absl::string_view key,
                        ShapeTuple* shape);

 private:
  nanobind::object exporter_;
};

// The owner that an ArrayMaker was given, of an array that it has made or of a
// view of such a one; null of others.
std::shared_ptr<const void> OwnerOf(PyObject* array);

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_ARRAY_H_
