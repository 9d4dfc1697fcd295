// SPDX-License-Identifier: Apache-2.0
// Exceptions of what a user writes: each is the error of the call, with its
// text and who threw it, in the calling thread, in worker threads and in worker
// processes. The next call goes on, and nothing of another worker is lost.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/inference/inference_server.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/testing/hooked_env.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/collectors/workers/worker_main.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/env.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/testing/faulty_env.h"
#include "rill/flow/sink.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"
#include "rill/transforms/testing/lambda_transform.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kLanes = 2;
constexpr int64_t kSteps = 10;  // Of a batch.

// Throws in its call number 15, from 0, and in no other.
std::function<void()> ThrowsOnce() {
  return [calls = std::make_shared<int>(0)] {
    if ((*calls)++ == 15) throw std::runtime_error("no layer 3");
  };
}

struct Thrower {
  std::string part;  // Which one throws.
  std::string who;   // As the text says.
};

std::vector<Thrower> Throwers() {
  return {{"step", "Step: threw"},         {"reset", "::Reset"},
          {"policy", "Policy::Act"},       {"OnReset", "OnReset"},
          {"OnAction", "OnAction"},        {"OnStep", "OnStep"},
          {"before_batch", "before_batch"}};
}

// Worker 1 throws; `context.argument` says where.
absl::StatusOr<WorkerParts> MakeWorker(const WorkerContext& context) {
  WorkerParts parts;
  RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = kLanes}));
  if (context.worker != 1) return parts;
  const std::string& part = context.argument;
  if (part == "factory") throw std::runtime_error("no layer 3");
  if (part == "factory, no std::exception") throw 7;
  const std::function<void()> fault = ThrowsOnce();
  const auto call = [fault](auto...) {
    fault();
    return absl::OkStatus();
  };
  LambdaTransform::Options transform;
  if (part == "step") {
    parts.env = std::make_unique<HookedEnv>(std::move(parts.env),
                                            [fault](int64_t) { fault(); });
  } else if (part == "reset") {
    // In a batch, not in the first reset of all lanes.
    parts.env = std::make_unique<FaultyEnv>(
        std::move(parts.env),
        FaultyEnv::Options{.fail_reset = 1,
                           .status = absl::UnknownError("no layer 3"),
                           .throws = true});
  } else if (part == "nan") {
    transform.on_step = [leaf = *parts.env->step().Find("next/observation"),
                         steps = std::make_shared<int>(0)](auto...) {
      if ((*steps)++ == 15) leaf.data<float>()[5] = std::nanf("");
      return absl::OkStatus();
    };
  } else if (part == "memory") {
    parts.env =
        std::make_unique<HookedEnv>(std::move(parts.env), [](int64_t step) {
          if (step == 15) throw std::bad_alloc();
        });
  } else if (part == "policy") {
    parts.policy = std::make_unique<FunctionPolicy>(
        [fault](const TensorDict&, Tensor* action) {
          fault();
          action->data<int64_t>()[0] = 1;
          action->data<int64_t>()[1] = 0;
          return absl::OkStatus();
        });
  } else if (part == "OnReset") {
    // With the second reset: episodes of CartPole end within some steps.
    transform.on_reset = [resets = std::make_shared<int>(0)](auto...) {
      if (++*resets == 2) throw std::runtime_error("no layer 3");
      return absl::OkStatus();
    };
  } else if (part == "OnAction") {
    transform.on_action = call;
  } else if (part == "OnStep") {
    transform.on_step = call;
  } else if (part == "before_batch") {
    parts.before_batch = [batches = std::make_shared<int>(0)] {
      if (++*batches == 2) throw std::runtime_error("no layer 3");
      return absl::OkStatus();
    };
  }
  parts.transforms.push_back(LambdaTransform::Make(std::move(transform)));
  return parts;
}

MultiCollectorOptions Workers(bool are_processes, const std::string& part) {
  MultiCollectorOptions options;
  options.producer = 0;
  options.workers = 2;
  if (are_processes) {
    options.worker_name = "worker";
  } else {
    options.worker = MakeWorker;
  }
  options.argument = part;
  options.frames_per_batch = 2 * kLanes * kSteps;
  options.seed = 5;
  return options;
}

// The batches of worker 0 are those that it makes alone.
class Arrivals {
 public:
  Arrivals() {
    MultiCollectorOptions options = Workers(/*are_processes=*/false, "");
    options.workers = 1;
    options.frames_per_batch = kLanes * kSteps;
    alone_ = *MultiSyncCollector::Create(std::move(options));
  }
  FunctionSink sink{[this](const TensorDict& batch, const WriteInfo& info) {
    if (info.producer == 0) {
      EXPECT_THAT(batch, BitEqualTo(*alone_->Next()));
    }
    ++batches[info.producer];
    return absl::OkStatus();
  }};
  int64_t batches[2] = {0, 0};

 private:
  std::unique_ptr<MultiSyncCollector> alone_;
};

