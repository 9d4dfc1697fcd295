// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/deferred_release.h"

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rill/device/has_ended.h"

namespace rill::libtorch_internal {
namespace {

struct Waiting {
  Event last_use;
  std::shared_ptr<Buffer> buffer;
};

// Lives as long as the process: torch's tensors may be static objects.
struct Waitings {
  absl::Mutex mutex;
  std::vector<Waiting> list ABSL_GUARDED_BY(mutex);
};

Waitings& All() {
  static Waitings& all = *new Waitings;
  return all;
}

}  // namespace

void ReleaseBehind(std::shared_ptr<Buffer> buffer, const Stream& stream) {
  SweepReleased();
  absl::StatusOr<Event> last_use = Event::Record(stream);
  if (!last_use.ok()) {
    // Without an event the host waits; a device that failed reads no more.
    stream.Synchronize().IgnoreError();
    return;
  }
  Waitings& all = All();
  absl::MutexLock lock(&all.mutex);
  all.list.push_back({*std::move(last_use), std::move(buffer)});
}

int SweepReleased() {
  std::vector<Waiting> done;  // Freed without the lock.
  Waitings& all = All();
  absl::MutexLock lock(&all.mutex);
  std::vector<Waiting> left;
  for (Waiting& waiting : all.list) {
    const bool has_ended =
        device_internal::HasEnded(waiting.last_use).value_or(true);
    (has_ended ? done : left).push_back(std::move(waiting));
  }
  all.list = std::move(left);
  return static_cast<int>(all.list.size());
}

}  // namespace rill::libtorch_internal
