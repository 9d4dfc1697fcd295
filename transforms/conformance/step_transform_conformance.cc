// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/conformance/step_transform_conformance.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "rill/base/catch_exceptions.h"
#include "rill/specs/bound_rows.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/episodes/vec_norm.h"

namespace rill {
namespace {

constexpr int64_t kLanes = 3;

TEST_P(StepTransformConformanceTest, PlansPredictTheValuesDomains) {
  const auto transform = MakeTransform();
  RILL_ASSERT_OK_AND_ASSIGN(
      auto environment,
      FakeEnvironment::Create(step_spec(), kLanes, transform.get()));
  RILL_ASSERT_OK(environment.Reset({1, 1, 1}));
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK(environment.Step());
    RILL_EXPECT_OK(
        environment.plan().spec.CheckValues("OnStep", environment.step()));
    RILL_ASSERT_OK(environment.Reset({0, 1, 0}));
  }
}

// So that a next can be carried over to the root.
TEST_P(StepTransformConformanceTest, NextIsLaidOutAsTheRoot) {
  const auto transform = MakeTransform();
  RILL_ASSERT_OK_AND_ASSIGN(const StepPlan plan,
                            transform->PlanSteps(step_spec()));
  for (const TensorDictSpec::Leaf& leaf : plan.spec.leaves()) {
    const LeafSpec* next = plan.spec.Find(absl::StrCat("next/", leaf.key));
    if (absl::StartsWith(leaf.key, "next/") || next == nullptr) continue;
    EXPECT_EQ(next->dtype, leaf.spec.dtype) << leaf.key;
    EXPECT_EQ(next->shape, leaf.spec.shape) << leaf.key;
  }
}

// So that they can be merged and handed to another worker.
TEST_P(StepTransformConformanceTest, StatisticsAreOfTheStateAndInAKnownForm) {
  const auto transform = MakeTransform();
  RILL_ASSERT_OK_AND_ASSIGN(const StepPlan plan,
                            transform->PlanSteps(step_spec()));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state,
                            transform->InitialState(kLanes));
  for (const std::string& key : plan.statistics) {
    RILL_ASSERT_OK_AND_ASSIGN(const VecNormMoments moments,
                              ReadVecNorm(state, key));
    EXPECT_EQ(moments.count, 0) << key;
  }
}

// Before its first row and behind some.
TEST_P(StepTransformConformanceTest, TheFrozenOneLeavesStatisticsAsTheyAre) {
  const auto transform = MakeTransform();
  RILL_ASSERT_OK_AND_ASSIGN(
      auto environment,
      FakeEnvironment::Create(step_spec(), kLanes, transform.get()));
  const StepPlan& plan = environment.plan();
  if (plan.statistics.empty()) return;
  ASSERT_NE(plan.frozen, nullptr);
  const std::vector<absl::string_view> statistics(plan.statistics.begin(),
                                                  plan.statistics.end());
  RILL_ASSERT_OK_AND_ASSIGN(environment.state(),
                            transform->InitialState(kLanes));
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict before,
                              environment.state().Select(statistics));
    RILL_ASSERT_OK_AND_ASSIGN(before, before.Clone());
    environment.Load(plan.frozen.get(), environment.state());
    for (const std::vector<uint8_t>& mask :
         std::vector<std::vector<uint8_t>>{{1, 1, 1}, {0, 1, 0}}) {
      RILL_ASSERT_OK(environment.Reset(mask));
      RILL_ASSERT_OK(environment.Step());
      RILL_EXPECT_OK(
          plan.spec.CheckValues("the frozen one", environment.step()));
    }
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict after,
                              environment.state().Select(statistics));
    RILL_EXPECT_OK(after.CheckEqual(before));
    environment.Load(transform.get(), environment.state());
    RILL_ASSERT_OK(environment.Reset({1, 0, 1}));
    RILL_ASSERT_OK(environment.Step());
  }
}