class WorkerExceptionTest
    : public ::testing::TestWithParam<std::tuple<bool, Thrower>> {};

TEST_P(WorkerExceptionTest, IsTheErrorOfTheCallAndTheNextGoesOn) {
  const auto& [are_processes, thrower] = GetParam();
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto collector,
      MultiSyncCollector::Create(Workers(are_processes, thrower.part)));
  Arrivals got;
  absl::Status error;
  // Resets come when an episode ends.
  for (int i = 0; i < 20 && error.ok(); ++i) {
    error = collector->CollectInto(got.sink);
  }
  EXPECT_THAT(error,
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("worker 1: "), HasSubstr(thrower.who),
                             HasSubstr("threw std::runtime_error: "
                                       "no layer 3"))));
  for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(collector->CollectInto(got.sink));
  EXPECT_EQ(got.batches[0], got.batches[1]);
  EXPECT_EQ(collector->deaths().total(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, WorkerExceptionTest,
                         ::testing::Combine(::testing::Bool(),
                                            ::testing::ValuesIn(Throwers())),
                         [](const auto& info) {
                           return absl::StrCat(
                               std::get<0>(info.param) ? "process" : "thread",
                               "_", std::get<1>(info.param).part);
                         });

class WorkerFunctionTest : public ::testing::TestWithParam<bool> {};

TEST_P(WorkerFunctionTest, ItsExceptionIsTheErrorOfCreate) {
  EXPECT_THAT(MultiSyncCollector::Create(Workers(GetParam(), "factory")),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("worker 1: WorkerFunction: threw "),
                             HasSubstr("std::runtime_error: no layer 3"))));
  EXPECT_THAT(MultiSyncCollector::Create(
                  Workers(GetParam(), "factory, no std::exception")),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("WorkerFunction: threw int")));
}

INSTANTIATE_TEST_SUITE_P(All, WorkerFunctionTest, ::testing::Bool());

// A process of which `new` has found no memory is replaced, as
// multi_collector_process_test shows. A thread cannot be, and an exception of
// that name alone is an error like others.
TEST(WorkerMemoryTest, WithoutMemoryTheCallSaysSo) {
  for (const bool are_processes : {false, true}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto collector,
        MultiSyncCollector::Create(Workers(are_processes, "memory")));
    RILL_ASSERT_OK(collector->Next());
    EXPECT_THAT(collector->Next(),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         AllOf(HasSubstr("worker 1: "),
                               HasSubstr("threw std::bad_alloc"))));
    RILL_EXPECT_OK(collector->Next());
  }
}

// What an environment returns is looked at where it is stepped.
TEST(WorkerFiniteCheckTest, TheVariableHoldsInProcesses) {
  for (const char* const value : {"0", "1"}) {
    setenv("RILL_CHECK_FINITE", value, /*overwrite=*/1);
    const auto collector =
        MultiSyncCollector::Create(Workers(/*are_processes=*/true, "nan"));
    unsetenv("RILL_CHECK_FINITE");
    RILL_ASSERT_OK(collector.status());
    RILL_ASSERT_OK((*collector)->Next());
    const absl::Status status = (*collector)->Next().status();
    if (value[0] == '0') {
      RILL_EXPECT_OK(status);
      continue;
    }
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("worker 1: "),
                               HasSubstr("\"next/observation\": got NaN"),
                               HasSubstr("[1, 1] (lane 1)"),
                               HasSubstr("step 5 of a batch of 10"))));
    RILL_EXPECT_OK((*collector)->Next());
  }
}

TEST(InferenceServerExceptionTest, OfItsPolicyIsTheErrorOfTheCall) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto env, MakeCartPole({.lanes = kLanes}));
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDictSpec root, [&]() -> absl::StatusOr<TensorDictSpec> {
        TensorDictSpec spec = env->spec().observation;
        RILL_ASSIGN_OR_RETURN(const TensorDictSpec flags,
                              FlagSpec(env->spec()));
        for (const auto& flag : flags.leaves()) {
          RILL_RETURN_IF_ERROR(spec.Set(flag.key, flag.spec));
        }
        return spec;
      }());
  const std::function<void()> fault = ThrowsOnce();
  FunctionPolicy policy([fault](const TensorDict&, Tensor* action) {
    fault();
    for (int64_t i = 0; i < action->num_elements(); ++i) {
      action->data<int64_t>()[i] = i % 2;
    }
    return absl::OkStatus();
  });
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto server, InferenceServer::Create({.policy = &policy,
                                                  .root = root,
                                                  .action = env->spec().action,
                                                  .lanes = kLanes,
                                                  .clients = 1}));
  MultiCollectorOptions options = Workers(/*are_processes=*/false, "");
  options.workers = 1;
  options.inference = server.get();
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(options));
  EXPECT_THAT(collector->Next(),  // Of 20 steps.
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("Policy::Act: threw std::runtime_error")));
  RILL_EXPECT_OK(collector->Next());
}

