// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SAMPLE_UNIT_H_
#define RILL_SAMPLERS_SAMPLE_UNIT_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/samplers/unit.h"

namespace rill {

class UnitTransform;  // transforms/unit_transform.h

// The whole of a batch's item: which rows (n-step: a row and those that follow
// it), and the arithmetic on their values (the discounted sum). The functions
// of replay/sample_units.h make both halves from one set of options.
//
// A sampler plans by `rows` and only carries `arithmetic`, whose type it does
// not know. A replay buffer applies it, and refuses halves that do not belong
// together when it is made.
struct SampleUnit {
  // Rows as they are stored. Implicit, so that a unit without arithmetic is
  // passed as it is.
  template <typename T>
  SampleUnit(std::unique_ptr<T> rows)  // NOLINT(google-explicit-constructor)
      : rows(std::move(rows)) {}
  SampleUnit(std::unique_ptr<Unit> rows,
             std::shared_ptr<const UnitTransform> arithmetic)
      : rows(std::move(rows)), arithmetic(std::move(arithmetic)) {}

  // The name of a preset's sampler over this unit: states of one are not those
  // of another. "UniformSampler" over single rows, "UniformSampler over Slice".
  std::string SamplerName(absl::string_view preset) const {
    if (rows == nullptr || rows->traits().is_row) return std::string(preset);
    return absl::StrCat(preset, " over ", rows->name());
  }

  std::unique_ptr<Unit> rows;
  std::shared_ptr<const UnitTransform> arithmetic = nullptr;  // Null: none.
};

}  // namespace rill

#endif  // RILL_SAMPLERS_SAMPLE_UNIT_H_
