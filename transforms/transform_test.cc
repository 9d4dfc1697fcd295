// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/transform.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/tensordict/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

class Nothing final : public Transform {
 public:
  absl::string_view name() const override { return "Nothing"; }
};

TransformUnderTest NothingUnderTest() {
  return {.make = [] { return std::make_unique<Nothing>(); },
          .batch_spec = TedSpec(),
          .step_spec = TedSpec()};
}

TEST(TransformTest, DoesNothingUnlessAnImplementationSaysOtherwise) {
  Nothing nothing;
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, TedSpec().Zero({3}));
  const TensorDict before = batch;
  RILL_EXPECT_OK(nothing.Forward(&batch));
  RILL_EXPECT_OK(nothing.Inverse(&batch));
  RILL_EXPECT_OK(nothing.OnReset({1, 0, 1}, &batch));
  RILL_EXPECT_OK(nothing.OnStep(&batch));
  RILL_EXPECT_OK(batch.CheckEqual(before));
  EXPECT_THAT(nothing.ForwardSpec(TedSpec()), IsOkAndHolds(TedSpec()));
  EXPECT_THAT(nothing.InverseSpec(TedSpec()), IsOkAndHolds(TedSpec()));
  EXPECT_THAT(nothing.StepSpec(TedSpec()), IsOkAndHolds(TedSpec()));
}

TEST(TransformTest, WithoutStateRefusesAState) {
  Nothing nothing;
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, nothing.SaveState());
  EXPECT_TRUE(state.empty());
  RILL_EXPECT_OK(nothing.LoadState(state));
  RILL_ASSERT_OK_AND_ASSIGN(Tensor count, Tensor::Zeros(DType::kInt64, {}));
  RILL_ASSERT_OK(state.Set("count", count));
  EXPECT_THAT(nothing.LoadState(state),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       ::testing::HasSubstr("got the keys [count]")));
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(Nothing, NothingUnderTest());

}  // namespace rill
