// SPDX-License-Identifier: Apache-2.0
// Statistics of transforms in workers that crash, fail and begin anew: they are
// those of the rows that arrived.
#include <signal.h>
#include <sys/types.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/multi_async_collector.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/testing/arrived_rows.h"
#include "rill/collectors/testing/hooked_env.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/collectors/workers/worker_main.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/testing/faulty_env.h"
#include "rill/flow/sink.h"
#include "rill/specs/bound_rows.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/process_traces.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"
#include "rill/transforms/episodes/return_scaling.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/step_counter.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLanes = 2;
constexpr int64_t kSteps = 10;  // Of a batch.
constexpr char kNormState[] = "transforms/1/state";
constexpr char kReturnState[] = "transforms/2/state";
constexpr double kGamma = 0.9;

// "normed" is "observation" by a VecNorm behind a StepCounter, and before a
// ReturnScaling. Words of the argument:
// - "frozen": these two are. "decay": the VecNorm has one.
// - "crash": each life ends in a step or in a commit.
// - "dies": worker 1 ends in its second batch.
// - "fail": worker 1 fails once.
absl::StatusOr<WorkerParts> MakeNormed(const WorkerContext& context) {
  const auto has = [&](absl::string_view word) {
    return absl::StrContains(context.argument, word);
  };
  WorkerParts parts;
  RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = kLanes}));
  RILL_ASSIGN_OR_RETURN(parts.transforms.emplace_back(),
                        StepCounter::Create({.max_steps = 17}));
  RILL_ASSIGN_OR_RETURN(parts.transforms.emplace_back(),
                        VecNorm::Create({.shapes = {{4}},
                                         .out_keys = {"normed"},
                                         .decay = has("decay") ? 0.99 : 1,
                                         .frozen = has("frozen")}));
  RILL_ASSIGN_OR_RETURN(
      parts.transforms.emplace_back(),
      ReturnScaling::Create({.gamma = kGamma, .frozen = has("frozen")}));
  if (has("fail") && context.worker == 1) {
    parts.env = std::make_unique<FaultyEnv>(
        std::move(parts.env), FaultyEnv::Options{.fail_step = 2 * kSteps + 4});
  }
  if (has("dies") && context.worker == 1) {
    parts.env =
        std::make_unique<HookedEnv>(std::move(parts.env), [](int64_t step) {
          if (step == kSteps + 5) raise(SIGKILL);
        });
  }
  if (has("crash")) {
    const Rng rng(static_cast<uint64_t>(context.worker));
    const int64_t last = rng.UniformInt(context.restarts, /*draw=*/0, 60);
    if (context.restarts % 3 == 2) {
      static auto* const hook =  // For the rest of its life.
          new ScopedFaultHook(
              [left = last / kSteps](absl::string_view point,
                                     absl::string_view) mutable {
                if (point == "channel.commit" && left-- == 0) raise(SIGKILL);
                return absl::OkStatus();
              });
      static_cast<void>(hook);
      return parts;
    }
    parts.env =
        std::make_unique<HookedEnv>(std::move(parts.env), [last](int64_t step) {
          if (step == last) raise(SIGKILL);
        });
  }
  return parts;
}

MultiCollectorOptions Threads(const std::string& argument) {
  MultiCollectorOptions options;
  options.producer = 0;
  options.workers = 3;
  options.worker = MakeNormed;
  options.argument = argument;
  options.frames_per_batch = options.workers * kLanes * kSteps;
  options.seed = 5;
  return options;
}

MultiCollectorOptions Processes(const std::string& argument) {
  MultiCollectorOptions options = Threads(argument);
  options.worker = nullptr;
  options.worker_name = "normed";
  options.max_restarts = 1000;
  return options;
}

// The state of a VecNorm that has seen these numbers.
Tensor StateOf(std::vector<double> numbers) {
  const auto norm = *VecNorm::Create({.shapes = {{1}}, .decay = 1});
  TensorDict state = *norm->InitialState(1);
  const BoundLeaf leaf = {.data = reinterpret_cast<std::byte*>(numbers.data()),
                          .width = sizeof(double),
                          .dtype = DType::kFloat64,
                          .rows = static_cast<int64_t>(numbers.size()),
                          .shape = {1}};
  RILL_EXPECT_OK(norm->OnStep({leaf, leaf}, &state));
  return *state.Find("observation");
}

