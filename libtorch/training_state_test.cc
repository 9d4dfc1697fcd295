// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/training_state.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "ATen/Functions.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/libtorch/module_weights.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/libtorch/torch_threads.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/run/run_checkpoint.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "torch/nn/modules/activation.h"
#include "torch/nn/modules/batchnorm.h"
#include "torch/nn/modules/container/sequential.h"
#include "torch/nn/modules/dropout.h"
#include "torch/nn/modules/linear.h"
#include "torch/optim/adam.h"
#include "torch/optim/sgd.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

std::string Directory(absl::string_view name) {
  const std::string path =
      JoinPath(::testing::TempDir(), absl::StrCat("training_state_", name));
  RILL_EXPECT_OK(RemoveAll(path));
  return path;
}

torch::nn::Sequential MakeNet(int64_t hidden = 8) {
  return torch::nn::Sequential(
      torch::nn::Linear(3, hidden), torch::nn::BatchNorm1d(hidden),
      torch::nn::Dropout(0.5), torch::nn::Tanh(), torch::nn::Linear(hidden, 1));
}

ModuleWeights Of(const torch::nn::Sequential& net) {
  auto weights = ModuleWeights::Of(*net);
  RILL_EXPECT_OK(weights);
  return *std::move(weights);
}

ReplayBuffer::Options BufferOf() {
  ReplayBuffer::Options options;
  options.storage = MakeStorage(64);
  options.sampler = *MakePrioritizedSampler({.alpha = 0.7});
  options.batch_size = 16;
  options.seed = 3;
  options.prefetch = 1;
  return options;
}

// A learner of rewards: every part draws, averages or remembers something.
struct Learner {
  torch::nn::Sequential net = MakeNet();
  torch::optim::Adam adam{
      net->parameters(),
      torch::optim::AdamOptions(1e-2).amsgrad(true).weight_decay(1e-3)};
  std::unique_ptr<ReplayBuffer> buffer;

  TrainingParts Parts() {
    return {.weights = {{"net", Of(net)}}, .optimizers = {{"net", &adam}}};
  }

  absl::Status Step(int64_t number) {
    RILL_RETURN_IF_ERROR(
        buffer->Extend(NumberedSteps(1, 10, 10 * number)).status());
    RILL_ASSIGN_OR_RETURN(TensorDict batch, buffer->Sample());
    RILL_ASSIGN_OR_RETURN(TorchTensors inputs, ToTorch(batch));
    const at::Tensor error =
        net->forward(inputs["observation"] / 100) - inputs["next/reward"] / 100;
    adam.zero_grad();
    error.square().mean().backward();
    adam.step();
    // Schedules change options.
    adam.param_groups()[0].options().set_lr(1e-2 / (1.0 + number));
    RILL_ASSIGN_OR_RETURN(Tensor priorities, FromTorch(error.detach().abs()));
    RILL_ASSIGN_OR_RETURN(const auto values, priorities.Flat<float>());
    return buffer->UpdatePriorities(batch, values);
  }
};

absl::Status Save(const std::string& directory,
                  const torch::nn::Sequential& net, torch::optim::Adam& adam,
                  const ReplayBuffer& buffer) {
  RILL_ASSIGN_OR_RETURN(auto weights, ModuleWeights::Of(*net));
  TrainingParts parts = {.weights = {{"net", weights}},
                         .optimizers = {{"net", &adam}}};
  RILL_ASSIGN_OR_RETURN(TensorDict state, SaveTraining(parts));
  return RunCheckpoint::Save(directory, {.buffers = {{"replay", &buffer}},
                                         .states = {{"learner", state}}});
}

absl::Status Open(const std::string& directory, Learner& learner) {
  std::map<std::string, ReplayBuffer::Options> options;
  options["replay"] = BufferOf();
  RILL_ASSIGN_OR_RETURN(
      auto run, RunCheckpoint::Open(directory, {.buffers = std::move(options),
                                                .states = {"learner"}}));
  learner.buffer = std::move(run.buffers["replay"]);
  return LoadTraining(run.states["learner"], learner.Parts());
}

TEST(TrainingStateTest, Example) {
  Learner first, second;
  first.buffer = *ReplayBuffer::Create(BufferOf());
  const std::string directory = Directory("example");
  RILL_ASSERT_OK(Save(directory, first.net, first.adam, *first.buffer));
  RILL_ASSERT_OK(Open(directory, second));
  RILL_EXPECT_OK(Of(second.net).dict().CheckEqual(Of(first.net).dict()));
}

