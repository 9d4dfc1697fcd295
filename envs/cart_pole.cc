// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/cart_pole.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "absl/types/span.h"
#include "rill/envs/cart_pole_physics.h"
#include "rill/envs/classic_control/classic_env.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"

namespace rill {
namespace {

using envs_internal::ClassicLanes;
using envs_internal::InitCartPole;
using envs_internal::kCartPoleStateSize;
using envs_internal::MakeClassicEnv;
using envs_internal::StepCartPoles;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// No range: LoadState takes every finite state, as Gymnasium's equations do.
constexpr double kLow[kCartPoleStateSize] = {-kInfinity, -kInfinity, -kInfinity,
                                             -kInfinity};
constexpr double kHigh[kCartPoleStateSize] = {kInfinity, kInfinity, kInfinity,
                                              kInfinity};

void Observe(const double* state, float* observation) {
  std::copy_n(state, kCartPoleStateSize, observation);
}

void Step(const ClassicLanes& lanes) {
  const auto count = static_cast<size_t>(lanes.lanes);
  StepCartPoles(absl::MakeConstSpan(lanes.choice, count), lanes.state,
                lanes.observation, lanes.terminated);
  std::fill_n(lanes.reward, count, 1.0f);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeCartPole(
    const CartPoleOptions& options) {
  return MakeClassicEnv({.id = "CartPole-v1",
                         .name = "CartPole",
                         .observation = LeafSpec::Unbounded(
                             DType::kFloat32, {kCartPoleStateSize}),
                         .action = LeafSpec::Categorical(2),
                         .wanted = "0 or 1",
                         .low = kLow,
                         .high = kHigh,
                         .init = InitCartPole,
                         .observe = Observe,
                         .step = Step},
                        options);
}

}  // namespace rill
