// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/testing/legal_env.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/lane_env.h"
#include "rill/specs/legal_choices.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

class LegalLane final : public Lane {
 public:
  explicit LegalLane(const LegalEnvOptions& options) : options_(options) {}

  absl::Status Bind(const TensorDict& row) {
    RILL_ASSIGN_OR_RETURN(action_, row.Get(options_.action_key));
    for (const bool is_next : {false, true}) {
      const std::string prefix = is_next ? "next/" : "";
      State& state = is_next ? next_ : root_;
      RILL_ASSIGN_OR_RETURN(state.observation, row.Flat<float>(absl::StrCat(
                                                   prefix, "observation")));
      RILL_ASSIGN_OR_RETURN(
          state.mask, row.Flat<bool>(absl::StrCat(prefix, options_.mask_key)));
    }
    RILL_ASSIGN_OR_RETURN(const Shape shape, LegalMaskShape(options_.action));
    RILL_ASSIGN_OR_RETURN(legal_, Tensor::Zeros(DType::kBool, shape));
    return absl::OkStatus();
  }

  absl::Status Reset(const Rng& rng, uint64_t episode) override {
    rng_ = rng;
    episode_ = episode;
    steps_ = 0;
    Show(root_);
    return absl::OkStatus();
  }

  absl::StatusOr<LaneStep> Step() override {
    // The mask as a spec's own: the oracle.
    RILL_ASSIGN_OR_RETURN(const LeafSpec spec,
                          options_.action.WithMask(legal_));
    if (absl::Status inside = spec.CheckValues("action", {}, action_);
        !inside.ok()) {
      return absl::InternalError(absl::StrCat("forbidden: ", inside.message()));
    }
    ++steps_;
    Show(next_);
    return LaneStep{.reward = 1,
                    .terminated = steps_ >= options_.episode_steps};
  }

 private:
  struct State {
    absl::Span<float> observation;
    absl::Span<bool> mask;
  };

  void Show(const State& to) {
    to.observation[0] = static_cast<float>(steps_);
    const std::vector<int64_t> sizes =
        options_.action.nvec().empty()
            ? std::vector<int64_t>{options_.action.num_categories}
            : std::vector<int64_t>(options_.action.nvec().begin(),
                                   options_.action.nvec().end());
    const auto first = static_cast<uint32_t>(steps_ << 16);
    uint32_t draw = first;
    for (size_t at = 0; at < to.mask.size();) {
      for (const int64_t n : sizes) {
        const int64_t one = rng_.UniformInt(episode_, draw++, n);
        for (int64_t i = 0; i < n; ++i, ++at) {
          to.mask[at] = rng_.UniformInt(episode_, draw++, 2) == 0 || i == one;
        }
      }
    }
    if (steps_ == options_.none_legal_at) {
      std::fill(to.mask.begin(), to.mask.end(), false);
    }
    std::copy(to.mask.begin(), to.mask.end(), legal_.data<bool>());
  }

  const LegalEnvOptions options_;
  Tensor action_;
  State root_, next_;
  Tensor legal_;  // The mask of the present state.
  Rng rng_{0};
  uint64_t episode_ = 0;
  int64_t steps_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeLegalEnv(
    const LegalEnvOptions& options) {
  EnvSpec spec = {.name = "Legal", .lanes = options.lanes};
  RILL_RETURN_IF_ERROR(spec.observation.Set(
      "observation", LeafSpec::Unbounded(DType::kFloat32, {1})));
  RILL_ASSIGN_OR_RETURN(const Shape shape, LegalMaskShape(options.action));
  RILL_RETURN_IF_ERROR(
      spec.observation.Set(options.mask_key, LeafSpec::Binary(shape)));
  RILL_RETURN_IF_ERROR(spec.action.Set(options.action_key, options.action));
  if (options.declares) {
    spec.legal_actions = {
        {.action = options.action_key, .mask = options.mask_key}};
  }
  const auto make = [options](int64_t, const TensorDict& row)
      -> absl::StatusOr<std::unique_ptr<Lane>> {
    auto lane = std::make_unique<LegalLane>(options);
    RILL_RETURN_IF_ERROR(lane->Bind(row));
    return lane;
  };
  return MakeLaneEnv(std::move(spec), make, {});
}

}  // namespace rill
