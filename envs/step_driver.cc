// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/step_driver.h"

#include <algorithm>

#include "rill/base/status_macros.h"

namespace rill {

absl::StatusOr<StepDriver> StepDriver::Create(Env* env) {
  StepDriver driver;
  driver.env_ = env;
  RILL_ASSIGN_OR_RETURN(driver.step_, MakeStep(*env));
  RILL_ASSIGN_OR_RETURN(driver.root_, driver.step_.Exclude({"action", "next"}));
  RILL_ASSIGN_OR_RETURN(driver.action_, driver.step_.Get("action"));
  RILL_ASSIGN_OR_RETURN(driver.carry_,
                        StepCarry::Bind(driver.step_, driver.root_));
  RILL_ASSIGN_OR_RETURN(driver.done_, driver.step_.Flat<bool>("next/done"));
  RILL_ASSIGN_OR_RETURN(driver.reward_,
                        driver.step_.Flat<float>("next/reward"));
  driver.in_place_ = InPlaceCheck(driver.step_);
  driver.mask_.assign(env->lanes(), 0);
  return driver;
}

absl::Status StepDriver::ResetAll() {
  std::fill(mask_.begin(), mask_.end(), 1);
  checked_ = false;
  return Reset(mask_);
}

absl::Status StepDriver::Reset(absl::Span<const uint8_t> mask) {
  return env_->Reset(mask, &step_);
}

absl::Status StepDriver::Step(ActFunction act) {
  Tensor action = action_;
  RILL_RETURN_IF_ERROR(act(root_, &action));
  if (action.raw_data() != action_.raw_data()) {
    return absl::InvalidArgumentError(
        "ActFunction: got another tensor in *action, want the given one filled "
        "in place; use CopyFrom");
  }
  return Step();
}

absl::Status StepDriver::Step() {
  RILL_RETURN_IF_ERROR(env_->Step(&step_));
  if (checked_) return absl::OkStatus();
  checked_ = true;
  return in_place_.Check(env_->name(), step_);
}

absl::Status StepDriver::Advance() {
  RILL_RETURN_IF_ERROR(carry_.Run());
  std::copy(done_.begin(), done_.end(), mask_.begin());
  if (std::find(mask_.begin(), mask_.end(), 1) == mask_.end()) {
    return absl::OkStatus();
  }
  return Reset(mask_);
}

}  // namespace rill
