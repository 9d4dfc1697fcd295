// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/next_state_reconstructor.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
const float kNan = std::nanf("");

std::unique_ptr<BatchTransform> Make(
    const NextStateReconstructor::Options& options) {
  auto made = NextStateReconstructor::Create(options);
  RILL_EXPECT_OK(made);
  return made.ok() ? *std::move(made) : nullptr;
}

// Observations 0 .. 3, trajectories 0, 0, 1, 1, done at 1.
TensorDict FourSteps() {
  TensorDict batch({4});
  RILL_EXPECT_OK(
      batch.Set("observation", *Tensor::From<float>({0, 1, 2, 3}, {4, 1})));
  RILL_EXPECT_OK(batch.Set("collector/traj_ids",
                           *Tensor::From<int64_t>({0, 0, 1, 1}, {4})));
  RILL_EXPECT_OK(batch.Set(
      "next/done", *Tensor::From<bool>({false, true, false, false}, {4, 1})));
  return batch;
}

TEST(NextStateReconstructorTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto reconstructor,
      NextStateReconstructor::Create({.keys = {"pixels"}, .fill_value = 0}));
  EXPECT_EQ(reconstructor->name(), "NextStateReconstructor");
}

TEST(NextStateReconstructorTest, T9_NextIsTheRowBehindOrNan) {
  TensorDict batch = FourSteps();
  RILL_ASSERT_OK(Make({})->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Get("next/observation"),
              IsOkAndHolds(TensorElementsAre<float>(1, kNan, 3, kNan)));
}

TEST(NextStateReconstructorTest, EachMarkerAloneEndsATrajectory) {
  TensorDict batch = FourSteps();
  RILL_ASSERT_OK(
      batch.Set("count", *Tensor::From<int32_t>({4, 5, 5, 6}, {4, 1})));
  for (const NextStateReconstructor::Options& options :
       {NextStateReconstructor::Options{.done_key = "", .fill_value = -1},
        NextStateReconstructor::Options{.traj_key = "", .fill_value = -1},
        NextStateReconstructor::Options{.traj_key = "",
        .done_key = "",
        .step_count_key = "count",
        .fill_value = -1}}) {
    RILL_ASSERT_OK(Make(options)->Forward(&batch, nullptr));
    EXPECT_THAT(batch.Get("next/observation"),
                IsOkAndHolds(TensorElementsAre<float>(1, -1, 3, -1)));
  }
  RILL_ASSERT_OK(
      Make({.traj_key = "", .done_key = ""})->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Get("next/observation"),
              IsOkAndHolds(TensorElementsAre<float>(1, 2, 3, kNan)));
}

TEST(NextStateReconstructorTest, PartsStandForADoneThatIsMissing) {
  for (const bool strict : {true, false}) {
    TensorDict batch = FourSteps();
    RILL_ASSERT_OK(batch.Delete("next"));
    for (const auto& [key, at] :
         {std::pair("next/truncated", 0), std::pair("next/terminated", 2)}) {
      Tensor flags = *Tensor::Zeros(DType::kBool, {4, 1});
      flags.data<bool>()[at] = true;
      RILL_ASSERT_OK(batch.Set(key, flags));
    }
    const auto made =
        Make({.traj_key = "", .fill_value = -1, .strict = strict});
    RILL_EXPECT_OK(made->ForwardSpec(TensorDictSpec::Of(batch)));
    RILL_ASSERT_OK(made->Forward(&batch, nullptr));
    EXPECT_THAT(batch.Get("next/observation"),
                IsOkAndHolds(TensorElementsAre<float>(-1, 2, -1, -1)));
  }
}

TEST(NextStateReconstructorTest, LeavesOfAGroupWantItsFlags) {
  TensorDictSpec spec = TedSpec();
  RILL_ASSERT_OK(spec.Set("agents/observation",
                          LeafSpec::Unbounded(DType::kFloat32, {2, 4})));
  RILL_ASSERT_OK(spec.Set("next/agents/done", LeafSpec::Binary({1})));
  const auto with = [&](const std::string& done_key) {
    return Make({.keys = {"agents/observation"},
                 .traj_key = "",
                 .done_key = done_key})
        ->ForwardSpec(spec)
        .status();
  };
  EXPECT_THAT(
      with("next/done"),
      StatusIs(kInvalidArgument, HasSubstr("want the ends of its group, "
                                           "\"next/agents/done\"")));
  RILL_EXPECT_OK(with("next/agents/done"));
}

