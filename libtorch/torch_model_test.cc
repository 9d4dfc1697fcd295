// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/torch_model.h"

#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/libtorch/action_distribution.h"
#include "rill/testing/status_matchers.h"
#include "torch/csrc/jit/api/module.h"
#include "torch/nn/modules/activation.h"
#include "torch/nn/modules/container/sequential.h"
#include "torch/nn/modules/linear.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// None is 0 or equals another.
at::Tensor Numbers(c10::IntArrayRef sizes) {
  return StandardNormals(Rng(1), 0, sizes);
}

// Two inputs, two outputs.
struct ActorCriticImpl : torch::nn::Module {
  ActorCriticImpl() {
    body = register_module("body", torch::nn::Linear(3, 2));
    scale = register_buffer("scale", at::full({1}, 2.0f));
  }
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& observation,
                                             const at::Tensor& hidden) {
    return {body->forward(observation) * scale, hidden + 1};
  }
  torch::nn::Linear body{nullptr};
  at::Tensor scale;
};

TEST(TorchModelTest, Example) {
  const at::Tensor observation = at::ones({5, 4});
  torch::nn::Linear net(4, 2);
  const TorchModel model = TorchModel::Of(net.ptr());
  RILL_ASSERT_OK_AND_ASSIGN(const auto outputs, model.Run({observation}));
  ASSERT_THAT(outputs, SizeIs(1));
  EXPECT_TRUE(outputs[0].equal(net->forward(observation).detach()));
  EXPECT_FALSE(outputs[0].requires_grad());
}

TEST(TorchModelTest, AModuleOfAnyKindGivesAllThatItsForwardGives) {
  auto actor_critic = std::make_shared<ActorCriticImpl>();
  const TorchModel model = TorchModel::Of(actor_critic);
  const at::Tensor observation = Numbers({4, 3}).abs(),
                   hidden = Numbers({4, 7}).abs();
  RILL_ASSERT_OK_AND_ASSIGN(const auto outputs,
                            model.Run({observation, hidden}));
  ASSERT_THAT(outputs, SizeIs(2));
  EXPECT_TRUE(outputs[1].equal(hidden + 1));

  torch::nn::Sequential stack(torch::nn::Linear(3, 2), torch::nn::Tanh());
  RILL_ASSERT_OK_AND_ASSIGN(const auto stacked,
                            TorchModel::Of(stack.ptr()).Run({observation}));
  EXPECT_TRUE(stacked[0].equal(stack->forward(observation).detach()));
}

TEST(TorchModelTest, WeightsAreTheModulesOwnBytesByTorchsNames) {
  auto module = std::make_shared<ActorCriticImpl>();
  const TorchModel model = TorchModel::Of(module);
  EXPECT_THAT(model.weights().keys(),
              ElementsAre("body.weight", "body.bias", "scale"));
  EXPECT_EQ(model.weights()["body.bias"].const_data_ptr(),
            module->body->bias.const_data_ptr());
  EXPECT_FALSE(model.weights()["body.bias"].requires_grad());
}

TEST(TorchModelTest, ErrorsOfForwardHaveTorchsTextAndTheInputs) {
  const TorchModel model = TorchModel::Of(torch::nn::Linear(4, 2).ptr());
  EXPECT_THAT(
      model.Run({at::ones({5, 3})}),
      StatusIs(kInvalid, AllOf(HasSubstr("cannot be multiplied (5x3 and 4x2)"),
                               HasSubstr("inputs: Float[5, 3] on cpu"),
                               HasSubstr("weights on cpu"))));
  EXPECT_THAT(model.Run({at::ones({5, 4}, at::kDouble)}),
              StatusIs(kInvalid, HasSubstr("Double[5, 4] on cpu")));
  EXPECT_THAT(model.Run({at::ones({5, 4}), at::ones({5, 4})}),
              StatusIs(kInvalid, HasSubstr("got 2 inputs, want 1")));
  EXPECT_THAT(
      TorchModel([](absl::Span<const at::Tensor>) -> std::vector<at::Tensor> {
        throw std::string("odd");
      }).Run({}),
      StatusIs(absl::StatusCode::kInternal));
}

TEST(TorchModelTest, InputsLieWhereTheModulesWeightsAre) {
  torch::nn::Linear net(4, 2);
  const TorchModel model = TorchModel::Of(net.ptr());
  EXPECT_EQ(model.device(), at::kCPU);
  const at::Tensor there = at::empty({5, 4}, at::kMeta);
  EXPECT_THAT(
      model.Run({there}),
      StatusIs(kInvalid,
               HasSubstr("TorchModel::Run: input 0: got Float[5, 4] on meta, "
                         "want it on cpu, where the module's weights are")));
  // A function, and a module without weights, may do as they like.
  const TorchModel function([&](absl::Span<const at::Tensor> in) {
    return std::vector<at::Tensor>{
        net->forward(at::ones_like(in[0], at::kCPU))};
  });
  EXPECT_EQ(function.device(), std::nullopt);
  RILL_EXPECT_OK(function.Run({there}));
  RILL_EXPECT_OK(TorchModel::Of(torch::nn::Tanh().ptr()).Run({there}));
}

// A script of a module with one weight: x * weight, and x + 1 beside it.
std::string SavedScript() {
  const std::string path = ::testing::TempDir() + "/model.pt";
  torch::jit::Module module("Scaled");
  module.register_parameter("weight", at::full({3}, 2.0f), /*is_buffer=*/false);
  module.define("def forward(self, x):\n  return x * self.weight, x + 1\n");
  module.save(path);
  return path;
}

TEST(TorchModelTest, AScriptIsAFunctionOfTensorsWithItsWeights) {
  RILL_ASSERT_OK_AND_ASSIGN(const TorchModel model,
                            TorchModel::LoadScript(SavedScript()));
  const at::Tensor x = Numbers({4, 3}).abs();
  RILL_ASSERT_OK_AND_ASSIGN(auto outputs, model.Run({x}));
  EXPECT_EQ(model.device(), at::kCPU);
  ASSERT_THAT(outputs, SizeIs(2));
  EXPECT_TRUE(outputs[0].equal(x * 2));
  EXPECT_TRUE(outputs[1].equal(x + 1));
  // A change of the weights changes the model.
  model.weights()["weight"].fill_(5);
  RILL_ASSERT_OK_AND_ASSIGN(outputs, model.Run({x}));
  EXPECT_TRUE(outputs[0].equal(x * 5));
  EXPECT_THAT(model.Run({Numbers({4, 2}).abs()}),
              StatusIs(kInvalid, HasSubstr("Float[4, 2]")));
}

TEST(TorchModelTest, AFileThatIsNoneIsAnErrorWithItsPath) {
  const std::string path = ::testing::TempDir() + "/none.pt";
  std::ofstream(path) << "no script at all";
  for (const std::string& file : {path, ::testing::TempDir() + "/missing.pt"}) {
    EXPECT_THAT(TorchModel::LoadScript(file),
                StatusIs(kInvalid, HasSubstr(file)));
    EXPECT_THAT(TorchModel::LoadPackage(file),
                StatusIs(testing::_, HasSubstr(file)));
  }
}

}  // namespace
}  // namespace rill