struct Rows {
  void Add(const TensorDict& batch) {
    observations.Add(batch);
    const auto counts = *batch.Flat<int64_t>("next/step_count");
    for (const int64_t steps : counts) {
      double value = 0;
      for (int64_t i = 0; i < steps; ++i) value = value * kGamma + 1;
      returns.push_back(value);
    }
  }
  int64_t count() const { return observations.count(); }

  ArrivedRows observations{4};
  std::vector<double> returns = {};
};

// The rows that arrive, and the batches.
struct Arrivals {
  Rows rows = {};
  std::vector<TensorDict> batches = {};
  FunctionSink sink{[this](const TensorDict& batch, const WriteInfo&) {
    rows.Add(batch);
    batches.push_back(*batch.Clone());
    return absl::OkStatus();
  }};
};

// To the bit. CartPole's rewards are 1, so a step's return follows from its
// number in the episode.
template <typename Collector>
void ExpectThoseOf(const Rows& rows, const Collector& collector) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict states,
                            collector.TransformStates());
  ASSERT_NE(states.FindDict(kNormState), nullptr);
  ASSERT_NE(states.FindDict(kReturnState), nullptr);
  ASSERT_THAT(*states.FindDict(kNormState),
              BitEqualTo(rows.observations.State()));
  ASSERT_THAT(*states.Find(absl::StrCat(kReturnState, "/returns")),
              BitEqualTo(StateOf(rows.returns)));
  EXPECT_THAT(states.GetNonTensor("transforms/1/name"),
              IsOkAndHolds(NonTensor{"\"VecNorm\""}));
  EXPECT_FALSE(states.Contains("transforms/0"));
}

template <typename Collector>
class TransformStatesTest : public ::testing::Test {};
using Collectors = ::testing::Types<MultiSyncCollector, MultiAsyncCollector>;
TYPED_TEST_SUITE(TransformStatesTest, Collectors);

TYPED_TEST(TransformStatesTest, AreThoseOfTheRowsThatArrivedWhateverDied) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            TypeParam::Create(Processes("crash")));
  Arrivals got;
  while (collector->restarts() < 20) {
    RILL_ASSERT_OK(collector->CollectInto(got.sink));
    ExpectThoseOf(got.rows, *collector);
  }
  EXPECT_GT(got.rows.count(), 300);
}

// Also those that were made before that and arrive behind it.
TYPED_TEST(TransformStatesTest, WhatWasSentToAllCountsOnce) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            TypeParam::Create(Processes("crash")));
  Arrivals got;
  for (int i = 0; collector->restarts() < 20; ++i) {
    RILL_ASSERT_OK(collector->CollectInto(got.sink));
    ExpectThoseOf(got.rows, *collector);
    if (i % 3 != 0) continue;
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict states,
                              collector->TransformStates());
    RILL_ASSERT_OK(collector->LoadTransformStates(states));
    ExpectThoseOf(got.rows, *collector);
  }
}

TYPED_TEST(TransformStatesTest, StatesOfRunsWhoseWorkersDiedResume) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto first,
                            TypeParam::Create(Processes("crash")));
  Arrivals got;
  while (first->restarts() < 5) {
    RILL_ASSERT_OK(first->CollectInto(got.sink));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict sent, first->TransformStates());
  RILL_ASSERT_OK(first->LoadTransformStates(sent));
  // Whether a worker has ended or not.
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict saved, first->SaveState());
  const Rows before = got.rows;

  RILL_ASSERT_OK_AND_ASSIGN(const auto second,
                            TypeParam::Create(Processes("crash")));
  RILL_ASSERT_OK(second->CollectInto(got.sink));
  got.rows = before;
  RILL_ASSERT_OK(second->LoadState(saved));
  ExpectThoseOf(got.rows, *second);
  while (second->restarts() < 10) {
    RILL_ASSERT_OK(second->CollectInto(got.sink));
    ExpectThoseOf(got.rows, *second);
  }
}

