// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_WRAPPERS_ENV_WRAPPER_H_
#define RILL_ENVS_WRAPPERS_ENV_WRAPPER_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/envs/env.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::envs_internal {

// An Env that owns another and hands each call on to it: the base of those that
// change some calls.
// Thread-safety: that of the other.
class EnvWrapper : public Env {
 public:
  // The leaves of the step are the other's.
  explicit EnvWrapper(std::unique_ptr<Env> env)
      : Env(env->spec(), env->step()), inner_(std::move(env)) {}
  // Leaves of its own, of the same layout.
  EnvWrapper(std::unique_ptr<Env> env, TensorDict step)
      : Env(env->spec(), std::move(step)), inner_(std::move(env)) {}

  absl::Status Seed(uint64_t seed) override { return inner_->Seed(seed); }
  absl::Status Reset(const ResetMask& mask) override {
    return inner_->Reset(mask);
  }
  absl::Status BeginStep() override { return inner_->BeginStep(); }
  absl::Status EndStep() override { return inner_->EndStep(); }
  absl::StatusOr<TensorDict> SaveState() const override {
    return inner_->SaveState();
  }
  absl::Status LoadState(const TensorDict& state) override {
    return inner_->LoadState(state);
  }

 protected:
  void OnSetLearning() override { inner_->SetLearning(learns()); }
  Env& inner() const { return *inner_; }

 private:
  const std::unique_ptr<Env> inner_;
};

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_WRAPPERS_ENV_WRAPPER_H_
