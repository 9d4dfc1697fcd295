// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/finite_check.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

TEST(FiniteCheckTest, TheErrorNamesKeyLaneStepAndElement) {
  TensorDict batch = *TensorDict::Create({4, 20}, {});
  Tensor reward = *Tensor::Zeros(DType::kFloat32, {4, 20, 2});
  reward.data<float>()[(3 * 20 + 17) * 2 + 1] = std::nanf("");
  RILL_ASSERT_OK(batch.Set("next/reward", reward));
  EXPECT_THAT(CheckFinite("F", batch, {"lane", "step"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "F: \"next/reward\": got NaN or an infinity at "
                       "[3, 17, 1] (lane 3, step 17), want finite values"));
  EXPECT_THAT(CheckFinite("F", batch, {"row"}),
              IsInvalidArgument("[3, 17, 1] (row 3),"));
  EXPECT_THAT(CheckFinite("F", batch), IsInvalidArgument("[3, 17, 1], want"));
}

// Against a loop over all elements, at all sizes around a block.
TEST(FiniteCheckTest, FindsTheFirstElementOfEachDType) {
  const Rng rng(1);
  for (const DType dtype :
       {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    for (uint64_t round = 0; round < 200; ++round) {
      const auto count =
          static_cast<int64_t>(rng.UniformInt(round, 0, 600)) + 1;
      Tensor numbers = *Tensor::Zeros(DType::kFloat64, {count});
      int64_t want = count;
      for (uint32_t k = 0; k < rng.UniformInt(round, 1, 3); ++k) {
        const auto at =
            static_cast<int64_t>(rng.UniformInt(round, 2 + k, count));
        numbers.data<double>()[at] =
            k == 0 ? std::nan("") : -std::numeric_limits<double>::infinity();
        want = std::min(want, at);
      }
      const Tensor cast = *Cast(numbers, dtype);
      EXPECT_EQ(FirstNotFinite(dtype, cast.raw_data(), count), want);
    }
  }
}

TEST(FiniteCheckTest, StridedLeavesAreLookedAtAsTheyAre) {
  Tensor all = *Tensor::Zeros(DType::kFloat32, {3, 2});
  all.data<float>()[1] = std::nanf("");
  TensorDict batch = *TensorDict::Create({3}, {});
  RILL_ASSERT_OK(batch.Set("a", *all.Slice(1, 0, 1)));
  RILL_EXPECT_OK(CheckFinite("F", batch));
  RILL_ASSERT_OK(batch.Set("a", *all.Slice(1, 1, 2)));
  EXPECT_THAT(CheckFinite("F", batch, {"row"}),
              IsInvalidArgument("[0, 0] (row 0)"));
}

TEST(FiniteCheckTest, LooksOnlyWhereItIsAskedFor) {
  TensorDict batch;
  RILL_ASSERT_OK(batch.Set("a", *Tensor::From<float>({std::nanf("")}, {1})));
  {
    const ScopedFiniteCheck off(false);
    RILL_EXPECT_OK(CheckFiniteIfAsked("F", batch));
    const ScopedFiniteCheck on;
    EXPECT_THAT(CheckFiniteIfAsked("F", batch),
                IsInvalidArgument("RILL_CHECK_FINITE"));
  }
}

}  // namespace
}  // namespace rill
