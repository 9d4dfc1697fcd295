// SPDX-License-Identifier: Apache-2.0
// MuJoCo's tasks, whole steps into a batch, beside a bare loop: the action into
// ctrl and mj_step, with the same library, model, states and actions. The two
// sides take turns, one step of all lanes each. Resets are not measured.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "benchmark/benchmark.h"
#include "gymnasium_models/models.h"
#include "mujoco/mujoco.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env.h"
#include "rill/envs/mujoco/ant.h"
#include "rill/envs/mujoco/half_cheetah.h"
#include "rill/envs/mujoco/hopper.h"
#include "rill/envs/mujoco/humanoid.h"
#include "rill/envs/mujoco/inverted_pendulum.h"
#include "rill/envs/mujoco/mujoco_model.h"
#include "rill/envs/mujoco/walker2d.h"
#include "rill/envs/policies/random_actions.h"
#include "rill/envs/steps/step_driver.h"
#include "rill/envs/steps/step_recorder.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {
namespace {

constexpr int64_t kTime = 64;  // Steps a batch.

// The environment's side.
class Steps {
 public:
  static absl::StatusOr<Steps> Create(std::unique_ptr<Env> env) {
    Steps steps;
    RILL_ASSIGN_OR_RETURN(steps.driver_, StepDriver::Create(env.get()));
    RILL_ASSIGN_OR_RETURN(const TensorDict batch,
                          steps.driver_.spec().Zero({env->lanes(), kTime}));
    RILL_ASSIGN_OR_RETURN(steps.recorder_,
                          StepRecorder::Create(steps.driver_.spec(), batch));
    RILL_RETURN_IF_ERROR(steps.recorder_.Bind(steps.driver_.step()));
    RILL_ASSIGN_OR_RETURN(steps.action_, env->step().Flat<float>("action"));
    steps.env_ = std::move(env);
    RILL_RETURN_IF_ERROR(steps.driver_.ResetAll());
    return steps;
  }

  absl::Status Run() {
    RILL_RETURN_IF_ERROR(driver_.Step());
    RILL_RETURN_IF_ERROR(recorder_.Record(step_ % kTime));
    if (step_ % kTime == kTime - 1) recorder_.Flush();
    return driver_.Carry();
  }

  // Draws the next actions, and resets what is done.
  absl::Status Prepare() {
    ++step_;
    RILL_RETURN_IF_ERROR(WriteRandomActions(env_->spec(), {.seed = 1}, step_,
                                            env_->step(), env_->step()));
    return driver_.ResetEnded();
  }

  bool HasEnded() const {
    const auto done = driver_.done();
    return std::find(done.begin(), done.end(), true) != done.end();
  }
  const Env& env() const { return *env_; }
  absl::Span<const float> action() const { return action_; }

 private:
  std::unique_ptr<Env> env_;
  StepDriver driver_;
  StepRecorder recorder_;
  absl::Span<float> action_;
  int64_t step_ = 0;
};

class BareLoop {
 public:
  BareLoop(MujocoModel model, int64_t lanes, int frame_skip)
      : model_(std::move(model)), frame_skip_(frame_skip) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      lanes_.emplace_back(mj_makeData(model_.get()), &mj_deleteData);
    }
  }

  void Run(absl::Span<const float> action) {
    const auto* from = action.data();
    for (const auto& data : lanes_) {
      std::copy_n(from, model_->nu, data->ctrl);
      from += model_->nu;
      for (int i = 0; i < frame_skip_; ++i) mj_step(model_.get(), data.get());
    }
  }

  // Takes the states of the environment's lanes.
  absl::Status SetStates(const Env& env) {
    RILL_ASSIGN_OR_RETURN(const TensorDict state, env.SaveState());
    RILL_ASSIGN_OR_RETURN(const auto rows,
                          state.Flat<double>("lane/integration"));
    const size_t size = rows.size() / lanes_.size();
    for (size_t lane = 0; lane < lanes_.size(); ++lane) {
      mj_setState(model_.get(), lanes_[lane].get(), rows.data() + lane * size,
                  mjSTATE_INTEGRATION);
    }
    return absl::OkStatus();
  }

  // The two sides have done the same work.
  absl::Status CheckStates(const Env& env) const {
    RILL_ASSIGN_OR_RETURN(const TensorDict state, env.SaveState());
    RILL_ASSIGN_OR_RETURN(const auto rows,
                          state.Flat<double>("lane/integration"));
    const size_t size = rows.size() / lanes_.size();
    std::vector<double> bare(size);
    for (size_t lane = 0; lane < lanes_.size(); ++lane) {
      mj_getState(model_.get(), lanes_[lane].get(), bare.data(),
                  mjSTATE_INTEGRATION);
      if (!std::equal(bare.begin(), bare.end(), rows.data() + lane * size)) {
        return absl::InternalError("the two sides ended in different states");
      }
    }
    return absl::OkStatus();
  }

 private:
  const MujocoModel model_;
  const int frame_skip_;
  std::vector<std::unique_ptr<mjData, void (*)(mjData*)>> lanes_;
};

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size()) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