// A reset of no lane has carried next over, and has changed nothing.
void ExpectNextAtTheRoot(const TensorDict& last, const TensorDict& now) {
  last.ForEachLeaf([&](absl::string_view key, const Tensor& next) {
    if (!absl::ConsumePrefix(&key, "next/")) return;
    const Tensor* const root = now.Find(key);
    if (root == nullptr) return;
    EXPECT_THAT(root->BitEquals(next), IsOkAndHolds(true))
        << "\"" << key << "\" after a reset of no lane";
  });
}

TEST_P(StepTransformConformanceTest, ResetTouchesOnlyMaskedLanes) {
  const auto transform = MakeTransform();
  bool has_stepped = false;
  RILL_ASSERT_OK_AND_ASSIGN(
      auto environment,
      FakeEnvironment::Create(step_spec(), kLanes, transform.get()));
  for (const std::vector<uint8_t>& mask :
       std::vector<std::vector<uint8_t>>{{1, 1, 1}, {0, 1, 0}, {1, 0, 1}}) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict last,
                              environment.step().Clone());
    RILL_ASSERT_OK(environment.Reset({0, 0, 0}));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before,
                              environment.step().Clone());
    if (has_stepped) ExpectNextAtTheRoot(last, before);
    has_stepped = true;
    RILL_ASSERT_OK(environment.Reset(mask));
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      if (mask[static_cast<size_t>(lane)] != 0) continue;
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict was, before.Index(lane));
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict is,
                                environment.step().Index(lane));
      RILL_EXPECT_OK(is.CheckEqual(was)) << "lane " << lane;
    }
    RILL_ASSERT_OK(environment.Step());
  }
}

// A reset of each mask, and a step behind it, make the same of both.
void ExpectEqualSteps(const std::vector<std::vector<uint8_t>>& masks,
                      FakeEnvironment* first, FakeEnvironment* second) {
  for (const std::vector<uint8_t>& mask : masks) {
    for (FakeEnvironment* environment : {first, second}) {
      RILL_ASSERT_OK(environment->Reset(mask));
      RILL_ASSERT_OK(environment->Step());
    }
    RILL_EXPECT_OK(first->step().CheckEqual(second->step()));
    RILL_EXPECT_OK(
        first->environment_step().CheckEqual(second->environment_step()));
    RILL_EXPECT_OK(first->state().CheckEqual(second->state()));
  }
}

TEST_P(StepTransformConformanceTest, EqualTransformsMakeEqualSteps) {
  const auto a = MakeTransform();
  const auto b = MakeTransform();
  EXPECT_FALSE(a->name().empty());
  EXPECT_EQ(a->name(), b->name());
  RILL_ASSERT_OK_AND_ASSIGN(
      auto first, FakeEnvironment::Create(step_spec(), kLanes, a.get()));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto second, FakeEnvironment::Create(step_spec(), kLanes, b.get()));
  ExpectEqualSteps({{1, 1, 1}, {0, 0, 0}, {1, 0, 1}}, &first, &second);
}

// What stands there before the first reset is not there afterwards.
TEST_P(StepTransformConformanceTest, WritesAllOfItsNewLeaves) {
  if (reads_clock()) return;
  const auto transform = MakeTransform();
  RILL_ASSERT_OK_AND_ASSIGN(
      auto zeroed,
      FakeEnvironment::Create(step_spec(), kLanes, transform.get()));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto scribbled,
      FakeEnvironment::Create(step_spec(), kLanes, transform.get()));
  for (const BoundRows::Leaf& leaf : scribbled.plan().leaves) {
    if (leaf.use != LeafUse::kWrite) continue;
    const TensorDict& step =
        leaf.key == "action" ? scribbled.environment_step() : scribbled.step();
    const Tensor& values = *step.Find(leaf.key);
    std::memset(values.raw_data(), leaf.dtype == DType::kBool ? 1 : 0x3f,
                static_cast<size_t>(values.size_bytes()));
  }
  ExpectEqualSteps({{1, 1, 1}, {0, 0, 0}, {1, 0, 1}}, &scribbled, &zeroed);
}

