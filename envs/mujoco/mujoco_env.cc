// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/mujoco/mujoco_env.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mujoco/mujoco.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/lane_env.h"
#include "rill/envs/mujoco/mujoco_call.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using envs_internal::CallMujoco;

// Shared by all lanes.
struct Shared {
  MujocoModel model;
  MujocoTask task;
  int frame_skip = 1;
  TensorDictSpec state_spec;
};

// A lane has an mjData of its own; the model is read by all. mjData is what a
// step changes, so lanes run on several threads without a lock.
class MujocoLane final : public Lane {
 public:
  static absl::StatusOr<std::unique_ptr<Lane>> Create(
      std::shared_ptr<const Shared> shared, const TensorDict& row);

  absl::Status Reset(const Rng& rng, uint64_t episode) override;
  absl::StatusOr<LaneStep> Step() override;
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

 private:
  explicit MujocoLane(std::shared_ptr<const Shared> shared)
      : shared_(std::move(shared)) {}

  const mjModel& model() const { return *shared_->model; }
  const MujocoTask& task() const { return shared_->task; }
  double Position() const;
  void Observe(absl::Span<double> observation) const;
  absl::Status CheckSimulation() const;

  const std::shared_ptr<const Shared> shared_;
  std::unique_ptr<mjData, void (*)(mjData*)> data_{nullptr, &mj_deleteData};
  double position_ = 0;

  // The leaves of this lane.
  absl::Span<const float> action_;
  absl::Span<double> observation_, next_observation_;
};

absl::StatusOr<std::unique_ptr<Lane>> MujocoLane::Create(
    std::shared_ptr<const Shared> shared, const TensorDict& row) {
  auto lane = absl::WrapUnique(new MujocoLane(std::move(shared)));
  RILL_ASSIGN_OR_RETURN(lane->action_, row.Flat<float>("action"));
  RILL_ASSIGN_OR_RETURN(lane->observation_, row.Flat<double>("observation"));
  RILL_ASSIGN_OR_RETURN(lane->next_observation_,
                        row.Flat<double>("next/observation"));
  mjData* data = nullptr;
  RILL_RETURN_IF_ERROR(CallMujoco([&] { data = mj_makeData(&lane->model()); }));
  if (data == nullptr) {
    return ResourceExhausted("MuJoCo: no memory for an mjData");
  }
  lane->data_.reset(data);
  return lane;
}

absl::Status MujocoLane::Reset(const Rng& rng, uint64_t episode) {
  mj_resetData(&model(), data_.get());
  // mj_forward behind it: the observation may be of values that follow from
  // qpos and qvel.
  if (task().reset) task().reset(model(), rng, episode, data_.get());
  RILL_RETURN_IF_ERROR(CallMujoco([&] { mj_forward(&model(), data_.get()); }));
  RILL_RETURN_IF_ERROR(CheckSimulation());
  position_ = Position();
  Observe(observation_);
  return absl::OkStatus();
}

absl::StatusOr<LaneStep> MujocoLane::Step() {
  mjData* data = data_.get();
  std::copy(action_.begin(), action_.end(), data->ctrl);
  RILL_RETURN_IF_ERROR(CallMujoco([&] {
    for (int i = 0; i < shared_->frame_skip; ++i) mj_step(&model(), data);
    // mj_step leaves cfrc_ext out unless the model has a force sensor.
    if (task().contact_forces) mj_rnePostConstraint(&model(), data);
  }));
  // After such a warning MuJoCo resets the state by itself, or sets the
  // controls to 0: the reward would be of a state that no action led to.
  RILL_RETURN_IF_ERROR(CheckSimulation());
  // The difference of two positions over the time of a step: Gymnasium's
  // velocity, which is not qvel.
  const double before = std::exchange(position_, Position());
  Observe(next_observation_);
  const double seconds = model().opt.timestep * shared_->frame_skip;
  const MujocoOutcome outcome =
      task().reward({.model = model(),
                     .data = *data,
                     .action = action_,
                     .velocity = (position_ - before) / seconds});
  return LaneStep{.reward = static_cast<float>(outcome.reward),
                  .terminated = outcome.terminated};
}

double MujocoLane::Position() const {
  return task().position ? task().position(model(), *data_) : data_->qpos[0];
}

void MujocoLane::Observe(absl::Span<double> observation) const {
  if (task().observe) return task().observe(model(), *data_, observation);
  double* rest = std::copy_n(data_->qpos, model().nq, observation.data());
  std::copy_n(data_->qvel, model().nv, rest);
}

