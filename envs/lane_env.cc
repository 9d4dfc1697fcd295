// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/lane_env.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/status_macros.h"
#include "rill/envs/lane_rows.h"
#include "rill/envs/lanes/episode_counters.h"
#include "rill/envs/lanes/lane_errors.h"
#include "rill/envs/lanes/lane_pool.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/state/state_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using envs_internal::EpisodeCounters;
using envs_internal::LanePool;
using envs_internal::TakeLaneErrors;

constexpr int64_t kStateVersion = 1;
constexpr absl::string_view kLane = "lane";  // What lanes save stands below.

class LaneEnv final : public Env {
 public:
  static absl::StatusOr<std::unique_ptr<Env>> Create(
      EnvSpec spec, const LaneFactory& make_lane,
      const LaneEnvOptions& options);

  absl::Status Seed(uint64_t seed) override;
  absl::Status Reset(const ResetMask& mask) override;
  absl::Status BeginStep() override;
  absl::Status EndStep() override;
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

 private:
  LaneEnv(EnvSpec spec, TensorDict step, const LaneEnvOptions& options)
      : Env(std::move(spec), std::move(step)),
        options_(options),
        step_caller_(Caller("Step")),
        now_(lanes()),
        status_(lanes()) {
    SetSeeds(options.seed);
  }

  absl::Status Bind(const LaneFactory& make_lane);
  void SetSeeds(uint64_t seed);
  std::string Caller(absl::string_view function) const {
    return absl::StrCat(name(), "::", function);
  }
  void Call(int64_t i);
  void ResetLane(int64_t lane);
  void StepLane(int64_t lane);
  absl::Status EndFailedSteps();
  absl::Status LoadLanes(const TensorDict& lanes);

  const LaneEnvOptions options_;
  const std::string step_caller_;
  EpisodeCounters now_;
  std::vector<std::unique_ptr<Lane>> simulators_;
  std::vector<absl::Status> status_;  // Of the lane's last call.
  bool steps_ = false;                // Between BeginStep and EndStep.
  // Lanes to reset; empty: all lanes step.
  std::vector<int64_t> to_reset_;

  // The leaves of the step.
  absl::Span<float> reward_;
  LaneFlags flags_, next_flags_;

  // The last member, so that its threads end first.
  std::unique_ptr<LanePool> pool_;
};

absl::StatusOr<std::unique_ptr<Env>> LaneEnv::Create(
    EnvSpec spec, const LaneFactory& make_lane, const LaneEnvOptions& options) {
  RILL_ASSIGN_OR_RETURN(TensorDict step, MakeStep(spec));
  auto env =
      absl::WrapUnique(new LaneEnv(std::move(spec), std::move(step), options));
  RILL_RETURN_IF_ERROR(env->Bind(make_lane));
  // A thread for each lane, beside the caller.
  const auto threads =
      static_cast<int>(std::min<int64_t>(options.threads, env->lanes() + 1));
  RILL_ASSIGN_OR_RETURN(
      env->pool_, LanePool::Create(
                      threads, [env = env.get()](int64_t i) { env->Call(i); }));
  return env;
}

absl::Status LaneEnv::Bind(const LaneFactory& make_lane) {
  RILL_ASSIGN_OR_RETURN(reward_, step().Flat<float>("next/reward"));
  RILL_ASSIGN_OR_RETURN(flags_, FindLaneFlags(step()));
  RILL_ASSIGN_OR_RETURN(next_flags_, FindLaneFlags(step(), "next/"));
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    // Views of one row: a simulator writes the leaves of the batch in place.
    RILL_ASSIGN_OR_RETURN(const TensorDict row, step().Index(lane));
    absl::StatusOr<std::unique_ptr<Lane>> simulator =
        CatchExceptions([&] { return make_lane(lane, row); }, "LaneFactory");
    RILL_RETURN_IF_ERROR(simulator.status())
        << "while lane " << lane << " of " << name() << " was made";
    if (*simulator == nullptr) {
      return InvalidArgument("MakeLaneEnv: lane ", lane,
                             ": got null, want a simulator");
    }
    simulators_.push_back(*std::move(simulator));
  }
  return absl::OkStatus();
}

