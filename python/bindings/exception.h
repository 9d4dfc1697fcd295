// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_EXCEPTION_H_
#define RILL_PYTHON_BINDINGS_EXCEPTION_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rill::python {

// Calls Python code from code that knows statuses, on any thread. An exception
// becomes a status that carries it: INTERNAL, "<who>: <type>: <text>".
// RaiseCarried raises it again, with its traceback, where the status comes back
// to Python. `call` has the interpreter's lock. CANCELLED once the interpreter
// has ended.
absl::Status CallPython(absl::string_view who, absl::FunctionRef<void()> call);

// Whether a status carries an exception that is no error, such as
// KeyboardInterrupt. The lock need not be held.
bool CarriesInterrupt(const absl::Status& status);

// For code that gives no status. The exception that such a status carries waits
// in this thread until TakeNoted gives it in the place of `status`, an error
// that came of it. Where `status` is OK it is dropped.
void NoteFailure(absl::Status status);
absl::Status TakeNoted(absl::Status status);

// Whether this thread is in such a call. It may be a thread of a buffer's then,
// which cannot end that buffer.
bool IsInCallPython();
// Whether that thread is no collector's worker and none of Python's: one that a
// buffer makes batches ahead with.
bool IsInThreadOfBuffer();

// Sets the exception that a status carries; false where it carries none. The
// lock is held.
bool RaiseCarried(const absl::Status& status);

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_EXCEPTION_H_
