// SPDX-License-Identifier: Apache-2.0
// Collectors whose workers, threads and processes, act by one server.
#include <signal.h>
#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/inference/inference_server.h"
#include "rill/collectors/multi_async_collector.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/testing/arrivals.h"
#include "rill/collectors/testing/memory_policy.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/collectors/workers/worker_main.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/exploration.h"
#include "rill/envs/policies/policy.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/kill_count.h"
#include "rill/testing/process_traces.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kWorkers = 3;
constexpr int64_t kLanes = 2;

// A policy that explores around another one, both of this worker.
class OwnExplorer final : public Policy {
 public:
  OwnExplorer(std::unique_ptr<Policy> policy, const EnvSpec& env)
      : policy_(std::move(policy)),
        explorer_(*MakeEGreedy(policy_.get(), env)) {}
  const TensorDictSpec& output_spec() const override {
    return explorer_->output_spec();
  }
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override {
    return explorer_->Act(root, context, step);
  }

 private:
  const std::unique_ptr<Policy> policy_;
  const std::unique_ptr<Policy> explorer_;
};

// `context.argument` says whose policy acts: "own", "own explorer", "served",
// "served explorer".
absl::StatusOr<WorkerParts> MakeWorker(const WorkerContext& context) {
  WorkerParts parts;
  RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = kLanes}));
  const EnvSpec& spec = parts.env->spec();
  if (context.argument == "own") {
    parts.policy = std::make_unique<MemoryPolicy>();
  } else if (context.argument == "own explorer") {
    parts.policy =
        std::make_unique<OwnExplorer>(std::make_unique<MemoryPolicy>(), spec);
  } else if (context.argument == "served explorer") {
    RILL_ASSIGN_OR_RETURN(parts.policy, MakeEGreedy(context.inference, spec));
  }
  return parts;
}

MultiCollectorOptions Workers(bool are_processes, const std::string& whose,
                              const InferenceServer* server = nullptr) {
  MultiCollectorOptions options;
  options.producer = 0;
  options.workers = kWorkers;
  if (are_processes) {
    options.worker_name = "worker";
  } else {
    options.worker = MakeWorker;
  }
  options.argument = whose;
  options.inference = server;
  options.frames_per_batch = kWorkers * kLanes * 20;
  options.init_random_frames = kWorkers * kLanes * 5;
  options.seed = 5;
  return options;
}

std::unique_ptr<InferenceServer> Serve(Policy* policy,
                                       int64_t min_clients = 1) {
  const auto env = *MakeCartPole({.lanes = kLanes});
  auto server = InferenceServer::Create({.policy = policy,
                                         .root = env->spec().observation,
                                         .action = env->spec().action,
                                         .lanes = kLanes,
                                         .clients = kWorkers,
                                         .min_clients = min_clients});
  RILL_EXPECT_OK(server);
  return *std::move(server);
}

class WorkersTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(ThreadsAndProcesses, WorkersTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Processes" : "Threads";
                         });

TEST_P(WorkersTest, TheServerGivesWhatPoliciesOfTheWorkersGiveBitForBit) {
  struct Case {
    std::string what;
    int64_t min_clients;
  };
  for (const auto& [what, min_clients] :
       {Case{"", 1}, Case{"", kWorkers}, Case{" explorer", 1}}) {
    MemoryPolicy policy;
    const auto server = Serve(&policy, min_clients);
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto own, MultiSyncCollector::Create(
                            Workers(/*are_processes=*/false, "own" + what)));
    RILL_ASSERT_OK_AND_ASSIGN(const auto served,
                              MultiSyncCollector::Create(Workers(
                                  GetParam(), "served" + what, server.get())));
    EXPECT_EQ(served->spec(), own->spec());
    for (int i = 0; i < 5; ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, own->Next());
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, served->Next());
      EXPECT_THAT(got, BitEqualTo(want)) << what << " " << i;
    }
  }
}

// Those of worker `w` that workers with policies of their own give.
void ExpectOwn(int64_t w, const std::vector<TensorDict>& got) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto own,
      MultiSyncCollector::Create(Workers(/*are_processes=*/false, "own")));
  Arrivals want(kWorkers);
  for (size_t i = 0; i < got.size(); ++i) {
    RILL_ASSERT_OK(own->CollectInto(want.sink));
    ASSERT_THAT(got[i], BitEqualTo(want.batches[w][i])) << i;
  }
}

TEST_P(WorkersTest, AsynchronousWorkersGiveTheSameRowsToo) {
  MemoryPolicy policy;
  const auto server = Serve(&policy);
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto served,
      MultiAsyncCollector::Create(Workers(GetParam(), "served", server.get())));
  Arrivals got(kWorkers);
  for (int i = 0; i < 30; ++i) RILL_ASSERT_OK(served->CollectInto(got.sink));
  for (int64_t w = 0; w < kWorkers; ++w) ExpectOwn(w, got.batches[w]);
}

