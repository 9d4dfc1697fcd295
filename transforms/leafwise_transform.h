// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_LEAFWISE_TRANSFORM_H_
#define RILL_TRANSFORMS_LEAFWISE_TRANSFORM_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/tensordict/bound_rows.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// Arithmetic of one element as data, for the host's kernel, for a gather that
// applies it on the way, and for kernels of devices.
//
// Numerics: float32 elements are computed in double with scale and loc rounded
// to float32, and rounded once. A product of two floats is exact in double, so
// results are the same on every machine.
struct LeafArithmetic {
  enum class Kind {
    kScaleThenShift,   // x * scale + loc
    kShiftThenDivide,  // (x - loc) / scale
  };
  Kind kind = Kind::kScaleThenShift;
  double scale = 1;
  double loc = 0;

  // T is float or double.
  template <typename T>
  T Apply(T value) const {
    const double by = static_cast<T>(scale);
    const double shift = static_cast<T>(loc);
    const double wide = value;
    return static_cast<T>(kind == Kind::kShiftThenDivide ? (wide - shift) / by
                                                         : wide * by + shift);
  }
};

// The base of transforms that do the same arithmetic with each element of some
// leaves, after reads from a buffer and after steps of an environment. What is
// left to write is a name, options, keys and the arithmetic.
//
// Shapes: leaves float32 or float64, of any shape.
// Thread-safety: immutable.
//
// Example (LeafwiseTransformTest.Example runs it):
//   class CentReward final : public LeafwiseTransform {
//    public:
//     CentReward() : LeafwiseTransform({"next/reward"}, {.scale = 0.01}) {}
//     absl::string_view name() const override { return "CentReward"; }
//   };
class LeafwiseTransform : public BatchTransform, public StepTransform {
 public:
  const std::vector<std::string>& keys() const { return keys_; }
  const LeafArithmetic& arithmetic() const { return arithmetic_; }

  absl::string_view name() const override = 0;
  OptionValues option_values() const override { return {}; }

  absl::Status Forward(TensorDict* batch, TensorDict* state) const override;
  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override;
  absl::StatusOr<StepPlan> PlanSteps(const TensorDictSpec& step) const override;
  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* state) const override;
  absl::Status OnStep(Leaves leaves, TensorDict* state) const override;

  using BatchTransform::InitialState;
  using StepTransform::InitialState;

 protected:
  LeafwiseTransform(std::vector<std::string> keys,
                    const LeafArithmetic& arithmetic)
      : keys_(std::move(keys)), arithmetic_(arithmetic) {}

 private:
  absl::StatusOr<TensorDictSpec> Mapped(absl::string_view call,
                                        const TensorDictSpec& spec) const;

  const std::vector<std::string> keys_;
  const LeafArithmetic arithmetic_;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_LEAFWISE_TRANSFORM_H_
