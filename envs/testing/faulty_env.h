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
#include "rill/envs/wrappers/env_wrapper.h"

namespace rill {

// Another environment whose BeginStep or Reset fails once, at a call that the
// test names. The next call meets the environment as it was before.
class FaultyEnv final : public envs_internal::EnvWrapper {
 public:
  struct Options {
    int64_t fail_step = -1;   // The call of BeginStep, from 0; -1: none.
    int64_t fail_reset = -1;  // The call of Reset, from 0; -1: none.
    absl::Status status = absl::UnavailableError("simulator is gone");
    bool throws = false;  // std::runtime_error of that text instead.
  };
  FaultyEnv(std::unique_ptr<Env> env, Options options)
      : EnvWrapper(std::move(env)), options_(std::move(options)) {}

  absl::Status Reset(const ResetMask& mask) override {
    if (resets_++ == options_.fail_reset) return Fail();
    return EnvWrapper::Reset(mask);
  }
  absl::Status BeginStep() override {
    if (steps_++ == options_.fail_step) return Fail();
    return EnvWrapper::BeginStep();
  }

 private:
  absl::Status Fail() const {
    if (!options_.throws) return options_.status;
    throw std::runtime_error(std::string(options_.status.message()));
  }

  const Options options_;
  int64_t steps_ = 0;
  int64_t resets_ = 0;
};

}  // namespace rill

#endif  // RILL_ENVS_TESTING_FAULTY_ENV_H_
