// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_CATCH_EXCEPTIONS_H_
#define RILL_BASE_CATCH_EXCEPTIONS_H_

#include <string>
#include <type_traits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace rill {
namespace base_internal {
// Of the exception at hand.
absl::Status StatusOfException(absl::FunctionRef<std::string()> who);
}  // namespace base_internal

// Calls `fn`, which returns an absl::Status or absl::StatusOr, and makes a
// status of an exception that leaves it. Each call of code that a user may have
// written stands in one, so that no exception passes through code that does not
// expect it, nor ends a thread. `who`, joined as absl::StrCat does, begins the
// text:
//   CatchExceptions([&] { return env->Step(); }, env->name(), "::Step")
// gives INTERNAL "CartPole::Step: threw std::runtime_error: no map", and
// RESOURCE_EXHAUSTED for a std::bad_alloc.
//
// Thread-safety: that of `fn`. A cancelled thread (pthread_cancel) ends as
// ever. Cost: none where nothing is thrown.
template <typename Fn, typename... Who>
std::invoke_result_t<Fn&> CatchExceptions(Fn&& fn, const Who&... who) {
  try {
    return fn();
  } catch (...) {
    return base_internal::StatusOfException(
        [&]() -> std::string { return absl::StrCat(who...); });
  }
}

}  // namespace rill

#endif  // RILL_BASE_CATCH_EXCEPTIONS_H_
