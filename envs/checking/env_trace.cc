// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/checking/env_trace.h"

#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/envs/policies/random_actions.h"

namespace rill::envs_internal {
namespace {

// A copy that many comparisons read without a device.
absl::StatusOr<TensorDict> HostCopy(const TensorDict& step) {
  RILL_ASSIGN_OR_RETURN(const TensorDict copy, step.Clone());
  return copy.To(Device::Cpu());
}

// False also where it takes more than a look at the bytes to tell.
bool HasSameBytes(const TensorDict& a, const TensorDict& b, int64_t lane) {
  bool is_same = a.num_leaves() == b.num_leaves();
  a.ForEachLeaf([&](absl::string_view key, const Tensor& x) {
    const Tensor* const y = is_same ? b.Find(key) : nullptr;
    is_same = y != nullptr && x.dtype() == y->dtype() &&
              x.shape() == y->shape() && x.is_contiguous() &&
              y->is_contiguous() && x.device().is_cpu() && y->device().is_cpu();
    if (!is_same) return;
    const int64_t bytes = x.size_bytes() / x.shape()[0];
    is_same =
        std::memcmp(x.raw_data() + lane * bytes, y->raw_data() + lane * bytes,
                    static_cast<size_t>(bytes)) == 0;
  });
  return is_same;
}

}  // namespace

absl::Status EnvTracer::Choose(int64_t t) const {
  const absl::Status written = WriteRandomActions(env_.spec(), {.seed = seed_},
                                                  t, env_.step(), env_.step());
  if (!absl::IsFailedPrecondition(written)) return written;
  return BrokenPromise(env_, "each state has a legal action", "step ", t, ": ",
                       written.message());
}

absl::Status EnvTracer::Advance(int64_t t, StepDriver& driver) const {
  RILL_RETURN_IF_ERROR(driver.Advance());
  // Behind the save of CheckEnv, at half of the steps: the steps after a load
  // prove so that the random streams were saved as well.
  if (t != steps_ * 3 / 4) return absl::OkStatus();
  return driver.ResetAll();
}

absl::StatusOr<std::vector<TensorDict>> EnvTracer::Run(Hook hook) {
  return Run(hook, [](bool) { return absl::OkStatus(); });
}

absl::StatusOr<std::vector<TensorDict>> EnvTracer::Run(
    Hook hook, BeforeWrite before_write) {
  std::vector<TensorDict> trace;
  RILL_ASSIGN_OR_RETURN(StepDriver driver, StepDriver::Create(&env_));
  RILL_RETURN_IF_ERROR(env_.Seed(seed_));
  RILL_RETURN_IF_ERROR(before_write(/*is_root=*/true));
  RILL_RETURN_IF_ERROR(driver.ResetAll());
  for (int64_t t = 0; t < steps_; ++t) {
    RILL_RETURN_IF_ERROR(Choose(t));
    RILL_RETURN_IF_ERROR(before_write(/*is_root=*/false));
    RILL_RETURN_IF_ERROR(driver.Step());
    RILL_ASSIGN_OR_RETURN(TensorDict step, HostCopy(driver.step()));
    trace.push_back(std::move(step));
    RILL_RETURN_IF_ERROR(hook(t, driver));
    RILL_RETURN_IF_ERROR(Advance(t, driver));
  }
  return trace;
}

absl::StatusOr<std::vector<TensorDict>> EnvTracer::RunAfter(
    int64_t begin, StepDriver& driver) {
  std::vector<TensorDict> trace;
  // A run resets what is done at time t after its hook, so a state that the
  // hook saved is one before that reset.
  RILL_RETURN_IF_ERROR(Advance(begin, driver));
  for (int64_t t = begin + 1; t < steps_; ++t) {
    RILL_RETURN_IF_ERROR(Choose(t));
    RILL_RETURN_IF_ERROR(driver.Step());
    RILL_ASSIGN_OR_RETURN(TensorDict step, HostCopy(driver.step()));
    trace.push_back(std::move(step));
    RILL_RETURN_IF_ERROR(Advance(t, driver));
  }
  return trace;
}

absl::Status FailedCall(const Env& env, const absl::Status& status) {
  return BrokenPromise(env, "correct calls succeed", status.ToString());
}

absl::StatusOr<std::string> FirstDifference(const std::vector<TensorDict>& want,
                                            const std::vector<TensorDict>& got,
                                            int64_t begin,
                                            absl::Span<const uint8_t> ignored) {
  for (size_t i = 0; i < got.size(); ++i) {
    const TensorDict& want_step = want[begin + i];
    const int64_t lanes = want_step.batch_shape()[0];
    for (int64_t lane = 0; lane < lanes; ++lane) {
      if (!ignored.empty() && ignored[static_cast<size_t>(lane)] != 0) continue;
      if (HasSameBytes(want_step, got[i], lane)) continue;
      RILL_ASSIGN_OR_RETURN(TensorDict want_row, want_step.Index(lane));
      RILL_ASSIGN_OR_RETURN(TensorDict got_row, got[i].Index(lane));
      const absl::Status status = got_row.CheckEqual(want_row);
      if (!status.ok()) {
        return absl::StrCat("step ", begin + i, ", lane ", lane, ": ",
                            status.message());
      }
    }
  }
  return std::string();
}

}  // namespace rill::envs_internal
