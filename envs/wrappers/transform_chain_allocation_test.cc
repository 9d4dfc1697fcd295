// SPDX-License-Identifier: Apache-2.0
// Once states come and go, steps and resets with transforms beside an
// environment allocate nothing.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/envs/transformed_env.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"
#include "rill/testing/allocation_counter.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/actions/discrete_action_projection.h"
#include "rill/transforms/env/random_truncation.h"
#include "rill/transforms/env/tensor_dict_primer.h"
#include "rill/transforms/env/timer.h"
#include "rill/transforms/episodes/episode_trackers.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/images/cat_frames.h"
#include "rill/transforms/images/time_max_pool.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"

namespace rill {
namespace {

constexpr int64_t kLanes = 3;
constexpr int64_t kActions = 3;  // Of the environment; the policy has one more.

absl::StatusOr<std::unique_ptr<TransformedEnv>> MakeChain() {
  TransformedEnv::Transforms chain;
  RILL_ASSIGN_OR_RETURN(
      chain.emplace_back(),
      DiscreteActionProjection::Create(
          {.num_actions_effective = kActions, .max_actions = kActions + 1}));
  RILL_ASSIGN_OR_RETURN(chain.emplace_back(),
                        RewardScaling::Create({.scale = 2}));
  RILL_ASSIGN_OR_RETURN(chain.emplace_back(), RewardSum::Create({}));
  RILL_ASSIGN_OR_RETURN(chain.emplace_back(), StepCounter::Create({}));
  RILL_ASSIGN_OR_RETURN(
      chain.emplace_back(),
      RandomTruncation::Create({.max_horizon = 4, .prob = 0.5}));
  RILL_ASSIGN_OR_RETURN(
      chain.emplace_back(),
      CatFrames::Create({.num_frames = 3,
                         .in_keys = {"observation"},
                         .out_keys = {"three_frames_of_it"}}));
  RILL_ASSIGN_OR_RETURN(
      chain.emplace_back(),
      TimeMaxPool::Create(
          {.num_steps = 3, .out_keys = {"largest_of_three_steps"}}));
  RILL_ASSIGN_OR_RETURN(
      chain.emplace_back(),
      VecNorm::Create(
          {.in_keys = {"observation", "next/reward"}, .shapes = {{1}, {1}}}));
  RILL_ASSIGN_OR_RETURN(chain.emplace_back(), InitTracker::Create({}));
  RILL_ASSIGN_OR_RETURN(chain.emplace_back(), TrajCounter::Create({}));
  RILL_ASSIGN_OR_RETURN(chain.emplace_back(), Timer::Create({}));
  for (const bool is_random : {false, true}) {
    TensorDictSpec primers;
    RILL_RETURN_IF_ERROR(
        primers.Set(is_random ? "goal" : "hidden_state_of_a_network",
                    LeafSpec::Bounded(DType::kFloat32, {2}, 0, 1)));
    RILL_ASSIGN_OR_RETURN(
        chain.emplace_back(),
        TensorDictPrimer::Create({.primers = primers, .random = is_random}));
  }
  RILL_ASSIGN_OR_RETURN(auto env,
                        MakeCountingEnv({.lanes = kLanes, .episode_steps = 3}));
  return TransformedEnv::Create(std::move(env), std::move(chain));
}

TEST(TransformChainAllocationTest, StepsAndResetsAllocateNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto env, MakeChain());
  RILL_ASSERT_OK_AND_ASSIGN(const auto actions,
                            env->step().Flat<int64_t>("action"));
  RILL_ASSERT_OK_AND_ASSIGN(const auto done,
                            env->step().Flat<bool>("next/done"));
  std::vector<uint8_t> mask(kLanes, 1);
  RILL_ASSERT_OK(env->Reset(mask));
  const auto steps = [&](int64_t count) {
    for (int64_t step = 0; step < count; ++step) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        actions[lane] = (step + lane) % (kActions + 1);
      }
      RILL_ASSERT_OK(env->Step());
      for (int64_t lane = 0; lane < kLanes; ++lane) mask[lane] = done[lane];
      RILL_ASSERT_OK(env->Reset(mask));
    }
  };
  steps(20);  // Makes the tensors that take turns.
  const AllocationCounter allocations;
  steps(20);
  EXPECT_EQ(allocations.count(), 0);
}

}  // namespace
}  // namespace rill
