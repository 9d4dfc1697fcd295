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
    auto env = absl::WrapUnique(new CartPole(options));
    RILL_RETURN_IF_ERROR(env->observation_spec_.Set(
        "observation",
        LeafSpec::Unbounded(DType::kFloat32, {kCartPoleStateSize})));
    TensorDictSpec& spec = env->state_spec_;
    const auto add = [&spec](absl::string_view key, DType dtype, int64_t size) {
      return spec.Set(key, LeafSpec::Unbounded(dtype, {size}));
    };
    RILL_RETURN_IF_ERROR(add("state", DType::kFloat64, kCartPoleStateSize));
    RILL_RETURN_IF_ERROR(add("steps", DType::kInt64, 1));
    RILL_RETURN_IF_ERROR(add("running", DType::kBool, 1));
    RILL_RETURN_IF_ERROR(add("episode", DType::kInt64, 1));
    RILL_RETURN_IF_ERROR(add("seed", DType::kUInt64, 1));
    return env;
  }

  absl::string_view name() const override { return "CartPole-v1"; }
  int64_t lanes() const override { return lanes_; }
  const TensorDictSpec& observation_spec() const override {
    return observation_spec_;
  }
  const LeafSpec& action_spec() const override { return action_spec_; }

  absl::Status Seed(uint64_t seed) override {
    std::fill(now_.seed.begin(), now_.seed.end(), seed);
    std::fill(now_.episode.begin(), now_.episode.end(), 0);
    return absl::OkStatus();
  }
  absl::Status Reset(absl::Span<const uint8_t> mask, TensorDict* root) override;
  absl::Status Step(TensorDict* step) override;
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

 private:
  explicit CartPole(const CartPoleOptions& options)
      : lanes_(options.lanes),
        max_episode_steps_(options.max_episode_steps),
        action_spec_(LeafSpec::Categorical(2)) {
    now_.state.resize(lanes_ * kCartPoleStateSize);
    now_.steps.resize(lanes_);
    now_.running.resize(lanes_);
    now_.episode.resize(lanes_);
    now_.seed.assign(lanes_, options.seed);
  }

  absl::Status CheckStep(absl::Span<const int64_t> actions) const;
  absl::Status CheckState(const State& state) const;

  int64_t lanes_;
  int64_t max_episode_steps_;
  TensorDictSpec observation_spec_;
  TensorDictSpec state_spec_;
  LeafSpec action_spec_;
  State now_;
};

absl::Status CartPole::Reset(absl::Span<const uint8_t> mask, TensorDict* root) {
  constexpr absl::string_view kCaller = "CartPole::Reset";
  RILL_RETURN_IF_ERROR(CheckLaneMask(kCaller, mask, lanes_));
  RILL_ASSIGN_OR_RETURN(absl::Span<float> observation,
                        LaneRows<float>(kCaller, *root, "observation",
                                        {lanes_, kCartPoleStateSize}));
  RILL_ASSIGN_OR_RETURN(LaneFlags flags, FindLaneFlags(kCaller, *root, lanes_));
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    if (mask[lane] == 0) continue;
    double* state = now_.state.data() + lane * kCartPoleStateSize;
    InitCartPole(Rng(now_.seed[lane], RngStream::kEnv), now_.episode[lane],
                 lane, state);
    ++now_.episode[lane];
    now_.steps[lane] = 0;
    now_.running[lane] = 1;
    std::copy_n(state, kCartPoleStateSize,
                observation.data() + lane * kCartPoleStateSize);
    flags.Set(lane, /*is_terminated=*/false, /*is_truncated=*/false);
  }
  return absl::OkStatus();
}

absl::Status CartPole::CheckStep(absl::Span<const int64_t> actions) const {
  bool all_right = true;
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    all_right &= now_.running[lane] != 0 &&
                 static_cast<uint64_t>(actions[lane]) < uint64_t{2};
  }
  if (all_right) return absl::OkStatus();
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    if (actions[lane] != 0 && actions[lane] != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("CartPole::Step: action of lane ", lane, ": got ",
                       actions[lane], ", want 0 or 1"));
    }
  }
  const auto idle = std::find(now_.running.begin(), now_.running.end(), 0);
  return absl::FailedPreconditionError(
      absl::StrCat("CartPole::Step: lane ", idle - now_.running.begin(),
                   " is done or was never reset; call Reset first"));
}

absl::Status CartPole::Step(TensorDict* step) {
  constexpr absl::string_view kCaller = "CartPole::Step";
  RILL_ASSIGN_OR_RETURN(absl::Span<const int64_t> actions,
                        LaneRows<int64_t>(kCaller, *step, "action", {lanes_}));
  RILL_ASSIGN_OR_RETURN(const TensorDict* next, FindNext(kCaller, *step));
  RILL_ASSIGN_OR_RETURN(absl::Span<float> observation,
                        LaneRows<float>(kCaller, *next, "observation",
                                        {lanes_, kCartPoleStateSize}, "next/"));
  RILL_ASSIGN_OR_RETURN(
      absl::Span<float> reward,
      LaneRows<float>(kCaller, *next, "reward", {lanes_, 1}, "next/"));
  RILL_ASSIGN_OR_RETURN(LaneFlags flags,
                        FindLaneFlags(kCaller, *next, lanes_, "next/"));
  RILL_RETURN_IF_ERROR(CheckStep(actions));

  StepCartPoles(actions, now_.state.data(), observation.data(),
                flags.terminated.data());
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    reward[lane] = 1.0f;
    flags.Set(lane, flags.terminated[lane],
              ++now_.steps[lane] >= max_episode_steps_);
    now_.running[lane] = !flags.done[lane];
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
