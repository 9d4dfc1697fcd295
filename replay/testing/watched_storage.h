// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_TESTING_WATCHED_STORAGE_H_
#define RILL_REPLAY_TESTING_WATCHED_STORAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/flow/sink.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Another storage, whose reads a test can hold back and look at.
// Thread-safety: thread-safe.
class WatchedStorage final : public Storage {
 public:
  struct ReadCall {
    std::vector<Slot> slots;
    std::vector<std::string> keys;  // Those that were asked for.
  };

  // `asks`: as the inner one does, before it overwrites rows.
  explicit WatchedStorage(std::shared_ptr<Storage> inner, bool asks = false)
      : Storage({.lanes = inner->lanes(),
                 .device = inner->device(),
                 .asks_before_overwriting = asks,
                 .event_keys = inner->traits().event_keys}),
        inner_(std::move(inner)) {}

  // From here on reads wait at their beginning until LetReads.
  void HoldReads();
  void LetReads();
  // Until so many reads wait.
  void AwaitHeldReads(int64_t reads) const;
  // Until so many calls asked for the cursors since the last HoldReads.
  void AwaitCursorCalls(int64_t calls) const;
  // Those since the last call.
  std::vector<ReadCall> TakeReads();

  int64_t size() const override { return inner_->size(); }
  std::vector<Cursor> cursors() const override;
  TensorDictSpec spec() const override { return inner_->spec(); }
  StorageUsage MemoryUsage() const override { return inner_->MemoryUsage(); }
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info) override {
    return inner_->Extend(batch, info);
  }
  absl::Status WriteInPlace(absl::Span<const Slot> slots,
                            const TensorDict& rows, InPlace kind) override {
    return inner_->WriteInPlace(slots, rows, kind);
  }
  absl::Status ReadInto(absl::Span<const Slot> slots,
                        absl::Span<const size_t> leaves,
                        absl::Span<const BoundLeaf> places) const override;
  absl::StatusOr<SlotLease> Lease(SlotRange range) const override {
    return inner_->Lease(range);
  }
  absl::Status Clear() override { return inner_->Clear(); }
  absl::Status AddObserver(WriteObserver* observer) override {
    return inner_->AddObserver(observer);
  }
  void RemoveObserver(WriteObserver* observer) override {
    inner_->RemoveObserver(observer);
  }
  absl::Status Save(const std::string& directory) const override {
    return inner_->Save(directory);
  }
  absl::Status Load(const std::string& directory,
                    const StorageLoadOptions& options) override {
    return inner_->Load(directory, options);
  }

 private:
  absl::Status ReadKeys(absl::Span<const Slot> slots,
                        std::optional<absl::Span<const std::string>> keys,
                        TensorDict* out) const override;
  void Note(absl::Span<const Slot> slots, std::vector<std::string> keys) const;

  const std::shared_ptr<Storage> inner_;
  mutable absl::Mutex mutex_;
  bool is_holding_ ABSL_GUARDED_BY(mutex_) = false;
  mutable int64_t held_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable int64_t cursor_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable std::vector<ReadCall> reads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rill

#endif  // RILL_REPLAY_TESTING_WATCHED_STORAGE_H_
