// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/values/unary.h"

#include <cmath>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// The mean of a row of float32, as float64[1].
Unary::Options Means(const std::string& in, const std::string& out) {
  return {.in_keys = {in},
          .out_keys = {out},
          .fn =
              [](const BoundLeaf& from, const BoundLeaf& to) {
                const int64_t n = from.shape.num_elements();
                for (int64_t i = 0; i < to.rows; ++i) {
                  double sum = 0;
                  for (int64_t k = 0; k < n; ++k) {
                    sum += from.As<float>()[static_cast<size_t>(i * n + k)];
                  }
                  to.As<double>()[static_cast<size_t>(i)] =
                      sum / static_cast<double>(n);
                }
                return absl::OkStatus();
              },
          .spec_fn = [](const LeafSpec& leaf) -> absl::StatusOr<LeafSpec> {
            if (leaf.dtype != DType::kFloat32) {
              return absl::InvalidArgumentError("got " + leaf.ToString() +
                                                ", want float32");
            }
            return LeafSpec::Unbounded(DType::kFloat64, {1});
          }};
}

absl::Status Negate(const BoundLeaf& from, const BoundLeaf& to) {
  for (size_t i = 0; i < to.As<float>().size(); ++i) {
    to.As<float>()[i] = -from.As<float>()[i];
  }
  return absl::OkStatus();
}

TensorDictSpec WithVectorAction() {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(
      spec.Set("action", LeafSpec::Bounded(DType::kFloat32, {3}, -2, 2)));
  return spec;
}

Unary::Options Negations() {
  return {.in_keys = {"observation"},
          .in_keys_inv = {"action"},
          .fn = Negate,
          .inv_fn = Negate};
}

TEST(UnaryTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto root,
      Unary::Create({.in_keys = {"observation"},
                     .fn = [](const BoundLeaf& from, const BoundLeaf& to) {
                       for (size_t i = 0; i < to.As<float>().size(); ++i) {
                         to.As<float>()[i] = std::sqrt(from.As<float>()[i]);
                       }
                       return absl::OkStatus();
                     }}));
  TensorDict batch({2});
  RILL_ASSERT_OK(batch.Set("observation", *Tensor::From<float>({4, 9}, {2})));
  RILL_ASSERT_OK(root->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(2, 3)));
}

TEST(UnaryTest, RowsMayGetAnotherDTypeAndShape) {
  auto means = *Unary::Create(Means("a", "mean"));
  TensorDict batch({2});
  RILL_ASSERT_OK(batch.Set("a", *Tensor::From<float>({1, 2, 3, 5}, {2, 2})));
  RILL_ASSERT_OK(means->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<double>("mean"), IsOkAndHolds(ElementsAre(1.5, 4)));
  EXPECT_TRUE(batch.Contains("a"));
}

TEST(UnaryTest, ErrorsOfTheFunctionsNameTheKey) {
  auto means = *Unary::Create(Means("done", "mean"));
  EXPECT_THAT(means->ForwardSpec(TedSpec()),
              StatusIs(kInvalidArgument, HasSubstr("\"done\": got bool[1]")));
  auto broken = *Unary::Create(
      {.in_keys = {"a"}, .fn = [](const BoundLeaf&, const BoundLeaf&) {
         return absl::InternalError("broken");
       }});
  TensorDict batch({1});
  RILL_ASSERT_OK(batch.Set("a", *Tensor::From<float>({1}, {1})));
  EXPECT_THAT(
      broken->Forward(&batch, nullptr),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("\"a\": broken")));
}

TEST(UnaryTest, BadOptionsAreNamed) {
  EXPECT_THAT(Unary::Create({.in_keys = {"a"}}),
              StatusIs(kInvalidArgument, HasSubstr("fn: got none")));
  EXPECT_THAT(Unary::Create({.fn = Negate}),
              StatusIs(kInvalidArgument, HasSubstr("in_keys")));
  EXPECT_THAT(Unary::Create({.in_keys_inv = {"a"}, .fn = Negate}),
              StatusIs(kInvalidArgument, HasSubstr("inv_fn: got none")));
  EXPECT_THAT(Unary::Create({.in_keys = {"a"}, .fn = Negate, .inv_fn = Negate}),
              StatusIs(kInvalidArgument, HasSubstr("inv_fn: got one")));
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(
    Means, {.make = [] { return *Unary::Create(Means("observation", "mean")); },
            .batch_spec = TedSpec()});
INSTANTIATE_TRANSFORM_CONFORMANCE(
    Negations, {.make = [] { return *Unary::Create(Negations()); },
                .batch_spec = WithVectorAction()});
INSTANTIATE_TRANSFORM_CONFORMANCE(NegationsAndBack,
                                  {.make =
                                       [] {
                                         return *Unary::Create(
                                             {.in_keys = {"observation"},
                                              .in_keys_inv = {"observation"},
                                              .fn = Negate,
                                              .inv_fn = Negate});
                                       },
                                   .batch_spec = TedSpec(),
                                   .inverse_tolerance = 0});
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Means, {.make = [] { return *Unary::Create(Means("observation", "mean")); },
            .step_spec = TedSpec()});
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Negations, {.make = [] { return *Unary::Create(Negations()); },
                .step_spec = WithVectorAction()});

}  // namespace rill
