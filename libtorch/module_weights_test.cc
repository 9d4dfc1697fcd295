// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/module_weights.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/Parallel.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "c10/core/InferenceMode.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/multi_async_collector.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/collectors/workers/worker_main.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/policies/policy.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/libtorch/torch_threads.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "torch/csrc/jit/api/module.h"
#include "torch/nn/module.h"
#include "torch/nn/modules/batchnorm.h"
#include "torch/nn/modules/container/sequential.h"
#include "torch/nn/modules/conv.h"
#include "torch/nn/modules/linear.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

torch::nn::Sequential MakeNet(int64_t hidden = 3) {
  return torch::nn::Sequential(torch::nn::Linear(4, hidden),
                               torch::nn::BatchNorm1d(hidden),
                               torch::nn::Linear(hidden, 2));
}

template <typename Module>
ModuleWeights Of(const Module& module) {
  auto weights = ModuleWeights::Of(*module);
  RILL_EXPECT_OK(weights);
  return *std::move(weights);
}

// Every element of every weight becomes `value`.
void Fill(const torch::nn::Module& module, double value) {
  for (const auto& weight : module.named_parameters()) {
    weight.value().detach().fill_(value);
  }
  for (const auto& weight : module.named_buffers()) weight.value().fill_(value);
}

bool IsFilled(const torch::nn::Module& module, double value) {
  bool is_filled = true;
  for (const auto& weight : module.named_parameters()) {
    is_filled &= weight.value().eq(value).all().item<bool>();
  }
  for (const auto& weight : module.named_buffers()) {
    is_filled &= weight.value().eq(value).all().item<bool>();
  }
  return is_filled;
}

std::unique_ptr<WeightStore> StoreOf(const ModuleWeights& weights) {
  auto store = WeightStore::Create({.weights = weights.dict()});
  RILL_EXPECT_OK(store.status());
  return *std::move(store);
}

absl::Status RunExample(const torch::nn::Sequential& net,
                        const torch::nn::Sequential& copy) {
  RILL_ASSIGN_OR_RETURN(auto weights, ModuleWeights::Of(*net));
  RILL_ASSIGN_OR_RETURN(auto store,
                        WeightStore::Create({.weights = weights.dict()}));
  RILL_RETURN_IF_ERROR(weights.Publish(*store).status());
  // In a worker, whose context has a reader:
  RILL_ASSIGN_OR_RETURN(auto reader, store->OpenReader());
  WorkerContext context;
  context.weights = reader.get();
  RILL_ASSIGN_OR_RETURN(auto mine, ModuleWeights::Of(*copy));
  RILL_ASSIGN_OR_RETURN(int64_t version, mine.LoadLatest(*context.weights));
  EXPECT_EQ(version, 1);
  return mine.dict().CheckEqual(weights.dict());
}

TEST(ModuleWeightsTest, Example) {
  RILL_EXPECT_OK(RunExample(MakeNet(), MakeNet()));
}

// --- One side ----------------------------------------------------------------

TEST(ModuleWeightsTest, TheyAreParametersAndBuffersInPlaceByTorchsNames) {
  torch::nn::Sequential net = MakeNet();
  const ModuleWeights weights = Of(net);
  EXPECT_THAT(weights.dict().LeafKeys(),
              ElementsAre("0.weight", "0.bias", "1.weight", "1.bias",
                          "2.weight", "2.bias", "1.running_mean",
                          "1.running_var", "1.num_batches_tracked"));
  for (const auto& parameter : net->named_parameters()) {
    EXPECT_EQ(weights.dict().Find(parameter.key())->raw_data(),
              parameter.value().data_ptr());
  }
}

TEST(ModuleWeightsTest, ATorchScriptModuleHasThemToo) {
  torch::jit::Module script("net");
  script.register_parameter("weight", at::full({2}, 1.0), /*is_buffer=*/false);
  script.register_buffer("count", at::full({}, 2, at::kLong));
  RILL_ASSERT_OK_AND_ASSIGN(ModuleWeights weights, ModuleWeights::Of(script));
  EXPECT_THAT(weights.dict().LeafKeys(), ElementsAre("weight", "count"));
  TensorDict others = *weights.dict().Clone();
  others.Find("weight")->data<float>()[1] = 7;
  RILL_ASSERT_OK(weights.Load(others));
  EXPECT_EQ(script.attr("weight").toTensor()[1].item<float>(), 7);
}

TEST(ModuleWeightsTest, ModulesWithoutWeightsAreRefused) {
  EXPECT_THAT(ModuleWeights::Of(*torch::nn::Sequential()).status(),
              StatusIs(kInvalidArgument, HasSubstr("got no weights")));
  EXPECT_THAT(ModuleWeights::Of(TorchTensors()).status(),
              StatusIs(kInvalidArgument));
  EXPECT_FALSE(ModuleWeights::Of(torch::jit::Module()).ok());
  EXPECT_THAT(ModuleWeights::Of({{"w", at::ones({2}).to_sparse()}}).status(),
              StatusIs(kInvalidArgument, HasSubstr("\"w\": got a layout")));
}

