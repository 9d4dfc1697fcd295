// SPDX-License-Identifier: Apache-2.0
// Clients in threads; inference_workers_test.cc has those of collectors.
#include "rill/collectors/inference/inference_server.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/conformance/policy_conformance.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/testing/memory_policy.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kLanes = 3;

TensorDictSpec Root() {
  TensorDictSpec spec;
  RILL_EXPECT_OK(
      spec.Set("observation", LeafSpec::Unbounded(DType::kFloat32, {2})));
  return spec;
}
TensorDictSpec Action() {
  TensorDictSpec spec;
  RILL_EXPECT_OK(spec.Set("action", LeafSpec::Categorical(1000)));
  return spec;
}

InferenceServer::Options With(Policy* policy, int64_t clients) {
  InferenceServer::Options options;
  options.policy = policy;
  options.root = Root();
  options.action = Action();
  options.lanes = kLanes;
  options.clients = clients;
  options.max_wait = absl::InfiniteDuration();
  return options;
}

TensorDict RootOf(int64_t lanes, float value) {
  TensorDict root({lanes});
  Tensor observation = *Tensor::Zeros(DType::kFloat32, {lanes, 2});
  std::fill_n(observation.data<float>(), 2 * lanes, value);
  RILL_EXPECT_OK(root.Set("observation", observation));
  return root;
}
TensorDict StepOf(const TensorDict& root) {
  TensorDict step = root;
  RILL_EXPECT_OK(
      step.Set("action", *Tensor::Zeros(DType::kInt64, root.batch_shape())));
  return step;
}

// Asks once with an observation of `value`.
absl::StatusOr<std::vector<int64_t>> Ask(Policy* client, float value,
                                         bool explore = true) {
  const TensorDict root = RootOf(kLanes, value);
  TensorDict step = StepOf(root);
  RILL_RETURN_IF_ERROR(client->Act(root, {.explore = explore}, &step).status());
  RILL_ASSIGN_OR_RETURN(const auto actions, step.Flat<int64_t>("action"));
  return std::vector<int64_t>(actions.begin(), actions.end());
}

// The action is the observation's first element, plus 100 where it explores.
// The version counts calls.
class EchoPolicy final : public Policy {
 public:
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override {
    contexts.push_back(context);
    lanes.push_back(root.batch_shape()[0]);
    if (!next_status.ok()) return std::exchange(next_status, {});
    if (std::exchange(replaces_leaf, false)) {
      RILL_RETURN_IF_ERROR(
          step->Set("action", *Tensor::Zeros(DType::kInt64, {lanes.back()})));
    }
    for (int64_t i = 0; i < lanes.back(); ++i) {
      step->Find("action")->data<int64_t>()[i] =
          static_cast<int64_t>(root.Find("observation")->data<float>()[2 * i]) +
          (context.explore ? 100 : 0);
    }
    return static_cast<int64_t>(contexts.size());
  }

  // One entry a call.
  std::vector<ActContext> contexts;
  std::vector<int64_t> lanes;
  absl::Status next_status;
  bool replaces_leaf = false;
};

