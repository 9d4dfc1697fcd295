// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/testing/counting_env.h"

#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/lane_rows.h"
#include "rill/tensordict/state/state_dict.h"
#include "rill/tensors/shape.h"

namespace rill {
namespace {

constexpr int64_t kActions = 3;
constexpr absl::string_view kType = "CountingEnv";
constexpr int64_t kStateVersion = 1;

class CountingEnv final : public Env {
 public:
  static absl::StatusOr<std::unique_ptr<Env>> Create(
      const CountingEnvOptions& options) {
    EnvSpec spec = {.name = "Counting", .lanes = options.lanes};
    RILL_RETURN_IF_ERROR(spec.observation.Set(
        "observation", LeafSpec::Unbounded(DType::kFloat32, {1})));
    RILL_RETURN_IF_ERROR(
        spec.action.Set("action", LeafSpec::Categorical(kActions)));
    RILL_ASSIGN_OR_RETURN(TensorDict step, MakeStep(spec));
    auto env = absl::WrapUnique(
        new CountingEnv(std::move(spec), std::move(step), options));
    RILL_RETURN_IF_ERROR(env->Bind());
    return env;
  }

  absl::Status Seed(uint64_t) override { return absl::OkStatus(); }
  absl::Status Reset(const ResetMask& mask) override;
  absl::Status BeginStep() override;
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

 private:
  CountingEnv(EnvSpec spec, TensorDict step, const CountingEnvOptions& options)
      : Env(std::move(spec), std::move(step)),
        options_(options),
        steps_(options.lanes),
        running_(options.lanes) {}

  int64_t EpisodeSteps(int64_t lane) const {
    return options_.episode_steps + lane * options_.stagger_steps;
  }
  absl::Status Bind();
  absl::Status CheckStep() const;

  const CountingEnvOptions options_;
  std::vector<int64_t> steps_;
  std::vector<uint8_t> running_;
  absl::Span<const int64_t> actions_;
  absl::Span<float> observation_, next_observation_, reward_;
  LaneFlags flags_, next_flags_;
};

absl::Status CountingEnv::Bind() {
  RILL_ASSIGN_OR_RETURN(actions_, step().Flat<int64_t>("action"));
  RILL_ASSIGN_OR_RETURN(observation_, step().Flat<float>("observation"));
  RILL_ASSIGN_OR_RETURN(next_observation_,
                        step().Flat<float>("next/observation"));
  RILL_ASSIGN_OR_RETURN(reward_, step().Flat<float>("next/reward"));
  RILL_ASSIGN_OR_RETURN(flags_, FindLaneFlags(step()));
  RILL_ASSIGN_OR_RETURN(next_flags_, FindLaneFlags(step(), "next/"));
  return absl::OkStatus();
}

absl::Status CountingEnv::Reset(const ResetMask& mask) {
  RILL_RETURN_IF_ERROR(CheckMask("CountingEnv::Reset", spec(), mask));
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    if (mask.lanes[lane] == 0) continue;
    steps_[lane] = 0;
    running_[lane] = 1;
    observation_[lane] = 0;
    flags_.Set(lane, /*is_terminated=*/false, /*is_truncated=*/false);
  }
  return absl::OkStatus();
}

absl::Status CountingEnv::CheckStep() const {
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    if (actions_[lane] < 0 || actions_[lane] >= kActions) {
      return absl::InvalidArgumentError(
          absl::StrCat("CountingEnv::Step: action of lane ", lane, ": got ",
                       actions_[lane], ", want [0, ", kActions - 1, "]"));
    }
  }
  return CheckRunning("CountingEnv::Step", running_);
}

absl::Status CountingEnv::BeginStep() {
  RILL_RETURN_IF_ERROR(CheckStep());
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    ++steps_[lane];
    const bool is_end = steps_[lane] >= EpisodeSteps(lane);
    next_observation_[lane] = reward_[lane] = static_cast<float>(steps_[lane]);
    next_flags_.Set(lane, is_end && !options_.ends_truncated,
                    is_end && options_.ends_truncated);
    running_[lane] = !is_end;
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> CountingEnv::SaveState() const {
  if (!options_.can_save) {
    return absl::UnimplementedError("CountingEnv::SaveState: can_save is off");
  }
  StateWriter state(kType, kStateVersion, {lanes()});
  state.List<int64_t>("steps", steps_, {lanes(), 1});
  state.List<bool>("running", running_, {lanes(), 1});
  return std::move(state).Finish();
}

absl::Status CountingEnv::LoadState(const TensorDict& dict) {
  if (!options_.can_save) {
    return absl::UnimplementedError("CountingEnv::LoadState: can_save is off");
  }
  const Shape column = {lanes(), 1};
  RILL_ASSIGN_OR_RETURN(const StateReader state,
                        StateReader::Open(kType, kStateVersion, dict));
  RILL_ASSIGN_OR_RETURN(auto steps, state.List<int64_t>("steps", column));
  RILL_ASSIGN_OR_RETURN(auto running, state.List<bool>("running", column));
  RILL_RETURN_IF_ERROR(state.CheckNothingElse());
  steps_ = std::move(steps);
  running_ = std::move(running);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeCountingEnv(
    const CountingEnvOptions& options) {
  if (options.lanes < 1 || options.episode_steps < 1 ||
      options.stagger_steps < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "MakeCountingEnv: lanes, episode_steps, stagger_steps: got ",
        options.lanes, ", ", options.episode_steps, ", ", options.stagger_steps,
        ", want >= 1, >= 1, >= 0"));
  }
  return CountingEnv::Create(options);
}

}  // namespace rill
