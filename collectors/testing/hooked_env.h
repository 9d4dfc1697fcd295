// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_TESTING_HOOKED_ENV_H_
#define RILL_COLLECTORS_TESTING_HOOKED_ENV_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "rill/envs/env.h"
#include "rill/envs/wrappers/env_wrapper.h"

namespace rill {

// Another environment, which calls `before_step` with the number of each step,
// from 0, before it: a test makes a worker wait there, or end its process.
class HookedEnv final : public envs_internal::EnvWrapper {
 public:
  using Hook = std::function<void(int64_t step)>;

  HookedEnv(std::unique_ptr<Env> env, Hook before_step)
      : EnvWrapper(std::move(env)), before_step_(std::move(before_step)) {}

  absl::Status BeginStep() override {
    before_step_(steps_++);
    return EnvWrapper::BeginStep();
  }

 private:
  const Hook before_step_;
  int64_t steps_ = 0;
};

}  // namespace rill

#endif  // RILL_COLLECTORS_TESTING_HOOKED_ENV_H_
