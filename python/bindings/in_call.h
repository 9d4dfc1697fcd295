// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_IN_CALL_H_
#define RILL_PYTHON_BINDINGS_IN_CALL_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace rill::python {

// While it lives this thread is in a call of a buffer, ensemble, channel or
// collector, by its address. A Python function that such a call has called
// waits for itself where it calls the same one.
class InCall {
 public:
  // Scopes of a thread end in reverse order. `others` outlive it.
  explicit InCall(const void* object,
                  absl::Span<const void* const> others = {});
  ~InCall();
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

  static bool Has(const void* object);

 private:
  const void* const object_;
  const absl::Span<const void* const> others_;
  const InCall* const outer_;
};

// Throws FAILED_PRECONDITION in a function that a call of `object` has called,
// or that one of a buffer's own threads calls, where it `has_threads`: whose
// they are is not known. `who` and `call` begin the message.
void CheckNotInCall(const void* object, bool has_threads, absl::string_view who,
                    absl::string_view call);

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_IN_CALL_H_
