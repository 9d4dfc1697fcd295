// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_READ_PLACES_H_
#define RILL_STORAGE_READ_PLACES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/storage/batch_leaves.h"
#include "rill/storage/row_table.h"
#include "rill/tensordict/bound_rows.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::storage_internal {

// Where rows that are read go: the tensors of the caller's batch, reused where
// they fit, or those of a new one.
// Thread-safety: thread-compatible.
struct ReadPlaces {
  // Kept so that a thread's reads stop allocating.
  static ReadPlaces& OfThread();

  // Gives every leaf of `table`, or those of `keys` where there are any, a
  // place for n rows. `out` is not changed yet. Errors as Storage::ReadLeaves.
  absl::Status Find(const RowTable& table, const SpecTree& tree, int64_t n,
                    const LeafKeys& keys, const TensorDict* out);
  // The same for rows of host memory that are in no table.
  absl::Status FindOnHost(const TensorDictSpec& spec, const SpecTree& tree,
                          int64_t n, const LeafKeys& keys,
                          const TensorDict* out);
  // After the copy, where all went well.
  void Finish(TensorDict* out);

  std::vector<LeafBatch> leaves;
  std::optional<TensorDict> fresh;

 private:
  // Rows of `spec` on `device`; those of `table`, or of none.
  struct Source {
    const TensorDictSpec& spec;
    Device device;
    const RowTable* table = nullptr;
  };
  absl::Status FindAll(const Source& source, const SpecTree& tree, int64_t n,
                       const LeafKeys& keys, const TensorDict* out);
  absl::Status FindSome(const Source& source, int64_t n,
                        absl::Span<const std::string> keys,
                        const TensorDict* out);
  // Makes places of tensors_, one for each leaf, or for those of `numbers`.
  bool UseTensors(const Source& source, const Shape& batch_shape,
                  absl::Span<const size_t> numbers);
  bool FindIn(const Source& source, const SpecTree& tree, int64_t n,
              const TensorDict& out);
  bool FindSomeIn(const Source& source, int64_t n, const TensorDict& out);
  // Chooses how a batch of so many bytes is written.
  void PassCaches(int64_t bytes);

  std::vector<const Tensor*> tensors_;  // The batch's.
  std::vector<ByteExtent> extents_;     // Where those lie.
  std::vector<size_t> numbers_;         // Of the leaves of `keys`.
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_READ_PLACES_H_