// --- Without workers ---------------------------------------------------------

class SyncExceptionTest : public ::testing::TestWithParam<Thrower> {};

TEST_P(SyncExceptionTest, IsTheErrorOfTheCallAndTheNextGoesOn) {
  RILL_ASSERT_OK_AND_ASSIGN(
      WorkerParts parts,
      MakeWorker({.worker = 1, .argument = GetParam().part}));
  SyncCollector::Options options;
  options.producer = 0;
  options.env = std::move(parts.env);
  options.policy = parts.policy.get();
  options.transforms = std::move(parts.transforms);
  options.frames_per_batch = kLanes * kSteps;
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            SyncCollector::Create(std::move(options)));
  absl::Status error;
  int64_t batches = 0;
  for (; batches < 20 && error.ok(); ++batches) {
    error = collector->Next().status();
  }
  EXPECT_THAT(error, StatusIs(absl::StatusCode::kInternal,
                              AllOf(HasSubstr(GetParam().who),
                                    HasSubstr("threw std::runtime_error: "
                                              "no layer 3"))));
  RILL_ASSERT_OK(collector->Next());
  EXPECT_EQ(collector->frames(), batches * kLanes * kSteps);
}

std::vector<Thrower> ThrowersOfSteps() {
  std::vector<Thrower> throwers = Throwers();
  throwers.pop_back();  // before_batch is of workers.
  return throwers;
}

INSTANTIATE_TEST_SUITE_P(All, SyncExceptionTest,
                         ::testing::ValuesIn(ThrowersOfSteps()),
                         [](const auto& info) { return info.param.part; });

absl::StatusOr<std::unique_ptr<SyncCollector>> MakeCollector(
    std::function<bool()> is_interrupted = nullptr) {
  SyncCollector::Options options;
  options.producer = 0;
  RILL_ASSIGN_OR_RETURN(options.env, MakeCartPole({.lanes = kLanes}));
  options.frames_per_batch = kLanes * kSteps;
  options.reset_at_each_batch = true;  // So that lanes are cut.
  options.is_interrupted = std::move(is_interrupted);
  return SyncCollector::Create(std::move(options));
}

TEST(SyncCollectorExceptionTest, OfIsInterruptedIsTheErrorOfTheCall) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MakeCollector([fault = ThrowsOnce()] {
                              fault();
                              return false;
                            }));
  RILL_ASSERT_OK(collector->Next());
  EXPECT_THAT(collector->Next(),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("is_interrupted: threw std::runtime_error")));
  RILL_EXPECT_OK(collector->Next());
}

// A batch that a sink throws at is one that it refuses.
TEST(SyncCollectorExceptionTest, OfASinkKeepsTheBatch) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector, MakeCollector());
  RILL_ASSERT_OK_AND_ASSIGN(const auto same, MakeCollector());
  int writes = 0;
  int cuts = 0;
  std::vector<int64_t> numbers;
  FunctionSink sink(
      [&](const TensorDict& batch, const WriteInfo& info) {
        if (++writes == 2) throw std::runtime_error("no layer 3");
        EXPECT_THAT(batch, BitEqualTo(*same->Next()));
        numbers.push_back(info.sequence);
        return absl::OkStatus();
      },
      [&](int64_t, LaneRange) {
        if (++cuts == 2) throw std::runtime_error("no layer 3");
        return absl::OkStatus();
      });
  const auto threw = [](absl::string_view who) {
    return StatusIs(
        absl::StatusCode::kInternal,
        absl::StrCat(who, ": threw std::runtime_error: no layer 3"));
  };
  RILL_ASSERT_OK(collector->CollectInto(sink));
  EXPECT_THAT(collector->CollectInto(sink), threw("Sink::Write"));
  RILL_ASSERT_OK(collector->CollectInto(sink));
  EXPECT_THAT(collector->CollectInto(sink), threw("Sink::Cut"));
  RILL_ASSERT_OK(collector->CollectInto(sink));
  EXPECT_THAT(numbers, ::testing::ElementsAre(1, 2, 3));
}

TEST(MultiCollectorExceptionTest, OfASinkKeepsTheBatch) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto collector,
      MultiSyncCollector::Create(Workers(/*are_processes=*/false, "")));
  int writes = 0;
  std::vector<int64_t> numbers;
  FunctionSink sink([&](const TensorDict&, const WriteInfo& info) {
    if (++writes == 2) throw std::runtime_error("no layer 3");
    if (info.producer == 1) numbers.push_back(info.sequence);
    return absl::OkStatus();
  });
  EXPECT_THAT(collector->CollectInto(sink),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("Sink::Write: threw std::runtime_error")));
  RILL_ASSERT_OK(collector->CollectInto(sink));
  RILL_ASSERT_OK(collector->CollectInto(sink));
  EXPECT_THAT(numbers, ::testing::ElementsAre(1, 2));
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