void LaneEnv::SetSeeds(uint64_t seed) {
  const Rng seeds(seed, RngStream::kEnv);
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    // A seed for each lane, so that a simulator knows nothing of its lane.
    now_.seed[lane] = seeds.Bits64(static_cast<uint64_t>(lane), 0);
    now_.episode[lane] = 0;
  }
}

absl::Status LaneEnv::Seed(uint64_t seed) {
  RILL_RETURN_IF_ERROR(CheckIdle(name(), "Seed", steps_));
  SetSeeds(seed);
  return absl::OkStatus();
}

void LaneEnv::Call(int64_t i) {
  // The pool runs one function for both calls; the list tells which it is.
  if (to_reset_.empty()) return StepLane(i);
  ResetLane(to_reset_[i]);
}

absl::Status LaneEnv::Reset(const ResetMask& mask) {
  RILL_RETURN_IF_ERROR(CheckIdle(name(), "Reset", steps_));
  RILL_RETURN_IF_ERROR(CheckMask(Caller("Reset"), spec(), mask));
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    if (mask.lanes[lane] != 0) to_reset_.push_back(lane);
  }
  if (to_reset_.empty()) return absl::OkStatus();
  pool_->Run(static_cast<int64_t>(to_reset_.size()));
  to_reset_.clear();
  return TakeLaneErrors(Caller("Reset"), absl::MakeSpan(status_));
}

void LaneEnv::ResetLane(int64_t lane) {
  // An episode that cannot begin is counted too: the next reset tries another.
  const auto episode = static_cast<uint64_t>(now_.episode[lane]++);
  status_[lane] = CatchExceptions(
      [&] {
        return simulators_[lane]->Reset(Rng(now_.seed[lane], RngStream::kEnv),
                                        episode);
      },
      "Lane::Reset");
  now_.running[lane] = status_[lane].ok();
  if (!status_[lane].ok()) return;
  now_.steps[lane] = 0;
  flags_.Set(lane, /*is_terminated=*/false, /*is_truncated=*/false);
}

absl::Status LaneEnv::BeginStep() {
  RILL_RETURN_IF_ERROR(CheckIdle(name(), "BeginStep", steps_));
  RILL_RETURN_IF_ERROR(CheckActions(step_caller_, spec(), step()));
  RILL_RETURN_IF_ERROR(CheckRunning(step_caller_, now_.running));
  // Nothing could run beside the caller: the step is made at once, and EndStep
  // returns OK.
  if (options_.threads == 1) {
    pool_->Run(lanes());
    return EndFailedSteps();
  }
  steps_ = true;
  pool_->Begin(lanes());
  return absl::OkStatus();
}

absl::Status LaneEnv::EndStep() {
  if (!steps_) return absl::OkStatus();
  pool_->Finish();
  steps_ = false;
  return EndFailedSteps();
}

void LaneEnv::StepLane(int64_t lane) {
  const absl::StatusOr<LaneStep> result =
      CatchExceptions([&] { return simulators_[lane]->Step(); }, "Lane::Step");
  if (!result.ok()) {
    status_[lane] = result.status();
    return;
  }
  // A NaN in a replay spoils every batch that has it.
  if (!std::isfinite(result->reward)) {
    status_[lane] =
        Internal("reward: got ", result->reward, ", want a finite number");
    return;
  }
  reward_[lane] = result->reward;
  const bool out_of_time = ++now_.steps[lane] >= options_.max_episode_steps &&
                           options_.max_episode_steps > 0;
  next_flags_.Set(lane, result->terminated, result->truncated || out_of_time);
  now_.running[lane] = !next_flags_.done[lane];
}

// Called when all lanes have stepped, so that leaves and error do not depend on
// the order in which threads took the lanes.
absl::Status LaneEnv::EndFailedSteps() {
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    if (status_[lane].ok()) continue;
    now_.running[lane] = 0;
    RILL_RETURN_IF_ERROR(CutOffLane(spec(), step(), lane));
  }
  return TakeLaneErrors(step_caller_, absl::MakeSpan(status_));
}

