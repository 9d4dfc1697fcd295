// SPDX-License-Identifier: Apache-2.0
// Transforms that keep a part of a batch: RandomCropTensorDict, BurnIn and
// PolicyAgeFilter.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"
#include "rill/transforms/episodes/burn_in.h"
#include "rill/transforms/episodes/policy_age_filter.h"
#include "rill/transforms/episodes/random_crop.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// "x" int64, a number of its own in each row.
TensorDict Numbered(const Shape& shape) {
  auto x = Tensor::Empty(DType::kInt64, shape);
  RILL_EXPECT_OK(x);
  for (int64_t i = 0; i < shape.num_elements(); ++i) x->data<int64_t>()[i] = i;
  TensorDict batch(shape);
  RILL_EXPECT_OK(batch.Set("x", *x));
  return batch;
}

TEST(SequencePartsTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto crop,
                            RandomCropTensorDict::Create({.sub_seq_len = 8}));
  RILL_ASSERT_OK_AND_ASSIGN(auto burn_in, BurnIn::Create({.burn_in = 4}));
  RILL_ASSERT_OK_AND_ASSIGN(auto filter,
                            PolicyAgeFilter::Create({.max_policy_lag = 2}));
  EXPECT_EQ(crop->name(), "RandomCropTensorDict");
  EXPECT_EQ(burn_in->name(), "BurnIn");
  EXPECT_EQ(filter->name(), "PolicyAgeFilter");
}

// --- RandomCropTensorDict ----------------------------------------------------

TEST(RandomCropTest, EachLineIsCutAtAPlaceOfItsOwn) {
  RILL_ASSERT_OK_AND_ASSIGN(auto crop,
                            RandomCropTensorDict::Create({.sub_seq_len = 3}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, crop->InitialState());
  std::set<int64_t> starts;
  bool differ = false;
  for (int i = 0; i < 20; ++i) {
    TensorDict batch = Numbered({4, 5});
    RILL_ASSERT_OK(batch.SetDimNames({"lane", "time"}));
    RILL_ASSERT_OK(crop->Forward(&batch, &state));
    ASSERT_EQ(batch.batch_shape(), Shape({4, 3}));
    EXPECT_THAT(batch.dim_names(), ElementsAre("lane", "time"));
    const int64_t* x = batch.Find("x")->data<int64_t>();
    for (int64_t lane = 0; lane < 4; ++lane) {
      const int64_t start = x[lane * 3] - lane * 5;
      EXPECT_THAT(std::vector<int64_t>(x + lane * 3, x + lane * 3 + 3),
                  ElementsAre(lane * 5 + start, lane * 5 + start + 1,
                              lane * 5 + start + 2));
      starts.insert(start);
      differ |= start != x[0];
    }
  }
  EXPECT_THAT(starts, ElementsAre(0, 1, 2));
  EXPECT_TRUE(differ);
}

TEST(RandomCropTest, ValuesOfRowsGoAlong) {
  RILL_ASSERT_OK_AND_ASSIGN(auto crop,
                            RandomCropTensorDict::Create({.sub_seq_len = 1}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, crop->InitialState());
  TensorDict batch = Numbered({3});
  RILL_ASSERT_OK(batch.Set(
      "name", *NonTensorStack::Create({3}, {"\"0\"", "\"1\"", "\"2\""})));
  RILL_ASSERT_OK(crop->Forward(&batch, &state));
  RILL_ASSERT_OK_AND_ASSIGN(const NonTensorStack names,
                            batch.GetNonTensorStack("name"));
  const int64_t row = batch.Find("x")->data<int64_t>()[0];
  EXPECT_THAT(names.values(), ElementsAre(absl::StrCat("\"", row, "\"")));
}

TEST(RandomCropTest, AnyDimensionAndWidthOfRowsIsCut) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto crop,
      RandomCropTensorDict::Create({.sub_seq_len = 2, .sample_dim = 0}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, crop->InitialState());
  TensorDict batch = Numbered({4, 3});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor wide,
                            batch.Find("x")->Unsqueeze(2)->Expand({4, 3, 2}));
  RILL_ASSERT_OK(batch.Set("wide", wide));
  RILL_ASSERT_OK(crop->Forward(&batch, &state));
  ASSERT_EQ(batch.batch_shape(), Shape({2, 3}));
  const int64_t* x = batch.Find("x")->data<int64_t>();
  const int64_t* w = batch.Find("wide")->data<int64_t>();
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(x[i] % 3, i);
    EXPECT_EQ(x[3 + i], x[i] + 3);
    EXPECT_EQ(w[2 * i], x[i]);
    EXPECT_EQ(w[2 * i + 1], x[i]);
  }
}

