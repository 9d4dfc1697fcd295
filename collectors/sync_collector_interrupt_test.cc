// SPDX-License-Identifier: Apache-2.0
// Batches of SyncCollector that end early (Options::is_interrupted).
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/testing/hooked_env.h"
#include "rill/collectors/testing/parity_policy.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/policies/policy.h"
#include "rill/flow/sink.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr int64_t kLanes = 2;
constexpr int64_t kTime = 10;  // Steps of a whole batch.

// The steps that the same collector makes in one batch, [kLanes, steps].
TensorDict Alone(int64_t steps) {
  SyncCollector::Options options;
  options.producer = 0;
  options.env = *MakeCartPole({.lanes = kLanes});
  options.frames_per_batch = kLanes * steps;
  options.seed = 5;
  auto collector = *SyncCollector::Create(std::move(options));
  return *collector->Next()->Clone();
}

TensorDict Steps(const TensorDict& batch, int64_t begin, int64_t end) {
  return *batch.Slice(1, begin, end);
}

std::vector<bool> Flags(const TensorDict& batch, absl::string_view key) {
  const Tensor leaf = *batch.Get(key)->Contiguous();
  const auto values = *leaf.Flat<bool>();
  return std::vector<bool>(values.begin(), values.end());
}

// A collector whose batches have `steps` steps in turn.
struct ShortBatches {
  explicit ShortBatches(std::vector<int64_t> all) : steps(std::move(all)) {}

  absl::StatusOr<std::unique_ptr<SyncCollector>> Make(bool set_truncated) {
    SyncCollector::Options options;
    options.producer = 0;
    RILL_ASSIGN_OR_RETURN(options.env, MakeCartPole({.lanes = kLanes}));
    options.frames_per_batch = kLanes * kTime;
    options.set_truncated = set_truncated;
    options.seed = 5;
    options.is_interrupted = [this] {
      if (++asked < steps[batch]) return false;
      asked = 0;
      ++batch;
      return true;
    };
    return SyncCollector::Create(std::move(options));
  }

  const std::vector<int64_t> steps;
  int64_t asked = 0;
  size_t batch = 0;
};

TEST(SyncCollectorInterruptTest, ABatchEndsAndTheNextOneGoesOn) {
  ShortBatches plan({3, 1, 9, 7});
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector, plan.Make(false));
  const TensorDict want = Alone(20);
  int64_t at = 0;
  for (const int64_t steps : plan.steps) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
    EXPECT_THAT(batch, BitEqualTo(Steps(want, at, at + steps)));
    RILL_EXPECT_OK(batch.Flat<int64_t>("action").status());
    at += steps;
    EXPECT_EQ(collector->frames(), kLanes * at);
  }
}

TEST(SyncCollectorInterruptTest, TheLastStepOfAShortBatchIsTruncated) {
  ShortBatches plan({3, 4});
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector, plan.Make(true));
  for (const int64_t steps : plan.steps) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
    EXPECT_EQ(batch.batch_shape()[1], steps);
    EXPECT_THAT(Flags(Steps(batch, steps - 1, steps), "next/done"), Each(true));
    EXPECT_THAT(Flags(Steps(batch, 0, steps - 1), "next/truncated"),
                Each(false));
  }
}

TEST(SyncCollectorInterruptTest, AShortBatchThatWasRefusedIsOfferedAgain) {
  ShortBatches plan({3, 4, 5});
  ShortBatches loaded_plan({5, 5});
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector, plan.Make(false));
  RILL_ASSERT_OK_AND_ASSIGN(const auto loaded, loaded_plan.Make(false));
  bool is_full = false;
  std::vector<TensorDict> batches;
  std::vector<int64_t> numbers;
  FunctionSink sink([&](const TensorDict& batch, const WriteInfo& info) {
    if (is_full) return absl::UnavailableError("full");
    batches.push_back(*batch.Clone());
    numbers.push_back(info.sequence);
    return absl::OkStatus();
  });
  RILL_ASSERT_OK(collector->CollectInto(sink));
  is_full = true;
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(collector->CollectInto(sink).ok());
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, collector->SaveState());
  RILL_ASSERT_OK(loaded->LoadState(state));
  is_full = false;
  for (int i = 0; i < 2; ++i) RILL_ASSERT_OK(loaded->CollectInto(sink));
  const TensorDict want = Alone(12);
  EXPECT_THAT(batches, ElementsAre(BitEqualTo(Steps(want, 0, 3)),
                                   BitEqualTo(Steps(want, 3, 7)),
                                   BitEqualTo(Steps(want, 7, 12))));
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3));
}

