// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNITS_ANCHOR_RECORDER_H_
#define RILL_SAMPLERS_UNITS_ANCHOR_RECORDER_H_

#include <set>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "rill/samplers/anchors.h"
#include "rill/slots/slot.h"

namespace rill::samplers_internal {

// Keeps the anchors that a unit reports, and fails the test where a report does
// not fit.
//
// Thread-safety: thread-compatible.
class AnchorRecorder final : public AnchorListener {
 public:
  void OnAnchorsAdded(absl::Span<const SlotRange> slots) override {
    ForEachSlot(slots, [this](Slot slot) {
      EXPECT_TRUE(anchors.insert(slot).second) << slot << " twice";
    });
  }
  void OnAnchorsRemoved(absl::Span<const SlotRange> slots) override {
    ForEachSlot(slots, [this](Slot slot) {
      EXPECT_EQ(anchors.erase(slot), 1u) << slot << " never was one";
      removed.insert(slot);
    });
  }
  void OnAnchorsCleared() override { anchors.clear(); }

  std::set<Slot> anchors;
  std::set<Slot> removed;
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_UNITS_ANCHOR_RECORDER_H_
