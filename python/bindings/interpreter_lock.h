// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_INTERPRETER_LOCK_H_
#define RILL_PYTHON_BINDINGS_INTERPRETER_LOCK_H_

#include <cxxabi.h>

#include "nanobind/nanobind.h"

namespace rill::python {

// At the interpreter's end a daemon thread that asks for its lock is ended by
// unwinding its stack. That aborts the process where the stack has a destructor
// of C++. So threads that come here wait for the end of the process instead.

// From here on no thread but the caller's gets the lock by these classes.
// Returns when no other one is about to. The lock is held. For the end of the
// interpreter, once all calls that can end have ended.
void EndCalls();

// Waits for the end of the process.
[[noreturn]] void Park();

// As nanobind::gil_scoped_release.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* const state_;
};

// As nanobind::gil_scoped_acquire; also of a thread that has the lock.
class Locked {
 public:
  Locked();
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  const bool was_unlocked_;
  PyGILState_STATE state_;
};

// From here on this thread is one thread for Python code until it ends: what a
// function keeps by threads, as in threading.local, is there in its next call.
// The lock is not held.
void KeepThreadState();

// `function(args...)`, of a thread that Python code in it may end so.
template <typename... Args>
nanobind::object CallObject(const nanobind::object& function,
                            const Args&... args) {
  try {
    return function(args...);
  } catch (const abi::__forced_unwind&) {
    Park();
  }
}

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_INTERPRETER_LOCK_H_
