// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/target_network.h"

#include <cmath>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"
#include "torch/nn/modules/batchnorm.h"
#include "torch/nn/modules/container/sequential.h"
#include "torch/nn/modules/linear.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

torch::nn::Sequential Network() {
  return torch::nn::Sequential(torch::nn::Linear(3, 4),
                               torch::nn::BatchNorm1d(4));
}

std::vector<at::Tensor> Copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : tensors) {
    copies.push_back(tensor.detach().clone());
  }
  return copies;
}

TEST(TargetNetworkTest, Example) {
  torch::nn::Sequential net = Network(), target = Network();
  net->forward(at::ones({8, 3}) * 2);  // Statistics of its own.
  const std::vector<at::Tensor> before = Copies(target->parameters());
  RILL_ASSERT_OK(UpdateTarget(*net, *target, /*tau=*/0.25));
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(target->parameters()[i].allclose(0.75 * before[i] +
                                                 0.25 * net->parameters()[i]));
    EXPECT_TRUE(target->parameters()[i].requires_grad());
    EXPECT_TRUE(target->parameters()[i].is_leaf());
  }
  for (size_t i = 0; i < net->buffers().size(); ++i) {
    EXPECT_TRUE(target->buffers()[i].equal(net->buffers()[i]));
  }
}

TEST(TargetNetworkTest, WithoutTauTheTargetIsACopyOfItsOwn) {
  torch::nn::Sequential net = Network(), target = Network();
  RILL_ASSERT_OK(UpdateTarget(*net, *target));
  for (size_t i = 0; i < net->parameters().size(); ++i) {
    EXPECT_TRUE(target->parameters()[i].equal(net->parameters()[i]));
    EXPECT_NE(target->parameters()[i].const_data_ptr(),
              net->parameters()[i].const_data_ptr());
  }
}

TEST(TargetNetworkTest, ModulesThatAreNotAlikeAreRefusedUnchanged) {
  torch::nn::Sequential net = Network();
  const auto refusal = [&](torch::nn::Sequential target, double tau = 1) {
    const std::vector<at::Tensor> before = Copies(target->parameters());
    const absl::Status status = UpdateTarget(*net, *target, tau);
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_TRUE(target->parameters()[i].equal(before[i]));
    }
    return status;
  };
  const auto refuses = [](const char* text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
  };
  EXPECT_THAT(refusal(torch::nn::Sequential(torch::nn::Linear(3, 4),
                                            torch::nn::BatchNorm1d(5))),
              refuses("\"1.weight\": got Float[4] on cpu of the network, want "
                      "Float[5] on cpu"));
  EXPECT_THAT(refusal(torch::nn::Sequential(torch::nn::Linear(3, 4))),
              refuses("\"1.weight\": got Float[4] on cpu of the network, want "
                      "a target that has it"));
  torch::nn::Sequential more = Network();
  more->push_back(torch::nn::Linear(4, 1));
  EXPECT_THAT(refusal(more), refuses("\"2.weight\": got none"));
  for (const double tau : {0.0, -1.0, 1.5, std::nan("")}) {
    EXPECT_THAT(refusal(Network(), tau), refuses("tau: got"));
  }
}

}  // namespace
}  // namespace rill
