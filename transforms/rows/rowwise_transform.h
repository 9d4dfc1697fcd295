// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ROWS_ROWWISE_TRANSFORM_H_
#define RILL_TRANSFORMS_ROWS_ROWWISE_TRANSFORM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/memory/spare_tensors.h"
#include "rill/transforms/rows/gather_plan.h"
#include "rill/transforms/rows/row_map.h"
#include "rill/transforms/rows/step_rows.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// The base of transforms that do the same with each row of some leaves: after
// reads from a buffer, before writes, and beside an environment. A transform
// then has only a name, options, keys and a RowMap, which a gather can do on
// the way (gather_plan.h).
//
// Beside an environment a leaf of the root is mapped after a reset, and the
// one below next of the same name after a step. The inverse is for "action":
// the policy's is what `map` makes of the environment's, and `inverse` makes
// the environment's of it.
//
// Shapes: as the maps say, with any batch shape.
// Device/Stream: leaves that lie on a device are mapped there on its current
//   stream, where the map can (RowMap::maps_on_device). That is one launch for
//   up to eight leaves, and a wait only for a copy of numbers at their first
//   use. Else FAILED_PRECONDITION says what to do.
// Thread-safety: immutable.
// Cost: that of the maps. After a read in place where the map allows it, else
//   into tensors that are used again once nobody else holds them. Two are kept
//   of each key, or of each leaf where keys name dictionaries or none is named.
class RowwiseTransform : public BatchTransform,
                         public StepTransform,
                         public DeviceSteps,
                         public GatherLink {
 public:
  struct Rows {
    std::shared_ptr<const RowMap> map = nullptr;  // Not null.
    std::vector<std::string> in_keys;
    // Keys of the results, one for each of in_keys; empty: in_keys.
    std::vector<std::string> out_keys = {};
    // Before writes, and of actions. Null: nothing happens there.
    std::shared_ptr<const RowMap> inverse = nullptr;
    std::vector<std::string> in_keys_inv = {};
  };

  // A transform that is no more than its rows. `options` are those beside the
  // keys; `name` is a literal. INVALID_ARGUMENT as of CheckRows, whose caller
  // is <name>::Create.
  static absl::StatusOr<std::unique_ptr<RowwiseTransform>> Make(
      absl::string_view name, Rows rows, const OptionValues& options = {});

  absl::string_view name() const override { return name_; }
  OptionValues option_values() const override { return options_; }
  const Rows& rows() const { return rows_; }

  absl::Status Forward(TensorDict* batch, TensorDict* state) const override;
  absl::Status Inverse(TensorDict* batch, TensorDict* state) const override;
  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override;
  absl::StatusOr<TensorDictSpec> InverseSpec(
      const TensorDictSpec& spec) const override;

  absl::StatusOr<StepPlan> PlanSteps(const TensorDictSpec& step) const override;
  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* state) const override;
  absl::Status OnAction(Leaves leaves, TensorDict* state) const override;
  absl::Status OnStep(Leaves leaves, TensorDict* state) const override;

  // Where the maps do so with batches.
  bool works_on_device() const override;
  absl::Status OnDeviceReset(const Call& call, Tensors leaves,
                             TensorDict* state) const override;
  absl::Status OnDeviceAction(const Call& call, Tensors leaves,
                              TensorDict* state) const override;
  absl::Status OnDeviceStep(const Call& call, Tensors leaves,
                            TensorDict* state) const override;

  void Extend(GatherPlan* plan) const override;

  using BatchTransform::InitialState;
  using StepTransform::InitialState;

  // INVALID_ARGUMENT, starting with `caller`, where there is no key at all, one
  // is malformed or there twice. So too where out_keys are not as many as
  // in_keys, or one of them is the in_key of another leaf.
  static absl::Status CheckRows(absl::string_view caller, const Rows& rows);

 protected:
  // As for Make. Without a name a class has name() and option_values() itself.
  explicit RowwiseTransform(Rows rows, absl::string_view name = "",
                            const OptionValues& options = {});

  // The leaves of a batch that `takes` is true of, whose keys begin with `in`,
  // into tensors of their own under keys that begin with `out` instead. With up
  // to 32 leaves no allocation for keys of common length.
  absl::Status MapLeaves(
      const RowMap& map, absl::string_view in, absl::string_view out,
      absl::FunctionRef<bool(absl::string_view key, const Tensor& leaf)> takes,
      TensorDict* batch) const;
  // From and to, leaf by leaf, in the call's lanes; `to` may be `from` where
  // the map is in place.
  using StepPairs = transforms_internal::StepPairs;
  absl::Status MapStepPairs(const RowMap& map, const Call& call,
                            const StepPairs& pairs) const;
  // One leaf of a batch, into a tensor of its own.
  absl::Status MapLeaf(const RowMap& map, absl::string_view in,
                       absl::string_view out, TensorDict* batch) const;

 private:
  using Keys = std::pair<absl::string_view, absl::string_view>;  // In, out.

  // One leaf of a batch that a map fits, and what it becomes.
  struct Mapping {
    Tensor from;
    DType dtype = DType::kFloat32;
    Shape shape;
  };
  absl::Status Plan(const RowMap& map, absl::string_view in,
                    const TensorDict& batch, Mapping* leaf) const;
  // In place or into a tensor of its own; of the host.
  absl::Status MapPlanned(const RowMap& map, absl::string_view in,
                          absl::string_view out, bool is_in_place,
                          const Mapping& leaf, TensorDict* batch) const;
  // Of a device.
  absl::Status MapOnDevice(const RowMap& map, absl::Span<const Mapping> leaves,
                           absl::FunctionRef<Keys(size_t)> keys,
                           bool is_in_place, TensorDict* batch) const;
  // All are planned before the first one changes. With up to 32 no allocation.
  absl::Status MapEach(const RowMap& map, size_t count,
                       absl::FunctionRef<Keys(size_t)> keys, bool is_in_place,
                       TensorDict* batch) const;

  const std::string& OutKey(size_t i) const {
    return rows_.out_keys.empty() ? rows_.in_keys[i] : rows_.out_keys[i];
  }
  absl::StatusOr<TensorDictSpec> MapKeys(absl::string_view call,
                                         const RowMap& map,
                                         absl::Span<const std::string> in_keys,
                                         absl::Span<const std::string> out_keys,
                                         const TensorDictSpec& spec) const;
  // A leaf of steps. Calls get it once where it is mapped in place, else the
  // leaf that is read and the one that is written.
  struct StepLeaf {
    std::string in;
    std::string out;
    bool is_next = false;
    bool is_in_place = false;
  };
  void AddStepLeaf(const std::string& in, const std::string& out);
  absl::Status PlanLeaf(const StepLeaf& leaf, const TensorDictSpec& step,
                        StepPlan* plan) const;
  absl::Status PlanAction(const TensorDictSpec& step, StepPlan* plan) const;
  StepPairs PairsOf(bool is_next, Tensors leaves) const;
  // Calls map(from, to) with the leaves of the root or those below next.
  absl::Status MapStepLeaves(
      bool is_next, Leaves leaves,
      absl::FunctionRef<absl::Status(const BoundLeaf&, const BoundLeaf&)> map)
      const;

  const Rows rows_;
  const absl::string_view name_;
  const OptionValues options_;
  // Results that do not lie in place.
  mutable transforms_internal::SpareTensors spare_;
  mutable transforms_internal::DeviceWork device_work_;
  std::vector<StepLeaf> step_leaves_;
  bool maps_action_ = false;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_ROWS_ROWWISE_TRANSFORM_H_
