// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/conformance/env_conformance.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env_checker.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/policies/exploration.h"
#include "rill/envs/policies/random_actions.h"
#include "rill/envs/rollout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

// The leaf is of a group that has ended at (lane, t) on its own.
bool GroupEnded(const Env& env, const TensorDict& next, absl::string_view key,
                int64_t lane, int64_t t) {
  for (const std::string& group : env.spec().own_episodes) {
    if (!absl::StartsWith(key, absl::StrCat(group, "/"))) continue;
    const TensorDict row = *next.Index(lane)->Index(t);
    const auto done = *row.Flat<bool>(absl::StrCat(group, "/done"));
    return std::all_of(done.begin(), done.end(), [](bool d) { return d; });
  }
  return false;
}

absl::StatusOr<TensorDict> RandomSteps(Env& env, int64_t steps) {
  RILL_ASSIGN_OR_RETURN(auto policy, MakeRandomPolicy(env.spec(), {.seed = 7}));
  return Rollout(env, *policy,
                 {.max_steps = steps, .break_when_any_done = false});
}

absl::StatusOr<TensorDict> RandomRollout(Env& env, int64_t steps) {
  RILL_RETURN_IF_ERROR(env.Seed(7));
  return RandomSteps(env, steps);
}

TEST_P(EnvConformanceTest, KeepsThePromisesOfEnv) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, GetParam()());
  // More than once: nothing sticks to the environment.
  for (uint64_t seed : {0, 1, 2}) {
    RILL_EXPECT_OK(CheckEnv(*env, {.seed = seed}));
  }
}

TEST_P(EnvConformanceTest, FreshEnvRefusesStepsBeforeReset) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, GetParam()());
  // No state has legal actions yet, and any will do.
  EnvSpec spec = env->spec();
  spec.legal_actions.clear();
  RILL_ASSERT_OK(WriteRandomActions(spec, {.seed = 7}, /*number=*/0,
                                    env->step(), env->step()));
  EXPECT_THAT(env->Step(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_P(EnvConformanceTest, TwoEnvsOfOneSeedAreEqual) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env_a, GetParam()());
  RILL_ASSERT_OK_AND_ASSIGN(auto env_b, GetParam()());
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict a, RandomRollout(*env_a, 100));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict b, RandomRollout(*env_b, 100));
  RILL_EXPECT_OK(a.CheckEqual(b));
}

TEST_P(EnvConformanceTest, AnotherEnvGoesOnFromASavedState) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env_a, GetParam()());
  RILL_ASSERT_OK_AND_ASSIGN(auto env_b, GetParam()());
  RILL_ASSERT_OK(RandomRollout(*env_a, 20).status());
  const absl::StatusOr<TensorDict> state = env_a->SaveState();
  if (absl::IsUnimplemented(state.status())) {
    GTEST_SKIP() << env_a->name() << " cannot save its state";
  }
  RILL_ASSERT_OK(state.status());
  RILL_ASSERT_OK(env_b->LoadState(*state));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict again, env_b->SaveState());
  RILL_EXPECT_OK(again.CheckEqual(*state));
  // And is what it says: both go on up to an end, and from a reset.
  TensorDict step = env_b->step();
  RILL_ASSERT_OK(step.CopyFrom(env_a->step()));
  for (int64_t t = 0; t < 20; ++t) {
    for (Env* env : {env_a.get(), env_b.get()}) {
      RILL_ASSERT_OK(WriteRandomActions(env->spec(), {.seed = 7}, t,
                                        env->step(), env->step()));
    }
    const absl::Status status = env_a->Step();
    ASSERT_EQ(env_b->Step().code(), status.code()) << "step " << t;
    if (!status.ok()) break;  // A lane has ended.
    RILL_ASSERT_OK(step.CheckEqual(env_a->step())) << "step " << t;
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict a, RandomSteps(*env_a, 30));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict b, RandomSteps(*env_b, 30));
  RILL_EXPECT_OK(b.CheckEqual(a)) << "after a reset";
}

TEST_P(EnvConformanceTest, RolloutKeepsTheFinalObservationInNext) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, GetParam()());
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, RandomRollout(*env, 200));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict next, batch.GetDict("next"));
  RILL_ASSERT_OK_AND_ASSIGN(auto done, next.Flat<bool>("done"));
  for (int64_t lane = 0; lane < env->lanes(); ++lane) {
    for (int64_t t = 0; t + 1 < 200; ++t) {
      if (done[lane * 200 + t]) continue;
      for (const auto& leaf : env->spec().observation.leaves()) {
        if (GroupEnded(*env, next, leaf.key, lane, t)) continue;
        RILL_ASSERT_OK_AND_ASSIGN(Tensor after, next.Get(leaf.key));
        RILL_ASSERT_OK_AND_ASSIGN(after, after.Index(lane));
        RILL_ASSERT_OK_AND_ASSIGN(after, after.Index(t));
        RILL_ASSERT_OK_AND_ASSIGN(Tensor root, batch.Get(leaf.key));
        RILL_ASSERT_OK_AND_ASSIGN(root, root.Index(lane));
        RILL_ASSERT_OK_AND_ASSIGN(root, root.Index(t + 1));
        EXPECT_THAT(root.BitEquals(after), IsOkAndHolds(true))
            << "lane " << lane << ", time " << t;
      }
    }
  }
}

}  // namespace
}  // namespace rill
