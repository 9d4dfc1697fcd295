// SPDX-License-Identifier: Apache-2.0

// A gradient of a network of this project on a batch of Rill's.

#include "gtest/gtest.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "torch/nn/modules/linear.h"

namespace {

TEST(TorchBatchTest, ABatchOfRillGivesANetworkOfThisProjectItsGradient) {
  rill::TensorDict batch({2});
  auto rows = rill::Tensor::From({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3});
  ASSERT_TRUE(rows.ok() && batch.Set("observation", *rows).ok());
  auto inputs = rill::ToTorch(batch);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  torch::nn::Linear net(torch::nn::LinearOptions(3, 1).bias(false));
  net->forward((*inputs)["observation"]).sum().backward();
  auto gradient = rill::FromTorch(net->weight.grad());
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  EXPECT_EQ(gradient->data<float>()[0], 1 + 4);
  EXPECT_EQ(gradient->data<float>()[2], 3 + 6);
}

}  // namespace