TEST(NextStateReconstructorTest, CountsWithoutArithmeticAreRefused) {
  TensorDict batch = FourSteps();
  RILL_ASSERT_OK(
      batch.Set("count", *Tensor::From<uint32_t>({4, 5, 5, 6}, {4, 1})));
  EXPECT_THAT(Make({.step_count_key = "count"})->Forward(&batch, nullptr),
              StatusIs(kInvalidArgument, HasSubstr("arithmetic")));
}

TEST(NextStateReconstructorTest, LinesOfABatchDoNotRunIntoEachOther) {
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, FourSteps().Reshape({2, 2}));
  RILL_ASSERT_OK(
      Make({.traj_key = "", .done_key = ""})->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Get("next/observation"),
              IsOkAndHolds(TensorElementsAre<float>(1, kNan, 3, kNan)));
}

// Slices of 3: two rows of an open trajectory, then one whole of another, then
// one that lacks a row before its first.
TEST(NextStateReconstructorTest, RowsThatPadAreNobodysNext) {
  TensorDict batch({9});
  RILL_ASSERT_OK(batch.Set(
      "observation",
      *Tensor::From<float>({0, 1, 1, 10, 11, 12, 20, 20, 21}, {9, 1})));
  RILL_ASSERT_OK(
      batch.Set("collector/traj_ids",
                *Tensor::From<int64_t>({0, 0, 0, 1, 1, 1, 2, 2, 2}, {9})));
  RILL_ASSERT_OK(batch.Set(
      "collector/mask",
      *Tensor::From<bool>(
          {true, true, false, true, true, true, false, true, true}, {9})));
  const auto next = Make({.done_key = "", .fill_value = -1});
  RILL_ASSERT_OK(next->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Get("next/observation"),
              IsOkAndHolds(
                  TensorElementsAre<float>(1, -1, -1, 11, 12, -1, -1, 21, -1)));
  RILL_ASSERT_OK(
      batch.Set("collector/mask", *Tensor::Zeros(DType::kInt8, {9})));
  EXPECT_THAT(next->Forward(&batch, nullptr),
              StatusIs(kInvalidArgument, HasSubstr("\"collector/mask\": got")));
}

TEST(NextStateReconstructorTest, IntegersWantAFillValue) {
  TensorDict batch = FourSteps();
  RILL_ASSERT_OK(
      batch.Set("agents/tile", *Tensor::From<int16_t>({5, 6, 7, 8}, {4})));
  const auto without = Make({.keys = {"agents/tile"}});
  EXPECT_THAT(without->Forward(&batch, nullptr),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("agents/tile"), HasSubstr("int16"))));
  EXPECT_THAT(without->ForwardSpec(TensorDictSpec::Of(batch)),
              StatusIs(kInvalidArgument, HasSubstr("int16")));
  RILL_ASSERT_OK(Make({.keys = {"agents/tile"}, .fill_value = -7})
                     ->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Get("next/agents/tile"),
              IsOkAndHolds(TensorElementsAre<int16_t>(6, -7, 8, -7)));
}

TEST(NextStateReconstructorTest, MissingMarkersAreErrorsOnlyIfStrict) {
  TensorDict batch = FourSteps();
  RILL_ASSERT_OK(batch.Delete("collector"));
  EXPECT_THAT(
      Make({})->Forward(&batch, nullptr),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("collector/traj_ids")));
  EXPECT_THAT(
      Make({})->ForwardSpec(TensorDictSpec::Of(batch)),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("collector/traj_ids")));
  const auto lax = Make({.strict = false});
  RILL_EXPECT_OK(lax->ForwardSpec(TensorDictSpec::Of(batch)));
  RILL_ASSERT_OK(lax->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Get("next/observation"),
              IsOkAndHolds(TensorElementsAre<float>(1, kNan, 3, kNan)));
}

