// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_RELEASE_H_
#define RILL_PYTHON_BINDINGS_RELEASE_H_

#include "nanobind/nanobind.h"

namespace rill::python {

// Gives a reference back, on any thread, with or without the lock; null is
// nothing. The main thread does it, as soon as it runs Python code: what goes
// with the object may be a buffer, which cannot end on a thread of its own.
inline void ReleaseLater(PyObject* object) {
  // A thread that outlives the interpreter leaves it alone.
  if (object == nullptr || Py_IsInitialized() == 0) return;
  const auto release = [](void* held) {
    Py_DECREF(static_cast<PyObject*>(held));
    return 0;
  };
  if (Py_AddPendingCall(release, object) == 0) return;
  // So many wait already.
  const nanobind::gil_scoped_acquire lock;
  Py_DECREF(object);
}

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_RELEASE_H_
