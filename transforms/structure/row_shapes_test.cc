// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/structure/row_shapes.h"

#include <cstdint>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

TensorDictSpec WithObservation(const LeafSpec& observation) {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(spec.Set("observation", observation));
  RILL_EXPECT_OK(spec.Set("next/observation", observation));
  return spec;
}

TensorDictSpec Images() {
  return WithObservation(LeafSpec::Bounded(DType::kUInt8, {2, 3, 4}, 0, 255));
}

// An action that an inverse gives its shape back, and bounds of each element.
TensorDictSpec WithVectorAction(const Shape& shape) {
  TensorDictSpec spec = Images();
  RILL_EXPECT_OK(
      spec.Set("action", LeafSpec::Bounded(DType::kFloat32, shape, -1, 1)));
  return spec;
}

Tensor Counted(const Shape& shape) {
  Tensor tensor = *Tensor::Empty(DType::kInt32, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.data<int32_t>()[i] = static_cast<int32_t>(i);
  }
  return tensor;
}

TensorDict BatchOf(const Shape& batch_shape, const Tensor& observation) {
  TensorDict batch(batch_shape);
  RILL_EXPECT_OK(batch.Set("observation", observation));
  return batch;
}

const FlattenObservation::Options kFlatten = {
    .first_dim = -3, .last_dim = -2, .in_keys = {"observation"}};
const Unsqueeze::Options kUnsqueeze = {
    .dim = -2, .in_keys = {"observation"}, .in_keys_inv = {"action"}};
const Squeeze::Options kSqueeze = {
    .dim = -1, .in_keys = {"next/reward"}, .in_keys_inv = {"action"}};
const Permute::Options kPermute = {.dims = {-1, -3, -2},
                                   .in_keys = {"observation"},
                                   .in_keys_inv = {"action"}};

// --- Views -------------------------------------------------------------------

TEST(FlattenObservationTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto flatten,
      FlattenObservation::Create({.first_dim = -3, .last_dim = -1}));
  EXPECT_EQ(flatten->name(), "FlattenObservation");
  EXPECT_THAT(flatten->rows().in_keys, ElementsAre("pixels"));
}

TEST(UnsqueezeTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto unsqueeze,
      Unsqueeze::Create({.dim = -1, .in_keys = {"observation"}}));
  EXPECT_EQ(unsqueeze->name(), "Unsqueeze");
}

TEST(SqueezeTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto squeeze, Squeeze::Create({.dim = -1, .in_keys = {"observation"}}));
  EXPECT_EQ(squeeze->name(), "Squeeze");
}

TEST(FlattenObservationTest, DimensionsCountFromTheBackForEveryBatchShape) {
  RILL_ASSERT_OK_AND_ASSIGN(auto flatten, FlattenObservation::Create(kFlatten));
  for (const Shape& batch_shape : {Shape({5}), Shape({2, 2}), Shape({})}) {
    TensorDict batch =
        BatchOf(batch_shape, Counted(batch_shape.Concat({2, 3, 4})));
    RILL_ASSERT_OK(flatten->Forward(&batch, nullptr));
    EXPECT_EQ(batch.Find("observation")->shape(), batch_shape.Concat({6, 4}));
  }
}

TEST(FlattenObservationTest, SharesTheBytesUnlessTheOldKeyStays) {
  FlattenObservation::Options options = kFlatten;
  const Tensor leaf = Counted({5, 2, 3, 4});
  TensorDict batch = BatchOf({5}, leaf);
  RILL_ASSERT_OK(
      (*FlattenObservation::Create(options))->Forward(&batch, nullptr));
  EXPECT_EQ(batch.Find("observation")->raw_data(), leaf.raw_data());
  options.out_keys = {"flat"};
  batch = BatchOf({5}, leaf);
  RILL_ASSERT_OK(
      (*FlattenObservation::Create(options))->Forward(&batch, nullptr));
  EXPECT_EQ(batch.Find("observation")->raw_data(), leaf.raw_data());
  EXPECT_NE(batch.Find("flat")->raw_data(), leaf.raw_data());
}

TEST(FlattenObservationTest, BoundsOfEachElementGoAlong) {
  RILL_ASSERT_OK_AND_ASSIGN(auto flatten, FlattenObservation::Create(kFlatten));
  const Tensor low = Counted({1, 2, 2});
  const Tensor high = *Tensor::From<int32_t>({5, 6, 7, 8}, {1, 2, 2});
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set("observation", *LeafSpec::Bounded(low, high)));
  RILL_ASSERT_OK_AND_ASSIGN(spec, flatten->ForwardSpec(spec));
  EXPECT_EQ(*spec.Find("observation"),
            *LeafSpec::Bounded(*low.Reshape({2, 2}), *high.Reshape({2, 2})));
}