TEST(NextStateReconstructorTest, SpecsWithMarkersOfAnotherDTypeAreRefused) {
  TensorDictSpec spec = TedSpec();
  RILL_ASSERT_OK(spec.Set("count", LeafSpec::Unbounded(DType::kUInt64, {1})));
  for (const NextStateReconstructor::Options& options :
       std::vector<NextStateReconstructor::Options>{
           {.traj_key = "", .done_key = "observation"},
           {.traj_key = "", .mask_key = "observation"},
           {.traj_key = "", .done_key = "observation", .strict = false}}) {
    EXPECT_THAT(Make(options)->ForwardSpec(spec),
                StatusIs(kInvalidArgument, HasSubstr("\"observation\"")));
  }
  EXPECT_THAT(
      Make({.traj_key = "", .step_count_key = "count"})->ForwardSpec(spec),
      StatusIs(kInvalidArgument, HasSubstr("\"count\"")));
}

TEST(NextStateReconstructorTest, SpecIsTheRootsWhereItHasTheFillValue) {
  const auto spec = [](double fill) {
    return *Make({.traj_key = "", .fill_value = fill})
                ->ForwardSpec(TedSpec())
                ->Find("next/observation");
  };
  EXPECT_EQ(spec(0.5), *TedSpec().Find("observation"));
  EXPECT_EQ(spec(2), LeafSpec::Unbounded(DType::kFloat32, {4}));
}

TEST(NextStateReconstructorTest, AgreesWithALoopOverRandomBatches) {
  const Rng rng(4, RngStream::kUser);
  for (uint64_t round = 0; round < 30; ++round) {
    const int64_t lines = 1 + rng.UniformInt(round, 0, 3);
    const int64_t length = rng.UniformInt(round, 1, 40);
    TensorDictSpec spec;
    RILL_ASSERT_OK(spec.Set("a/b", LeafSpec::Unbounded(DType::kInt32, {3})));
    RILL_ASSERT_OK(spec.Set("id", LeafSpec::Categorical(2)));
    RILL_ASSERT_OK(spec.Set("end", LeafSpec::Binary({1})));
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch,
                              spec.Random({lines, length}, rng, round));
    RILL_ASSERT_OK(Make({.keys = {"a/b"},
                         .traj_key = "id",
                         .done_key = "end",
                         .fill_value = -1000})
                       ->Forward(&batch, nullptr));
    const int32_t* root = batch.Find("a/b")->data<int32_t>();
    const int32_t* next = batch.Find("next/a/b")->data<int32_t>();
    const int64_t* id = batch.Find("id")->data<int64_t>();
    const bool* end = batch.Find("end")->data<bool>();
    for (int64_t i = 0; i < lines * length; ++i) {
      const bool has_next =
          i % length != length - 1 && !end[i] && id[i] == id[i + 1];
      for (int64_t e = 0; e < 3; ++e) {
        ASSERT_EQ(next[i * 3 + e], has_next ? root[i * 3 + 3 + e] : -1000)
            << "row " << i << " of " << lines << " x " << length;
      }
    }
  }
}

TEST(NextStateReconstructorTest, BadOptionsAndBatchesAreNamed) {
  EXPECT_THAT(NextStateReconstructor::Create({.keys = {}}),
              StatusIs(kInvalidArgument, HasSubstr("keys")));
  EXPECT_THAT(NextStateReconstructor::Create({.keys = {"next/a"}}),
              StatusIs(kInvalidArgument, HasSubstr("next/a")));
  EXPECT_THAT(NextStateReconstructor::Create({.keys = {"a", "a"}}),
              StatusIs(kInvalidArgument, HasSubstr("once")));
  EXPECT_THAT(NextStateReconstructor::Create({.done_key = "a//b"}),
              StatusIs(kInvalidArgument, HasSubstr("marker")));
  TensorDict scalar;
  EXPECT_THAT(Make({})->Forward(&scalar, nullptr),
              StatusIs(kInvalidArgument, HasSubstr("[*B, T]")));
  TensorDict batch = FourSteps();
  RILL_ASSERT_OK(batch.Set("next/done", *Tensor::Zeros(DType::kInt8, {4, 1})));
  EXPECT_THAT(Make({})->Forward(&batch, nullptr),
              StatusIs(kInvalidArgument, HasSubstr("want bool")));
}

TransformUnderTest UnderTest(const NextStateReconstructor::Options& options) {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(spec.Set("collector/traj_ids", LeafSpec::Categorical(2)));
  return InABuffer<NextStateReconstructor>(options, spec);
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(Nan, UnderTest({}));
INSTANTIATE_TRANSFORM_CONFORMANCE(Filled,
                                  UnderTest({.keys = {"observation", "action"},
                                             .fill_value = 1}));

}  // namespace rill