// As those before 0.3, which have no statistics of the rows that arrived.
TYPED_TEST(TransformStatesTest, OldStatesOpenWithThoseOfTheWorkers) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            TypeParam::Create(Threads("")));
  Arrivals got;
  for (int i = 0; i < 6; ++i) {
    RILL_ASSERT_OK(collector->CollectInto(got.sink));
  }
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict saved, collector->SaveState());
  RILL_ASSERT_OK(saved.Delete("statistics"));
  for (int64_t w = 0; w < 3; ++w) {
    for (int64_t n = 0; n < 2; ++n) {
      const std::string key = absl::StrCat("held/", w, "/", n, "/statistics");
      if (!saved.Contains(key)) continue;
      RILL_ASSERT_OK(saved.Delete(key));
    }
  }
  RILL_ASSERT_OK(collector->LoadState(saved));
  for (int i = 0; i < 9; ++i) {
    RILL_ASSERT_OK(collector->CollectInto(got.sink));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict states,
                            collector->TransformStates());
  RILL_ASSERT_OK_AND_ASSIGN(
      const VecNormMoments moments,
      ReadVecNorm(*states.FindDict(kNormState), "observation"));
  EXPECT_GE(moments.count, static_cast<double>(got.rows.count()));
}

// Whether all rows are normalised by these states.
bool IsNormed(const TensorDict& batch, const TensorDict& states) {
  const VecNormMoments moments =
      *ReadVecNorm(*states.FindDict(kNormState), "observation");
  for (const std::string prefix : {"", "next/"}) {
    const auto raw = *batch.Flat<float>(prefix + "observation");
    const auto normed = *batch.Flat<float>(prefix + "normed");
    for (size_t i = 0; i < raw.size(); ++i) {
      const double loc = moments.loc.data<double>()[i % 4];
      const double scale = moments.scale.data<double>()[i % 4];
      if (std::abs(normed[i] - (raw[i] - loc) / scale) > 1e-4) return false;
    }
  }
  return true;
}

void ExpectScaled(const TensorDict& batch, const TensorDict& states) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const VecNormMoments moments,
      ReadVecNorm(*states.FindDict(kReturnState), "returns"));
  const auto rewards = *batch.Flat<float>("next/reward");
  for (const float reward : rewards) {
    EXPECT_NEAR(reward, 1 / moments.scale.data<double>()[0], 1e-3);
  }
}

TYPED_TEST(TransformStatesTest, AFrozenReplacementAppliesThemFromItsFirstRow) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto teacher,
                            MultiSyncCollector::Create(Threads("")));
  RILL_ASSERT_OK(teacher->Next().status());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict states,
                            teacher->TransformStates());
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            TypeParam::Create(Processes("frozen crash")));
  RILL_ASSERT_OK(collector->LoadTransformStates(states));
  while (collector->restarts() < 10) {
    Arrivals got;
    RILL_ASSERT_OK(collector->CollectInto(got.sink));
    for (const TensorDict& batch : got.batches) {
      EXPECT_TRUE(IsNormed(batch, states));
      ExpectScaled(batch, states);
    }
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict now,
                              collector->TransformStates());
    EXPECT_THAT(now, BitEqualTo(states));
  }
}

// Batches that were made before others are sent have the old ones, whole.
TYPED_TEST(TransformStatesTest, NoBatchHasTwoScales) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto teacher,
                            MultiSyncCollector::Create(Threads("")));
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            TypeParam::Create(Processes("frozen crash")));
  std::optional<TensorDict> before;
  for (int round = 0; round < 4; ++round) {
    RILL_ASSERT_OK(teacher->Next().status());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict states,
                              teacher->TransformStates());
    RILL_ASSERT_OK(collector->LoadTransformStates(states));
    Arrivals got;
    for (int i = 0; i < 9; ++i) {
      RILL_ASSERT_OK(collector->CollectInto(got.sink));
    }
    int old = 0;
    for (const TensorDict& batch : got.batches) {
      if (IsNormed(batch, states)) continue;
      ++old;
      EXPECT_TRUE(before.has_value() && IsNormed(batch, *before)) << round;
    }
    EXPECT_LE(old, 3 * 2);
    before = states;
  }
}