TEST(RowShapesTest, InverseUndoes) {
  const Unsqueeze::Options both = {
      .dim = -3, .in_keys = {"observation"}, .in_keys_inv = {"observation"}};
  const TensorDict before = BatchOf({2, 2}, Counted({2, 2, 3, 4}));
  TensorDict batch = before;
  auto unsqueeze = *Unsqueeze::Create(both);
  RILL_ASSERT_OK(unsqueeze->Forward(&batch, nullptr));
  EXPECT_EQ(batch.Find("observation")->shape(), Shape({2, 2, 1, 3, 4}));
  RILL_ASSERT_OK((*Squeeze::Create(both))->Forward(&batch, nullptr));
  RILL_EXPECT_OK(batch.CheckEqual(before));
  RILL_ASSERT_OK((*Squeeze::Create(both))->Inverse(&batch, nullptr));
  RILL_ASSERT_OK(unsqueeze->Inverse(&batch, nullptr));
  RILL_EXPECT_OK(batch.CheckEqual(before));
}

TEST(RowShapesTest, RowsWithoutTheDimensionAreRefusedNamingTheKey) {
  const auto refused = [](const BatchTransform& transform, const Shape& row,
                          const char* want) {
    TensorDict batch = BatchOf({2}, Counted(Shape({2}).Concat(row)));
    const auto error = StatusIs(
        kInvalidArgument,
        AllOf(HasSubstr("\"observation\""), HasSubstr(row.ToString()),
              HasSubstr(want), HasSubstr(std::string(transform.name()))));
    EXPECT_THAT(transform.ForwardSpec(TensorDictSpec::Of(batch)), error);
    EXPECT_THAT(transform.Forward(&batch, nullptr), error);
  };
  refused(**FlattenObservation::Create(kFlatten), {4}, "dimension -3");
  refused(**Unsqueeze::Create({.dim = -3, .in_keys = {"observation"}}), {4},
          "dimension -3");
  refused(**Squeeze::Create({.dim = -1, .in_keys = {"observation"}}), {4},
          "size 1");
  refused(**Squeeze::Create({.dim = -2, .in_keys = {"observation"}}), {1},
          "size 1");
  refused(**Permute::Create(kPermute), {4}, "3 dimensions");
}

TEST(RowShapesTest, MoreThanEightDimensionsAreAnError) {
  auto unsqueeze = *Unsqueeze::Create({.dim = -1, .in_keys = {"observation"}});
  TensorDict batch = BatchOf({1}, Counted({1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_THAT(unsqueeze->Forward(&batch, nullptr), StatusIs(kInvalidArgument));
}

TEST(RowShapesTest, DimensionsFromTheFrontAreRefused) {
  EXPECT_THAT(FlattenObservation::Create({.first_dim = -2}),
              StatusIs(kInvalidArgument, HasSubstr("last_dim: got 0")));
  EXPECT_THAT(FlattenObservation::Create({.first_dim = -1, .last_dim = -2}),
              StatusIs(kInvalidArgument, HasSubstr("first_dim: got -1")));
  EXPECT_THAT(Unsqueeze::Create({.dim = 1, .in_keys = {"a"}}),
              StatusIs(kInvalidArgument, HasSubstr("dim: got 1")));
  EXPECT_THAT(Squeeze::Create({.in_keys = {"a"}}),
              StatusIs(kInvalidArgument, HasSubstr("Squeeze")));
  EXPECT_THAT(Squeeze::Create({.dim = -1}),
              StatusIs(kInvalidArgument, HasSubstr("in_keys")));
}

// --- Permute -----------------------------------------------------------------

TEST(PermuteTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto channels_first,
      Permute::Create({.dims = {-1, -3, -2}, .in_keys = {"pixels"}}));
  EXPECT_EQ(channels_first->name(), "Permute");
}

TEST(PermuteTest, IsThePermutationOfTheTensor) {
  constexpr int kDims[][3] = {{-1, -2, -3}, {-1, -3, -2}, {-2, -1, -3},
                              {-2, -3, -1}, {-3, -1, -2}, {-3, -2, -1}};
  for (const DType dtype : {DType::kUInt8, DType::kInt16, DType::kFloat32,
                            DType::kFloat64, DType::kComplex128}) {
    const Shape shape = {2, 2, 3, 4, 5};
    Tensor leaf = *Tensor::Empty(dtype, shape);
    for (int64_t i = 0; i < leaf.size_bytes(); ++i) {
      leaf.raw_data()[i] = static_cast<std::byte>(i * 37);
    }
    for (const auto& dims : kDims) {
      RILL_ASSERT_OK_AND_ASSIGN(
          auto permute, Permute::Create({.dims = {dims[0], dims[1], dims[2]},
                                         .in_keys = {"observation"},
                                         .in_keys_inv = {"observation"}}));
      TensorDict batch = BatchOf({2}, leaf);
      RILL_ASSERT_OK(permute->Forward(&batch, nullptr));
      const int order[] = {0, 1, 5 + dims[0], 5 + dims[1], 5 + dims[2]};
      EXPECT_THAT(batch.Find("observation")->BitEquals(*leaf.Permute(order)),
                  IsOkAndHolds(true));
      RILL_ASSERT_OK(permute->Inverse(&batch, nullptr));
      EXPECT_THAT(batch.Find("observation")->BitEquals(leaf),
                  IsOkAndHolds(true));
    }
  }
}

TEST(PermuteTest, EmptyRowsStayEmpty) {
  RILL_ASSERT_OK_AND_ASSIGN(auto permute, Permute::Create(kPermute));
  TensorDict batch = BatchOf({2}, Counted({2, 3, 0, 4}));
  RILL_ASSERT_OK(permute->Forward(&batch, nullptr));
  EXPECT_EQ(batch.Find("observation")->shape(), Shape({2, 4, 3, 0}));
}

TEST(PermuteTest, BoundsOfEachElementGoAlong) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto permute,
      Permute::Create({.dims = {-1, -2}, .in_keys = {"observation"}}));
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set(
      "observation", *LeafSpec::Bounded(*Tensor::From<float>({1, 2}, {2, 1}),
                                        *Tensor::From<float>({3, 4}, {2, 1}))));
  RILL_ASSERT_OK_AND_ASSIGN(spec, permute->ForwardSpec(spec));
  EXPECT_EQ(*spec.Find("observation"),
            *LeafSpec::Bounded(*Tensor::From<float>({1, 2}, {1, 2}),
                               *Tensor::From<float>({3, 4}, {1, 2})));
}

