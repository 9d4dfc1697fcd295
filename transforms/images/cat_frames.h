// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_IMAGES_CAT_FRAMES_H_
#define RILL_TRANSFORMS_IMAGES_CAT_FRAMES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/images/step_frames.h"
#include "rill/transforms/memory/spare_tensors.h"
#include "rill/transforms/step_transform.h"
#include "rill/transforms/units/stack_frames.h"

namespace rill {

// The last N frames of an episode, oldest first, joined along a dimension.
// TorchRL's CatFrames.
//
// Beside an environment: the stack of a reset is the first frame and what pads;
// each step drops the oldest frame and adds the newest. "next/<key>" need not
// be named: <key> stands for both.
//
// After a read: for batches [..., T] in order of time. A stack ends with the
// row's own frame and does not reach past a row that is done, nor into another
// piece (transforms/timeline/timeline.h). At the beginning of a slice it is
// padded, although the storage may have the frames before.
// "next/<key>" is stacked where it is named: it is what <key> will be one step
// later, so <key> must be there.
//
// When to take which: this one for policies that act, and for whole
// trajectories that come out of a buffer. A buffer that stores single frames
// takes StackFrames (transforms/units/stack_frames.h): it reads the frames
// before each drawn row from the storage, so that stacks are whole.
// AsStackFrames gives its options, as TorchRL's make_rb_transform_and_sampler
// does.
//
// Shapes: leaves of any dtype, N times as long along `dim`; done bool [1]. For
//   a dimension of its own unsqueeze the leaf before. Frames without elements
//   are refused.
// Thread-safety: immutable; beside an environment the stack in the data is the
//   state.
// Cost: beside an environment one copy of the stack; after a read one copy of N
//   frames a row. Two stacks a key are used again once nobody else holds
//   them.
//
// Example (CatFramesTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto frames, CatFrames::Create({.num_frames = 4, .dim = -3}));
class CatFrames final : public BatchTransform,
                        public StepTransform,
                        public DeviceSteps {
 public:
  using Padding = StackFrames::Padding;

  struct Options {
    int64_t num_frames = 1;  // N, in [1, 2^20].
    // A dimension of frames, from the back: -1 is the last. < 0, as leaves are
    // the same whatever the batch shape is.
    int dim = -1;
    std::vector<std::string> in_keys = {"pixels"};
    std::vector<std::string> out_keys = {};  // Empty: in_keys.
    Padding padding = Padding::kSame;
    double padding_value = 0;            // For kConstant; of each key's dtype.
    std::string done_key = "next/done";  // After a read.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<CatFrames>> Create(
      const Options& options);

  absl::string_view name() const override { return "CatFrames"; }
  OptionValues option_values() const override;

  // For a sampler's unit: the same stacks, of the keys and those below next.
  // INVALID_ARGUMENT where out_keys are others than in_keys.
  absl::StatusOr<StackFrames::Options> AsStackFrames() const;

  absl::Status Forward(TensorDict* batch, TensorDict* state) const override;
  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override;

  absl::StatusOr<StepPlan> PlanSteps(const TensorDictSpec& step) const override;
  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* state) const override;
  absl::Status OnStep(Leaves leaves, TensorDict* state) const override;
  absl::Status OnDeviceReset(const Call& call, Tensors leaves,
                             TensorDict* state) const override;
  absl::Status OnDeviceStep(const Call& call, Tensors leaves,
                            TensorDict* state) const override;

  using BatchTransform::InitialState;
  using StepTransform::InitialState;

 private:
  CatFrames(const Options& options, StackFrames frames);

  const std::string& OutKey(size_t i) const {
    return options_.out_keys.empty() ? options_.in_keys[i]
                                     : options_.out_keys[i];
  }
  absl::StatusOr<Tensor> Stack(const std::string& key,
                               absl::Span<const int64_t> first,
                               const TensorDict& batch) const;
  // That of StackFrames, of frames with elements.
  absl::StatusOr<LeafSpec> StackSpec(absl::string_view caller,
                                     const std::string& key,
                                     const TensorDictSpec& spec) const;
  absl::Status PlanKey(size_t i, const TensorDictSpec& step,
                       StepPlan* plan) const;

  const Options options_;
  const StackFrames frames_;
  mutable transforms_internal::SpareTensors spare_;
  mutable transforms_internal::DeviceWork device_work_;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_IMAGES_CAT_FRAMES_H_
