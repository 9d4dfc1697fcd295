// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/env/timer.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/memory/spare_tensors.h"

namespace rill {
namespace {

// In the state, int64 [2], nanoseconds; 0: there was none.
constexpr absl::string_view kTimes = "times";

// Wall-clock times, so that a saved state is of use to another process.
struct Times {
  int64_t end = 0;  // Of the last step or reset.
  int64_t choice = 0;
};

absl::StatusOr<Times> ReadTimes(const TensorDict& state) {
  RILL_ASSIGN_OR_RETURN(const absl::Span<const int64_t> times,
                        state.Flat<int64_t>(kTimes));
  if (times.size() == 2) return Times{.end = times[0], .choice = times[1]};
  return FailedPrecondition("Timer: state: got ", times.size(),
                            " times, want 2");
}

// 0 where there is no earlier time or the clock was set back.
float Seconds(int64_t from, int64_t to) {
  if (from == 0 || to < from) return 0;
  return static_cast<float>(static_cast<double>(to - from) * 1e-9);
}

void Fill(const BoundLeaf& leaf, float value) {
  for (float& element : leaf.As<float>()) element = value;
}

class TimerTransform final : public StepTransform {
 public:
  explicit TimerTransform(const Timer::Options& options) : options_(options) {}

  absl::string_view name() const override { return "Timer"; }
  OptionValues option_values() const override {
    return OptionValues().Text("time_key", options_.time_key);
  }

  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    StepPlan plan = {.spec = step};
    for (const absl::string_view prefix : {"", "next/"}) {
      for (const absl::string_view what : {"_step", "_policy", "_reset"}) {
        RILL_RETURN_IF_ERROR(transforms_internal::AddNew(
            "Timer::PlanSteps", absl::StrCat(prefix, options_.time_key, what),
            LeafSpec::Unbounded(DType::kFloat32, {1}), &plan));
      }
    }
    return plan;
  }

  absl::StatusOr<TensorDict> InitialState(int64_t /*lanes*/) const override {
    TensorDict state;
    RILL_RETURN_IF_ERROR(WriteTimes({}, &state));
    return state;
  }

  // Only the lanes that were reset: the others have the times of their step.
  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* state) const override {
    RILL_ASSIGN_OR_RETURN(Times times, ReadTimes(*state));
    const int64_t now = Now();
    const float elapsed = Seconds(times.end, now);
    for (size_t lane = 0; lane < mask.size(); ++lane) {
      if (mask[lane] == 0) continue;
      leaves[kStep].As<float>()[lane] = 0;
      leaves[kPolicy].As<float>()[lane] = 0;
      leaves[kReset].As<float>()[lane] = elapsed;
    }
    times.end = now;
    return WriteTimes(times, state);
  }

  // No leaf is written: the time of the choice becomes known to the step.
  absl::Status OnAction(Leaves /*leaves*/, TensorDict* state) const override {
    RILL_ASSIGN_OR_RETURN(Times times, ReadTimes(*state));
    times.choice = Now();
    return WriteTimes(times, state);
  }

  absl::Status OnStep(Leaves leaves, TensorDict* state) const override {
    RILL_ASSIGN_OR_RETURN(Times times, ReadTimes(*state));
    const int64_t now = Now();
    // The policy's time is from the last end to the choice, the step's from
    // there to now. Both use times of the state before it is replaced.
    const Leaves next = leaves.subspan(kNext);
    Fill(next[kStep], Seconds(times.choice, now));
    Fill(next[kPolicy], Seconds(times.end, times.choice));
    Fill(next[kReset], 0);
    times.end = now;
    return WriteTimes(times, state);
  }

 private:
  // Places in the plan's leaves; those below next behind those of the root.
  static constexpr size_t kStep = 0;
  static constexpr size_t kPolicy = 1;
  static constexpr size_t kReset = 2;
  static constexpr size_t kNext = 3;

  absl::Status WriteTimes(const Times& times, TensorDict* state) const {
    RILL_ASSIGN_OR_RETURN(Tensor tensor, spare_.Take(DType::kInt64, {2}));
    tensor.data<int64_t>()[0] = times.end;
    tensor.data<int64_t>()[1] = times.choice;
    return state->Set(kTimes, std::move(tensor));
  }

  int64_t Now() const { return absl::ToUnixNanos(options_.clock->Now()); }

  const Timer::Options options_;
  mutable transforms_internal::SpareTensors spare_{4};
};

}  // namespace

absl::StatusOr<std::unique_ptr<StepTransform>> Timer::Create(
    const Options& options) {
  RILL_RETURN_IF_ERROR(CheckKey(options.time_key)) << "Timer::Create: time_key";
  if (options.clock == nullptr) {
    return InvalidArgument("Timer::Create: clock: got null, want a clock");
  }
  return std::make_unique<TimerTransform>(options);
}

}  // namespace rill
