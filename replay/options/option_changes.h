// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_OPTIONS_OPTION_CHANGES_H_
#define RILL_REPLAY_OPTIONS_OPTION_CHANGES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/option_values.h"
#include "rill/formats/manifest.h"

namespace rill {

// An option that a saved buffer had with another value than the one that was
// opened from it. Values are texts of OptionValues; empty where that side has
// no such option.
struct OptionChange {
  std::string option;  // "sampler.selector.alpha", "transforms.0.scale".
  std::string kind;    // Of the part that has it: "Prioritized".
  std::string saved;
  std::string opened;
  friend bool operator==(const OptionChange&, const OptionChange&) = default;
};

namespace replay_internal {

// Puts the options into the manifest: docs/formats/replay_buffer.md.
void SaveOptions(const OptionValues& values, Manifest* manifest);

// Those of `values` that differ from the manifest's, in their order, then what
// only the manifest has. A part of another kind is one change, whatever options
// it has. None where the manifest is from before options were saved. DATA_LOSS
// where some of its options are missing.
absl::StatusOr<std::vector<OptionChange>> CompareOptions(
    const Manifest& manifest, const OptionValues& values);

// FAILED_PRECONDITION with both sides of each change, if there is one. With
// `accepts` only those count that cannot be taken over: parts of another kind,
// but for the writer.
absl::Status CheckChanges(absl::string_view caller,
                          absl::Span<const OptionChange> changes,
                          const OptionValues& values, bool accepts);

// The names of those below a part, without its name: "selector.alpha" of
// "sampler".
std::vector<std::string> ChangesOf(absl::string_view part,
                                   absl::Span<const OptionChange> changes);

}  // namespace replay_internal
}  // namespace rill

#endif  // RILL_REPLAY_OPTIONS_OPTION_CHANGES_H_
