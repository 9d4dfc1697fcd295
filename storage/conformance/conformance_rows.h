// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_CONFORMANCE_CONFORMANCE_ROWS_H_
#define RILL_STORAGE_CONFORMANCE_CONFORMANCE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {

// Rows for the storage suite. A row is a function of its id, so that what must
// be in a slot is one number, and a row that is half one and half another
// shows. Leaves are of many widths and dtypes; those that write events report
// are among them.
// Thread-safety: thread-safe.

// next/done, collector/traj_ids, priority and policy_version among others;
// next/pixels are the pixels of the next id where next/done is false.
const TensorDictSpec& ConformanceSpec();

// The leaf of rows `ids`, of shape batch_shape + the leaf's own, in host
// memory. `batch_shape` has as many rows as there are ids.
Tensor ConformanceLeaf(size_t leaf, const Shape& batch_shape,
                       absl::Span<const int64_t> ids);

// All leaves, or those of `leaves` (numbers in the spec's order).
TensorDict ConformanceRows(const Shape& batch_shape,
                           absl::Span<const int64_t> ids);
TensorDict ConformanceRows(const Shape& batch_shape,
                           absl::Span<const int64_t> ids,
                           absl::Span<const size_t> leaves);

// The values of a row's event leaves.
bool ConformanceEnd(int64_t id);
int64_t ConformanceTrajectory(int64_t id);
float ConformancePriority(int64_t id);
int64_t ConformancePolicyVersion(int64_t id);

// The number of a leaf in the spec; the suite's own keys only.
size_t ConformanceLeafNumber(const std::string& key);

// first, first + 1, ...: `count` ids, or slots.
std::vector<int64_t> SlotsFrom(int64_t first, int64_t count);

}  // namespace rill

#endif  // RILL_STORAGE_CONFORMANCE_CONFORMANCE_ROWS_H_