TEST(TrainingStateTest, ARunThatWasStoppedGoesOnBitForBit) {
  RILL_ASSERT_OK(SetTorchThreads(1));  // Several would spin on busy cores.
  for (const int64_t before : {0, 1, 7}) {
    Learner whole, resumed;
    whole.buffer = *ReplayBuffer::Create(BufferOf());
    for (int64_t i = 0; i < before; ++i) RILL_ASSERT_OK(whole.Step(i));
    const std::string directory = Directory(absl::StrCat("stopped", before));
    RILL_ASSERT_OK(Save(directory, whole.net, whole.adam, *whole.buffer));
    const int64_t end = before + 5;
    for (int64_t i = before; i < end; ++i) RILL_ASSERT_OK(whole.Step(i));

    // It has moments of its own, which go.
    resumed.buffer = *ReplayBuffer::Create(BufferOf());
    RILL_ASSERT_OK(resumed.Step(3));
    RILL_ASSERT_OK(Open(directory, resumed));
    for (int64_t i = before; i < end; ++i) RILL_ASSERT_OK(resumed.Step(i));
    RILL_EXPECT_OK(Of(resumed.net).dict().CheckEqual(Of(whole.net).dict()))
        << before;
    RILL_EXPECT_OK(
        (*resumed.buffer->Sample()).CheckEqual(*whole.buffer->Sample()));
  }
}

TEST(TrainingStateTest, TheGeneratorGoesOnWhereItWasSaved) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict saved, SaveTraining({}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, saved.Clone());
  const at::Tensor want = at::randn({5});
  RILL_ASSERT_OK(LoadTraining(state, {}));
  EXPECT_TRUE(at::randn({5}).equal(want));
}

TEST(TrainingStateTest, StatesOfOtherPartsChangeNothing) {
  Learner run;
  const TensorDict state = *(*SaveTraining(run.Parts())).Clone();
  torch::nn::Sequential net = MakeNet(), wide = MakeNet(9);
  torch::optim::Adam adam(net->parameters()), wide_adam(wide->parameters());
  torch::optim::SGD sgd(net->parameters(), 0.1);
  const TensorDict before = *Of(net).dict().Clone();
  EXPECT_THAT(
      LoadTraining(state, {.weights = {{"net", Of(wide)}},
                           .optimizers = {{"net", &adam}}}),
      StatusIs(kInvalidArgument,
               AllOf(HasSubstr("\"net\""), HasSubstr("[8"), HasSubstr("[9"))));
  EXPECT_THAT(LoadTraining(state, {.weights = {{"net", Of(net)}},
                                   .optimizers = {{"net", &wide_adam}}}),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("[8, 3]"), HasSubstr("[9, 3]"))));
  EXPECT_THAT(LoadTraining(state, {.weights = {{"net", Of(net)}},
                                   .optimizers = {{"net", &sgd}}}),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("got \"torch::optim::Adam of"),
                             HasSubstr("want \"torch::optim::SGD of"))));
  EXPECT_THAT(LoadTraining(state, {.weights = {{"other", Of(net)}},
                                   .optimizers = {{"net", &adam}}}),
              StatusIs(kInvalidArgument,
                       HasSubstr("weights: got \"net\", want \"other\"")));
  EXPECT_THAT(LoadTraining(state, {.weights = {{"net", Of(net)}}}),
              StatusIs(kInvalidArgument,
                       HasSubstr("optimizers: got \"net\", want none")));
  EXPECT_THAT(LoadTraining({}, run.Parts()), StatusIs(kInvalidArgument));
  EXPECT_THAT(SaveTraining({.optimizers = {{"net", nullptr}}}),
              StatusIs(kInvalidArgument, HasSubstr("\"net\": got null")));
  EXPECT_THAT(LoadTraining(state, {.weights = {{"net", Of(net)}},
                                   .optimizers = {{"net", nullptr}}}),
              StatusIs(kInvalidArgument, HasSubstr("\"net\": got null")));
  RILL_EXPECT_OK(Of(net).dict().CheckEqual(before));
}

TEST(TrainingStateTest, ADamagedArchiveIsAStatus) {
  Learner run;
  TensorDict state = *(*SaveTraining(run.Parts())).Clone();
  Tensor& archive = *const_cast<Tensor*>(state.Find("optimizers/net/archive"));
  archive = *archive.Slice(0, 0, archive.num_elements() / 2);
  EXPECT_THAT(LoadTraining(state, run.Parts()),
              StatusIs(kInvalidArgument,
                       HasSubstr("LoadTraining: optimizer \"net\": torch:")));
}

}  // namespace
}  // namespace rill
