// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_ENSEMBLE_ENSEMBLE_OBSERVERS_H_
#define RILL_STORAGE_ENSEMBLE_ENSEMBLE_OBSERVERS_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill::storage_internal {

// Collects what members tell a new observer, as if they were one storage: the
// cursors and live rows of each that it is added to, one after the other.
// Thread-safety: thread-compatible.
class LiveRows final : public WriteObserver {
 public:
  // Slots of the next member are moved up by so many.
  void set_first_slot(Slot first) { first_slot_ = first; }

  absl::Span<const Cursor> cursors() const { return cursors_; }
  absl::Span<const SlotRange> ranges() const { return ranges_; }
  int64_t num_rows() const { return num_rows_; }
  // Every member reports the same kinds of values.
  bool is_consistent() const;
  WriteEvent Event() const;

  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override;
  void OnRetire(const WriteEvent& event) override;
  void OnWrite(const WriteEvent& event) override;
  void OnClear() override;

 private:
  Slot first_slot_ = 0;
  std::vector<Cursor> cursors_;
  std::vector<SlotRange> ranges_;
  std::vector<uint8_t> ends_;
  std::vector<int64_t> trajectory_ids_;
  std::vector<double> priorities_;
  std::vector<int64_t> policy_versions_;
  int64_t num_rows_ = 0;
};

// The observers of several storages side by side: passes members' events on,
// one at a time, with slots moved up.
//
// Thread-safety: thread-safe. Tell and Clear are not called while members are
//   written.
class EnsembleObservers {
 public:
  explicit EnsembleObservers(const Lanes& lanes) : lanes_(lanes) {}

  bool Has(WriteObserver* observer) const;
  // OnAttach and OnWrite with all there is.
  void Add(WriteObserver* observer, const LiveRows& rows);
  void Remove(WriteObserver* observer);
  // The values that any of them reads.
  ValuesRead values_read() const;
  // OnClear, and no more / with all there is then. Events are passed on again.
  void Clear();
  void Tell(const LiveRows& rows);

  // Members are changed as a whole: what they say is not passed on.
  void Mute();
  // A member attached its observers anew on its own, after a device failed:
  // nothing is passed on until Tell.
  bool is_broken() const { return is_broken_; }
  void Break();

  // From members' relays.
  void MemberAttached();
  void MemberRetires(Slot first, const WriteEvent& event);
  void MemberWrote(Slot first, const WriteEvent& event);

 private:
  const WriteEvent& Moved(Slot first, const WriteEvent& event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Lanes lanes_;
  mutable absl::Mutex mutex_;
  std::vector<WriteObserver*> observers_ ABSL_GUARDED_BY(mutex_);
  bool is_muted_ ABSL_GUARDED_BY(mutex_) = true;
  std::atomic<bool> is_broken_ = false;  // Written with mutex_ held.
  // The event that is passed on.
  WriteEvent moved_ ABSL_GUARDED_BY(mutex_);
  std::vector<SlotRange> retired_ ABSL_GUARDED_BY(mutex_);
  std::vector<SlotRange> written_ ABSL_GUARDED_BY(mutex_);
};

// Passes one member's events on.
class MemberRelay final : public WriteObserver {
 public:
  MemberRelay(EnsembleObservers* observers, Slot first)
      : observers_(*observers), first_(first) {}

  ValuesRead values_read() const override { return observers_.values_read(); }
  void OnAttach(const Lanes&, absl::Span<const Cursor>) override {
    observers_.MemberAttached();
  }
  void OnRetire(const WriteEvent& event) override {
    observers_.MemberRetires(first_, event);
  }
  void OnWrite(const WriteEvent& event) override {
    observers_.MemberWrote(first_, event);
  }
  void OnClear() override { observers_.MemberAttached(); }

 private:
  EnsembleObservers& observers_;
  const Slot first_;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_ENSEMBLE_ENSEMBLE_OBSERVERS_H_
