// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/cart_pole.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole_physics.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/lane_rows.h"

namespace rill {
namespace {

using envs_internal::InitCartPole;
using envs_internal::kCartPoleStateSize;
using envs_internal::kMaxCartPoleLanes;
using envs_internal::StepCartPoles;

// What SaveState writes and LoadState reads, one entry (or 4) a lane.
struct State {
  std::vector<double> state;
  std::vector<int64_t> steps;    // In the running episode.
  std::vector<uint8_t> running;  // An episode is on: Step may be called.
  std::vector<int64_t> episode;  // Number of the lane's next episode.
  std::vector<uint64_t> seed;
};

template <typename T>
absl::StatusOr<Tensor> ColumnToTensor(const std::vector<T>& column,
                                      int64_t lanes, DType dtype) {
  const int64_t width = static_cast<int64_t>(column.size()) / lanes;
  RILL_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Empty(dtype, {lanes, width}));
  std::copy(column.begin(), column.end(), tensor.data<T>());
  return tensor;
}

template <typename T>
absl::Status ColumnFromDict(const TensorDict& dict, absl::string_view key,
                            std::vector<T>* column) {
  RILL_ASSIGN_OR_RETURN(Tensor tensor, dict.Get(key));
  RILL_ASSIGN_OR_RETURN(tensor, tensor.Contiguous());
  const T* begin = tensor.data<T>();
  column->assign(begin, begin + tensor.num_elements());
  return absl::OkStatus();
}

class CartPole final : public Env {
 public:
  static absl::StatusOr<std::unique_ptr<Env>> Create(
      const CartPoleOptions& options) {
    EnvSpec spec = {.name = "CartPole-v1", .lanes = options.lanes};
    RILL_RETURN_IF_ERROR(spec.observation.Set(
        "observation",
        LeafSpec::Unbounded(DType::kFloat32, {kCartPoleStateSize})));
    RILL_RETURN_IF_ERROR(spec.action.Set("action", LeafSpec::Categorical(2)));
    RILL_ASSIGN_OR_RETURN(TensorDict step, MakeStep(spec));
    auto env = absl::WrapUnique(
        new CartPole(std::move(spec), std::move(step), options));
    RILL_RETURN_IF_ERROR(env->Bind());
    return env;
  }

  absl::Status Seed(uint64_t seed) override {
    std::fill(now_.seed.begin(), now_.seed.end(), seed);
    std::fill(now_.episode.begin(), now_.episode.end(), 0);
    return absl::OkStatus();
  }
  absl::Status Reset(const ResetMask& mask) override;
  absl::Status BeginStep() override;
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

 private:
  CartPole(EnvSpec spec, TensorDict step, const CartPoleOptions& options)
      : Env(std::move(spec), std::move(step)),
        lanes_(options.lanes),
        max_episode_steps_(options.max_episode_steps) {
    now_.state.resize(lanes_ * kCartPoleStateSize);
    now_.steps.resize(lanes_);
    now_.running.resize(lanes_);
    now_.episode.resize(lanes_);
    now_.seed.assign(lanes_, options.seed);
  }

  absl::Status Bind();
  absl::Status CheckStep() const;
  absl::Status CheckState(const State& state) const;

  const int64_t lanes_;
  const int64_t max_episode_steps_;
  TensorDictSpec state_spec_;
  State now_;

  // The leaves of the step.
  absl::Span<const int64_t> actions_;
  absl::Span<float> observation_, next_observation_, reward_;
  LaneFlags flags_, next_flags_;
};

absl::Status CartPole::Bind() {
  RILL_ASSIGN_OR_RETURN(actions_, step().Flat<int64_t>("action"));
  RILL_ASSIGN_OR_RETURN(observation_, step().Flat<float>("observation"));
  RILL_ASSIGN_OR_RETURN(next_observation_,
                        step().Flat<float>("next/observation"));
  RILL_ASSIGN_OR_RETURN(reward_, step().Flat<float>("next/reward"));
  RILL_ASSIGN_OR_RETURN(flags_, FindLaneFlags(step()));
  RILL_ASSIGN_OR_RETURN(next_flags_, FindLaneFlags(step(), "next/"));
  const auto add = [this](absl::string_view key, DType dtype, int64_t size) {
    return state_spec_.Set(key, LeafSpec::Unbounded(dtype, {size}));
  };
  RILL_RETURN_IF_ERROR(add("state", DType::kFloat64, kCartPoleStateSize));
  RILL_RETURN_IF_ERROR(add("steps", DType::kInt64, 1));
  RILL_RETURN_IF_ERROR(add("running", DType::kBool, 1));
  RILL_RETURN_IF_ERROR(add("episode", DType::kInt64, 1));
  return add("seed", DType::kUInt64, 1);
}

absl::Status CartPole::Reset(const ResetMask& mask) {
  RILL_RETURN_IF_ERROR(CheckMask("CartPole::Reset", spec(), mask));
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    if (mask.lanes[lane] == 0) continue;
    double* state = now_.state.data() + lane * kCartPoleStateSize;
    InitCartPole(Rng(now_.seed[lane], RngStream::kEnv), now_.episode[lane],
                 lane, state);
    ++now_.episode[lane];
    now_.steps[lane] = 0;
    now_.running[lane] = 1;
    std::copy_n(state, kCartPoleStateSize,
                observation_.data() + lane * kCartPoleStateSize);
    flags_.Set(lane, /*is_terminated=*/false, /*is_truncated=*/false);
  }
  return absl::OkStatus();
}