TEST(RandomCropTest, CropsAreAFunctionOfSeedAndNumberOfTheBatch) {
  const auto run = [](uint64_t seed) {
    auto crop = *RandomCropTensorDict::Create({.sub_seq_len = 2, .seed = seed});
    TensorDict state = *crop->InitialState();
    std::vector<int64_t> seen;
    for (int i = 0; i < 8; ++i) {
      TensorDict batch = Numbered({9});
      RILL_EXPECT_OK(crop->Forward(&batch, &state));
      seen.push_back(batch.Find("x")->data<int64_t>()[0]);
    }
    return seen;
  };
  EXPECT_EQ(run(1), run(1));
  const std::vector<int64_t> seen = run(1);
  EXPECT_GT(std::set<int64_t>(seen.begin(), seen.end()).size(), 1);
  EXPECT_NE(run(1), run(2));
}

TEST(RandomCropTest, WhatTheMaskLeavesOutIsNeverTaken) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto crop,
      RandomCropTensorDict::Create({.sub_seq_len = 2, .mask_key = "mask"}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, crop->InitialState());
  for (int i = 0; i < 10; ++i) {
    TensorDict batch = Numbered({2, 4});
    RILL_ASSERT_OK(batch.Set(
        "mask", *Tensor::From<bool>({1, 1, 0, 0, 1, 1, 1, 0}, {2, 4})));
    RILL_ASSERT_OK(crop->Forward(&batch, &state));
    EXPECT_EQ(batch.Find("x")->data<int64_t>()[0], 0);
    EXPECT_LE(batch.Find("x")->data<int64_t>()[3], 6);
  }
  TensorDict batch = Numbered({2, 4});
  RILL_ASSERT_OK(
      batch.Set("mask", *Tensor::From<bool>({1, 0, 0, 0, 1, 1, 1, 0}, {2, 4})));
  EXPECT_THAT(crop->Forward(&batch, &state),
              StatusIs(kInvalidArgument, HasSubstr("a line of 1 steps")));
  RILL_ASSERT_OK(batch.Set("mask", *Tensor::Zeros(DType::kInt64, {2, 4})));
  EXPECT_THAT(crop->Forward(&batch, &state),
              StatusIs(kInvalidArgument, HasSubstr("\"mask\"")));
}

TEST(RandomCropTest, SpecsWhoseMaskIsNoFlagAreRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto crop, RandomCropTensorDict::Create({.mask_key = "observation"}));
  EXPECT_THAT(crop->ForwardSpec(TedSpec()),
              StatusIs(kInvalidArgument, HasSubstr("\"observation\"")));
  RILL_ASSERT_OK_AND_ASSIGN(
      crop, RandomCropTensorDict::Create({.mask_key = "next/done"}));
  EXPECT_THAT(crop->ForwardSpec(TedSpec()), IsOkAndHolds(TedSpec()));
}

TEST(RandomCropTest, LeavesOnTwoDevicesAreNamed) {
  auto crop = *RandomCropTensorDict::Create({.sub_seq_len = 2});
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, crop->InitialState());
  const Tensor zeros = *Tensor::Zeros(DType::kFloat32, {3});
  TensorDict batch({3});
  RILL_ASSERT_OK(batch.Set("first", *zeros.To(Device::Fake(0))));
  RILL_ASSERT_OK(batch.Set("deep/leaf", *zeros.To(Device::Fake(1))));
  EXPECT_THAT(
      crop->Forward(&batch, &state),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("RandomCropTensorDict"), HasSubstr("deep/leaf"),
                     HasSubstr("fake:1"), HasSubstr("want fake:0"))));
  EXPECT_EQ(batch.batch_shape(), Shape({3}));
  RILL_EXPECT_OK(state.CheckEqual(*crop->InitialState()));
}

TEST(RandomCropTest, BadOptionsAndBatchesAreNamed) {
  EXPECT_THAT(RandomCropTensorDict::Create({.sub_seq_len = 0}),
              StatusIs(kInvalidArgument, HasSubstr("sub_seq_len: got 0")));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto crop,
      RandomCropTensorDict::Create({.sub_seq_len = 4, .sample_dim = -2}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, crop->InitialState());
  TensorDict batch = Numbered({5});
  EXPECT_THAT(crop->Forward(&batch, &state),
              StatusIs(kInvalidArgument, HasSubstr("sample_dim -2")));
  batch = Numbered({3, 5});
  EXPECT_THAT(crop->Forward(&batch, &state),
              StatusIs(kInvalidArgument, HasSubstr("a line of 3 steps")));
  RILL_EXPECT_OK(state.CheckEqual(*crop->InitialState()));
}

