// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_PRIORITIZED_QUEUED_PRIORITIES_H_
#define RILL_SAMPLERS_PRIORITIZED_QUEUED_PRIORITIES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/device/priorities/device_priorities.h"
#include "rill/samplers/prioritized/priority_updater.h"

namespace rill::samplers_internal {

// DevicePriorities with a queue of changes before them: a write costs no launch
// of its own. Launches are made for many changes at once, by the calls that
// need them or where kFull changes wait.
//
// A batch of changes is one launch, in which the last change of a slot counts
// alone. So a change joins the batch where it sets all that those before set,
// else it begins another. Changes of the slots of the call before go into its
// changes: rows that are appended over others, and may be drawn then, are one
// change each.
//
// After an error the queue keeps what is not launched, and the next call tries
// again. A queue that is full by then is given up: calls return that error
// until the next Reset.
//
// Thread-safety: thread-safe. Draw and Read wait for the device with the lock.
class QueuedPriorities final : public PriorityUpdater {
 public:
  using Change = DevicePriorities::Change;
  static constexpr size_t kFull = DevicePriorities::kMostChanges;

  QueuedPriorities(Device device, double epsilon)
      : device_(device), epsilon_(epsilon) {}

  Device device() const override { return device_; }
  absl::Status Update(const Rows& rows, std::shared_ptr<const void> owner,
                      const Stream& stream) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // All slots are as at first, whatever was lost before.
  void Reset(int64_t size) ABSL_LOCKS_EXCLUDED(mutex_);
  void TurnAllOff() ABSL_LOCKS_EXCLUDED(mutex_);
  // Changes that all set the same. `largest`: of the priorities that were
  // given. With kLargest the priority is the largest before this call.
  void Add(absl::Span<const Change> changes,
           std::optional<float> largest = std::nullopt)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The same of a state: `largest` takes the place of the one so far.
  absl::Status Load(absl::Span<const Change> changes,
                    std::optional<float> largest) ABSL_LOCKS_EXCLUDED(mutex_);
  // Launches where many changes wait.
  void FlushIfFull() ABSL_LOCKS_EXCLUDED(mutex_);

  // There is at least one slot.
  absl::StatusOr<DevicePriorities::Drawn> Draw(
      const DevicePriorities::Request& request, double alpha)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<DevicePriorities::Contents> Read() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<DevicePriorities::Bad> ReadBad() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Batch {
    size_t end;  // Of its changes.
    uint32_t sets;
    int64_t largest = 0;  // Its bits, plus 1.
    bool replaces_largest = false;
    bool turns_all_off = false;  // Before the changes.
  };

  bool Merge(absl::Span<const Change> changes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Push(absl::Span<const Change> changes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Append(absl::Span<const Change> changes, std::optional<float> largest)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Flush() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Device device_;
  const double epsilon_;
  absl::Mutex mutex_;
  int64_t size_ ABSL_GUARDED_BY(mutex_) = 0;
  // Null before the first Flush behind a Reset of another size.
  std::unique_ptr<DevicePriorities> priorities_ ABSL_GUARDED_BY(mutex_);
  bool is_clear_ ABSL_GUARDED_BY(mutex_) = false;
  double alpha_ ABSL_GUARDED_BY(mutex_) = 1;
  bool is_weighed_ ABSL_GUARDED_BY(mutex_) = true;  // By alpha_.
  // Why changes were given up.
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
  std::vector<Change> changes_ ABSL_GUARDED_BY(mutex_);
  std::vector<Batch> batches_ ABSL_GUARDED_BY(mutex_);
  size_t next_batch_ ABSL_GUARDED_BY(mutex_) = 0;   // To launch.
  size_t next_change_ ABSL_GUARDED_BY(mutex_) = 0;  // To launch.
  // Where those of the last call begin.
  size_t last_call_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_PRIORITIZED_QUEUED_PRIORITIES_H_
