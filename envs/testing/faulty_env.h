// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_TESTING_FAULTY_ENV_H_
#define RILL_ENVS_TESTING_FAULTY_ENV_H_

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "rill/envs/env.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Another environment whose BeginStep or Reset fails once, at a call that the
// test names. The next call meets the environment as it was before.
class FaultyEnv final : public Env {
 public:
  struct Options {
    int64_t fail_step = -1;   // The call of BeginStep, from 0; -1: none.
    int64_t fail_reset = -1;  // The call of Reset, from 0; -1: none.
    absl::Status status = absl::UnavailableError("simulator is gone");
    bool throws = false;  // std::runtime_error of that text instead.
  };
  FaultyEnv(std::unique_ptr<Env> env, Options options)
      : Env(env->spec(), env->step()),
        env_(std::move(env)),
        options_(std::move(options)) {}

  absl::Status Seed(uint64_t seed) override { return env_->Seed(seed); }
  absl::Status Reset(const ResetMask& mask) override {
    if (resets_++ == options_.fail_reset) return Fail();
    return env_->Reset(mask);
  }
  absl::Status BeginStep() override {
    if (steps_++ == options_.fail_step) return Fail();
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
  absl::Status Fail() const {
    if (!options_.throws) return options_.status;
    throw std::runtime_error(std::string(options_.status.message()));
  }

  const std::unique_ptr<Env> env_;
  const Options options_;
  int64_t steps_ = 0;
  int64_t resets_ = 0;
};

}  // namespace rill

#endif  // RILL_ENVS_TESTING_FAULTY_ENV_H_