// --- BurnIn ------------------------------------------------------------------

TEST(BurnInTest, TheFirstStepsOfEachLineAreMasked) {
  RILL_ASSERT_OK_AND_ASSIGN(auto burn_in, BurnIn::Create({.burn_in = 2}));
  TensorDict batch = Numbered({2, 3});
  TensorDict state;
  RILL_ASSERT_OK(burn_in->Forward(&batch, &state));
  EXPECT_THAT(
      batch.Flat<bool>("learning_mask"),
      IsOkAndHolds(ElementsAre(false, false, true, false, false, true)));
  TensorDict shorter = Numbered({1});
  RILL_ASSERT_OK(burn_in->Forward(&shorter, &state));
  EXPECT_THAT(shorter.Flat<bool>("learning_mask"),
              IsOkAndHolds(ElementsAre(false)));
}

TEST(BurnInTest, AMaskThatIsThereStaysFalseWhereItWas) {
  RILL_ASSERT_OK_AND_ASSIGN(auto burn_in, BurnIn::Create({.burn_in = 1}));
  TensorDict batch = Numbered({4});
  RILL_ASSERT_OK(
      batch.Set("learning_mask", *Tensor::From<bool>({1, 1, 0, 1}, {4, 1})));
  TensorDict state;
  RILL_ASSERT_OK(burn_in->Forward(&batch, &state));
  EXPECT_THAT(batch.Flat<bool>("learning_mask"),
              IsOkAndHolds(ElementsAre(false, true, false, true)));
}

TEST(BurnInTest, ABatchIsSplitIntoViews) {
  const TensorDict batch = Numbered({2, 5});
  RILL_ASSERT_OK_AND_ASSIGN(const BurnInParts parts, SplitBurnIn(batch, 2));
  EXPECT_EQ(parts.burn_in.batch_shape(), Shape({2, 2}));
  EXPECT_EQ(parts.rest.batch_shape(), Shape({2, 3}));
  EXPECT_EQ(parts.rest.Find("x")->buffer(), batch.Find("x")->buffer());
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict joined,
      Cat(std::vector<TensorDict>{parts.burn_in, parts.rest}, 1));
  RILL_EXPECT_OK(joined.CheckEqual(batch));
}

TEST(BurnInTest, BadOptionsAndBatchesAreNamed) {
  EXPECT_THAT(BurnIn::Create({.burn_in = -1}),
              StatusIs(kInvalidArgument, HasSubstr("burn_in: got -1")));
  EXPECT_THAT(BurnIn::Create({.mask_key = ""}),
              StatusIs(kInvalidArgument, HasSubstr("mask_key")));
  EXPECT_THAT(SplitBurnIn(Numbered({2, 5}), 6),
              StatusIs(kInvalidArgument, HasSubstr("burn_in: got 6")));
  RILL_ASSERT_OK_AND_ASSIGN(auto burn_in, BurnIn::Create({.mask_key = "x"}));
  TensorDict state;
  TensorDict batch = Numbered({});
  EXPECT_THAT(burn_in->Forward(&batch, &state),
              StatusIs(kInvalidArgument, HasSubstr("batch shape []")));
  batch = Numbered({3});
  EXPECT_THAT(burn_in->Forward(&batch, &state),
              StatusIs(kInvalidArgument, HasSubstr("\"x\"")));
  EXPECT_THAT(burn_in->ForwardSpec(TensorDictSpec::Of(batch)),
              StatusIs(kInvalidArgument, HasSubstr("\"x\"")));
}

// --- PolicyAgeFilter ---------------------------------------------------------

TensorDict Versions(const std::vector<int64_t>& versions) {
  const auto rows = static_cast<int64_t>(versions.size());
  TensorDict batch = Numbered({rows});
  RILL_EXPECT_OK(
      batch.Set("policy_version", *Tensor::From<int64_t>(versions, {rows, 1})));
  return batch;
}

TEST(PolicyAgeFilterTest, RowsOfOldPoliciesGo) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto filter,
      PolicyAgeFilter::Create(
          {.max_policy_lag = 1, .current_version = [] { return 3; }}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, filter->InitialState());
  TensorDict batch = Versions({0, 2, 1, 3});
  RILL_ASSERT_OK(filter->Forward(&batch, &state));
  EXPECT_THAT(batch.Flat<int64_t>("x"), IsOkAndHolds(ElementsAre(1, 3)));
  batch = Versions({0, 1});
  RILL_ASSERT_OK(filter->Forward(&batch, &state));
  EXPECT_EQ(batch.batch_shape(), Shape({0}));
}

