// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/watch_env/built_in_env.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/classic_control/acrobot.h"
#include "rill/envs/classic_control/mountain_car.h"
#include "rill/envs/classic_control/mountain_car_continuous.h"
#include "rill/envs/classic_control/pendulum.h"
#ifdef RILL_WATCHES_MUJOCO
#include "rill/envs/mujoco/ant.h"
#include "rill/envs/mujoco/half_cheetah.h"
#include "rill/envs/mujoco/hopper.h"
#include "rill/envs/mujoco/humanoid.h"
#include "rill/envs/mujoco/inverted_pendulum.h"
#include "rill/envs/mujoco/walker2d.h"
#endif

namespace rill::watch_env {
namespace {

using Made = absl::StatusOr<std::unique_ptr<Env>>;

// One function a row of the table: options differ, but all have a seed.
template <typename Options, Made (*kMake)(const Options&)>
Made Make(uint64_t seed) {
  Options options;
  options.seed = seed;
  return kMake(options);
}

struct BuiltIn {
  absl::string_view id;
  Made (*make)(uint64_t seed);
};
constexpr BuiltIn kBuiltIn[] = {
    {"CartPole-v1", Make<CartPoleOptions, MakeCartPole>},
    {"MountainCar-v0", Make<MountainCarOptions, MakeMountainCar>},
    {"MountainCarContinuous-v0",
     Make<MountainCarContinuousOptions, MakeMountainCarContinuous>},
    {"Acrobot-v1", Make<AcrobotOptions, MakeAcrobot>},
    {"Pendulum-v1", Make<PendulumOptions, MakePendulum>},
#ifdef RILL_WATCHES_MUJOCO
    {"Ant-v5", Make<AntOptions, MakeAnt>},
    {"HalfCheetah-v5", Make<HalfCheetahOptions, MakeHalfCheetah>},
    {"Hopper-v5", Make<HopperOptions, MakeHopper>},
    {"Humanoid-v5", Make<HumanoidOptions, MakeHumanoid>},
    {"InvertedPendulum-v5",
     Make<InvertedPendulumOptions, MakeInvertedPendulum>},
    {"Walker2d-v5", Make<Walker2dOptions, MakeWalker2d>},
#endif
};

}  // namespace

Made MakeBuiltInEnv(absl::string_view id, uint64_t seed) {
  for (const BuiltIn& env : kBuiltIn) {
    if (env.id == id) return env.make(seed);
  }
  return NotFound(
      "env: got \"", id, "\", want one of ",
      absl::StrJoin(kBuiltIn, ", ", [](std::string* out, const BuiltIn& env) {
        absl::StrAppend(out, env.id);
      }));
}

}  // namespace rill::watch_env
