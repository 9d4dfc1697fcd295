// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/sampling/testing/gather_chains.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/function_transform.h"
#include "rill/transforms/structure/rename.h"
#include "rill/transforms/structure/select.h"

namespace rill {
namespace {

RowStep RandomStep(Draws* draws) {
  using Kind = RowStep::Kind;
  static constexpr DType kDTypes[] = {DType::kFloat32, DType::kFloat64,
                                      DType::kUInt8, DType::kInt64,
                                      DType::kFloat16};
  RowStep step;
  step.kind = static_cast<Kind>(draws->Below(9));
  step.dtype = kDTypes[draws->Below(5)];
  step.scale = {0.5 + static_cast<double>(draws->Below(7))};
  step.loc = {static_cast<double>(draws->Below(5)) - 2};
  if (draws->Below(3) == 0) step.loc = {0.1, 0.2, 0.3, -1, 2};
  step.low = -static_cast<double>(draws->Below(4));
  step.high = static_cast<double>(draws->Below(4));
  step.top = draws->Below(3);
  step.left = draws->Below(2);
  step.height = 1 + draws->Below(4);
  step.width = 1 + draws->Below(3);
  return step;
}

// Drops or renames `key`, or selects all others.
absl::StatusOr<std::unique_ptr<BatchTransform>> RandomStructure(
    const std::string& key, const TensorDictSpec& spec, Draws* draws) {
  switch (draws->Below(3)) {
    case 0:
      return Exclude::Create({.excluded_keys = {key}});
    case 1:
      return Rename::Create(
          {.in_keys = {key},
           .out_keys = {absl::StrCat("made/deep/", draws->Below(4))}});
    default:
      std::vector<std::string> others = spec.LeafKeys();
      std::erase(others, key);
      return Select::Create({.selected_keys = std::move(others)});
  }
}

}  // namespace

std::unique_ptr<BatchTransform> Nothing() {
  return *FunctionTransform::Create(
      {.forward = [](TensorDict*) { return absl::OkStatus(); }});
}

TensorDictSpec RowSpec() {
  TensorDictSpec spec;
  RILL_EXPECT_OK(
      spec.Set("pixels", LeafSpec::Unbounded(DType::kUInt8, {9, 7, 3})));
  RILL_EXPECT_OK(
      spec.Set("observation", LeafSpec::Unbounded(DType::kFloat32, {5})));
  RILL_EXPECT_OK(spec.Set("state", LeafSpec::Unbounded(DType::kFloat64, {2})));
  RILL_EXPECT_OK(spec.Set("info/a", LeafSpec::Unbounded(DType::kFloat32, {2})));
  RILL_EXPECT_OK(spec.Set("count", LeafSpec::Unbounded(DType::kInt32, {})));
  RILL_EXPECT_OK(
      spec.Set("next/reward", LeafSpec::Unbounded(DType::kFloat32, {1})));
  RILL_EXPECT_OK(
      spec.Set("next/pixels", LeafSpec::Unbounded(DType::kUInt8, {9, 7, 3})));
  for (const char* flag : {"done", "terminated", "truncated"}) {
    RILL_EXPECT_OK(
        spec.Set(absl::StrCat("next/", flag), LeafSpec::Binary({1})));
  }
  return spec;
}

Transforms RandomChain(int tries, Draws* draws, TensorDictSpec spec) {
  Transforms chain;
  for (int i = 0; i < tries; ++i) {
    const auto& leaves = spec.leaves();
    const std::string in = leaves[static_cast<size_t>(draws->Below(
                                      static_cast<int64_t>(leaves.size())))]
                               .key;
    const std::string out =
        draws->Below(3) == 0 ? absl::StrCat("made/", draws->Below(4)) : in;
    std::unique_ptr<BatchTransform> transform =
        std::make_unique<OneStep>(RandomStep(draws), in, out);
    if (draws->Below(4) == 0) {
      auto made = RandomStructure(in, spec, draws);
      if (!made.ok()) continue;
      transform = *std::move(made);
    }
    const auto after = transform->ForwardSpec(spec);
    if (!after.ok() || after->leaves().empty()) continue;
    spec = *after;
    chain.push_back(std::move(transform));
  }
  return chain;
}

}  // namespace rill
