// SPDX-License-Identifier: Apache-2.0
// RILL_CHECK_FINITE: what is written to a buffer, and what it gives.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/tensordict/finite_check.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/function_transform.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

auto NotFiniteAt(absl::string_view caller, absl::string_view place) {
  return StatusIs(absl::StatusCode::kInvalidArgument,
                  AllOf(HasSubstr(std::string(caller)), HasSubstr("got NaN"),
                        HasSubstr(std::string(place)),
                        HasSubstr("RILL_CHECK_FINITE is set")));
}

// `has_fault`: transforms make a NaN of each sample.
std::unique_ptr<ReplayBuffer> MakeBuffer(const bool* has_fault,
                                         int64_t prefetch) {
  ReplayBuffer::Options options = {.storage = MakeStorage(20, 2),
                                   .sampler = MakeUniformSampler(),
                                   .batch_size = 4,
                                   .prefetch = prefetch};
  options.transforms.push_back(*FunctionTransform::Create(
      {.forward = [has_fault](TensorDict* batch) -> absl::Status {
        if (!*has_fault) return absl::OkStatus();
        RILL_ASSIGN_OR_RETURN(Tensor reward, batch->Get("next/reward"));
        RILL_ASSIGN_OR_RETURN(reward, reward.Clone());
        reward.data<float>()[2] = std::nanf("");
        return batch->Set("next/reward", reward);
      }}));
  return *ReplayBuffer::Create(std::move(options));
}

class FiniteRowsTest : public ::testing::TestWithParam<int64_t> {};

TEST_P(FiniteRowsTest, WritesAreRefusedAndNothingHasChanged) {
  const bool has_fault = false;
  const auto buffer = MakeBuffer(&has_fault, GetParam());
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(2, 5)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, buffer->ReadAll());
  TensorDict steps = NumberedSteps(2, 5);
  steps.Find("observation")->data<float>()[(1 * 5 + 3) * 3 + 2] = std::nanf("");
  TensorDict row = *NumberedSteps(1, 1).Index(0);
  row.Find("next/reward")->data<float>()[0] = HUGE_VALF;
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  TensorDict patch =
      *batch.Select({"index", "index_generation", "next/reward"});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor reward,
                            patch.Find("next/reward")->Clone());
  reward.data<float>()[3] = std::nanf("");
  RILL_ASSERT_OK(patch.Set("next/reward", reward));
  {
    const ScopedFiniteCheck check;
    EXPECT_THAT(
        buffer->Extend(steps),
        NotFiniteAt("Extend: \"observation\"", "[1, 3, 2] (lane 1, step 3)"));
    EXPECT_THAT(buffer->WriteAt({0}, row),
                NotFiniteAt("WriteAt: \"next/reward\"", "(row 0)"));
    EXPECT_THAT(buffer->UpdateIfPresent(patch),
                NotFiniteAt("UpdateIfPresent: \"next/reward\"", "(row 3)"));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict after, buffer->ReadAll());
    RILL_EXPECT_OK(after.CheckEqual(before));
  }
  const ScopedFiniteCheck off(false);
  RILL_EXPECT_OK(buffer->WriteAt({0}, row));
  RILL_EXPECT_OK(buffer->UpdateIfPresent(patch));
  RILL_EXPECT_OK(buffer->Extend(steps));
}

TEST_P(FiniteRowsTest, ASampleThatIsNotFiniteIsAnErrorOfItsBatch) {
  bool has_fault = true;
  const auto buffer = MakeBuffer(&has_fault, GetParam());
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(2, 5)));
  {
    const ScopedFiniteCheck check;
    EXPECT_THAT(buffer->Sample(),
                NotFiniteAt("Sample: \"next/reward\"", "[2, 0] (row 2)"));
    // Those ahead are made with the fault.
    for (int64_t i = 0; i < GetParam(); ++i) {
      EXPECT_FALSE(buffer->Sample().ok());
    }
  }
  const ScopedFiniteCheck off(false);
  for (int i = 0; i < 5; ++i) buffer->Sample().IgnoreError();
  RILL_EXPECT_OK(buffer->Sample());
}

INSTANTIATE_TEST_SUITE_P(Prefetch, FiniteRowsTest, ::testing::Values(0, 2));

}  // namespace
}  // namespace rill
