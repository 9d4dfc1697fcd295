// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_OLD_STATE_H_
#define RILL_SAMPLERS_OLD_STATE_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/option_values.h"
#include "rill/base/state/saved_state.h"

namespace rill::samplers_internal {

// The kind of a part of the sampler: "Slice" of "unit", "Fifo" of
// "selector.inner", "" of none.
using PartKind = absl::FunctionRef<std::string(absl::string_view part)>;
// The kind of a part that the options name.
std::string KindIn(const OptionValues& options, absl::string_view part);

// Reads what MakeSampler's samplers saved up to version 1 of their state:
// numbers without names (docs/formats/replay_buffer.md). `kind` says what they
// mean. The result is what they save today, with version 1. DATA_LOSS where the
// bytes are cut, changed, or of other parts; FAILED_PRECONDITION for parts that
// had no such state.
absl::StatusOr<SavedState> FromOldState(absl::string_view bytes, PartKind kind);
bool IsOldState(absl::string_view bytes);

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_OLD_STATE_H_
