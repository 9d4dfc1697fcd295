// SPDX-License-Identifier: Apache-2.0
#include "rill/docs/doc_examples/recall.h"

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/lane_env.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"

namespace {

using rill::DType;
using rill::LeafSpec;
using rill::TensorDict;

class Recall final : public rill::Lane {
 public:
  absl::Status Bind(const TensorDict& row) {
    RILL_ASSIGN_OR_RETURN(action_, row.Flat<int64_t>("action"));
    RILL_ASSIGN_OR_RETURN(root_, row.Flat<float>("observation"));
    RILL_ASSIGN_OR_RETURN(next_, row.Flat<float>("next/observation"));
    return absl::OkStatus();
  }
  absl::Status Reset(const rill::Rng& rng, uint64_t episode) override {
    cue_ = rng.UniformInt(episode, /*draw=*/0, /*bound=*/2);
    step_ = 0;
    root_[0] = cue_ == 1 ? 1.0f : -1.0f;
    return absl::OkStatus();
  }
  absl::StatusOr<rill::LaneStep> Step() override {
    next_[0] = 0;
    const bool is_asked = ++step_ == 5;
    return rill::LaneStep{
        .reward = is_asked && action_[0] == cue_ ? 1.0f : 0.0f,
        .terminated = is_asked};
  }

 private:
  absl::Span<const int64_t> action_;
  absl::Span<float> root_, next_;
  int64_t cue_ = 0, step_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<rill::Env>> MakeRecall(int64_t lanes) {
  rill::EnvSpec spec = {.name = "Recall", .lanes = lanes};
  RILL_RETURN_IF_ERROR(spec.observation.Set(
      "observation", LeafSpec::Bounded(DType::kFloat32, {1}, -1, 1)));
  RILL_RETURN_IF_ERROR(spec.action.Set("action", LeafSpec::Categorical(2)));
  const auto make =
      [](int64_t,
         const TensorDict& row) -> absl::StatusOr<std::unique_ptr<rill::Lane>> {
    auto lane = std::make_unique<Recall>();
    RILL_RETURN_IF_ERROR(lane->Bind(row));
    return lane;
  };
  return rill::MakeLaneEnv(spec, make, {});
}