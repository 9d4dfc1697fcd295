// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_TESTING_HOOKED_ENV_H_
#define RILL_COLLECTORS_TESTING_HOOKED_ENV_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/envs/env.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Another environment, which calls `before_step` with the number of each step,
// from 0, before it: a test makes a worker wait there, or end its process.
class HookedEnv final : public Env {
 public:
  using Hook = std::function<void(int64_t step)>;

  HookedEnv(std::unique_ptr<Env> env, Hook before_step)
      : Env(env->spec(), env->step()),
        env_(std::move(env)),
        before_step_(std::move(before_step)) {}

  absl::Status Seed(uint64_t seed) override { return env_->Seed(seed); }
  absl::Status Reset(const ResetMask& mask) override {
    return env_->Reset(mask);
  }
  absl::Status BeginStep() override {
    before_step_(steps_++);
    return env_->BeginStep();
  }
  absl::Status EndStep() override { return env_->EndStep(); }
  absl::StatusOr<TensorDict> SaveState() const override {
    return env_->SaveState();
  }
  absl::Status LoadState(const TensorDict& state) override {
    return env_->LoadState(state);
  }

 protected:
  void OnSetLearning() override { env_->SetLearning(learns()); }

 private:
  const std::unique_ptr<Env> env_;
  const Hook before_step_;
  int64_t steps_ = 0;
};

}  // namespace rill

#endif  // RILL_COLLECTORS_TESTING_HOOKED_ENV_H_
