// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_ROWS_BATCH_LEAVES_H_
#define RILL_STORAGE_ROWS_BATCH_LEAVES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/specs/spec_tree.h"
#include "rill/storage/rows/row_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::storage_internal {

// Leaves by name; nothing: all of them.
using LeafKeys = std::optional<absl::Span<const std::string>>;

// The memory of plain rows on a device.
Tensor::Options RowMemory(Device device);

// A caller's tensors can take rows, at any distance, by these rules: they lie
// on the device; for the CPU, in any host memory.
ReuseRules RulesToTakeRows(Device device);
// No byte is in two of them. Cost: O(n) where they lie one behind the other,
// else O(n^2).
bool LieApart(absl::Span<const ByteExtent> extents);

// One leaf of a batch that is about to be written.
struct BatchLeaf {
  size_t leaf = 0;                // In the order of the spec.
  const Tensor* given = nullptr;  // The caller's.
  const Tensor* ready = nullptr;  // The same values where a table takes them
                                  // from, rows without gaps inside.
};

// The leaves of a batch in the order of a spec: checked first, then brought to
// where a table can copy them from.
//
// Thread-safety: thread-compatible. Reusable; a reused one allocates nothing
//   for batches that already lie right.
class BatchLeaves {
 public:
  // INVALID_ARGUMENT names the key and both sides where keys, dtypes or shapes
  // behind the batch shape are not the spec's.
  absl::Status Bind(absl::string_view caller, const TensorDictSpec& spec,
                    const SpecTree& tree, const TensorDict& batch,
                    bool allow_part);
  // Copies what rows on `device` cannot be copied from: tensors on another
  // device, memory of the rows themselves (`lent`), and rows with gaps. For a
  // device also gaps between lanes; host memory stays where it is. The host
  // waits for the thread's CurrentStream where tensors on a device are copied.
  absl::Status Prepare(Device device, const Buffer* lent, int batch_rank);
  // Puts into `places`, for each leaf with bytes, the place of the rows from
  // `first` on. The batch is [n] and was prepared. Reuses `places`.
  void PlaceRows(int64_t first, bool past_caches,
                 std::vector<LeafBatch>* places) const;

  absl::Span<const BatchLeaf> leaves() const { return leaves_; }
  // Null where the batch does not hold it.
  const BatchLeaf* Find(size_t leaf) const;
  void Clear();

 private:
  std::vector<BatchLeaf> leaves_;
  std::vector<const Tensor*> found_;
  // Stable addresses. Also what is being copied from.
  std::deque<Tensor> copies_;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_ROWS_BATCH_LEAVES_H_
