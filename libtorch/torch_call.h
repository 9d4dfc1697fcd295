// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_LIBTORCH_TORCH_CALL_H_
#define RILL_LIBTORCH_TORCH_CALL_H_

#include <string>
#include <type_traits>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace rill {
namespace libtorch_internal {
// The status of the exception at hand.
absl::Status StatusOfTorchException(absl::FunctionRef<std::string()> who);
}  // namespace libtorch_internal

// Calls `fn`, which calls torch and returns an absl::Status or absl::StatusOr,
// and makes a status of an exception that leaves it: CatchExceptions for torch.
// `who`, joined as absl::StrCat does, begins the text:
//   CallTorch([&] { return Forward(module, inputs); }, "TorchPolicy")
// Torch's errors keep their text, without the backtrace. The code is
// RESOURCE_EXHAUSTED where memory does not suffice, UNIMPLEMENTED where torch
// has no such kernel, OUT_OF_RANGE for an index. For other values, types and
// arguments it is INVALID_ARGUMENT: torch reports a wrong shape or dtype as a
// plain c10::Error. Other exceptions are as for CatchExceptions.
//
// Thread-safety: that of `fn`. Cost: none where nothing is thrown.
template <typename Fn, typename... Who>
std::invoke_result_t<Fn&> CallTorch(Fn&& fn, const Who&... who) {
  try {
    return fn();
  } catch (...) {
    return libtorch_internal::StatusOfTorchException(
        [&]() -> std::string { return absl::StrCat(who...); });
  }
}

}  // namespace rill

#endif  // RILL_LIBTORCH_TORCH_CALL_H_
