// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_UNITS_N_STEP_RETURNS_H_
#define RILL_TRANSFORMS_UNITS_N_STEP_RETURNS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/option_values.h"
#include "rill/slots/sample_plan.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {

namespace transforms_internal {
class UnitWork;
}  // namespace transforms_internal

// A row becomes the n steps that begin with it. The reward is r_0 + gamma r_1 +
// ... + gamma^(k-1) r_(k-1) over the k <= n steps of its window. All else below
// "next", the flags too, is that of the last of them. For a value target, r +
// gamma_key * V(next) where not terminated.
//
// The unit cuts windows at the ends of trajectories. A step that is terminated
// ends the sum too, wherever it is, and then the flags are its own. Other
// leaves of "next" stay those of the planned window's last row: no target looks
// at them. Where rows have no terminated_key, done_key says it.
//
// A part of RowArithmetic, over single rows, slices or sequences.
//
// Adds: steps_key int64 [B, 1], k; gamma_key float32 [B, 1], gamma^k.
// Shapes: rewards float32 or float64 of any shape; flags bool [1], each of them
//   may be missing.
// Numerics: powers of gamma are products in double. float32 rewards take them
//   rounded to float32, are summed in double, in order, and rounded once; the
//   same on every machine.
// Differs from TorchRL's MultiStep: the flags follow the window, so that a
//   target never bootstraps through a terminal state, and the own reward is not
//   kept ("original_reward", "nonterminal").
// Cost: O(rows x steps), and each needed byte is read once: the next
//   observation of a row that is no window's last is not read.
// Thread-safety: immutable.
class NStepReturns {
 public:
  struct Options {
    int64_t num_steps = 1;  // In [1, 2^20]. 1 changes no stored leaf.
    double gamma = 0.99;    // In (0, 1].
    std::vector<std::string> reward_keys = {"next/reward"};
    std::string terminated_key = "next/terminated";
    std::string truncated_key = "next/truncated";
    std::string done_key = "next/done";
    std::string steps_key = "steps_to_next_obs";
    std::string gamma_key = "gamma";
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<NStepReturns> Create(const Options& options);

  const Options& options() const { return options_; }
  // As Transform::option_values.
  OptionValues option_values() const;

  // The rest is RowArithmetic's; `caller` starts the messages.

  // NOT_FOUND or INVALID_ARGUMENT where it cannot work on such rows.
  absl::Status CheckRows(absl::string_view caller,
                         const TensorDictSpec& rows) const;
  // Leaves that are made of several rows: rewards and flags.
  bool IsSummed(absl::string_view key) const;
  absl::Status ExtendSpec(const TensorDictSpec& rows,
                          TensorDictSpec* batch) const;
  // `list` is the plan's kStepsBehind, `behind` those leaves of its rows. The
  // batch has its own.
  absl::Status Apply(absl::string_view caller, const SamplePlan& plan,
                     const SamplePlan::Context& list, const TensorDict& behind,
                     TensorDict* batch) const;
  // The same of leaves on a device.
  absl::Status Enqueue(absl::string_view caller, const SamplePlan& plan,
                       const SamplePlan::Context& list,
                       const TensorDict& behind,
                       transforms_internal::UnitWork* work,
                       TensorDict* batch) const;

 private:
  explicit NStepReturns(const Options& options);

  std::array<const std::string*, 3> Flags() const {
    return {&options_.terminated_key, &options_.truncated_key,
            &options_.done_key};
  }
  // The key of the flag that ends a window; null where none is stored.
  const std::string* StopKey(const TensorDict& behind) const;
  absl::StatusOr<absl::Span<const int64_t>> CountSteps(
      absl::string_view caller, const SamplePlan& plan,
      const SamplePlan::Context& list, const TensorDict& behind,
      TensorDict* batch) const;
  absl::Status Sum(absl::string_view caller, absl::string_view key,
                   const SamplePlan& plan, const SamplePlan::Context& list,
                   const TensorDict& behind, absl::Span<const int64_t> steps,
                   TensorDict* batch) const;
  static absl::Status TakeFlags(absl::string_view caller, absl::string_view key,
                                const SamplePlan& plan,
                                const SamplePlan::Context& list,
                                const TensorDict& behind,
                                absl::Span<const int64_t> steps,
                                TensorDict* batch);

  Options options_;
  std::vector<double> powers_;  // gamma^0 ... gamma^n.
  std::vector<float> float_powers_;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_UNITS_N_STEP_RETURNS_H_
