// SPDX-License-Identifier: Apache-2.0
// The environments of C++, and what Python code asks of any.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nanobind/nanobind.h"
#include "nanobind/stl/string.h"
#include "nanobind/stl/unique_ptr.h"
#include "nanobind/stl/vector.h"
#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/classic_control/acrobot.h"
#include "rill/envs/classic_control/mountain_car.h"
#include "rill/envs/classic_control/mountain_car_continuous.h"
#include "rill/envs/classic_control/pendulum.h"
#include "rill/envs/env.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/gymnasium/gymnasium_env.h"
#include "rill/envs/policies/exploration.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/rollout.h"
#include "rill/envs/wrappers/vector_env.h"
#include "rill/python/bindings/batch.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/envs/env_part.h"
#include "rill/python/bindings/envs/interrupt.h"
#include "rill/python/bindings/envs/mujoco_envs.h"
#include "rill/python/bindings/envs/python_policy.h"
#include "rill/python/bindings/interpreter_lock.h"
#include "rill/python/bindings/options.h"
#include "rill/python/bindings/status.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;
using Part = std::unique_ptr<EnvPart>;

// One that has the options of classic control.
template <typename Options>
Part MakeClassic(absl::StatusOr<std::unique_ptr<Env>> (*make)(const Options&),
                 const char* name, const nb::dict& given) {
  Options options;
  OptionReader(name, given)
      .Read("lanes", &options.lanes)
      .Read("max_episode_steps", &options.max_episode_steps)
      .Read("seed", &options.seed)
      .CheckAllRead();
  return std::make_unique<EnvPart>(Value(make(options)),
                                   /*has_workers=*/false);
}

Part MakeGymnasium(const nb::dict& given) {
  GymnasiumEnvOptions options;
  double step_timeout = 30;
  OptionReader("GymEnv", given)
      .Read("id", &options.id)
      .Read("lanes", &options.lanes)
      .Read("children", &options.children)
      .Read("kwargs", &options.kwargs)
      .Read("seed", &options.seed)
      .Read("python", &options.python)
      .Read("python_path", &options.python_path)
      .Read("imports", &options.imports)
      .Read("step_timeout", &step_timeout)
      .CheckAllRead();
  options.step_timeout = absl::Seconds(step_timeout);
  absl::StatusOr<std::unique_ptr<Env>> env;
  {
    const Unlocked unlocked;
    env = MakeGymnasiumEnv(options);
  }
  return std::make_unique<EnvPart>(Value(std::move(env)), /*has_workers=*/true);
}

Part MakeVector(const nb::list& parts, uint64_t seed) {
  // All checks come first: after an error the parts are their owner's.
  std::vector<Env*> shown;
  bool has_workers = false;
  for (const nb::handle part : parts) {
    auto* env = nb::cast<EnvPart*>(part);
    has_workers = has_workers || env->has_workers();
    shown.push_back(env->Get());
    if (std::count(shown.begin(), shown.end(), shown.back()) > 1) {
      throw StatusError{
          InvalidArgument("VectorEnv: envs[", shown.size() - 1,
                          "]: got one environment twice, want another one")};
    }
  }
  Check(CheckVectorEnvParts(shown));
  std::vector<std::unique_ptr<Env>> envs;
  for (const nb::handle part : parts) {
    envs.push_back(nb::cast<EnvPart*>(part)->Take());
  }
  std::unique_ptr<Env> made = Value(MakeVectorEnv(std::move(envs)));
  Check(made->Seed(seed));
  return std::make_unique<EnvPart>(std::move(made), has_workers);
}

// Another policy, whose rollout ends by an interrupt, or where the environment
// is stopped.
class InterruptedPolicy final : public Policy {
 public:
  InterruptedPolicy(const EnvPart::Call* call, std::unique_ptr<Policy> policy)
      : call_(call), policy_(std::move(policy)) {}
  const TensorDictSpec& output_spec() const override {
    return policy_->output_spec();
  }
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override {
    if (call_->is_stopped()) {
      return absl::CancelledError(
          "Env::rollout: got an interpreter that ends, want one that goes on");
    }
    RILL_RETURN_IF_ERROR(look_.Status());
    return policy_->Act(root, context, step);
  }

 private:
  const EnvPart::Call* const call_;
  const std::unique_ptr<Policy> policy_;
  InterruptLook look_;
};

// [lanes, time]; `act` is None for random actions, else as PythonPolicy's.
nb::object RollOut(EnvPart* part, const nb::object& act,
                   const TensorDictSpec& outputs, const nb::dict& given) {
  const EnvPart::Call call(part);
  RolloutOptions options;
  uint64_t seed = 0;
  OptionReader("Env::rollout", given)
      .Read("max_steps", &options.max_steps)
      .Read("auto_reset", &options.auto_reset)
      .Read("break_when_any_done", &options.break_when_any_done)
      .Read("break_when_all_done", &options.break_when_all_done)
      .Read("set_truncated", &options.set_truncated)
      .Read("seed", &seed)
      .CheckAllRead();
  std::unique_ptr<Policy> policy;
  if (act.is_none()) {
    policy = Value(MakeRandomPolicy(call.env().spec(), {.seed = seed}));
  } else {
    policy =
        std::make_unique<PythonPolicy>(act, call.env().spec().action, outputs);
  }
  InterruptedPolicy interrupted(&call, std::move(policy));
  const auto batch = std::make_shared<OutputBatch>();
  absl::StatusOr<TensorDict> rows;
  {
    const Unlocked unlocked;
    rows = Rollout(call.env(), interrupted, options);
  }
  batch->rows = Value(std::move(rows));
  OutputMaker maker;
  return maker.Make(batch);
}

void BindPart(nb::module_& module) {
  nb::class_<EnvPart>(module, "Env")
      .def_prop_ro("name", [](const EnvPart& part) { return part.spec().name; })
      .def_prop_ro("lanes",
                   [](const EnvPart& part) { return part.spec().lanes; })
      .def_prop_ro("observation_spec",
                   [](const EnvPart& part) { return part.spec().observation; })
      .def_prop_ro("action_spec",
                   [](const EnvPart& part) { return part.spec().action; })
      .def_prop_ro(
          "reward_spec",
          [](const EnvPart& part) { return Value(RewardSpec(part.spec())); })
      .def(
          "seed",
          [](EnvPart& part, uint64_t seed) {
            Check(EnvPart::Call(&part).env().Seed(seed));
          },
          "seed"_a)
      .def("rollout", &RollOut, "act"_a.none(), "outputs"_a, "options"_a)
      .def("close", &EnvPart::Close)
      .def("stop", &EnvPart::Stop)
      .def_prop_ro("calls_in_flight", &EnvPart::calls_in_flight);
}

}  // namespace

void BindEnvs(nb::module_& module) {
  BindPart(module);
  const auto classic = [&](const char* name, auto make) {
    module.def(
        name,
        [make, name](const nb::dict& options) {
          return MakeClassic(make, name, options);
        },
        "options"_a);
  };
  classic("CartPole", &MakeCartPole);
  classic("MountainCar", &MakeMountainCar);
  classic("MountainCarContinuous", &MakeMountainCarContinuous);
  classic("Acrobot", &MakeAcrobot);
  classic("Pendulum", &MakePendulum);
  module.def("mujoco_tasks", &MujocoTasks);
  module.def("mujoco_env", &MakeMujoco, "name"_a, "options"_a);
  module.def("gymnasium_env", &MakeGymnasium, "options"_a);
  module.def("vector_env", &MakeVector, "parts"_a, "seed"_a);
}

}  // namespace rill::python