TEST(ModuleWeightsTest, WeightsOfAnotherModuleChangeNothing) {
  torch::nn::Sequential net = MakeNet();
  Fill(*net, 5);
  ModuleWeights weights = Of(net);
  EXPECT_THAT(
      weights.Load(Of(MakeNet(7)).dict()),
      StatusIs(kInvalidArgument,
               AllOf(HasSubstr("ModuleWeights::Load"), HasSubstr("0.weight"),
                     HasSubstr("[7, 4]"), HasSubstr("[3, 4]"))));
  TensorDict others = *Of(MakeNet()).dict().Clone();
  RILL_ASSERT_OK(others.Rename("2.bias", "3.bias"));
  EXPECT_THAT(weights.Load(others),
              StatusIs(kInvalidArgument, AllOf(HasSubstr("\"2.bias\""),
                                               HasSubstr("\"3.bias\""))));
  others = *Of(MakeNet()).dict().Clone();
  RILL_ASSERT_OK(others.Set("0.bias", *Tensor::From<double>({1, 2, 3}, {3})));
  EXPECT_THAT(weights.Load(others),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("0.bias"), HasSubstr("float64"),
                             HasSubstr("float32"))));
  EXPECT_TRUE(IsFilled(*net, 5));

  const auto store = StoreOf(Of(MakeNet(7)));
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader, store->OpenReader());
  EXPECT_THAT(weights.LoadLatest(*reader), StatusIs(kInvalidArgument));
  EXPECT_THAT(weights.Publish(*store), StatusIs(kInvalidArgument));
}

TEST(ModuleWeightsTest, AGradientOfWeightsThatWereReplacedIsRefusedByTorch) {
  torch::nn::Linear net(4, 2);
  ModuleWeights weights = Of(net);
  const at::Tensor input = at::ones({1, 4}).requires_grad_();
  const at::Tensor before = net->forward(input).sum();
  RILL_ASSERT_OK(weights.Load(*weights.dict().Clone()));
  EXPECT_THROW(before.backward(), c10::Error);
  // Another forward pass has its gradients, and the weights are leaves still.
  net->forward(input).sum().backward();
  EXPECT_TRUE(net->weight.is_leaf() && net->weight.requires_grad());
  EXPECT_TRUE(net->weight.grad().defined());
}

TEST(ModuleWeightsTest, LayoutsAndInferenceModulesAreLoadedInPlace) {
  // Channels last, as convolutions on images prefer.
  torch::nn::Conv2d from(3, 4, 2), to(3, 4, 2);
  to->to(at::kFloat);
  to->weight.set_data(
      to->weight.detach().contiguous(at::MemoryFormat::ChannelsLast));
  const auto store = StoreOf(Of(from));
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader, store->OpenReader());
  ModuleWeights weights = Of(to);
  RILL_ASSERT_OK(weights.LoadLatest(*reader).status());
  EXPECT_TRUE(to->weight.equal(from->weight));
  RILL_ASSERT_OK(weights.Publish(*store).status());  // And out of them.
  EXPECT_TRUE(to->weight.equal(from->weight));

  std::optional<torch::nn::Linear> inference;
  {
    const c10::InferenceMode guard;
    inference.emplace(4, 2);
  }
  torch::nn::Linear other(4, 2);
  RILL_ASSERT_OK(Of(*inference).Load(Of(other).dict()));
  EXPECT_TRUE((*inference)->weight.equal(other->weight));
}

// --- Both sides --------------------------------------------------------------

TEST(ModuleWeightsTest, OnlyNewsAreLoaded) {
  torch::nn::Sequential net = MakeNet(), copy = MakeNet();
  Fill(*net, 1);
  const ModuleWeights weights = Of(net);
  const auto store = StoreOf(weights);
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader, store->OpenReader());
  ModuleWeights mine = Of(copy);
  EXPECT_THAT(mine.LoadLatest(*reader), IsOkAndHolds(0));
  EXPECT_TRUE(IsFilled(*copy, 1));
  Fill(*copy, 9);
  EXPECT_THAT(mine.LoadLatest(*reader), IsOkAndHolds(0));
  EXPECT_TRUE(IsFilled(*copy, 9));
  Fill(*net, 2);
  EXPECT_THAT(weights.Publish(*store), IsOkAndHolds(1));
  Fill(*net, 3);
  EXPECT_THAT(mine.LoadLatest(*reader), IsOkAndHolds(1));
  EXPECT_TRUE(IsFilled(*copy, 2));
}

