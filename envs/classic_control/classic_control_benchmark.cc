// SPDX-License-Identifier: Apache-2.0
// Cost of classic control a lane and step, with the resets of lanes that are
// done; alone, and with the copy of whole steps into a batch [lanes, time].
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmark/benchmark.h"
#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/classic_control/acrobot.h"
#include "rill/envs/classic_control/mountain_car.h"
#include "rill/envs/classic_control/mountain_car_continuous.h"
#include "rill/envs/classic_control/pendulum.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/random_actions.h"
#include "rill/envs/steps/step_carry.h"
#include "rill/envs/steps/step_recorder.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr int64_t kTime = 64;  // Steps a batch, and rows of ready actions.

// Ready-made random actions: drawing them is not what is measured.
absl::StatusOr<std::vector<Tensor>> MakeActions(const Env& env) {
  std::vector<Tensor> actions;
  for (int64_t t = 0; t < kTime; ++t) {
    RILL_RETURN_IF_ERROR(
        WriteRandomActions(env.spec(), {.seed = 1}, t, env.step(), env.step()));
    RILL_ASSIGN_OR_RETURN(actions.emplace_back(),
                          env.step().Find("action")->Clone());
  }
  return actions;
}

absl::Status Run(absl::StatusOr<std::unique_ptr<Env>> made, bool into_batch,
                 benchmark::State& state) {
  RILL_ASSIGN_OR_RETURN(const auto env, std::move(made));
  RILL_ASSIGN_OR_RETURN(const std::vector<Tensor> actions, MakeActions(*env));
  RILL_ASSIGN_OR_RETURN(const auto done, env->step().Flat<bool>("next/done"));
  const Tensor action = *env->step().Find("action");
  TensorDict root = env->step();
  RILL_ASSIGN_OR_RETURN(const StepCarry carry,
                        StepCarry::Bind(env->step(), root));
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec spec, StepSpec(env->spec()));
  RILL_ASSIGN_OR_RETURN(const TensorDict batch,
                        spec.Zero({env->lanes(), kTime}));
  RILL_ASSIGN_OR_RETURN(StepRecorder recorder,
                        StepRecorder::Create(spec, batch));
  RILL_RETURN_IF_ERROR(recorder.Bind(env->step()));

  std::vector<uint8_t> mask(env->lanes(), 1);
  RILL_RETURN_IF_ERROR(env->Reset(mask));
  int64_t t = 0;
  for (auto _ : state) {
    std::copy_n(actions[t].raw_data(), action.size_bytes(), action.raw_data());
    RILL_RETURN_IF_ERROR(env->Step());
    if (into_batch) {
      RILL_RETURN_IF_ERROR(recorder.Record(t));
      RILL_RETURN_IF_ERROR(carry.Run());
    }
    t = (t + 1) % kTime;
    if (t == 0) recorder.Flush();
    std::copy(done.begin(), done.end(), mask.begin());
    if (std::find(mask.begin(), mask.end(), 1) != mask.end()) {
      RILL_RETURN_IF_ERROR(env->Reset(mask));
    }
  }
  state.SetItemsProcessed(state.iterations() * env->lanes());
  return absl::OkStatus();
}

template <typename Options>
using Make = absl::StatusOr<std::unique_ptr<Env>> (*)(const Options&);

// Arguments: lanes, whether into a batch.
template <typename Options, Make<Options> kMake>
void BM_Step(benchmark::State& state) {
  Options options;
  options.lanes = state.range(0);
  const absl::Status status = Run(kMake(options), state.range(1) != 0, state);
  if (!status.ok()) state.SkipWithError(status.ToString().c_str());
}

BENCHMARK(BM_Step<CartPoleOptions, MakeCartPole>)
    ->Name("CartPole")
    ->ArgNames({"lanes", "batch"})
    ->ArgsProduct({{1, 16, 64, 1024}, {0, 1}});
BENCHMARK(BM_Step<MountainCarOptions, MakeMountainCar>)
    ->Name("MountainCar")
    ->ArgNames({"lanes", "batch"})
    ->ArgsProduct({{64}, {0, 1}});
BENCHMARK(BM_Step<MountainCarContinuousOptions, MakeMountainCarContinuous>)
    ->Name("MountainCarContinuous")
    ->ArgNames({"lanes", "batch"})
    ->ArgsProduct({{64}, {0, 1}});
BENCHMARK(BM_Step<AcrobotOptions, MakeAcrobot>)
    ->Name("Acrobot")
    ->ArgNames({"lanes", "batch"})
    ->ArgsProduct({{64}, {0, 1}});
BENCHMARK(BM_Step<PendulumOptions, MakePendulum>)
    ->Name("Pendulum")
    ->ArgNames({"lanes", "batch"})
    ->ArgsProduct({{64}, {0, 1}});

}  // namespace
}  // namespace rill