TEST(InferenceServerTest, ClientsThatWaitAreOneBatch) {
  EchoPolicy policy;
  InferenceServer::Options options = With(&policy, 4);
  options.min_clients = 4;
  RILL_ASSERT_OK_AND_ASSIGN(const auto server,
                            InferenceServer::Create(options));
  std::vector<std::unique_ptr<Policy>> clients;
  for (int64_t i = 0; i < 4; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(clients.emplace_back(), server->OpenClient(i));
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 50; ++k) {
        EXPECT_THAT(Ask(clients[i].get(), static_cast<float>(10 * i + k)),
                    IsOkAndHolds(Each(100 + 10 * i + k)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(policy.lanes.size(), 50);
  EXPECT_THAT(policy.lanes, Each(4 * kLanes));
  EXPECT_EQ(policy.contexts.back().step, 49);
  EXPECT_EQ(policy.contexts.back().frames, 49 * 4 * kLanes);
}

// Steps 0 to 4 of two workers, and then 5 to 9 in a run that was loaded, with
// another server.
TEST(InferenceServerTest, AResumedRunDrawsOtherNumbersAndGoesOnWithItsFrames) {
  EchoPolicy policy;
  for (const int64_t begin : {0, 5}) {
    RILL_ASSERT_OK_AND_ASSIGN(const auto server,
                              InferenceServer::Create(With(&policy, 2)));
    for (int64_t worker = 0; worker < 2; ++worker) {
      RILL_ASSERT_OK_AND_ASSIGN(const auto client, server->OpenClient(worker));
      for (int64_t step = begin; step < begin + 5; ++step) {
        const TensorDict root = RootOf(kLanes, 0);
        TensorDict leaves = StepOf(root);
        RILL_ASSERT_OK(client
                           ->Act(root,
                                 {.frames = 100 + step,
                                  .step = step,
                                  .seed = static_cast<uint64_t>(worker)},
                                 &leaves)
                           .status());
        EXPECT_EQ(policy.contexts.back().frames, 100 + step);
      }
    }
  }
  std::set<uint64_t> seeds;
  for (const ActContext& context : policy.contexts) seeds.insert(context.seed);
  EXPECT_EQ(seeds.size(), 20);
}

TEST(InferenceServerTest, AnEvaluationAddsNoFramesOfTheRun) {
  EchoPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(const auto server,
                            InferenceServer::Create(With(&policy, 1)));
  RILL_ASSERT_OK_AND_ASSIGN(const auto client, server->OpenClient(0));
  for (const bool explore : {false, false, true, true}) {
    RILL_ASSERT_OK(Ask(client.get(), 0, explore));
  }
  EXPECT_EQ(policy.contexts.back().frames, kLanes);
  EXPECT_EQ(policy.contexts.back().step, 3);
}

TEST(InferenceServerTest, AClientThatHasGoneIsNotWaitedFor) {
  EchoPolicy policy;
  InferenceServer::Options options = With(&policy, 2);
  options.min_clients = 2;
  RILL_ASSERT_OK_AND_ASSIGN(const auto server,
                            InferenceServer::Create(options));
  RILL_ASSERT_OK_AND_ASSIGN(const auto stays, server->OpenClient(0));
  RILL_ASSERT_OK_AND_ASSIGN(auto goes, server->OpenClient(1));
  std::thread thread([&] { EXPECT_TRUE(Ask(stays.get(), 1).ok()); });
  EXPECT_TRUE(Ask(goes.get(), 1).ok());
  thread.join();
  goes.reset();
  RILL_EXPECT_OK(Ask(stays.get(), 1));
  EXPECT_THAT(policy.lanes, ElementsAre(2 * kLanes, kLanes));
  RILL_EXPECT_OK(server->OpenClient(1));
}

TEST(InferenceServerTest, ClientsThatDoNotExploreAreInCallsOfTheirOwn) {
  EchoPolicy policy;
  InferenceServer::Options options = With(&policy, 3);
  options.min_clients = 3;
  RILL_ASSERT_OK_AND_ASSIGN(const auto server,
                            InferenceServer::Create(options));
  std::vector<std::unique_ptr<Policy>> clients;
  for (int64_t i = 0; i < 3; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(clients.emplace_back(), server->OpenClient(i));
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      const bool explore = i != 1;
      EXPECT_THAT(Ask(clients[i].get(), static_cast<float>(i), explore),
                  IsOkAndHolds(Each(i + (explore ? 100 : 0))));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(policy.lanes, ElementsAre(2 * kLanes, kLanes));
}

TEST(InferenceServerTest, AnErrorComesBackWithItsTextAndTheNextCallGoesOn) {
  EchoPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(const auto server,
                            InferenceServer::Create(With(&policy, 1)));
  RILL_ASSERT_OK_AND_ASSIGN(const auto client, server->OpenClient(0));
  policy.next_status = absl::ResourceExhaustedError("no memory on the card");
  EXPECT_THAT(
      Ask(client.get(), 1),
      StatusIs(absl::StatusCode::kResourceExhausted, "no memory on the card"));
  EXPECT_THAT(Ask(client.get(), 1), IsOkAndHolds(Each(101)));
  policy.next_status = absl::InternalError(std::string(100000, 'x'));
  EXPECT_THAT(Ask(client.get(), 1),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("xxx")));
}

TEST(InferenceServerTest, APolicyThatReplacesALeafIsFound) {
  EchoPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(const auto server,
                            InferenceServer::Create(With(&policy, 1)));
  RILL_ASSERT_OK_AND_ASSIGN(const auto client, server->OpenClient(0));
  policy.replaces_leaf = true;
  EXPECT_THAT(Ask(client.get(), 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("leaf \"action\": got another tensor")));
  EXPECT_THAT(Ask(client.get(), 2), IsOkAndHolds(Each(102)));
}

TEST(InferenceServerTest, ARootOfOtherLanesOrLeavesIsRefusedBeforeItIsAsked) {
  EchoPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(const auto server,
                            InferenceServer::Create(With(&policy, 1)));
  RILL_ASSERT_OK_AND_ASSIGN(const auto client, server->OpenClient(0));
  TensorDict root = RootOf(2, 0);
  TensorDict step = StepOf(root);
  EXPECT_THAT(client->Act(root, {}, &step),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("lanes: got 2, want 3")));
  root = TensorDict({kLanes});
  step = StepOf(root);
  EXPECT_THAT(
      client->Act(root, {}, &step),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(HasSubstr("InferenceServer"), HasSubstr("observation"))));
  root = RootOf(kLanes, 0);
  step = root;
  RILL_ASSERT_OK(step.Set("action", *Tensor::Zeros(DType::kFloat32, {kLanes})));
  EXPECT_THAT(client->Act(root, {}, &step),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("action"), HasSubstr("float32"))));
  EXPECT_TRUE(policy.lanes.empty());
}

