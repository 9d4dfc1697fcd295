// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_CHANGED_OPTIONS_H_
#define RILL_SAMPLERS_CHANGED_OPTIONS_H_

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace rill::samplers_internal {

// Options of a sampler that had other values when its state was saved
// (Sampler::LoadOptions::changed), as one of its parts sees them.
// Thread-safety: immutable; the names must outlive it.
class ChangedOptions {
 public:
  ChangedOptions() = default;
  // As the whole sampler sees them.
  explicit ChangedOptions(absl::Span<const std::string> names) : names_(names) {
    has_other_anchors_ = In("unit").Any();
  }

  // As the part "selector" or "parts.0" of this one sees them.
  ChangedOptions In(absl::string_view part) const {
    ChangedOptions inner = *this;
    absl::StrAppend(&inner.part_, part, ".");
    return inner;
  }
  bool Has(absl::string_view option) const {
    return std::find(names_.begin(), names_.end(),
                     absl::StrCat(part_, option)) != names_.end();
  }
  bool Any() const {
    return std::any_of(names_.begin(), names_.end(), [this](const auto& name) {
      return absl::StartsWith(name, part_);
    });
  }
  // The sampler's unit has changed, so that other rows may be anchors.
  bool has_other_anchors() const { return has_other_anchors_; }

 private:
  absl::Span<const std::string> names_;
  bool has_other_anchors_ = false;
  std::string part_;  // "selector.", what its options' names begin with.
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_CHANGED_OPTIONS_H_
