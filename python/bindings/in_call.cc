// SPDX-License-Identifier: Apache-2.0
#include "rill/python/bindings/in_call.h"

#include <algorithm>

#include "rill/base/status_macros.h"
#include "rill/python/bindings/exception.h"
#include "rill/python/bindings/status.h"

namespace rill::python {
namespace {

thread_local const InCall* g_innermost = nullptr;

}  // namespace

InCall::InCall(const void* object, absl::Span<const void* const> others)
    : object_(object), others_(others), outer_(g_innermost) {
  g_innermost = this;
}

InCall::~InCall() { g_innermost = outer_; }

bool InCall::Has(const void* object) {
  for (const InCall* call = g_innermost; call != nullptr; call = call->outer_) {
    if (call->object_ == object ||
        std::count(call->others_.begin(), call->others_.end(), object) > 0) {
      return true;
    }
  }
  return false;
}

void CheckNotInCall(const void* object, bool has_threads, absl::string_view who,
                    absl::string_view call) {
  if (!InCall::Has(object) && !(has_threads && IsInThreadOfBuffer())) return;
  throw StatusError{FailedPrecondition(
      who, "::", call,
      ": got a call from a function that it calls itself, want one from "
      "elsewhere: it would wait for itself; such a function may read rows by "
      "[], close it, or use another object")};
}

}  // namespace rill::python