// Fails in its call number 10. The output "made_by" is the version, which is
// another one in each call.
class VersionPolicy final : public Policy {
 public:
  VersionPolicy() {
    RILL_EXPECT_OK(
        spec_.Set("made_by", LeafSpec::Unbounded(DType::kInt64, {1})));
  }
  const TensorDictSpec& output_spec() const override { return spec_; }
  absl::StatusOr<int64_t> Act(const TensorDict&, const ActContext& context,
                              TensorDict* step) override {
    if (context.step == 10) return absl::AbortedError("the weights are gone");
    const Tensor& action = *step->Find("action");
    std::fill_n(action.data<int64_t>(), action.num_elements(), 0);
    const Tensor& made_by = *step->Find("made_by");
    std::fill_n(made_by.data<int64_t>(), made_by.num_elements(),
                context.step + 1);
    return context.step + 1;
  }

 private:
  TensorDictSpec spec_;
};

TEST_P(WorkersTest, FramesCarryTheVersionThatMadeThemAndErrorsTheirText) {
  VersionPolicy policy;
  const auto server = Serve(&policy);
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto collector,
      MultiSyncCollector::Create(Workers(GetParam(), "served", server.get())));
  // Each worker that the call was for has its error.
  int64_t errors = 0;
  absl::StatusOr<TensorDict> first = collector->Next();
  for (; !first.ok() && errors < kWorkers; first = collector->Next()) {
    EXPECT_THAT(first, StatusIs(absl::StatusCode::kAborted,
                                AllOf(HasSubstr("worker"),
                                      HasSubstr("the weights are gone"))));
    ++errors;
  }
  EXPECT_GT(errors, 0);
  RILL_ASSERT_OK(first);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
  EXPECT_THAT(*batch.Find("made_by"),
              BitEqualTo(*batch.Find("policy_version")));
  EXPECT_GT(*batch.Find("made_by")->data<int64_t>(), 10);
}

TEST_P(WorkersTest, AServerThatStopsCancelsTheCollectorsCall) {
  MemoryPolicy policy;
  const auto server = Serve(&policy);
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto collector,
      MultiSyncCollector::Create(Workers(GetParam(), "served", server.get())));
  RILL_ASSERT_OK(collector->Next());
  server->Stop();
  EXPECT_THAT(collector->Next(),
              StatusIs(absl::StatusCode::kCancelled,
                       HasSubstr("InferenceServer: the server was stopped")));
}

TEST_P(WorkersTest, AServerOfTooFewClientsIsRefused) {
  MemoryPolicy policy;
  const auto server = Serve(&policy);
  MultiCollectorOptions options = Workers(GetParam(), "served", server.get());
  options.workers = kWorkers + 1;
  EXPECT_THAT(MultiSyncCollector::Create(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("inference: got 3 clients")));
}

// At any moment of its life, also while the server acts for it. The server
// waits for all workers, but for none that is dead.
TEST(InferenceWorkersTest, KilledWorkersLoseNoRowOfAnother) {
  MemoryPolicy policy;
  const auto server = Serve(&policy, kWorkers);
  const int64_t kills = KillCount();
  MultiCollectorOptions options = Workers(true, "served", server.get());
  options.max_restarts = 2 * kills;
  RILL_ASSERT_OK_AND_ASSIGN(const auto served,
                            MultiAsyncCollector::Create(options));
  const std::vector<pid_t> first = ChildProcesses();
  ASSERT_EQ(first.size(), kWorkers);
  // Worker 0 lives on. It was started first.
  const pid_t lasting = *std::min_element(first.begin(), first.end());
  const Rng rng(1);
  Arrivals got(kWorkers);
  for (int64_t i = 0; i < kills; ++i) {
    const int64_t batches = rng.UniformInt(i, 0, 5);
    for (int64_t k = 0; k < batches; ++k) {
      RILL_ASSERT_OK(served->CollectInto(got.sink));
    }
    for (const pid_t child : ChildProcesses()) {
      if (child != lasting) kill(child, SIGKILL);
    }
  }
  EXPECT_GT(served->restarts(), 0);
  ASSERT_FALSE(got.batches[0].empty());
  ExpectOwn(0, got.batches[0]);
}

TEST(InferenceWorkersTest, NothingIsLeft) {
  const auto descriptors = NamesIn("/proc/self/fd");
  const size_t mappings = MappingsOf("memfd").size();
  for (const bool are_processes : {false, true}) {
    MemoryPolicy policy;
    const auto server = Serve(&policy);
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto served, MultiSyncCollector::Create(
                               Workers(are_processes, "served", server.get())));
    RILL_ASSERT_OK(served->Next());
  }
  EXPECT_THAT(ChildProcesses(), IsEmpty());
  EXPECT_EQ(NamesIn("/proc/self/fd"), descriptors);
  EXPECT_EQ(MappingsOf("memfd").size(), mappings);
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