absl::StatusOr<TensorDict> LaneEnv::SaveState() const {
  RILL_RETURN_IF_ERROR(CheckIdle(name(), "SaveState", steps_));
  std::vector<TensorDict> rows;
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    absl::StatusOr<TensorDict> row = CatchExceptions(
        [&] { return simulators_[lane]->SaveState(); }, "Lane::SaveState");
    RILL_RETURN_IF_ERROR(row.status())
        << "in " << Caller("SaveState") << " of lane " << lane;
    rows.push_back(*std::move(row));
  }
  StateWriter state(name(), kStateVersion, {lanes()});
  now_.Save(&state);
  state.Entry(kLane, Stack(rows));
  return std::move(state).Finish();
}

// All lanes or none. A lane cannot check a state without loading it, so those
// that have loaded get their old states back.
absl::Status LaneEnv::LoadLanes(const TensorDict& lanes_state) {
  std::vector<TensorDict> before;  // Of the lanes that have loaded.
  const auto load = [&](int64_t lane) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(const TensorDict row, lanes_state.Index(lane));
    RILL_ASSIGN_OR_RETURN(TensorDict old, simulators_[lane]->SaveState());
    RILL_RETURN_IF_ERROR(simulators_[lane]->LoadState(row));
    before.push_back(std::move(old));
    return absl::OkStatus();
  };
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    const absl::Status loaded =
        CatchExceptions([&] { return load(lane); }, "Lane::LoadState");
    if (loaded.ok()) continue;
    for (size_t l = 0; l < before.size(); ++l) {
      RILL_RETURN_IF_ERROR(simulators_[l]->LoadState(before[l]))
          << "while " << Caller("LoadState") << " took lane " << l << " back";
    }
    RILL_RETURN_IF_ERROR(loaded)
        << "in " << Caller("LoadState") << " of lane " << lane;
  }
  return absl::OkStatus();
}

absl::Status LaneEnv::LoadState(const TensorDict& dict) {
  RILL_RETURN_IF_ERROR(CheckIdle(name(), "LoadState", steps_));
  RILL_ASSIGN_OR_RETURN(const StateReader state,
                        StateReader::Open(name(), kStateVersion, dict));
  RILL_ASSIGN_OR_RETURN(
      EpisodeCounters counters,
      EpisodeCounters::Load(state, lanes(), options_.max_episode_steps));
  RILL_ASSIGN_OR_RETURN(const TensorDict* const lanes_state, state.Dict(kLane));
  if (lanes_state->batch_shape() != Shape({lanes()})) {
    return state.DoesNotFit(absl::StrCat("\"", kLane, "\": got batch shape ",
                                         lanes_state->batch_shape().ToString(),
                                         ", want [", lanes(), "]"));
  }
  RILL_RETURN_IF_ERROR(state.CheckNothingElse());
  // All that this class can check is checked before a lane changes.
  RILL_RETURN_IF_ERROR(LoadLanes(*lanes_state));
  now_ = std::move(counters);
  return absl::OkStatus();
}

// Simulators of one agent, in host memory.
absl::Status CheckSpec(const EnvSpec& spec) {
  const auto refuse = [](absl::string_view what, absl::string_view got,
                         absl::string_view want) {
    return InvalidArgument("MakeLaneEnv: ", what, ": got ", got, ", want ",
                           want);
  };
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec reward, RewardSpec(spec));
  const LeafSpec* const leaf = reward.Find("reward");
  if (reward.leaves().size() != 1 || leaf == nullptr ||
      leaf->shape != Shape({1})) {
    return refuse("reward", reward.ToString(), "the leaf \"reward\" [1]");
  }
  if (!spec.group_flags.empty()) {
    return refuse("group_flags", spec.group_flags.ToString(),
                  "none; derive from Env for several agents");
  }
  if (!spec.device.is_cpu()) {
    return refuse("device", spec.device.ToString(),
                  "cpu; derive from Env for simulators on a device");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeLaneEnv(
    EnvSpec spec, const LaneFactory& make_lane, const LaneEnvOptions& options) {
  RILL_RETURN_IF_ERROR(CheckSpec(spec));
  if (options.threads < 1 || options.max_episode_steps < 0) {
    return InvalidArgument("MakeLaneEnv: threads, max_episode_steps: got ",
                           options.threads, ", ", options.max_episode_steps,
                           ", want >= 1, >= 0");
  }
  return LaneEnv::Create(std::move(spec), make_lane, options);
}

}  // namespace rill