TEST(PolicyAgeFilterTest, WithoutAVersionTheNewestSeenIsTheCurrentOne) {
  RILL_ASSERT_OK_AND_ASSIGN(auto filter,
                            PolicyAgeFilter::Create({.max_policy_lag = 1}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, filter->InitialState());
  TensorDict batch = Versions({5, 4, 3});
  RILL_ASSERT_OK(filter->Forward(&batch, &state));
  EXPECT_THAT(batch.Flat<int64_t>("x"), IsOkAndHolds(ElementsAre(0, 1)));
  batch = Versions({3, 4});
  RILL_ASSERT_OK(filter->Forward(&batch, &state));
  EXPECT_THAT(batch.Flat<int64_t>("x"), IsOkAndHolds(ElementsAre(1)));
}

TEST(PolicyAgeFilterTest, OfASequenceTheOldestStepCounts) {
  RILL_ASSERT_OK_AND_ASSIGN(auto filter, PolicyAgeFilter::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, filter->InitialState());
  TensorDict batch = Numbered({2, 2});
  RILL_ASSERT_OK(batch.Set("policy_version",
                           *Tensor::From<int32_t>({7, 6, 7, 7}, {2, 2})));
  RILL_ASSERT_OK(filter->Forward(&batch, &state));
  EXPECT_THAT(batch.Flat<int64_t>("x"), IsOkAndHolds(ElementsAre(2, 3)));
}

TEST(PolicyAgeFilterTest, BatchesWithoutVersionsGoThroughUnlessStrict) {
  RILL_ASSERT_OK_AND_ASSIGN(auto lenient, PolicyAgeFilter::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(auto strict,
                            PolicyAgeFilter::Create({.strict = true}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, lenient->InitialState());
  TensorDict batch = Numbered({3});
  RILL_ASSERT_OK(lenient->Forward(&batch, &state));
  EXPECT_THAT(batch.Flat<int64_t>("x"), IsOkAndHolds(SizeIs(3)));
  EXPECT_THAT(strict->Forward(&batch, &state),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(strict->ForwardSpec(TedSpec()),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(PolicyAgeFilterTest, BadOptionsAndBatchesAreNamed) {
  EXPECT_THAT(PolicyAgeFilter::Create({.max_policy_lag = -1}),
              StatusIs(kInvalidArgument, HasSubstr("max_policy_lag: got -1")));
  EXPECT_THAT(PolicyAgeFilter::Create({.policy_version_key = ""}),
              StatusIs(kInvalidArgument, HasSubstr("policy_version_key")));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto filter, PolicyAgeFilter::Create({.policy_version_key = "done"}));
  EXPECT_THAT(filter->ForwardSpec(TedSpec()),
              StatusIs(kInvalidArgument, HasSubstr("\"done\"")));
  TensorDict batch = Numbered({2});
  RILL_ASSERT_OK(batch.Set("done", *Tensor::Zeros(DType::kBool, {2, 1})));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, filter->InitialState());
  EXPECT_THAT(filter->Forward(&batch, &state),
              StatusIs(kInvalidArgument, HasSubstr("\"done\"")));
}

TEST(PolicyAgeFilterTest, TheSpecPassesDTypesThatBatchesPass) {
  RILL_ASSERT_OK_AND_ASSIGN(auto filter, PolicyAgeFilter::Create({}));
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    TensorDictSpec spec = TedSpec();
    RILL_ASSERT_OK(spec.Set("policy_version", LeafSpec::Unbounded(dtype, {1})));
    TensorDict batch = Numbered({2});
    RILL_ASSERT_OK(batch.Set("policy_version", *Tensor::Zeros(dtype, {2, 1})));
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, filter->InitialState());
    EXPECT_EQ(filter->ForwardSpec(spec).ok(),
              filter->Forward(&batch, &state).ok())
        << DTypeName(dtype);
  }
}

TensorDictSpec VersionedSpec() {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(
      spec.Set("policy_version", LeafSpec::Bounded(DType::kInt64, {1}, 0, 3)));
  return spec;
}

INSTANTIATE_TRANSFORM_CONFORMANCE(
    RandomCrop,
    InABuffer<RandomCropTensorDict>({.sub_seq_len = 2}, VersionedSpec()));
INSTANTIATE_TRANSFORM_CONFORMANCE(BurnIn, InABuffer<BurnIn>({.burn_in = 2},
                                                            VersionedSpec()));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    PolicyAgeFilter,
    InABuffer<PolicyAgeFilter>({.max_policy_lag = 1}, VersionedSpec()));

}  // namespace
}  // namespace rill
