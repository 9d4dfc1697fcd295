// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/parts/part_fit.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/slots/plan_layout.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/units/n_step_returns.h"
#include "rill/transforms/units/row_arithmetic.h"

namespace rill::replay_internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::shared_ptr<const UnitTransform> NSteps(int64_t steps) {
  return *RowArithmetic::Create(
      {.n_step = NStepReturns::Options{.num_steps = steps}});
}

PlanLayout LayoutOfSteps(int64_t steps) {
  return {.context = {{PlanLayout::kStepsBehind, steps - 1},
                      {PlanLayout::kWindowEnds, 1}}};
}

TEST(PartFitTest, AnOrderedSamplerWantsAWriterThatKeepsOrder) {
  for (const bool needs_order : {false, true}) {
    for (const bool keeps_order : {false, true}) {
      const absl::Status status =
          CheckFit({.name = "Slices", .needs_order = needs_order},
                   {.name = "Replacing", .keeps_order = keeps_order});
      if (!needs_order || keeps_order) {
        RILL_EXPECT_OK(status);
        continue;
      }
      EXPECT_THAT(status,
                  IsInvalidArgument("ReplayBuffer::Create: writer: got "
                                    "Replacing with Slices, want one that "
                                    "appends"));
    }
  }
}

TEST(PartFitTest, RowsBesideWantArithmetic) {
  SamplerTraits sampler = {.name = "Windows", .layout = LayoutOfSteps(3)};
  EXPECT_THAT(
      CheckFit(sampler, {.name = "Appending"}),
      IsInvalidArgument("ReplayBuffer::Create: sampler: got Windows, whose "
                        "unit plans steps behind (2 rows), window ends (1 "
                        "row) beside its rows and has no arithmetic"));
  sampler.arithmetic = NSteps(3);
  RILL_EXPECT_OK(CheckFit(sampler, {.name = "W"}));
  sampler.layout = {};
  sampler.arithmetic = nullptr;
  RILL_EXPECT_OK(CheckFit(sampler, {.name = "W"}));
}

TEST(PartFitTest, ArithmeticWantsTheRowsOfItsUnit) {
  for (const PlanLayout& layout : {PlanLayout(), LayoutOfSteps(2)}) {
    const SamplerTraits sampler = {
        .name = "Windows", .layout = layout, .arithmetic = NSteps(3)};
    EXPECT_THAT(CheckFit(sampler, {.name = "W"}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("Create: sampler: Windows"),
                               HasSubstr("NStepReturns"))));
  }
}

}  // namespace
}  // namespace rill::replay_internal
