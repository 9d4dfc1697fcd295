// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_LIST_LIST_STORAGE_H_
#define RILL_STORAGE_LIST_LIST_STORAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/specs/spec.h"
#include "rill/storage/list/list_rows.h"
#include "rill/storage/ring/lane_rings.h"
#include "rill/storage/ring/ring_rows.h"
#include "rill/storage/ring/write_event_builder.h"
#include "rill/storage/serialized/row_store.h"
#include "rill/storage/serialized/serialized_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"

namespace rill {

// Storage in RAM whose rows may differ in shape: a list that holds each row by
// itself, with as many bytes as it has. For tokens, point clouds, graphs.
// Leaves that are named ragged have one dtype and one rank in all rows, and any
// sizes. All other leaves are even, as elsewhere, and there is at least one of
// them.
//
// Writing: rows that differ come by ExtendRagged, one lane at a time. Extend
//   and WriteAt take batches as elsewhere; all rows of a ragged leaf are then
//   as long as the batch says. WriteAt makes the rows that it names anew.
// Reading: Read and ReadLeaves pad ragged leaves with zeros behind, to the
//   longest of the batch. They put a bool mask beside each, under `mask_key`
//   joined with its key, as StackPadded (tensordict/ragged_tensor.h) does. So
//   rows of ragged leaves have rank Shape::kMaxRank - 1 at most. Each Read
//   makes batches with ragged leaves anew. ReadStack gives the rows as they
//   are, without a copy.
//
// spec(): even leaves, then ragged ones with sizes that all rows written so far
//   have room in. A row is refused where no such sizes fit in int64 bytes.
//
// MemoryUsage: `memory` is the bytes of the rows there, with about 300 bytes
//   that each row costs besides, so it follows them. `full` supposes that all
//   rows are as the largest that was written.
// Save and Load: without ragged leaves those of any storage; with them a form
//   of its own that only such a storage loads (docs/formats/storage.md).
//   FAILED_PRECONDITION where ragged leaves differ.
// Lease is FAILED_PRECONDITION: ReadStack instead. With ragged leaves it is no
//   storage for an EnsembleStorage or a TieredStorage.
//
// Thread-safety: thread-safe. Writers take turns; a Read makes nobody wait
//   while it copies. Rows that were read do not change any more.
// Cost: an allocation a row that is written; reads one pass row by row.
//
// Example (ListStorageTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto storage,
//                         ListStorage::Create({.capacity = 1 << 20,
//                                              .ragged_leaves = {"tokens"}}));
//   RILL_RETURN_IF_ERROR(storage->ExtendRagged({first, second}).status());
//   TensorDict rows;  // tokens [2, longest], mask/tokens [2, longest]
//   RILL_RETURN_IF_ERROR(storage->Read({0, 1}, &rows));
//   RILL_ASSIGN_OR_RETURN(LazyStack stack, storage->ReadStack({0, 1}));
class ListStorage final : public storage_internal::SerializedStorage {
 public:
  struct Options {
    // Slots in all, in [1, 2^40]; a multiple of `lanes`.
    int64_t capacity = 0;
    int64_t lanes = 1;  // In [1, 2^24].
    // Keys of leaves whose shapes may differ from row to row.
    std::vector<std::string> ragged_leaves = {};
    // No leaf lies at it, below it, or above it.
    std::string mask_key = "mask";
    // Empty: taken from the first write. For ragged leaves only dtype and
    // rank count.
    TensorDictSpec spec = {};
    EventKeys event_keys = {};  // Of even leaves.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<ListStorage>> Create(Options options);

  // Appends rows of batch shape [] to lane info.first_lane, in their order.
  // Errors as Extend's; INVALID_ARGUMENT names the row where one does not fit.
  absl::StatusOr<ExtendResult> ExtendRagged(absl::Span<const TensorDict> steps,
                                            const WriteInfo& info = {});
  // The members of a stack [time].
  absl::StatusOr<ExtendResult> ExtendRagged(const LazyStack& steps,
                                            const WriteInfo& info = {});
  // The rows as they are, sharing bytes that cannot be written to: [n] of
  // members []. OUT_OF_RANGE as Read.
  absl::StatusOr<LazyStack> ReadStack(absl::Span<const Slot> slots) const;

  TensorDictSpec spec() const override;
  StorageUsage MemoryUsage() const override;
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info = {}) override;
  absl::Status WriteInPlace(absl::Span<const Slot> slots,
                            const TensorDict& rows, InPlace kind) override;

 private:
  using RaggedLeaf = storage_internal::RaggedLeaf;
  using RaggedRows = storage_internal::RaggedRows;

  explicit ListStorage(Options options);

  absl::Status ReadKeys(absl::Span<const Slot> slots,
                        storage_internal::LeafKeys keys,
                        TensorDict* out) const override;

  absl::StatusOr<std::shared_ptr<storage_internal::RingRows>> MakeRows(
      const TensorDictSpec& spec,
      storage_internal::EventLeaves events) const override;
  storage_internal::RaggedFn RaggedOf(
      const storage_internal::LaneRings& rings,
      const storage_internal::RingRows* rows) const override;
  absl::StatusOr<PrepareRunFn> PrepareLoad(
      const storage_internal::StoredRows& stored,
      const storage_internal::RowStore* old,
      storage_internal::RowStore* fresh) const override;

  static const storage_internal::ListRows* ListOf(
      const storage_internal::RingRows* rows) {
    return static_cast<const storage_internal::ListRows*>(rows);
  }
  static storage_internal::ListRows* ListOf(storage_internal::RingRows* rows) {
    return static_cast<storage_internal::ListRows*>(rows);
  }

  // The rows at live slots, and what holds them; null: there are none so far.
  absl::StatusOr<std::shared_ptr<storage_internal::RingRows>> PickLive(
      absl::string_view caller, absl::Span<const Slot> slots,
      std::vector<storage_internal::ListRowPtr>* picked) const;
  // The rows without their ragged leaves; and those, row after row.
  absl::StatusOr<TensorDict> EvenPart(const TensorDict& rows) const;
  absl::StatusOr<RaggedRows> RaggedPart(absl::string_view caller,
                                        const TensorDict& rows,
                                        bool allow_part) const;
  // Gives the ragged leaves of rows that are about to be staged to a store, and
  // teaches them to one that knows none yet. INVALID_ARGUMENT where they are
  // not its own, or need too much room.
  absl::Status SetRagged(absl::string_view caller, RaggedRows rows,
                         storage_internal::ListRows* store) const;
  // INVALID_ARGUMENT where a row that has the largest shape of each leaf has
  // more bytes than can be counted.
  static absl::Status CheckRoom(absl::string_view caller,
                                absl::Span<const RaggedLeaf> leaves,
                                absl::Span<const Shape> largest,
                                const storage_internal::ListRows& store);

  const Options options_;
  std::vector<RaggedLeaf> given_ragged_;  // Of the options' spec, or none.
};

}  // namespace rill

#endif  // RILL_STORAGE_LIST_LIST_STORAGE_H_
