// SPDX-License-Identifier: Apache-2.0
// Transforms that live beside environments, all in one chain.
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/envs/env.h"
#include "rill/envs/transformed_env.h"
#include "rill/envs/wrappers/frame_skip.h"
#include "rill/envs/wrappers/noop_reset.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"
#include "rill/transforms/actions/action_mask.h"
#include "rill/transforms/actions/discrete_action_projection.h"
#include "rill/transforms/env/end_of_life.h"
#include "rill/transforms/env/random_truncation.h"
#include "rill/transforms/env/tensor_dict_primer.h"
#include "rill/transforms/env/terminate.h"
#include "rill/transforms/env/timer.h"
#include "rill/transforms/step_counter.h"

namespace rill {
namespace {

class StillClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::FromUnixSeconds(1); }
};

absl::StatusOr<std::unique_ptr<Env>> MakeChain(int64_t lanes) {
  static const StillClock clock;
  RILL_ASSIGN_OR_RETURN(auto env, MakeCartPole({.lanes = lanes}));
  RILL_ASSIGN_OR_RETURN(env, MakeFrameSkip(std::move(env), {.frame_skip = 2}));
  RILL_ASSIGN_OR_RETURN(env, MakeNoopReset(std::move(env), {.noops = 2}));
  TensorDictSpec primers;
  RILL_RETURN_IF_ERROR(primers.Set("action_mask", LeafSpec::OneHot(5)));
  RILL_RETURN_IF_ERROR(
      primers.Set("lives", LeafSpec::Bounded(DType::kInt64, {1}, 0, 5)));
  TransformedEnv::Transforms chain;
  RILL_ASSIGN_OR_RETURN(
      chain.emplace_back(),
      TensorDictPrimer::Create({.primers = primers, .random = true}));
  RILL_ASSIGN_OR_RETURN(chain.emplace_back(),
                        DiscreteActionProjection::Create(
                            {.num_actions_effective = 2, .max_actions = 5}));
  RILL_ASSIGN_OR_RETURN(chain.emplace_back(),
                        ActionMask::Create({.replace = true}));
  RILL_ASSIGN_OR_RETURN(chain.emplace_back(), StepCounter::Create({}));
  RILL_ASSIGN_OR_RETURN(
      chain.emplace_back(),
      RandomTruncation::Create({.max_horizon = 12, .prob = 0.5}));
  RILL_ASSIGN_OR_RETURN(
      chain.emplace_back(),
      Terminate::Create({.stop = [](Terminate::Leaves step, int64_t lane) {
        return step[0].As<float>()[4 * lane] > 0.1f;
      }}));
  RILL_ASSIGN_OR_RETURN(chain.emplace_back(), EndOfLife::Create({}));
  RILL_ASSIGN_OR_RETURN(chain.emplace_back(), Timer::Create({.clock = &clock}));
  return TransformedEnv::Create(std::move(env), std::move(chain));
}

INSTANTIATE_TEST_SUITE_P(Chain, EnvConformanceTest,
                         ::testing::Values([] { return MakeChain(3); }));

}  // namespace
}  // namespace rill
