// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/value_limits.h"

#include <cstdint>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

absl::Status CheckAt(const SavedState& values, int64_t depth) {
  if (depth > kMaxValueDepth) {
    return InvalidArgument("message: values: got more than ", kMaxValueDepth,
                           " states in one another, want at most ",
                           kMaxValueDepth);
  }
  const auto count = static_cast<int64_t>(values.fields().size());
  if (count > kMaxValues) {
    return InvalidArgument("message: values: got ", count,
                           " in one state, want at most ", kMaxValues);
  }
  for (const SavedState::Field& field : values.fields()) {
    if (field.name.empty()) {
      return InvalidArgument("message: values: got an empty name, want one");
    }
    const auto* parts = std::get_if<std::vector<SavedState>>(&field.value);
    if (parts == nullptr) continue;
    for (const SavedState& part : *parts) {
      RILL_RETURN_IF_ERROR(CheckAt(part, depth + 1));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckValues(const SavedState& values) {
  return CheckAt(values, 1);
}

}  // namespace rill
