// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_CONFORMANCE_MIRROR_OBSERVER_H_
#define RILL_STORAGE_CONFORMANCE_MIRROR_OBSERVER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "rill/slots/lane_blocks.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/storage/conformance/storage_oracle.h"

namespace rill {

// Keeps which slots are live, and what the writer reported of them, from events
// alone. It notes whatever breaks the contract of write_observer.h: rows that
// are written before the old ones retired, a wrong order, spans that do not
// fit.
// Thread-safety: thread-compatible; storages call it under their own lock.
class MirrorObserver : public WriteObserver {
 public:
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override;
  void OnRetire(const WriteEvent& event) override;
  void OnWrite(const WriteEvent& event) override;
  void OnClear() override;

  // The breaches so far, and where the mirror and the oracle differ; empty is
  // good.
  std::string Compare(const StorageOracle& oracle) const;
  int64_t num_calls() const { return num_calls_; }

 private:
  struct Row {
    bool is_end = false;
    int64_t trajectory_id = 0;
    double priority = 0;
    int64_t policy_version = 0;
  };
  void Complain(const std::string& what);
  void CheckRanges(absl::Span<const SlotRange> ranges, const std::string& name);
  // They are what the ranges are read as.
  void CheckBlocks(absl::Span<const SlotRange> ranges,
                   absl::Span<const LaneBlock> known, const std::string& name);
  void CheckOrder(const WriteEvent& event);
  // Row `i` of the event's values, for slot `slot`.
  void Take(const WriteEvent& event, size_t i, Slot slot);

  Lanes lanes_;
  std::vector<int64_t> written_;          // Steps ever appended, by lane.
  std::vector<std::optional<Row>> rows_;  // By slot; empty: not live.
  int64_t open_ = 0;  // Writes whose OnRetire came, and OnWrite did not yet.
  std::string complaints_;
  int64_t num_calls_ = 0;
};

}  // namespace rill

#endif  // RILL_STORAGE_CONFORMANCE_MIRROR_OBSERVER_H_
