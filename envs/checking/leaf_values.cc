// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/checking/leaf_values.h"

#include <cmath>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill::envs_internal {
namespace {

// What is wrong with element `i`; "" where nothing is.
std::string WhatIsWrong(const Tensor& leaf, const Tensor& wide, int64_t i) {
  if (leaf.dtype() == DType::kBool) {
    const auto byte = std::to_integer<int>(leaf.raw_data()[i]);
    return byte <= 1 ? "" : absl::StrCat("got a bool of byte ", byte);
  }
  return std::isnan(wide.data<double>()[i]) ? "got nan" : "";
}

}  // namespace

std::string FirstNoValue(const TensorDict& leaves) {
  std::string first;
  leaves.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    const bool is_bool = leaf.dtype() == DType::kBool;
    if (!first.empty() || !(is_bool || IsFloatingPoint(leaf.dtype()))) return;
    const absl::StatusOr<Tensor> wide =
        is_bool ? leaf : Cast(leaf, DType::kFloat64);
    if (!wide.ok()) return;
    const int64_t lanes = leaf.shape()[0];
    for (int64_t i = 0; i < leaf.num_elements(); ++i) {
      const std::string what = WhatIsWrong(leaf, *wide, i);
      if (what.empty()) continue;
      const int64_t width = leaf.num_elements() / lanes;
      first = absl::StrCat("lane ", i / width, ", \"", key, "\"[", i % width,
                           "]: ", what);
      return;
    }
  });
  return first;
}

}  // namespace rill::envs_internal
