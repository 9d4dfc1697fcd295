// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/episodes/next_observation_delta.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

TEST(NextObservationDeltaTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto delta, NextObservationDelta::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec stored,
                            delta->InverseSpec(TedSpec()));
  EXPECT_EQ(stored.Find("next/observation"), nullptr);
  EXPECT_EQ(stored.Find("next/delta/observation")->dtype, DType::kFloat16);
}

TEST(NextObservationDeltaTest, NextComesBackUpToTheRoundingOfTheDifference) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto delta, NextObservationDelta::Create({.delta_dtype = dtype}));
    RILL_ASSERT_OK_AND_ASSIGN(
        const TensorDict steps,
        TedSpec().Random({3, 7}, Rng(1, RngStream::kUser), 0));
    TensorDict batch = steps;
    TensorDict state;
    RILL_ASSERT_OK(delta->Inverse(&batch, &state));
    EXPECT_FALSE(batch.Contains("next/observation"));
    EXPECT_EQ(batch.Find("next/delta/observation")->dtype(), dtype);
    RILL_ASSERT_OK(delta->Forward(&batch, &state));
    EXPECT_FALSE(batch.Contains("next/delta"));
    const float* now = steps.Find("observation")->data<float>();
    const float* want = steps.Find("next/observation")->data<float>();
    const float* got = batch.Find("next/observation")->data<float>();
    const float unit = dtype == DType::kFloat16 ? 0x1p-11f : 0x1p-8f;
    for (int64_t i = 0; i < 3 * 7 * 4; ++i) {
      EXPECT_NEAR(got[i], want[i], std::abs(want[i] - now[i]) * unit + 1e-6f);
    }
  }
}

TEST(NextObservationDeltaTest, ADifferenceOfFullPrecisionLosesNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto delta, NextObservationDelta::Create({.in_keys = {"agent/x"},
                                                .delta_dtype = DType::kFloat64,
                                                .drop_delta = false}));
  TensorDict batch({2});
  RILL_ASSERT_OK(batch.Set("agent/x", *Tensor::From<double>({1, 2}, {2})));
  RILL_ASSERT_OK(batch.Set("next/agent/x", *Tensor::From<double>({4, 8}, {2})));
  const TensorDict steps = batch;
  TensorDict state;
  RILL_ASSERT_OK(delta->Inverse(&batch, &state));
  // No empty dictionary stays where the leaf was.
  EXPECT_FALSE(batch.Contains("next/agent"));
  RILL_ASSERT_OK(delta->Forward(&batch, &state));
  EXPECT_THAT(batch.Flat<double>("next/agent/x"),
              IsOkAndHolds(::testing::ElementsAre(4, 8)));
  EXPECT_TRUE(batch.Contains("next/delta/agent/x"));
}

TEST(NextObservationDeltaTest, BadOptionsAndBatchesAreNamed) {
  EXPECT_THAT(NextObservationDelta::Create({.delta_dtype = DType::kInt8}),
              StatusIs(kInvalidArgument, HasSubstr("delta_dtype: got int8")));
  EXPECT_THAT(NextObservationDelta::Create({.in_keys = {}}),
              StatusIs(kInvalidArgument, HasSubstr("in_keys")));
  EXPECT_THAT(NextObservationDelta::Create({.in_keys = {"next/observation"}}),
              StatusIs(kInvalidArgument, HasSubstr("\"next/observation\"")));
  EXPECT_THAT(NextObservationDelta::Create({.in_keys = {"delta/a", "a"}}),
              StatusIs(kInvalidArgument, HasSubstr("\"next/delta/a\"")));
  RILL_ASSERT_OK_AND_ASSIGN(auto delta, NextObservationDelta::Create({}));
  EXPECT_THAT(delta->ForwardSpec(TedSpec()),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("\"next/delta/observation\"")));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto flags, NextObservationDelta::Create({.in_keys = {"done"}}));
  EXPECT_THAT(flags->InverseSpec(TedSpec()),
              StatusIs(kInvalidArgument, HasSubstr("\"done\"")));
  TensorDict state;
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch,
                            TedSpec().Random({3}, Rng(1, RngStream::kUser), 0));
  EXPECT_THAT(flags->Inverse(&batch, &state),
              StatusIs(kInvalidArgument, HasSubstr("\"done\"")));
  RILL_ASSERT_OK(batch.Delete("next/observation"));
  EXPECT_THAT(delta->Inverse(&batch, &state),
              StatusIs(absl::StatusCode::kNotFound));
}

TensorDictSpec StoredAndWritten() {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(spec.Set("next/delta/observation",
                          LeafSpec::Unbounded(DType::kFloat16, {4})));
  return spec;
}

INSTANTIATE_TRANSFORM_CONFORMANCE(
    Observations, InABuffer<NextObservationDelta>({}, StoredAndWritten()));
// float16 differences that are added to float32 and taken off again.
INSTANTIATE_TRANSFORM_CONFORMANCE(
    DifferencesAndBack,
    {.make = [] { return *NextObservationDelta::Create({}); },
     .batch_spec =
         [] {
           TensorDictSpec spec = StoredAndWritten();
           spec.Erase("next/observation");
           return spec;
         }(),
     .inverse_tolerance = 1e-3,
     .inverts_results = true});

}  // namespace
}  // namespace rill
