// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_dqn/catch_env.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/lane_env.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill::torch_dqn {
namespace {

constexpr int64_t kFastest = 2;  // Pixels a step, sideways.

class Catch final : public Lane {
 public:
  explicit Catch(int64_t size) : size_(size) {}

  absl::Status Bind(const TensorDict& row) {
    RILL_ASSIGN_OR_RETURN(action_, row.Flat<int64_t>("action"));
    RILL_ASSIGN_OR_RETURN(root_, row.Flat<uint8_t>("pixels"));
    RILL_ASSIGN_OR_RETURN(next_, row.Flat<uint8_t>("next/pixels"));
    return absl::OkStatus();
  }

  absl::Status Reset(const Rng& rng, uint64_t episode) override {
    for (int64_t i = 0; i < kCatchBalls; ++i) {
      balls_[i] = {
          .x = rng.UniformInt(episode, static_cast<uint32_t>(2 * i), size_),
          .velocity = rng.UniformInt(episode, static_cast<uint32_t>(2 * i + 1),
                                     2 * kFastest + 1) -
                      kFastest};
    }
    step_ = 0;
    paddle_ = size_ / 2;
    ball_ = balls_[0];
    Draw(root_);
    return absl::OkStatus();
  }

  absl::StatusOr<LaneStep> Step() override {
    ++step_;
    paddle_ = std::clamp<int64_t>(paddle_ + action_[0] - 1, 1, size_ - 2);
    LaneStep step;
    if (row() == 0) {
      ball_ = balls_[step_ / size_];
    } else {
      ball_.x += ball_.velocity;
      if (ball_.x < 0 || ball_.x >= size_) {
        ball_.x = ball_.x < 0 ? -ball_.x : 2 * (size_ - 1) - ball_.x;
        ball_.velocity = -ball_.velocity;
      }
    }
    if (row() == size_ - 1) {
      const bool is_caught = std::abs(ball_.x - paddle_) <= 1;
      step.reward = is_caught ? 1 : 0;
      step.terminated = !is_caught;
      step.truncated = is_caught && step_ + 1 == kCatchBalls * size_;
    }
    Draw(next_);
    return step;
  }

  absl::StatusOr<TensorDict> SaveState() const override {
    TensorDict state;
    RILL_ASSIGN_OR_RETURN(
        Tensor now,
        Tensor::From<int64_t>({step_, paddle_, ball_.x, ball_.velocity}, {4}));
    RILL_RETURN_IF_ERROR(state.Set("now", now));
    std::vector<int64_t> balls;
    for (const Ball& ball : balls_) {
      balls.insert(balls.end(), {ball.x, ball.velocity});
    }
    RILL_ASSIGN_OR_RETURN(Tensor all,
                          Tensor::From<int64_t>(balls, {kCatchBalls, 2}));
    RILL_RETURN_IF_ERROR(state.Set("balls", all));
    return state;
  }

  absl::Status LoadState(const TensorDict& state) override {
    RILL_ASSIGN_OR_RETURN(const auto now, state.Flat<int64_t>("now"));
    RILL_ASSIGN_OR_RETURN(const auto balls, state.Flat<int64_t>("balls"));
    if (now.size() != 4 || balls.size() != 2 * kCatchBalls) {
      return absl::FailedPreconditionError("the state is no Catch's");
    }
    step_ = now[0];
    paddle_ = now[1];
    ball_ = {.x = now[2], .velocity = now[3]};
    for (int64_t i = 0; i < kCatchBalls; ++i) {
      balls_[i] = {.x = balls[2 * i], .velocity = balls[2 * i + 1]};
    }
    return absl::OkStatus();
  }

 private:
  struct Ball {
    int64_t x = 0, velocity = 0;
  };

  int64_t row() const { return step_ % size_; }

  void Draw(absl::Span<uint8_t> pixels) const {
    std::fill(pixels.begin(), pixels.end(), uint8_t{0});
    std::fill_n(pixels.begin() + (size_ - 1) * size_ + paddle_ - 1, 3,
                uint8_t{255});
    pixels[row() * size_ + ball_.x] = 255;
  }

  const int64_t size_;
  absl::Span<const int64_t> action_;
  absl::Span<uint8_t> root_, next_;
  Ball balls_[kCatchBalls];  // As they begin.
  int64_t step_ = 0;
  int64_t paddle_ = 0;  // Its middle.
  Ball ball_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeCatch(const CatchOptions& options) {
  const int64_t size = options.size;
  if (size < 4 || size > 256) {
    return absl::InvalidArgumentError(
        absl::StrCat("MakeCatch: size is ", size, ", want [4, 256]"));
  }
  EnvSpec spec = {.name = "Catch", .lanes = options.lanes};
  RILL_RETURN_IF_ERROR(spec.observation.Set(
      "pixels", LeafSpec::Bounded(DType::kUInt8, {1, size, size}, 0, 255)));
  RILL_RETURN_IF_ERROR(
      spec.action.Set("action", LeafSpec::Categorical(kCatchActions)));
  const auto make =
      [size](int64_t,
             const TensorDict& row) -> absl::StatusOr<std::unique_ptr<Lane>> {
    auto lane = std::make_unique<Catch>(size);
    RILL_RETURN_IF_ERROR(lane->Bind(row));
    return lane;
  };
  return MakeLaneEnv(std::move(spec), make, {.seed = options.seed});
}

}  // namespace rill::torch_dqn