absl::Status Run(absl::StatusOr<std::unique_ptr<Env>> made,
                 absl::string_view xml, int frame_skip,
                 benchmark::State& state) {
  RILL_ASSIGN_OR_RETURN(auto env, std::move(made));
  RILL_ASSIGN_OR_RETURN(Steps steps, Steps::Create(std::move(env)));
  RILL_ASSIGN_OR_RETURN(MujocoModel model, ParseMujocoModel(xml));
  BareLoop bare(std::move(model), steps.env().lanes(), frame_skip);
  const auto seconds = [](const auto& run) {
    const absl::Time begin = Clock::Steady().Now();
    run();
    return absl::ToDoubleSeconds(Clock::Steady().Now() - begin);
  };

  std::vector<double> own_times, bare_times, ratios;
  bool is_reset = true;
  bool is_first = false;
  absl::Status status;
  for (auto _ : state) {
    RILL_RETURN_IF_ERROR(steps.Prepare());
    if (is_reset) {
      RILL_RETURN_IF_ERROR(bare.SetStates(steps.env()));
    }
    is_first = !is_first;
    double own = 0;
    if (is_first) own = seconds([&] { status = steps.Run(); });
    const double other = seconds([&] { bare.Run(steps.action()); });
    if (!is_first) own = seconds([&] { status = steps.Run(); });
    RILL_RETURN_IF_ERROR(status);
    is_reset = steps.HasEnded();
    own_times.push_back(own);
    bare_times.push_back(other);
    ratios.push_back(other / own);
    state.SetIterationTime(own);
  }
  RILL_RETURN_IF_ERROR(bare.CheckStates(steps.env()));
  const auto lanes = static_cast<double>(steps.env().lanes());
  state.counters["frames/s"] = lanes / Median(own_times);
  state.counters["bare_frames/s"] = lanes / Median(bare_times);
  state.counters["of_bare"] = Median(ratios);
  return absl::OkStatus();
}

template <typename Options>
using Make = absl::StatusOr<std::unique_ptr<Env>> (*)(const Options&);

// Argument: lanes.
template <typename Options, Make<Options> kMake, const auto& kModel>
void BM_Task(benchmark::State& state) {
  Options options;
  options.lanes = state.range(0);
  const absl::Status status =
      Run(kMake(options), kModel, options.frame_skip, state);
  if (!status.ok()) state.SkipWithError(status.ToString().c_str());
}

void Arguments(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("lanes")->Arg(1)->Arg(16)->UseManualTime();
}

BENCHMARK(BM_Task<InvertedPendulumOptions, MakeInvertedPendulum,
                  gymnasium_models::kInvertedPendulum>)
    ->Name("InvertedPendulum")
    ->Apply(Arguments);
BENCHMARK(BM_Task<HopperOptions, MakeHopper, gymnasium_models::kHopper>)
    ->Name("Hopper")
    ->Apply(Arguments);
BENCHMARK(BM_Task<HalfCheetahOptions, MakeHalfCheetah,
                  gymnasium_models::kHalfCheetah>)
    ->Name("HalfCheetah")
    ->Apply(Arguments);
BENCHMARK(BM_Task<Walker2dOptions, MakeWalker2d, gymnasium_models::kWalker2d>)
    ->Name("Walker2d")
    ->Apply(Arguments);
BENCHMARK(BM_Task<AntOptions, MakeAnt, gymnasium_models::kAnt>)
    ->Name("Ant")
    ->Apply(Arguments);
BENCHMARK(BM_Task<HumanoidOptions, MakeHumanoid, gymnasium_models::kHumanoid>)
    ->Name("Humanoid")
    ->Apply(Arguments);

}  // namespace
}  // namespace rill
