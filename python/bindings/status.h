// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_STATUS_H_
#define RILL_PYTHON_BINDINGS_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nanobind/nanobind.h"

namespace rill::python {

// A status on its way to Python: bindings throw it, and nothing below them
// does. It becomes the exception of rill/errors.py that has its code, with its
// text. The interpreter's lock need not be held.
struct StatusError {
  absl::Status status;
};

// Throws what is not OK.
inline void Check(absl::Status status) {
  if (!status.ok()) throw StatusError{std::move(status)};
}

template <typename T>
T Value(absl::StatusOr<T> value) {
  if (!value.ok()) throw StatusError{std::move(value).status()};
  return *std::move(value);
}

// A call of Python's C interface has failed: goes on with its exception.
inline void CheckPython(bool ok) {
  if (!ok) throw nanobind::python_error();
}
// The same of a new reference.
inline nanobind::object Own(PyObject* object) {
  CheckPython(object != nullptr);
  return nanobind::steal(object);
}

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_STATUS_H_
