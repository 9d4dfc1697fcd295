// SPDX-License-Identifier: Apache-2.0
#include "rill/python/bindings/envs/mujoco_envs.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "nanobind/nanobind.h"
#include "nanobind/stl/pair.h"
#include "rill/envs/env.h"
#include "rill/envs/mujoco/ant.h"
#include "rill/envs/mujoco/half_cheetah.h"
#include "rill/envs/mujoco/hopper.h"
#include "rill/envs/mujoco/humanoid.h"
#include "rill/envs/mujoco/inverted_pendulum.h"
#include "rill/envs/mujoco/walker2d.h"
#include "rill/python/bindings/envs/env_part.h"
#include "rill/python/bindings/interpreter_lock.h"
#include "rill/python/bindings/options.h"
#include "rill/python/bindings/status.h"

namespace rill::python {
namespace {

namespace nb = nanobind;

// Each option that the task has.
template <typename Options>
Options ReadOptions(const char* name, const nb::dict& given) {
  Options options;
  OptionReader reader(name, given);
  reader.Read("lanes", &options.lanes)
      .Read("threads", &options.threads)
      .Read("max_episode_steps", &options.max_episode_steps)
      .Read("seed", &options.seed)
      .Read("xml_file", &options.xml_file)
      .Read("frame_skip", &options.frame_skip)
      .Read("reset_noise_scale", &options.reset_noise_scale);
#define RILL_READ(option)                     \
  if constexpr (requires { options.option; }) \
  reader.Read(#option, &options.option)
  RILL_READ(forward_reward_weight);
  RILL_READ(ctrl_cost_weight);
  RILL_READ(contact_cost_weight);
  RILL_READ(contact_cost_range);
  RILL_READ(contact_force_range);
  RILL_READ(healthy_reward);
  RILL_READ(main_body);
  RILL_READ(terminate_when_unhealthy);
  RILL_READ(healthy_state_range);
  RILL_READ(healthy_z_range);
  RILL_READ(healthy_angle_range);
  RILL_READ(exclude_current_positions_from_observation);
  RILL_READ(include_cinert_in_observation);
  RILL_READ(include_cvel_in_observation);
  RILL_READ(include_qfrc_actuator_in_observation);
  RILL_READ(include_cfrc_ext_in_observation);
#undef RILL_READ
  reader.CheckAllRead();
  return options;
}

template <typename Options>
std::unique_ptr<EnvPart> Make(
    const char* name, const nb::dict& given,
    absl::StatusOr<std::unique_ptr<Env>> (*make)(const Options&)) {
  const auto options = ReadOptions<Options>(name, given);
  absl::StatusOr<std::unique_ptr<Env>> env;
  {
    const Unlocked unlocked;
    env = make(options);
  }
  return std::make_unique<EnvPart>(Value(std::move(env)),
                                   /*has_workers=*/options.threads > 1);
}

// By the names of rill.envs.
using Maker = std::unique_ptr<EnvPart> (*)(const nb::dict& options);
const std::map<std::string, Maker>& Makers() {
  static const auto* const makers = new std::map<std::string, Maker>{
      {"Ant",
       [](const nb::dict& given) { return Make("Ant", given, &MakeAnt); }},
      {"HalfCheetah",
       [](const nb::dict& given) {
         return Make("HalfCheetah", given, &MakeHalfCheetah);
       }},
      {"Hopper",
       [](const nb::dict& given) {
         return Make("Hopper", given, &MakeHopper);
       }},
      {"Humanoid",
       [](const nb::dict& given) {
         return Make("Humanoid", given, &MakeHumanoid);
       }},
      {"InvertedPendulum",
       [](const nb::dict& given) {
         return Make("InvertedPendulum", given, &MakeInvertedPendulum);
       }},
      {"Walker2d",
       [](const nb::dict& given) {
         return Make("Walker2d", given, &MakeWalker2d);
       }},
  };
  return *makers;
}

}  // namespace

std::vector<std::string> MujocoTasks() {
  std::vector<std::string> names;
  for (const auto& [name, make] : Makers()) names.push_back(name);
  return names;
}

std::unique_ptr<EnvPart> MakeMujoco(const std::string& name,
                                    const nb::dict& options) {
  return Makers().at(name)(options);
}

}  // namespace rill::python
