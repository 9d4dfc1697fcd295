// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/sampling/replaced_leaves.h"

#include <cstddef>

#include "gtest/gtest.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill::replay_internal {
namespace {

Tensor Zeros(DType dtype, const Shape& shape) {
  return *Tensor::Zeros(dtype, shape);
}

// A batch whose "action" a transform makes float32 of int64.
class ReplacedLeavesTest : public ::testing::Test {
 protected:
  ReplacedLeavesTest() {
    RILL_EXPECT_OK(batch_.Set("action", Zeros(DType::kInt64, {4})));
    RILL_EXPECT_OK(batch_.Set("reward", Zeros(DType::kFloat32, {4, 1})));
    raw_ = Place("action");
    leaves_.BeginTransforms(batch_);
  }

  const std::byte* Place(const char* key) const {
    return batch_.Find(key)->raw_data();
  }
  void Cast() {
    RILL_EXPECT_OK(batch_.Set("action", Zeros(DType::kFloat32, {4})));
    leaves_.EndTransforms(batch_);
  }

  ReplacedLeaves leaves_;
  TensorDict batch_{{4}};
  const std::byte* raw_ = nullptr;
};

TEST_F(ReplacedLeavesTest, WhatWasReplacedComesBackForTheNextRead) {
  const std::byte* const reward = Place("reward");
  Cast();
  leaves_.PutBack(&batch_);
  EXPECT_EQ(Place("action"), raw_);
  EXPECT_EQ(batch_.Find("action")->dtype(), DType::kInt64);
  EXPECT_EQ(Place("reward"), reward);
}

TEST_F(ReplacedLeavesTest, WhatSomebodyElseHoldsStaysTheirs) {
  const Tensor held = *batch_.Find("action");
  Cast();
  const std::byte* const cast = Place("action");
  leaves_.PutBack(&batch_);
  EXPECT_EQ(Place("action"), cast);
}

TEST_F(ReplacedLeavesTest, LeavesThatFitAreTheCallers) {
  Cast();
  const Tensor own = Zeros(DType::kInt64, {4});
  RILL_ASSERT_OK(batch_.Set("action", own));
  leaves_.PutBack(&batch_);
  EXPECT_EQ(Place("action"), own.raw_data());
}

TEST_F(ReplacedLeavesTest, WhatTheBatchHasUnderANewKeyComesBack) {
  RILL_ASSERT_OK(batch_.Rename("action", "moved"));
  leaves_.EndTransforms(batch_);
  leaves_.PutBack(&batch_);
  EXPECT_EQ(Place("action"), raw_);
}

TEST_F(ReplacedLeavesTest, WhatAnotherLeafIsReadIntoDoesNotComeBack) {
  RILL_ASSERT_OK(batch_.Set("reward", *batch_.Find("action")));
  RILL_ASSERT_OK(batch_.Delete("action"));
  const Tensor reward = *batch_.Find("reward");
  leaves_.EndTransforms(batch_);
  leaves_.PutBack(&batch_);
  EXPECT_FALSE(batch_.Contains("action"));
}

TEST_F(ReplacedLeavesTest, AnotherShapeOfTheSameBytesComesBack) {
  RILL_ASSERT_OK(batch_.Set("action", *batch_.Find("action")->Reshape({4, 1})));
  leaves_.EndTransforms(batch_);
  leaves_.PutBack(&batch_);
  EXPECT_EQ(Place("action"), raw_);
  EXPECT_EQ(batch_.Find("action")->shape(), Shape({4}));
}

TEST_F(ReplacedLeavesTest, BatchesOfAnotherSizeGetNothing) {
  Cast();
  TensorDict other({5});
  leaves_.PutBack(&other);
  EXPECT_EQ(other.num_leaves(), 0);
}

}  // namespace
}  // namespace rill::replay_internal