absl::Status CartPole::CheckStep() const {
  bool all_right = true;
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    all_right &= now_.running[lane] != 0 &&
                 static_cast<uint64_t>(actions_[lane]) < uint64_t{2};
  }
  if (all_right) return absl::OkStatus();
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    if (actions_[lane] != 0 && actions_[lane] != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("CartPole::Step: action of lane ", lane, ": got ",
                       actions_[lane], ", want 0 or 1"));
    }
  }
  const auto idle = std::find(now_.running.begin(), now_.running.end(), 0);
  return absl::FailedPreconditionError(
      absl::StrCat("CartPole::Step: lane ", idle - now_.running.begin(),
                   " is done or was never reset; call Reset first"));
}

absl::Status CartPole::BeginStep() {
  RILL_RETURN_IF_ERROR(CheckStep());
  StepCartPoles(actions_, now_.state.data(), next_observation_.data(),
                next_flags_.terminated.data());
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    reward_[lane] = 1.0f;
    next_flags_.Set(lane, next_flags_.terminated[lane],
                    ++now_.steps[lane] >= max_episode_steps_);
    now_.running[lane] = !next_flags_.done[lane];
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> CartPole::SaveState() const {
  TensorDict dict({lanes_});
  const auto set = [&](absl::string_view key, const auto& column,
                       DType dtype) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(Tensor tensor, ColumnToTensor(column, lanes_, dtype));
    return dict.Set(key, std::move(tensor));
  };
  RILL_RETURN_IF_ERROR(set("state", now_.state, DType::kFloat64));
  RILL_RETURN_IF_ERROR(set("steps", now_.steps, DType::kInt64));
  RILL_RETURN_IF_ERROR(set("running", now_.running, DType::kBool));
  RILL_RETURN_IF_ERROR(set("episode", now_.episode, DType::kInt64));
  RILL_RETURN_IF_ERROR(set("seed", now_.seed, DType::kUInt64));
  return dict;
}

absl::Status CartPole::CheckState(const State& state) const {
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    const auto refuse = [lane](absl::string_view what, const auto& got,
                               const auto&... want) {
      return absl::InvalidArgumentError(
          absl::StrCat("CartPole::LoadState: ", what, " of lane ", lane,
                       ": got ", got, ", want ", want...));
    };
    for (int64_t i = 0; i < kCartPoleStateSize; ++i) {
      const double value = state.state[lane * kCartPoleStateSize + i];
      if (!std::isfinite(value)) return refuse("state", value, "finite");
    }
    if (state.running[lane] > 1) {
      return refuse("running", int{state.running[lane]}, "0 or 1");
    }
    const int64_t max = max_episode_steps_ - state.running[lane];
    if (state.steps[lane] < 0 || state.steps[lane] > max) {
      return refuse("steps", state.steps[lane], "[0, ", max, "]");
    }
    constexpr int64_t kMaxEpisodes = int64_t{1} << 62;
    if (state.episode[lane] < 0 || state.episode[lane] > kMaxEpisodes) {
      return refuse("episode", state.episode[lane], "[0, ", kMaxEpisodes, "]");
    }
  }
  return absl::OkStatus();
}

absl::Status CartPole::LoadState(const TensorDict& dict) {
  const Shape batch_shape = {lanes_};
  if (!(dict.batch_shape() == batch_shape)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "CartPole::LoadState: state has batch shape ",
        dict.batch_shape().ToString(), ", want ", batch_shape.ToString()));
  }
  RILL_RETURN_IF_ERROR(state_spec_.CheckLayout("CartPole::LoadState", dict));
  State state;
  RILL_RETURN_IF_ERROR(ColumnFromDict(dict, "state", &state.state));
  RILL_RETURN_IF_ERROR(ColumnFromDict(dict, "steps", &state.steps));
  RILL_RETURN_IF_ERROR(ColumnFromDict(dict, "running", &state.running));
  RILL_RETURN_IF_ERROR(ColumnFromDict(dict, "episode", &state.episode));
  RILL_RETURN_IF_ERROR(ColumnFromDict(dict, "seed", &state.seed));
  RILL_RETURN_IF_ERROR(CheckState(state));
  now_ = std::move(state);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeCartPole(
    const CartPoleOptions& options) {
  if (options.lanes < 1 || options.lanes > kMaxCartPoleLanes) {
    return absl::InvalidArgumentError(absl::StrCat("MakeCartPole: lanes: got ",
                                                   options.lanes, ", want [1, ",
                                                   kMaxCartPoleLanes, "]"));
  }
  if (options.max_episode_steps < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("MakeCartPole: max_episode_steps: got ",
                     options.max_episode_steps, ", want >= 1"));
  }
  return CartPole::Create(options);
}

}  // namespace rill
