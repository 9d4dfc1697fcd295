// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_PRIORITIZED_PRIORITY_UPDATER_H_
#define RILL_SAMPLERS_PRIORITIZED_PRIORITY_UPDATER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"

namespace rill {

// Sampler::UpdatePriorities for draws and priorities that lie on a device, that
// of the sampler's priorities (SamplerTraits::priority_updater).
//
// Thread-safety: thread-safe. A call waits for those of other threads, and for
//   a plan that is being drawn.
class PriorityUpdater {
 public:
  virtual ~PriorityUpdater() = default;

  virtual Device device() const = 0;

  // `count` of each, in memory of the device.
  struct Rows {
    const int64_t* slots = nullptr;
    const int64_t* generations = nullptr;
    const float* priorities = nullptr;
    int64_t count = 0;
  };
  // Enqueued on `stream`, of the device, behind its work; the host does not
  // wait. Plans from here on see the new priorities. `owner` is kept until the
  // stream got there. The values are checked on the device. A draw whose row
  // was overwritten is ignored, and so is a priority that is negative or not
  // finite (PrioritizedSelector::RefusedPriorities); of equal slots the later
  // wins. Errors: those of the device, and then nothing has changed.
  virtual absl::Status Update(const Rows& rows,
                              std::shared_ptr<const void> owner,
                              const Stream& stream) = 0;
};

}  // namespace rill

#endif  // RILL_SAMPLERS_PRIORITIZED_PRIORITY_UPDATER_H_
