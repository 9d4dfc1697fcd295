// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_PRIORITIZED_PRIORITIZED_SELECTOR_H_
#define RILL_SAMPLERS_PRIORITIZED_PRIORITIZED_SELECTOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/device/device.h"
#include "rill/samplers/selector.h"
#include "rill/slots/slot.h"

namespace rill {

// The priority of a row that was just written. A write in place of a part of
// the keys leaves it as it is where it names no priority.
enum class NewRowPriority {
  // The one that came with the write, kMaxEver where none came (or one that is
  // NaN, infinite or negative: a write is not refused for it).
  kGiven,
  // The largest that was given since the rows were attached or cleared, by an
  // update or with a write; 1 while none was.
  kMaxEver,
  // The largest of the rows that may be drawn, as it is before the write: a row
  // that is overwritten counts until the new one is there. An append over the
  // largest row so hands its priority on, as TorchRL's
  // max_priority_within_buffer does; updates lower it. With several writes in
  // flight the rows that any of them overwrites count. 1 while there is none.
  // Not on a device.
  kMaxInBuffer,
  // PrioritizedOptions::new_row_priority.
  kConstant,
};

struct PrioritizedOptions {
  double alpha = 0.6;     // >= 0: 0 draws all rows alike.
  double beta = 0.4;      // >= 0: 0 makes all weights 1.
  double epsilon = 1e-8;  // In [0, 1e30], added to priorities.
  NewRowPriority new_rows = NewRowPriority::kGiven;
  float new_row_priority = 1.0f;  // >= 0, of kConstant.
  // Draw i falls into the i-th of `count` equal shares of the sum, so that a
  // batch spreads over small and large priorities. Else draws are independent.
  bool stratified = false;
  // The place of the priorities. A device that is not the CPU takes those that
  // lie there without a host wait (PriorityUpdater), and has the same draws.
  Device device = Device::Cpu();
};

// Draws anchors in proportion to v = (priority + epsilon) ^ alpha, with
// replacement: P(i) = v_i / sum of v. Weighs them by (v_i / min v) ^ -beta,
// which is at most 1; the minimum is over all anchors. It is TorchRL's
// PrioritizedSampler (Schaul et al., "Prioritized Experience Replay", ICLR
// 2016). A row with priority + epsilon == 0 is never drawn.
//
// Every live row has its priority, anchor or not, so one that becomes an anchor
// again has the one that was last given. The priority of a slice is that of its
// first row.
//
// Exactness: priorities are kept as given, in float32. Each v is a function of
//   its priority (power.h), and sums are functions of the v (sum_tree.h). All
//   are the same on every machine. So are the draws: target u * sum, u the
//   stream's UniformDouble. Values v are limited to [2^-1000, 2^960], weights
//   to what float32 holds above 0.
//
// Device/Stream: priorities on a device are changed in a stream of their own.
//   Writes queue there, the next draw, update or save launches them, and writes
//   too where 4,096 changes wait. A draw waits for its slots and weights, 12
//   bytes each, which the kernel writes to the host. Saves wait too. The same
//   history has the same draws and the same state as on the host. Where a
//   device fails a plan says so, and a save too. Once changes were lost there
//   both go on saying so, until the rows are cleared or attached anew.
//
// Thread-safety: thread-compatible, as Selector, but for what sets exponents.
// Cost: O(log8(slots)) a draw, an update or a row written; O(anchors) in the
//   Select that follows a change of alpha.
//   Memory: 13.8 bytes a slot, only where rows were written. On a device: 31
//   bytes a slot there, and those of Generations.
class PrioritizedSelector : public Selector {
 public:
  // INVALID_ARGUMENT where an option is out of its range.
  static absl::StatusOr<std::unique_ptr<PrioritizedSelector>> Create(
      const PrioritizedOptions& options = {});

  // As the options, from the next Select on, also between events and calls of
  // other threads: these four are thread-safe. Part of the saved state.
  // INVALID_ARGUMENT where out of range.
  virtual absl::Status SetAlpha(double alpha) = 0;
  virtual absl::Status SetBeta(double beta) = 0;
  virtual double alpha() const = 0;
  virtual double beta() const = 0;

  // For saves of another system. Thread-compatible: nobody samples, updates or
  // writes meanwhile.
  virtual double epsilon() const = 0;
  // The priority of each slot as it was last given, 0 where no row is. Empty
  // where a device fails.
  virtual std::vector<float> Priorities() const = 0;
  // The priority of a row that comes without one.
  virtual float DefaultPriority() const = 0;

  // Priorities of PriorityUpdater that were negative or not finite since the
  // rows were attached or cleared. Their rows have kept the ones before.
  struct Refused {
    int64_t count = 0;
    Slot first_slot = 0;  // The first of them.
    float first = 0;
  };
  // Waits for the device. Thread-safe.
  virtual absl::StatusOr<Refused> RefusedPriorities() const {
    return Refused();
  }

 protected:
  using Selector::Selector;
};

}  // namespace rill

#endif  // RILL_SAMPLERS_PRIORITIZED_PRIORITIZED_SELECTOR_H_
