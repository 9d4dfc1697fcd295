// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/testing/two_agents_env.h"

#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/lane_rows.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/state/state_dict.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace rill {
namespace {

constexpr absl::string_view kType = "TwoAgentsEnv";
constexpr int64_t kStateVersion = 1;

class TwoAgentsEnv final : public Env {
 public:
  static absl::StatusOr<std::unique_ptr<Env>> Create(
      const TwoAgentsEnvOptions& options) {
    EnvSpec spec = {.name = "TwoAgents", .lanes = options.lanes};
    RILL_RETURN_IF_ERROR(spec.observation.Set(
        "agents/observation", LeafSpec::Unbounded(DType::kFloat32, {2, 1})));
    RILL_RETURN_IF_ERROR(spec.observation.Set(
        "guard/observation", LeafSpec::Unbounded(DType::kFloat32, {1})));
    RILL_RETURN_IF_ERROR(spec.action.Set(
        "agents/action", LeafSpec::Categorical(3, DType::kInt64, {2})));
    RILL_RETURN_IF_ERROR(AddReward("agents/reward", {2, 1}, &spec));
    RILL_RETURN_IF_ERROR(AddFlags("agents", {2, 1}, &spec));
    RILL_RETURN_IF_ERROR(AddFlags("guard", {1}, &spec));
    spec.own_episodes = {"guard"};
    RILL_ASSIGN_OR_RETURN(TensorDict step, MakeStep(spec));
    auto env = absl::WrapUnique(
        new TwoAgentsEnv(std::move(spec), std::move(step), options));
    RILL_RETURN_IF_ERROR(env->Bind());
    return env;
  }

  absl::Status Seed(uint64_t) override { return absl::OkStatus(); }
  absl::Status Reset(const ResetMask& mask) override;
  absl::Status BeginStep() override;
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

 private:
  // A state's leaves: of the root, or below next.
  struct Side {
    absl::Span<float> agents, guard;
    LaneFlags lane_flags, agent_flags, guard_flags;
  };

  TwoAgentsEnv(EnvSpec spec, TensorDict step,
               const TwoAgentsEnvOptions& options)
      : Env(std::move(spec), std::move(step)),
        options_(options),
        steps_(options.lanes),
        guard_(options.lanes),
        running_(options.lanes) {}

  absl::Status Bind();
  absl::StatusOr<Side> BindSide(absl::string_view prefix) const;
  void Observe(const Side& side, int64_t lane) const {
    side.agents[2 * lane] = static_cast<float>(steps_[lane]);
    side.agents[2 * lane + 1] = static_cast<float>(steps_[lane] + 10);
    side.guard[lane] = static_cast<float>(guard_[lane]);
  }

  const TwoAgentsEnvOptions options_;
  std::vector<int64_t> steps_;
  std::vector<int64_t> guard_;  // Steps of the guard.
  std::vector<uint8_t> running_;
  Side root_, next_;
  absl::Span<const int64_t> actions_;
  absl::Span<float> reward_;
};

absl::StatusOr<TwoAgentsEnv::Side> TwoAgentsEnv::BindSide(
    absl::string_view prefix) const {
  Side side;
  const auto key = [&](absl::string_view name) {
    return absl::StrCat(prefix, name);
  };
  RILL_ASSIGN_OR_RETURN(side.agents,
                        step().Flat<float>(key("agents/observation")));
  RILL_ASSIGN_OR_RETURN(side.guard,
                        step().Flat<float>(key("guard/observation")));
  RILL_ASSIGN_OR_RETURN(side.lane_flags, FindLaneFlags(step(), prefix));
  RILL_ASSIGN_OR_RETURN(side.agent_flags,
                        FindLaneFlags(step(), key("agents/")));
  RILL_ASSIGN_OR_RETURN(side.guard_flags, FindLaneFlags(step(), key("guard/")));
  return side;
}

absl::Status TwoAgentsEnv::Bind() {
  RILL_ASSIGN_OR_RETURN(actions_, step().Flat<int64_t>("agents/action"));
  RILL_ASSIGN_OR_RETURN(reward_, step().Flat<float>("next/agents/reward"));
  RILL_ASSIGN_OR_RETURN(root_, BindSide(""));
  RILL_ASSIGN_OR_RETURN(next_, BindSide("next/"));
  return absl::OkStatus();
}

absl::Status TwoAgentsEnv::Reset(const ResetMask& mask) {
  RILL_RETURN_IF_ERROR(CheckMask("TwoAgentsEnv::Reset", spec(), mask));
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    const bool is_lane = mask.lanes[lane] != 0;
    const bool is_guard =
        is_lane || (!mask.groups.empty() && mask.groups[lane] != 0);
    if (is_guard) {
      guard_[lane] = 0;
      root_.guard[lane] = 0;
      root_.guard_flags.Set(lane, false, false);
    }
    if (!is_lane) continue;
    steps_[lane] = 0;
    running_[lane] = 1;
    Observe(root_, lane);
    root_.lane_flags.Set(lane, false, false);
    for (int64_t agent = 0; agent < 2; ++agent) {
      root_.agent_flags.Set(2 * lane + agent, false, false);
    }
  }
  return absl::OkStatus();
}

absl::Status TwoAgentsEnv::BeginStep() {
  constexpr absl::string_view kCaller = "TwoAgentsEnv::BeginStep";
  RILL_RETURN_IF_ERROR(CheckActions(kCaller, spec(), step()));
  RILL_RETURN_IF_ERROR(CheckRunning(kCaller, running_));
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    const bool is_end = ++steps_[lane] >= options_.episode_steps;
    ++guard_[lane];
    Observe(next_, lane);
    next_.lane_flags.Set(lane, is_end, false);
    next_.guard_flags.Set(lane, false, guard_[lane] >= options_.guard_steps);
    for (int64_t agent = 2 * lane; agent < 2 * lane + 2; ++agent) {
      reward_[agent] = static_cast<float>(actions_[agent]);
      next_.agent_flags.Set(agent, is_end, false);
    }
    running_[lane] = !is_end;
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> TwoAgentsEnv::SaveState() const {
  const Shape column = {lanes(), 1};
  StateWriter state(kType, kStateVersion, {lanes()});
  state.List<int64_t>("steps", steps_, column);
  state.List<int64_t>("guard", guard_, column);
  state.List<bool>("running", running_, column);
  return std::move(state).Finish();
}

absl::Status TwoAgentsEnv::LoadState(const TensorDict& dict) {
  const Shape column = {lanes(), 1};
  RILL_ASSIGN_OR_RETURN(const StateReader state,
                        StateReader::Open(kType, kStateVersion, dict));
  RILL_ASSIGN_OR_RETURN(auto steps, state.List<int64_t>("steps", column));
  RILL_ASSIGN_OR_RETURN(auto guard, state.List<int64_t>("guard", column));
  RILL_ASSIGN_OR_RETURN(auto running, state.List<bool>("running", column));
  RILL_RETURN_IF_ERROR(state.CheckNothingElse());
  steps_ = std::move(steps);
  guard_ = std::move(guard);
  running_ = std::move(running);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeTwoAgentsEnv(
    const TwoAgentsEnvOptions& options) {
  if (options.lanes < 1 || options.episode_steps < 1 ||
      options.guard_steps < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "MakeTwoAgentsEnv: lanes, episode_steps, guard_steps: got ",
        options.lanes, ", ", options.episode_steps, ", ", options.guard_steps,
        ", want >= 1 each"));
  }
  return TwoAgentsEnv::Create(options);
}

}  // namespace rill
