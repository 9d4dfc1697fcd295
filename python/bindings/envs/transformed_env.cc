// SPDX-License-Identifier: Apache-2.0
// Transforms beside an environment.
#include "rill/envs/transformed_env.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "nanobind/nanobind.h"
#include "nanobind/stl/string.h"
#include "nanobind/stl/unique_ptr.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/envs/env_part.h"
#include "rill/python/bindings/interpreter_lock.h"
#include "rill/python/bindings/options.h"
#include "rill/python/bindings/parts.h"
#include "rill/python/bindings/status.h"
#include "rill/tensors/shape.h"
#include "rill/transforms/episodes/episode_trackers.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"
#include "rill/transforms/step_transform.h"

namespace rill::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;
using Made = absl::StatusOr<std::unique_ptr<StepTransform>>;

// `read` fills the options.
template <typename T, typename Read>
std::function<Made(OptionReader*)> MakerOf(Read read) {
  return [read](OptionReader* reader) -> Made {
    typename T::Options options;
    read(reader, &options);
    reader->CheckAllRead();
    return T::Create(options);
  };
}

void ReadVecNorm(OptionReader* reader, VecNorm::Options* options) {
  std::vector<std::vector<int64_t>> shapes;
  reader->Read("in_keys", &options->in_keys)
      .Read("shapes", &shapes)
      .Read("out_keys", &options->out_keys)
      .Read("decay", &options->decay)
      .Read("eps", &options->eps);
  for (const std::vector<int64_t>& shape : shapes) {
    options->shapes.push_back(Value(Shape::Create(shape)));
  }
}

// Those that work beside an environment alone.
const std::map<std::string, std::function<Made(OptionReader*)>>& Makers() {
  static const auto* const makers =
      new std::map<std::string, std::function<Made(OptionReader*)>>{
          {"StepCounter",
           MakerOf<StepCounter>([](OptionReader* reader, auto* options) {
             reader->Read("max_steps", &options->max_steps)
                 .Read("step_count_key", &options->step_count_key)
                 .Read("truncated_key", &options->truncated_key)
                 .Read("update_done", &options->update_done);
           })},
          {"RewardSum",
           MakerOf<RewardSum>([](OptionReader* reader, auto* options) {
             reader->Read("reward_key", &options->reward_key)
                 .Read("sum_key", &options->sum_key);
           })},
          {"InitTracker",
           MakerOf<InitTracker>([](OptionReader* reader, auto* options) {
             reader->Read("init_key", &options->init_key);
           })},
          {"TrajCounter",
           MakerOf<TrajCounter>([](OptionReader* reader, auto* options) {
             reader->Read("out_key", &options->out_key);
           })},
          {"VecNorm", MakerOf<VecNorm>(&ReadVecNorm)},
      };
  return *makers;
}

TransformPart MakeStep(const std::string& name, const nb::dict& options) {
  OptionReader reader = OptionReader::OfCopy(name, options);
  return {.step = Value(Makers().at(name)(&reader))};
}

// It takes `env`, also where it refuses the transforms.
std::unique_ptr<EnvPart> MakeTransformed(EnvPart* env,
                                         const nb::list& transforms) {
  TransformedEnv::Transforms steps;
  for (const nb::handle transform : transforms) {
    steps.push_back(nb::cast<TransformPart*>(transform)->TakeStep());
  }
  const bool has_workers = env->has_workers();
  std::unique_ptr<Env> inner = env->Take();
  absl::StatusOr<std::unique_ptr<TransformedEnv>> made;
  {
    const Unlocked unlocked;
    made = TransformedEnv::Create(std::move(inner), std::move(steps));
  }
  return std::make_unique<EnvPart>(Value(std::move(made)), has_workers);
}

}  // namespace

void BindTransformedEnv(nb::module_& module) {
  module.def("step_transform", &MakeStep, "name"_a, "options"_a);
  module.def("transformed_env", &MakeTransformed, "env"_a, "transforms"_a);
}

}  // namespace rill::python
