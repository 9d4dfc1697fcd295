// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_DENSE_STORAGE_IMPL_H_
#define RILL_STORAGE_DENSE_STORAGE_IMPL_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/device/stream.h"
#include "rill/storage/dense/dense_rows.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/on_disk/rows_on_disk.h"
#include "rill/storage/ring/ring_storage.h"
#include "rill/storage/sharing/epoch_windows.h"
#include "rill/storage/storage.h"

namespace rill::storage_internal {

// DenseStorage's body: a RingStorage of DenseRows, how these are read, and what
// the files say of them where they lie in files.
//
// Readers take no lock where they can. windows_ keeps them from the rows that a
// writer is overwriting, a few at a time; readers of other rows go on. They
// take state_mutex_ only where lanes are partly filled. A device's copies are
// serialised on its stream instead. Its writers are serialised too, as with
// dedup_next, where the bytes of a row lie in its neighbours.
class DenseStorageImpl final : public RingStorage {
 public:
  // `options` were checked. With a directory rows and cursors live there: those
  // that it was opened with, if any. Extend waits so long for readers that
  // hold rows (RowCommits::Announce).
  explicit DenseStorageImpl(const DenseStorage::Options& options,
                            std::unique_ptr<RowsOnDisk> directory = nullptr,
                            absl::Duration hold_timeout = absl::ZeroDuration());

  using RingStorage::Init;

  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info) override;
  StorageUsage MemoryUsage() const override;
  absl::StatusOr<bool> ShowRows(absl::Span<const Slot> slots, size_t leaf,
                                ShowRowFn fn) const override;
  absl::StatusOr<SlotLease> Lease(SlotRange range) const override;
  absl::Status Clear() override;
  absl::Status Sync() override;
  absl::StatusOr<std::string> SavePosition() override;
  absl::Status LoadPosition(absl::string_view position, bool accept_newer,
                            AcceptPosition accept) override;

 private:
  static DenseRows* DenseOf(const std::shared_ptr<RingRows>& rows) {
    return static_cast<DenseRows*>(rows.get());
  }

  absl::StatusOr<std::shared_ptr<RingRows>> MakeRows(
      const TensorDictSpec& spec, EventLeaves events) const override;
  absl::Status ReadRows(absl::Span<const Slot> slots,
                        const ReadRequest& request) const override;
  absl::Status Enqueue(absl::Span<const Slot> slots, const Stream& stream,
                       const EnqueuedPlaces& to) const override;
  absl::Status EnqueueLists(absl::Span<const ListRead> lists,
                            StreamUploads* uploads, LaunchFn launch,
                            ReadGraph* graph) const;
  bool MayBegin(bool is_append) const override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_mutex_);
  void Publish() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_mutex_);
  absl::StatusOr<std::shared_ptr<RingRows>> LoadInto(
      const StoredRows& stored, const TensorDictSpec& spec) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_);
  absl::Status Take(const StoredRows& stored, WriteScratch* scratch) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_);

  // The rows that hold `slots`, for a reader inside an epoch; null where no
  // slot is asked for and there are none. OUT_OF_RANGE as Read.
  absl::StatusOr<const DenseRows*> FindLive(absl::string_view caller,
                                            absl::Span<const Slot> slots) const;

  // Take over the rows of a directory, once all that can fail was checked.
  absl::Status LoadOver(const StoredRows& stored, WriteScratch* scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_);
  // Makes other rows live, whose bytes are there. Observers are notified as of
  // a Load.
  void Show(const LaneRings& rings, WriteScratch* scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_);
  // FAILED_PRECONDITION before there is a spec.
  absl::Status CheckHasRows(absl::string_view caller,
                            absl::string_view want) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_);

  const DenseStorage::Options options_;
  const std::unique_ptr<RowsOnDisk> directory_;  // Null: in memory.
  const absl::Duration hold_timeout_;

  // rows_ as readers see it, inside an epoch.
  std::atomic<const DenseRows*> shown_rows_{nullptr};
  std::atomic<size_t> read_rows_{SIZE_MAX};
  mutable EpochWindows windows_;
};

// INVALID_ARGUMENT, starting with `caller`, names the option.
absl::Status CheckOptions(absl::string_view caller,
                          const DenseStorage::Options& options);

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_DENSE_STORAGE_IMPL_H_