TEST(ModuleWeightsTest, ThreadsLoadWholeSnapshotsWhileALearnerPublishes) {
  torch::nn::Sequential net = MakeNet();
  Fill(*net, 0);
  const ModuleWeights weights = Of(net);
  const auto store = StoreOf(weights);
  std::atomic<bool> is_over = false;
  std::atomic<int64_t> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      const auto reader = *store->OpenReader();
      torch::nn::Sequential copy = MakeNet();
      ModuleWeights mine = Of(copy);
      while (!is_over.load()) {
        const auto version = mine.LoadLatest(*reader);
        wrong +=
            !version.ok() || !IsFilled(*copy, static_cast<double>(*version));
      }
    });
  }
  for (int64_t version = 1; version < 500; ++version) {
    Fill(*net, static_cast<double>(version));
    RILL_EXPECT_OK(weights.Publish(*store).status());
  }
  is_over.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

// Action: the parity of the weights, which all are equal. A wrong one, where
// they are not, or torch has more than one thread here.
class NetPolicy final : public Policy {
 public:
  NetPolicy(torch::nn::Sequential net, ModuleWeights weights,
            WeightStore::Reader* reader)
      : net_(std::move(net)), weights_(std::move(weights)), reader_(reader) {}

  absl::StatusOr<int64_t> Act(const TensorDict&, const ActContext&,
                              TensorDict* step) override {
    RILL_ASSIGN_OR_RETURN(const int64_t version, weights_.LoadLatest(*reader_));
    if (!IsFilled(*net_, static_cast<double>(version))) {
      return InvalidArgument("not of version ", version);
    }
    if (at::get_num_threads() != 1) return InvalidArgument("several threads");
    const Tensor& action = *step->Find("action");
    for (int64_t lane = 0; lane < action.num_elements(); ++lane) {
      action.data<int64_t>()[lane] = version % 2;
    }
    return version;
  }

 private:
  torch::nn::Sequential net_;
  ModuleWeights weights_;
  WeightStore::Reader* const reader_;
};

absl::StatusOr<WorkerParts> MakeWorker(const WorkerContext& context) {
  RILL_RETURN_IF_ERROR(SetTorchThreads(1));
  torch::nn::Sequential net = MakeNet(context.argument.empty() ? 3 : 7);
  RILL_ASSIGN_OR_RETURN(ModuleWeights weights, ModuleWeights::Of(*net));
  WorkerParts parts;
  RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = 2}));
  parts.policy =
      std::make_unique<NetPolicy>(net, std::move(weights), context.weights);
  return parts;
}

MultiCollectorOptions Processes(const WeightStore& store) {
  MultiCollectorOptions options;
  options.workers = 2;
  options.worker_name = "worker";
  options.weights = &store;
  options.frames_per_batch = 40;
  return options;
}

template <typename Collector>
class WorkersWeightsTest : public ::testing::Test {};
using Collectors = ::testing::Types<MultiSyncCollector, MultiAsyncCollector>;
TYPED_TEST_SUITE(WorkersWeightsTest, Collectors);

// Torch works in the learner, with several threads, before workers start.
TYPED_TEST(WorkersWeightsTest,
           ProcessesLoadBetweenTwoStepsWhatALearnerPublishes) {
  RILL_ASSERT_OK(SetTorchThreads(3));
  EXPECT_GT(at::ones({1 << 20}).exp().sum().item<float>(), 0);
  torch::nn::Sequential net = MakeNet();
  Fill(*net, 0);
  const ModuleWeights weights = Of(net);
  const auto store = StoreOf(weights);
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            TypeParam::Create(Processes(*store)));
  constexpr int64_t kLast = 7;
  int64_t published = 0;
  // Batches that were made ahead have older versions; the last one comes.
  for (int64_t latest = 0; latest < kLast;) {
    if (published < kLast) {
      Fill(*net, static_cast<double>(++published));
      RILL_ASSERT_OK(weights.Publish(*store).status());
    }
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
    RILL_ASSERT_OK_AND_ASSIGN(const auto versions,
                              batch.Flat<int64_t>("policy_version"));
    RILL_ASSERT_OK_AND_ASSIGN(const auto actions,
                              batch.Flat<int64_t>("action"));
    for (size_t i = 0; i < versions.size(); ++i) {
      ASSERT_EQ(actions[i], versions[i] % 2);
      ASSERT_LE(versions[i], published);
      latest = std::max(latest, versions[i]);
    }
  }
}

TEST(ModuleWeightsTest, AProcessWithAnotherModuleSaysWhichWeightDiffers) {
  const auto store = StoreOf(Of(MakeNet()));
  MultiCollectorOptions options = Processes(*store);
  options.argument = "another";
  absl::Status status;
  auto collector = MultiSyncCollector::Create(options);
  status = collector.ok() ? (*collector)->Next().status() : collector.status();
  EXPECT_THAT(status, StatusIs(kInvalidArgument,
                               AllOf(HasSubstr("0.weight"), HasSubstr("[7, 4]"),
                                     HasSubstr("[3, 4]"))));
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  const std::optional<int> worker =
      rill::WorkerMain(argc, argv, {{"worker", rill::MakeWorker}});
  if (worker.has_value()) return *worker;
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
