// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_SERIALIZED_SERIALIZED_STORAGE_H_
#define RILL_STORAGE_SERIALIZED_SERIALIZED_STORAGE_H_

#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/storage/chunks/stored_rows.h"
#include "rill/storage/ring/ring_rows.h"
#include "rill/storage/ring/ring_storage.h"
#include "rill/storage/rows/read_places.h"
#include "rill/storage/serialized/row_store.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_traits.h"

namespace rill::storage_internal {

// A RingStorage in host memory over a RowStore, which has the bytes. For kinds
// whose rows cost more than a copy, so that writers side by side would gain
// little (WriteOrder::kApart).
//
// alone_mutex_: one write at a time, from its checks until observers are
//   notified. They are called under it alone.
// state_mutex_: which rows are live and where; writers hold it to commit,
//   readers to find their rows (RowStore::Read).
// Thread-safety: thread-safe.
class SerializedStorage : public RingStorage {
 public:
  StorageUsage MemoryUsage() const override;
  // FAILED_PRECONDITION.
  absl::StatusOr<SlotLease> Lease(SlotRange range) const override;
  absl::Status Clear() override;

 protected:
  static RowStore* StoreOf(const std::shared_ptr<RingRows>& rows) {
    return static_cast<RowStore*>(rows.get());
  }

  // `kind_of_rows`, which do not lie in place: "compressed". MakeRows makes a
  // RowStore.
  SerializedStorage(const StorageTraits& traits, absl::string_view kind_of_rows)
      : RingStorage(traits, WriteOrder::kApart), kind_of_rows_(kind_of_rows) {}

  // The rows there are, `slots` of which are live; null: none so far. Nobody
  // commits meanwhile. OUT_OF_RANGE.
  absl::Status WithLive(
      absl::string_view caller, absl::Span<const Slot> slots,
      absl::FunctionRef<absl::Status(const std::shared_ptr<RingRows>&)> fn)
      const;

  // `old` are the rows so far, or null. Gives what tells `fresh` of a run of
  // stored rows that is about to be staged; null: there is nothing to tell.
  using PrepareRunFn = std::function<absl::Status(const StoredRun&)>;
  virtual absl::StatusOr<PrepareRunFn> PrepareLoad(const StoredRows&,
                                                   const RowStore* /*old*/,
                                                   RowStore* /*fresh*/) const {
    return PrepareRunFn();
  }

 private:
  absl::Status ReadRows(absl::Span<const Slot> slots,
                        const ReadRequest& request) const override;
  absl::StatusOr<std::shared_ptr<RingRows>> LoadInto(
      const StoredRows& stored, const TensorDictSpec& spec) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_);

  const absl::string_view kind_of_rows_;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_SERIALIZED_SERIALIZED_STORAGE_H_