TYPED_TEST(TransformStatesTest, AStateSavedAfterDeathsHasWhatArrivedBefore) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            TypeParam::Create(Processes("")));
  Arrivals got;
  for (int i = 0; i < 4; ++i) RILL_ASSERT_OK(collector->CollectInto(got.sink));
  for (const pid_t child : ChildProcesses()) kill(child, SIGKILL);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict saved, collector->SaveState());
  EXPECT_EQ(collector->restarts(), 3);
  ExpectThoseOf(got.rows, *collector);
  RILL_ASSERT_OK_AND_ASSIGN(const auto second,
                            TypeParam::Create(Processes("")));
  RILL_ASSERT_OK(second->LoadState(saved));
  Arrivals rest = {.rows = got.rows};
  for (int i = 0; i < 4; ++i) {
    RILL_ASSERT_OK(collector->CollectInto(got.sink));
    RILL_ASSERT_OK(second->CollectInto(rest.sink));
    ExpectThoseOf(got.rows, *collector);
    ExpectThoseOf(rest.rows, *second);
  }
}

TEST(WorkerTransformStatesTest, StepsOfABatchThatAnErrorLosesDoNotCount) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(Threads("fail")));
  Rows rows;
  int errors = 0;
  for (int i = 0; i < 6; ++i) {
    const auto batch = collector->Next();
    errors += !batch.ok();
    if (batch.ok()) rows.Add(*batch);
    if (rows.count() > 0) ExpectThoseOf(rows, *collector);
  }
  EXPECT_EQ(errors, 1);
}

// Worker 0 has made its batch, and Next fails with worker 1 in each call.
TEST(WorkerTransformStatesTest, ABatchThatNextPutsBackCountsOnce) {
  MultiCollectorOptions options = Processes("dies");
  options.max_restarts = 0;
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(options));
  Arrivals got;
  RILL_ASSERT_OK(collector->CollectInto(got.sink));
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(collector->Next().ok());
    ExpectThoseOf(got.rows, *collector);
  }
  EXPECT_FALSE(collector->CollectInto(got.sink).ok());
  EXPECT_EQ(got.batches.size(), 4);
  ExpectThoseOf(got.rows, *collector);
}

TEST(WorkerTransformStatesTest, WithADecayAReplacementGoesOnToo) {
  MultiCollectorOptions options = Processes("crash decay");
  options.workers = 1;
  options.frames_per_batch = kLanes * kSteps;
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(options));
  double weight = 0;
  while (collector->restarts() < 10) {
    RILL_ASSERT_OK(collector->Next().status());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict states,
                              collector->TransformStates());
    RILL_ASSERT_OK_AND_ASSIGN(
        const VecNormMoments moments,
        ReadVecNorm(*states.FindDict(kNormState), "observation"));
    // It nears 2 lanes / (1 - decay) from below.
    EXPECT_GT(moments.count, std::min(weight, 150.));
    weight = moments.count;
  }
}

TEST(WorkerTransformStatesTest, StatesOfOtherTransformsAreRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(Threads("")));
  Arrivals got;
  RILL_ASSERT_OK(collector->CollectInto(got.sink));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict states,
                            collector->TransformStates());
  TensorDict other = states;
  RILL_ASSERT_OK(other.Set("transforms/1/name", NonTensor{"\"Norm\""}));
  EXPECT_THAT(collector->LoadTransformStates(other),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("want \"VecNorm\"")));
  RILL_ASSERT_OK(other.Delete("transforms/1"));
  EXPECT_FALSE(collector->LoadTransformStates(other).ok());
  ExpectThoseOf(got.rows, *collector);
  RILL_ASSERT_OK(collector->CollectInto(got.sink));
  ExpectThoseOf(got.rows, *collector);
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  const std::optional<int> worker =
      rill::WorkerMain(argc, argv, {{"normed", rill::MakeNormed}});
  if (worker.has_value()) return *worker;
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