absl::Status MujocoLane::CheckSimulation() const {
  for (const int warning :
       {mjWARN_BADQPOS, mjWARN_BADQVEL, mjWARN_BADQACC, mjWARN_BADCTRL}) {
    const mjWarningStat& seen = data_->warning[warning];
    if (seen.number == 0) continue;
    return Internal("MuJoCo: ", mju_warningText(warning, seen.lastinfo),
                    " A smaller timestep or weaker actions may help.");
  }
  // MuJoCo looks at the results of the last substep in the next one only.
  const auto is_bad = [](double x) { return !(std::abs(x) <= mjMAXVAL); };
  if (std::any_of(data_->qpos, data_->qpos + model().nq, is_bad) ||
      std::any_of(data_->qvel, data_->qvel + model().nv, is_bad)) {
    return Internal(
        "MuJoCo: NaN, Inf or huge value in QPOS or QVEL. A smaller timestep or "
        "weaker actions may help.");
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> MujocoLane::SaveState() const {
  if ((model().opt.enableflags & mjENBL_SLEEP) != 0) {
    return absl::UnimplementedError(
        "MuJoCo saves no state of a model whose option is sleep");
  }
  RILL_ASSIGN_OR_RETURN(TensorDict state, shared_->state_spec.Zero({}));
  RILL_ASSIGN_OR_RETURN(auto integration, state.Flat<double>("integration"));
  RILL_ASSIGN_OR_RETURN(auto position, state.Flat<double>("position"));
  mj_getState(&model(), data_.get(), integration.data(), mjSTATE_INTEGRATION);
  // It may be of values that the state of integration lacks (xpos).
  position[0] = position_;
  return state;
}

absl::Status MujocoLane::LoadState(const TensorDict& state) {
  RILL_RETURN_IF_ERROR(
      shared_->state_spec.CheckLayout("MujocoEnv::LoadState", state));
  RILL_ASSIGN_OR_RETURN(Tensor saved, state.Get("integration"));
  RILL_ASSIGN_OR_RETURN(saved, saved.Contiguous());
  RILL_ASSIGN_OR_RETURN(const auto integration, saved.Flat<double>());
  RILL_ASSIGN_OR_RETURN(Tensor position, state.Get("position"));
  for (const double value : integration) {
    if (!std::isfinite(value)) {
      return InvalidArgument("MujocoEnv::LoadState: integration: got ", value,
                             ", want finite");
    }
  }
  // Forgets warnings, too.
  mj_resetData(&model(), data_.get());
  mj_setState(&model(), data_.get(), integration.data(), mjSTATE_INTEGRATION);
  position_ = *position.data<double>();
  return absl::OkStatus();
}

// Gymnasium's: the range of each actuator, as float32.
absl::StatusOr<LeafSpec> ActionSpec(const mjModel& model) {
  RILL_ASSIGN_OR_RETURN(Tensor low, Tensor::Empty(DType::kFloat32, {model.nu}));
  RILL_ASSIGN_OR_RETURN(Tensor high,
                        Tensor::Empty(DType::kFloat32, {model.nu}));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < model.nu; ++i) {
    // A range of an actuator that is not limited is not meant.
    const bool is_limited = model.actuator_ctrllimited[i] != 0;
    const double* range = model.actuator_ctrlrange + 2 * i;
    low.data<float>()[i] =
        is_limited ? static_cast<float>(range[0]) : -kInfinity;
    high.data<float>()[i] =
        is_limited ? static_cast<float>(range[1]) : kInfinity;
  }
  return LeafSpec::Bounded(low, high);
}

absl::Status CheckArguments(const MujocoModel& model, const MujocoTask& task,
                            const MujocoEnvOptions& options) {
  const auto refuse = [](const auto&... text) {
    return InvalidArgument("MakeMujocoEnv: ", text...);
  };
  if (model == nullptr) return refuse("there is no model");
  if (!task.reward) return refuse("the task has no reward; set `reward`");
  if (model->nu < 1) return refuse("the model has no actuator, want >= 1");
  if (task.observe && task.observation_size < 1) {
    return refuse("observation_size: got ", task.observation_size,
                  ", want >= 1 beside `observe`");
  }
  if (options.frame_skip < 1) {
    return refuse("frame_skip: got ", options.frame_skip, ", want >= 1");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeMujocoEnv(
    const MujocoModel& model, const MujocoTask& task,
    const MujocoEnvOptions& options) {
  RILL_RETURN_IF_ERROR(CheckArguments(model, task, options));
  EnvSpec spec = {.name = task.name, .lanes = options.lanes};
  const int64_t observation_size =
      task.observe ? task.observation_size : model->nq + model->nv;
  RILL_RETURN_IF_ERROR(spec.observation.Set(
      "observation", LeafSpec::Unbounded(DType::kFloat64, {observation_size})));
  RILL_ASSIGN_OR_RETURN(LeafSpec action, ActionSpec(*model));
  RILL_RETURN_IF_ERROR(spec.action.Set("action", std::move(action)));

  auto shared = std::make_shared<Shared>();
  shared->model = model;
  shared->task = task;
  shared->frame_skip = options.frame_skip;
  RILL_RETURN_IF_ERROR(shared->state_spec.Set(
      "integration",
      LeafSpec::Unbounded(DType::kFloat64,
                          {mj_stateSize(model.get(), mjSTATE_INTEGRATION)})));
  RILL_RETURN_IF_ERROR(shared->state_spec.Set(
      "position", LeafSpec::Unbounded(DType::kFloat64, {1})));
  return MakeLaneEnv(std::move(spec),
                     [shared](int64_t, const TensorDict& row) {
                       return MujocoLane::Create(shared, row);
                     },
                     {.threads = options.threads,
                      .max_episode_steps = options.max_episode_steps,
                      .seed = options.seed});
}

}  // namespace rill
