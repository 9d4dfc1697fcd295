// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/device/testing/random_env.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/lane_env.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

class RandomLane final : public Lane {
 public:
  RandomLane(const TensorDictSpec& observation, const TensorDict& row)
      : observation_(observation), row_(row) {}

  absl::Status Reset(const Rng& rng, uint64_t episode) override {
    rng_ = rng;
    batch_ = episode << 20;
    return Write("");
  }

  absl::StatusOr<LaneStep> Step() override {
    RILL_ASSIGN_OR_RETURN(const Tensor action, row_.Get("action"));
    uint64_t sum = 0;
    for (int64_t i = 0; i < action.size_bytes(); ++i) {
      sum = 31 * sum + static_cast<uint64_t>(action.raw_data()[i]);
    }
    batch_ += 1 + sum % 64;
    RILL_RETURN_IF_ERROR(Write("next/"));
    const uint64_t bits = rng_->Bits64(batch_, 1);
    LaneStep step;
    step.reward =
        bits % 5 == 0 ? 0 : static_cast<float>(bits % 4096) / 1024.0f - 2.0f;
    step.terminated = (bits >> 20) % 8 == 0;
    return step;
  }

 private:
  absl::Status Write(absl::string_view prefix) {
    RILL_ASSIGN_OR_RETURN(const TensorDict made,
                          observation_.Random({}, *rng_, batch_));
    for (const TensorDictSpec::Leaf& leaf : observation_.leaves()) {
      RILL_ASSIGN_OR_RETURN(const Tensor to,
                            row_.Get(absl::StrCat(prefix, leaf.key)));
      RILL_RETURN_IF_ERROR(to.CopyFrom(*made.Find(leaf.key)));
    }
    return absl::OkStatus();
  }

  const TensorDictSpec observation_;
  const TensorDict row_;
  std::optional<Rng> rng_;
  uint64_t batch_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeRandomEnv(
    const RandomEnvOptions& options) {
  EnvSpec spec = {.name = "Random",
                  .lanes = options.lanes,
                  .observation = options.observation};
  RILL_RETURN_IF_ERROR(spec.action.Set("action", options.action));
  return MakeLaneEnv(
      spec,
      [observation = options.observation](int64_t, const TensorDict& row)
          -> absl::StatusOr<std::unique_ptr<Lane>> {
        return std::make_unique<RandomLane>(observation, row);
      },
      {});
}

}  // namespace rill
