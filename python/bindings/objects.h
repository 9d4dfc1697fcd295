// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_OBJECTS_H_
#define RILL_PYTHON_BINDINGS_OBJECTS_H_

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nanobind/nanobind.h"
#include "rill/device/buffer.h"
#include "rill/python/bindings/array.h"
#include "rill/python/bindings/release.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill::python {

// Single arrays as tensors and back, with the lock held; errors as array.h.

// `wanted` is for plain numbers (ArrayBytes::Take).
inline Tensor TensorOf(nanobind::handle array, absl::string_view key,
                       std::optional<DType> wanted = std::nullopt) {
  ArrayBytes bytes;
  bytes.Take(array.ptr(), key, wanted);
  return bytes.MoveToTensor(key);
}

inline nanobind::object ArrayOf(const Tensor& tensor, absl::string_view key) {
  ShapeTuple shape;
  return ArrayMaker(tensor.buffer()).Make(tensor, key, &shape);
}

// The same bytes, not to be written: what holds them uses them too.
inline absl::StatusOr<Tensor> ReadOnly(const Tensor& tensor) {
  const std::shared_ptr<Buffer>& buffer = tensor.buffer();
  return Tensor::View(
      Buffer::Wrap(buffer->data(), buffer->size_bytes(), buffer->device(),
                   buffer->memory_kind(), buffer, /*is_writable=*/false),
      tensor.dtype(), tensor.shape(), tensor.raw_data() - buffer->data(),
      tensor.strides_bytes());
}

// A Python object that C++ code copies and drops on any thread, such as a
// function that a part calls.
class SharedObject {
 public:
  explicit SharedObject(nanobind::object object)
      : object_(object.release().ptr(), &ReleaseLater) {}
  // The lock is held.
  nanobind::object get() const { return nanobind::borrow(object_.get()); }

 private:
  std::shared_ptr<PyObject> object_;
};

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_OBJECTS_H_
