// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/torch_call.h"

#include <cxxabi.h>

#include "c10/util/Exception.h"
#include "rill/base/catch_exceptions.h"

namespace rill::libtorch_internal {
namespace {

absl::StatusCode CodeOf(const c10::Error& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) {
    return absl::StatusCode::kResourceExhausted;
  }
  if (dynamic_cast<const c10::NotImplementedError*>(&error) != nullptr) {
    return absl::StatusCode::kUnimplemented;
  }
  if (dynamic_cast<const c10::IndexError*>(&error) != nullptr) {
    return absl::StatusCode::kOutOfRange;
  }
  return absl::StatusCode::kInvalidArgument;
}

}  // namespace

absl::Status StatusOfTorchException(absl::FunctionRef<std::string()> who) {
  // A std::bad_alloc of the texts here is one more of StatusOfException's.
  try {
    try {
      abi::__cxa_rethrow();
    } catch (const c10::Error& error) {
      return absl::Status(
          CodeOf(error),
          absl::StrCat(who(), ": torch: ", error.what_without_backtrace()));
    }
  } catch (...) {
    return base_internal::StatusOfException(who);
  }
}

}  // namespace rill::libtorch_internal