// A ParityPolicy whose calls of some numbers fail, with rubbish as actions.
class InterruptedPolicy final : public Policy {
 public:
  explicit InterruptedPolicy(std::vector<int64_t> at) : at_(std::move(at)) {}
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override {
    if (absl::c_linear_search(at_, calls_++)) {
      const auto actions = *step->Flat<int64_t>("action");
      for (int64_t& action : actions) action = -7;
      return absl::AbortedError("interrupt");
    }
    return inner_.Act(root, context, step);
  }

 private:
  const std::vector<int64_t> at_;
  ParityPolicy inner_;
  int64_t calls_ = 0;
};

bool IsInterrupt(const absl::Status& status) {
  return absl::StrContains(status.message(), "interrupt");
}

SyncCollector::Options Asking(std::unique_ptr<Env> env, Policy* policy) {
  SyncCollector::Options options;
  options.producer = 0;
  options.env = std::move(env);
  options.policy = policy;
  options.frames_per_batch = kLanes * kTime;
  options.seed = 5;
  options.is_interrupt = IsInterrupt;
  return options;
}

TEST(SyncCollectorInterruptTest, AStepThatThePolicyInterruptsIsDoneAgain) {
  // In the first step of all, behind three, in the first of a batch twice.
  InterruptedPolicy policy({0, 4, 5, 6});
  ParityPolicy same;
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto collector,
      SyncCollector::Create(Asking(*MakeCartPole({.lanes = kLanes}), &policy)));
  SyncCollector::Options whole =
      Asking(*MakeCartPole({.lanes = kLanes}), &same);
  whole.frames_per_batch = kLanes * 13;
  RILL_ASSERT_OK_AND_ASSIGN(const auto other,
                            SyncCollector::Create(std::move(whole)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, other->Next());
  std::vector<TensorDict> batches;
  int64_t cuts = 0;
  FunctionSink sink(
      [&](const TensorDict& batch, const WriteInfo& /*info*/) {
        batches.push_back(*batch.Clone());
        return absl::OkStatus();
      },
      [&](int64_t /*producer*/, LaneRange /*lanes*/) {
        ++cuts;
        return absl::OkStatus();
      });
  std::vector<bool> ok;
  for (int i = 0; i < 5; ++i) ok.push_back(collector->CollectInto(sink).ok());
  EXPECT_THAT(ok, ElementsAre(false, true, false, false, true));
  EXPECT_THAT(batches, ElementsAre(BitEqualTo(Steps(want, 0, 3)),
                                   BitEqualTo(Steps(want, 3, 13))));
  EXPECT_EQ(collector->frames(), kLanes * 13);
  EXPECT_EQ(cuts, 0);
}

TEST(SyncCollectorInterruptTest, BehindAnInterruptedStepLanesAreReset) {
  ParityPolicy policy;
  auto hooked = std::make_unique<HookedEnv>(
      *MakeCartPole({.lanes = kLanes}), [](int64_t step) {
        if (step == 3) throw std::runtime_error("interrupt");
        if (step == 8) throw std::runtime_error("no such thing");
      });
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto collector,
      SyncCollector::Create(Asking(std::move(hooked), &policy)));
  std::vector<int64_t> steps;
  std::vector<int64_t> ids;
  int64_t cuts = 0;
  FunctionSink sink(
      [&](const TensorDict& batch, const WriteInfo& /*info*/) {
        steps.push_back(batch.batch_shape()[1]);
        ids.push_back((*batch.Flat<int64_t>("collector/traj_ids"))[0]);
        return absl::OkStatus();
      },
      [&](int64_t /*producer*/, LaneRange /*lanes*/) {
        ++cuts;
        return absl::OkStatus();
      });
  RILL_ASSERT_OK(collector->CollectInto(sink));
  EXPECT_EQ(cuts, 0);
  // Another error drops the steps of its batch.
  EXPECT_EQ(collector->CollectInto(sink).code(), absl::StatusCode::kInternal);
  RILL_ASSERT_OK(collector->CollectInto(sink));
  EXPECT_THAT(steps, ElementsAre(3, 10));
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_GE(cuts, 1);
  EXPECT_EQ(collector->frames(), kLanes * 13);
}

}  // namespace
}  // namespace rill
