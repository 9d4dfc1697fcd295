// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_LEAVES_H_
#define RILL_TRANSFORMS_LEAVES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/step_transform.h"

namespace rill::transforms_internal {

// How transforms get at leaves that they learn from the batch itself. One that
// knows dtypes and row shapes beforehand binds BoundRows instead. Both follow
// one rule of reuse (MayReuse, specs/bound_rows.h).
//
// All results are contiguous, in host memory and, where they may be written,
// stand in `dict` under `key` already; `caller` ("RewardScaling") starts the
// messages. With `dtype` and `shape` the leaf must have these. Errors:
// NOT_FOUND lists the keys there are; FAILED_PRECONDITION where the leaf lies
// on a device; INVALID_ARGUMENT names both sides of another dtype or shape.
// Thread-safety: thread-compatible.

// To be read only: a contiguous copy where the leaf is strided, which then does
// not stand in `dict`. The Tensor outlives changes of the dictionary.
absl::StatusOr<Tensor> ReadLeaf(absl::string_view caller, absl::string_view key,
                                const TensorDict& dict);
absl::StatusOr<Tensor> ReadLeaf(absl::string_view caller, absl::string_view key,
                                DType dtype, const Shape& shape,
                                const TensorDict& dict);

// In any memory and of any layout.
absl::StatusOr<Tensor> GetLeaf(absl::string_view caller, absl::string_view key,
                               const TensorDict& dict);

// The same of any memory: a leaf on a device is copied behind the work of its
// current stream, for which the host waits.
absl::StatusOr<Tensor> FetchLeaf(absl::string_view caller,
                                 absl::string_view key, DType dtype,
                                 const Shape& shape, const TensorDict& dict);

// To be changed in place: for batches whose tensors the caller passed in. A
// copy where the leaf may not be written.
absl::StatusOr<Tensor> UpdateLeaf(absl::string_view caller,
                                  absl::string_view key, TensorDict* dict);
absl::StatusOr<Tensor> UpdateLeaf(absl::string_view caller,
                                  absl::string_view key, DType dtype,
                                  const Shape& shape, TensorDict* dict);

// To be written whole, its old values are lost: a new one where `rules` forbid
// to reuse the leaf, or there is none.
absl::StatusOr<Tensor> WriteLeaf(absl::string_view key, DType dtype,
                                 const Shape& shape, const ReuseRules& rules,
                                 TensorDict* dict);

// INVALID_ARGUMENT, naming both sides, unless the leaf has this dtype and
// shape.
absl::Status CheckLeaf(absl::string_view caller, absl::string_view key,
                       const Tensor& leaf, DType dtype, const Shape& shape);

// INVALID_ARGUMENT, starting with `caller` and the name of the option, where a
// key is malformed or stands twice.
absl::Status CheckKeys(absl::string_view caller, absl::string_view option,
                       absl::Span<const std::string> keys);

// The same where there is no key.
absl::Status CheckSomeKeys(absl::string_view caller, absl::string_view option,
                           absl::Span<const std::string> keys);
// And where one of them lies below next.
absl::Status CheckRootKeys(absl::string_view caller, absl::string_view option,
                           absl::Span<const std::string> keys);

// Where the leaves of a batch lie: the device of the first that lies on one,
// else the CPU. New leaves go there.
Device DeviceOf(const TensorDict& batch);

// FAILED_PRECONDITION: "key" lies on `device`, want host memory; what to do.
absl::Status OnDevice(absl::string_view caller, absl::string_view key,
                      Device device);

// The same of a leaf that does not lie on `device`, where the leaves before it
// do.
absl::Status CheckLiesOn(absl::string_view caller, absl::string_view key,
                         const Tensor& leaf, Device device);

// OnDevice where the leaves of `spec` lie on one.
absl::Status CheckOnHost(absl::string_view caller, absl::string_view key,
                         const TensorDictSpec& spec);

// NOT_FOUND lists the keys there are. FindSpec also wants the host
// (CheckOnHost).
absl::StatusOr<LeafSpec> GetSpec(absl::string_view caller,
                                 absl::string_view key,
                                 const TensorDictSpec& spec);
absl::StatusOr<LeafSpec> FindSpec(absl::string_view caller,
                                  absl::string_view key,
                                  const TensorDictSpec& spec);

// INVALID_ARGUMENT: <caller>: "<key>": got <got>, want <want>.
absl::Status Misfit(absl::string_view caller, absl::string_view key,
                    const LeafSpec& got, absl::string_view want);

// FindSpec of a leaf that is to be summed: float32 or float64 (else
// INVALID_ARGUMENT); FindReward: one such number a row, of shape [1].
// GetFloat and GetReward take those of any device.
bool IsFloat32Or64(DType dtype);
absl::StatusOr<LeafSpec> FindFloat(absl::string_view caller,
                                   absl::string_view key,
                                   const TensorDictSpec& spec);
absl::StatusOr<LeafSpec> GetFloat(absl::string_view caller,
                                  absl::string_view key,
                                  const TensorDictSpec& spec);
absl::StatusOr<LeafSpec> FindReward(absl::string_view caller,
                                    absl::string_view key,
                                    const TensorDictSpec& spec);
absl::StatusOr<LeafSpec> GetReward(absl::string_view caller,
                                   absl::string_view key,
                                   const TensorDictSpec& spec);

// NOT_FOUND or INVALID_ARGUMENT unless there is such a leaf, bool[1]; of any
// device.
absl::Status CheckIsFlagAnywhere(absl::string_view caller,
                                 absl::string_view key,
                                 const TensorDictSpec& spec);
// The same on the host.
absl::Status CheckIsFlag(absl::string_view caller, absl::string_view key,
                         const TensorDictSpec& spec);

// The same of one bool a row, of any shape and on any device, where there is a
// leaf of this key.
absl::Status CheckIsFlagIfAny(absl::string_view caller, absl::string_view key,
                              const TensorDictSpec& spec);

// T of a batch of shape [*B, T]; INVALID_ARGUMENT for [], which has no steps.
absl::StatusOr<int64_t> NumSteps(absl::string_view caller, const Shape& batch);

// Adds a leaf of this layout to a StepTransform's plan. AddWritten also sets it
// in the spec of the steps. AddNew is AddWritten of a leaf that the steps do
// not have yet: INVALID_ARGUMENT where they do. AddFlag wants a flag of the
// steps (CheckIsFlag).
void AddLeaf(absl::string_view key, const LeafSpec& leaf, LeafUse use,
             StepPlan* plan);
absl::Status AddWritten(absl::string_view key, const LeafSpec& leaf,
                        StepPlan* plan);
absl::Status AddNew(absl::string_view caller, absl::string_view key,
                    const LeafSpec& leaf, StepPlan* plan);
absl::Status AddFlag(absl::string_view caller, absl::string_view key,
                     LeafUse use, StepPlan* plan);

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_LEAVES_H_