TEST(PermuteTest, OtherThanEachDimensionOnceIsRefused) {
  using Dims = std::vector<int>;
  for (const Dims& dims : {Dims{}, Dims{-1, -1}, Dims{0, 1}, Dims{-1, -3},
                           Dims{-1, -2, -3, -4, -5, -6, -7, -8, -9}}) {
    EXPECT_THAT(Permute::Create({.dims = dims, .in_keys = {"a"}}),
                StatusIs(kInvalidArgument, HasSubstr("dims")));
  }
}

// --- Beside an environment ---------------------------------------------------

TEST(RowShapesTest, StepsAreWhatBatchesBecome) {
  const std::unique_ptr<RowwiseTransform> transforms[] = {
      *FlattenObservation::Create(kFlatten),
      *Permute::Create({.dims = {-1, -3, -2}, .in_keys = {"observation"}})};
  for (const auto& transform : transforms) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto environment,
        FakeEnvironment::Create(Images(), 3, transform.get()));
    RILL_ASSERT_OK(environment.Reset({1, 1, 1}));
    RILL_ASSERT_OK(environment.Step());
    TensorDict batch({3});
    RILL_ASSERT_OK(batch.Set(
        "observation", *environment.environment_step().Get("observation")));
    RILL_ASSERT_OK(transform->Forward(&batch, nullptr));
    EXPECT_THAT(batch.Find("observation")
                    ->BitEquals(*environment.step().Get("observation")),
                IsOkAndHolds(true));
  }
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(Flatten,
                                  InABuffer<FlattenObservation>(kFlatten,
                                                                Images()));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    Unsqueeze, InABuffer<Unsqueeze>(kUnsqueeze, WithVectorAction({3, 1, 2})));
INSTANTIATE_TRANSFORM_CONFORMANCE(Squeeze,
                                  InABuffer<Squeeze>(kSqueeze, TedSpec()));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    Permute, InABuffer<Permute>(kPermute, WithVectorAction({3, 1, 2})));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    UnsqueezeAndBack, InABuffer<Unsqueeze>({.dim = -1,
                                            .in_keys = {"next/reward"},
                                            .in_keys_inv = {"next/reward"}},
                                           TedSpec(), /*inverse_tolerance=*/0));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    SqueezeAndBack, InABuffer<Squeeze>({.dim = -1,
                                        .in_keys = {"next/reward"},
                                        .in_keys_inv = {"next/reward"}},
                                       TedSpec(), /*inverse_tolerance=*/0));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    PermuteAndBack, InABuffer<Permute>({.dims = {-1, -3, -2},
                                        .in_keys = {"observation"},
                                        .in_keys_inv = {"observation"}},
                                       Images(), /*inverse_tolerance=*/0));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Flatten, BesideAnEnvironment<FlattenObservation>(kFlatten, Images()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Unsqueeze,
    BesideAnEnvironment<Unsqueeze>(kUnsqueeze, WithVectorAction({3, 1, 2})));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Squeeze,
    {.make =
         [] {
           return *Squeeze::Create({.dim = -1,
                                    .in_keys = {"observation"},
                                    .in_keys_inv = {"action"}});
         },
     .step_spec =
         [] {
           TensorDictSpec spec =
               WithObservation(LeafSpec::Unbounded(DType::kFloat32, {4, 1}));
           RILL_EXPECT_OK(spec.Set(
               "action", LeafSpec::Categorical(3, DType::kInt64, {1})));
           return spec;
         }()});
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Permute,
    BesideAnEnvironment<Permute>(kPermute, WithVectorAction({3, 1, 2})));

}  // namespace rill
