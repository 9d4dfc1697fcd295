// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_CUDA_LOST_DEVICES_H_
#define RILL_DEVICE_CUDA_LOST_DEVICES_H_

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace rill {

// Devices that a process has lost, by index, each with the error that told so.
// A driver answers each later call with an error of its own choice; this gives
// the first one each time.
// Thread-safety: thread-safe. Cost: a load while no device is lost.
class LostDevices {
 public:
  // The first error of a device counts.
  void Add(int index, const absl::Status& error) ABSL_LOCKS_EXCLUDED(mutex_);

  // "cuda:0 was lost: <error>; ..." where the device is lost.
  absl::Status Check(int index) const ABSL_LOCKS_EXCLUDED(mutex_) {
    return is_any_lost_.load(std::memory_order_relaxed) ? Find(index)
                                                        : absl::OkStatus();
  }

 private:
  absl::Status Find(int index) const ABSL_LOCKS_EXCLUDED(mutex_);

  std::atomic<bool> is_any_lost_{false};
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<int, absl::Status> errors_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rill

#endif  // RILL_DEVICE_CUDA_LOST_DEVICES_H_