// Ends only where Stop lets it.
class PatientPolicy final : public Policy {
 public:
  absl::StatusOr<int64_t> Act(const TensorDict&, const ActContext&,
                              TensorDict*) override {
    begun.Notify();
    may_end.WaitForNotification();
    return 0;
  }
  absl::Notification begun;
  absl::Notification may_end;
};

TEST(InferenceServerTest, StopCancelsClientsThatWaitAndThoseThatAskLater) {
  PatientPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(auto server,
                            InferenceServer::Create(With(&policy, 2)));
  RILL_ASSERT_OK_AND_ASSIGN(const auto client, server->OpenClient(0));
  const auto cancelled = StatusIs(absl::StatusCode::kCancelled,
                                  "InferenceServer: the server was stopped");
  std::thread thread([&] { EXPECT_THAT(Ask(client.get(), 1), cancelled); });
  policy.begun.WaitForNotification();
  server->Stop();
  thread.join();
  policy.may_end.Notify();
  EXPECT_THAT(Ask(client.get(), 1), cancelled);
  EXPECT_THAT(server->OpenClient(1), StatusIs(absl::StatusCode::kCancelled));
  server.reset();
  EXPECT_THAT(Ask(client.get(), 1), cancelled);
}

TEST(InferenceServerTest, OptionsThatCannotBeAreRefused) {
  EchoPolicy echo;
  const auto refused = [](InferenceServer::Options options,
                          const std::string& what) {
    EXPECT_THAT(
        InferenceServer::Create(std::move(options)),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr("InferenceServer::Create"), HasSubstr(what))));
  };
  refused(With(nullptr, 1), "policy: got null");
  refused(With(&echo, 0), "clients: got 0");
  refused(With(&echo, 4097), "clients: got 4097");
  InferenceServer::Options options = With(&echo, 1);
  options.lanes = 0;
  refused(options, "lanes: got 0");
  options.lanes = int64_t{1} << 62;
  refused(options, "want at most");
  options = With(&echo, 1);
  options.min_clients = 0;
  refused(options, "min_clients: got 0");
  options = With(&echo, 1);
  options.max_wait = -absl::Seconds(1);
  refused(options, "max_wait: got -1s");
  options = With(&echo, 1);
  options.action = {};
  refused(options, "action: got no leaf");
  options.action = options.root;
  refused(options, "leaf \"observation\": got it twice");
}

// A client whose server and policy live as long as it does.
PolicySubject Served() {
  struct All {
    MemoryPolicy policy;
    std::unique_ptr<InferenceServer> server;
    std::unique_ptr<Policy> client;
  };
  auto all = std::make_shared<All>();
  InferenceServer::Options options = With(&all->policy, 1);
  options.lanes = 4;
  all->server = *InferenceServer::Create(std::move(options));
  all->client = *all->server->OpenClient(0);
  PolicySubject subject = {
      .policy = std::shared_ptr<Policy>(all, all->client.get()),
      .root = RootOf(4, 0.5),
      .action = LeafSpec::Categorical(2),
      .takes_fewer_lanes = false};
  RILL_EXPECT_OK(subject.root.Set(
      "memory", *Tensor::From<float>({0.5f, -4, 0, 2}, {4, 1})));
  return subject;
}
INSTANTIATE_TEST_SUITE_P(InferenceClients, PolicyConformanceTest,
                         ::testing::Values(Served));

absl::StatusOr<WorkerParts> MakeWorker(const WorkerContext&) {
  WorkerParts parts;
  RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = 8}));
  return parts;
}

absl::Status RunExample() {
  FunctionPolicy policy([](const TensorDict&, Tensor* action) {
    std::fill_n(action->data<int64_t>(), action->num_elements(), 1);
    return absl::OkStatus();
  });
  RILL_ASSIGN_OR_RETURN(const auto env, MakeCartPole({.lanes = 8}));
  RILL_ASSIGN_OR_RETURN(
      auto server, InferenceServer::Create({.policy = &policy,
                                            .root = env->spec().observation,
                                            .action = env->spec().action,
                                            .lanes = env->lanes(),
                                            .clients = 2}));
  MultiCollectorOptions options;
  options.producer = 0;
  options.workers = 2;
  options.worker = MakeWorker;  // Its parts have no policy.
  options.inference = server.get();
  options.frames_per_batch = 1024;
  RILL_ASSIGN_OR_RETURN(auto collector, MultiSyncCollector::Create(options));
  RILL_ASSIGN_OR_RETURN(const TensorDict batch, collector->Next());
  RILL_ASSIGN_OR_RETURN(const auto actions, batch.Flat<int64_t>("action"));
  EXPECT_THAT(actions, Each(1));
  return absl::OkStatus();
}

TEST(InferenceServerTest, Example) { RILL_EXPECT_OK(RunExample()); }

}  // namespace
}  // namespace rill