TEST_P(StepTransformConformanceTest, OldStatesStayAsTheyWere) {
  const auto transform = MakeTransform();
  RILL_ASSERT_OK_AND_ASSIGN(
      auto environment,
      FakeEnvironment::Create(step_spec(), kLanes, transform.get()));
  RILL_ASSERT_OK(environment.Reset({1, 1, 1}));
  RILL_ASSERT_OK(environment.Step());
  const TensorDict old = environment.state();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict copy, old.Clone());
  RILL_ASSERT_OK(environment.Reset({0, 1, 0}));
  RILL_ASSERT_OK(environment.Step());
  RILL_EXPECT_OK(old.CheckEqual(copy));
}

// A fresh transform has nothing of the first one but the state and the leaves.
TEST_P(StepTransformConformanceTest, ALoadedStateGoesOnAsTheSavedOne) {
  if (reads_clock()) return;
  const auto a = MakeTransform();
  const auto b = MakeTransform();
  const auto fresh = MakeTransform();
  RILL_ASSERT_OK_AND_ASSIGN(
      auto first, FakeEnvironment::Create(step_spec(), kLanes, a.get()));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto second, FakeEnvironment::Create(step_spec(), kLanes, b.get()));
  for (FakeEnvironment* environment : {&first, &second}) {
    RILL_ASSERT_OK(environment->Reset({1, 1, 1}));
    RILL_ASSERT_OK(environment->Step());
    RILL_ASSERT_OK(environment->Reset({0, 1, 0}));
    RILL_ASSERT_OK(environment->Step());
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict initial, a->InitialState(kLanes));
  RILL_EXPECT_OK(CheckTransformState(a->name(), initial, first.state()));
  TensorDict saved;
  for (const std::string& key : first.state().LeafKeys()) {
    RILL_ASSERT_OK_AND_ASSIGN(Tensor leaf, first.state().Find(key)->Clone());
    RILL_ASSERT_OK(saved.Set(key, std::move(leaf)));
  }
  second.Load(fresh.get(), std::move(saved));
  ExpectEqualSteps({{1, 0, 1}, {0, 0, 0}}, &first, &second);
}

// Resets and steps of an environment of the caller's own; the steps.
std::vector<TensorDict> StepsOf(const TensorDictSpec& spec,
                                const StepTransform* transform) {
  std::vector<TensorDict> steps;
  auto environment = FakeEnvironment::Create(spec, kLanes, transform);
  RILL_EXPECT_OK(environment);
  if (!environment.ok()) return steps;
  for (const std::vector<uint8_t>& mask : std::vector<std::vector<uint8_t>>{
           {1, 1, 1}, {0, 1, 0}, {0, 0, 0}, {1, 0, 1}}) {
    RILL_EXPECT_OK(environment->Reset(mask));
    RILL_EXPECT_OK(environment->Step());
    auto step = environment->step().Clone();
    RILL_EXPECT_OK(step);
    if (step.ok()) steps.push_back(*std::move(step));
  }
  return steps;
}

TEST_P(StepTransformConformanceTest, ServesSeveralThreadsAtOnce) {
  if (reads_clock()) return;
  const auto transform = MakeTransform();
  const std::vector<TensorDict> want = StepsOf(step_spec(), transform.get());
  std::array<std::vector<TensorDict>, 8> made;
  std::vector<std::thread> threads;
  for (std::vector<TensorDict>& steps : made) {
    threads.emplace_back([&] {
      RILL_EXPECT_OK(CatchExceptions(
          [&] {
            steps = StepsOf(step_spec(), transform.get());
            return absl::OkStatus();
          },
          transform->name()));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<TensorDict>& steps : made) {
    ASSERT_EQ(steps.size(), want.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      RILL_EXPECT_OK(steps[i].CheckEqual(want[i])) << i;
    }
  }
}

}  // namespace
}  // namespace rill
