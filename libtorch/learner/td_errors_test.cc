// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/learner/td_errors.h"

#include <memory>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TdErrorsTest, Example) {
  PrioritizedSelector* selector;
  std::shared_ptr<Storage> storage = *DenseStorage::Create({.capacity = 4});
  auto buffer =
      *ReplayBuffer::Create({.storage = storage,
                             .sampler = *MakePrioritizedSampler({}, &selector),
                             .batch_size = 3});
  TensorDict steps({1});
  RILL_ASSERT_OK(steps.Set("x", *Tensor::Zeros(DType::kFloat32, {1})));
  RILL_ASSERT_OK(buffer->Extend(steps).status());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  const at::Tensor errors =
      at::tensor({1.0, 2.0, -3.0}, at::kDouble).view({3, 1}).requires_grad_();
  RILL_ASSERT_OK(UpdatePriorities(*buffer, batch, errors));
  EXPECT_THAT(selector->Priorities(), ElementsAre(3, 0, 0, 0));
  EXPECT_THAT(
      UpdatePriorities(*buffer, batch, at::zeros({2})),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("got 2 of them")));
}

}  // namespace
}  // namespace rill
