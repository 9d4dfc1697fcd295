// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_TESTING_SPEC_ENV_H_
#define RILL_ENVS_TESTING_SPEC_ENV_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/envs/env.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// An environment of which only the specs matter: every call is UNIMPLEMENTED.
// Tests derive from it to say what one call does.
class SpecEnv : public Env {
 public:
  SpecEnv(int64_t lanes, TensorDictSpec observation_spec, LeafSpec action_spec)
      : lanes_(lanes),
        observation_spec_(std::move(observation_spec)),
        action_spec_(std::move(action_spec)) {}

  absl::string_view name() const override { return "Spec"; }
  int64_t lanes() const override { return lanes_; }
  const TensorDictSpec& observation_spec() const override {
    return observation_spec_;
  }
  const LeafSpec& action_spec() const override { return action_spec_; }
  absl::Status Seed(uint64_t) override { return None(); }
  absl::Status Reset(absl::Span<const uint8_t>, TensorDict*) override {
    return None();
  }
  absl::Status Step(TensorDict*) override { return None(); }
  absl::StatusOr<TensorDict> SaveState() const override { return None(); }
  absl::Status LoadState(const TensorDict&) override { return None(); }

 private:
  static absl::Status None() {
    return absl::UnimplementedError("SpecEnv: has specs only");
  }

  int64_t lanes_;
  TensorDictSpec observation_spec_;
  LeafSpec action_spec_;
};

}  // namespace rill

#endif  // RILL_ENVS_TESTING_SPEC_ENV_H_
