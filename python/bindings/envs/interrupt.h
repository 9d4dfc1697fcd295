// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_ENVS_INTERRUPT_H_
#define RILL_PYTHON_BINDINGS_ENVS_INTERRUPT_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "nanobind/nanobind.h"
#include "rill/base/clock.h"
#include "rill/python/bindings/exception.h"
#include "rill/python/bindings/status.h"

namespace rill::python {

// Looks for an interrupt, as of Ctrl-C, from work without the interpreter's
// lock, which it takes 20 times a second at most. Only the main thread has any.
// Thread-safety: thread-compatible. Cost: a look at the clock.
class InterruptLook {
 public:
  // Carries the exception that a handler of signals has raised (exception.h).
  absl::Status Status() {
    const absl::Time now = Clock::Steady().Now();
    if (now < next_) return absl::OkStatus();
    next_ = now + absl::Milliseconds(50);
    return CallPython("interrupt",
                      [] { CheckPython(PyErr_CheckSignals() == 0); });
  }

 private:
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_ENVS_INTERRUPT_H_
