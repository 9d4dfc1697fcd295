// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/conformance/mirror_observer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "rill/storage/conformance/conformance_rows.h"

namespace rill {

void MirrorObserver::Complain(const std::string& what) {
  if (complaints_.size() < 1000) absl::StrAppend(&complaints_, what, "; ");
}

void MirrorObserver::OnAttach(const Lanes& lanes,
                              absl::Span<const Cursor> cursors) {
  ++num_calls_;
  lanes_ = lanes;
  open_ = 0;
  rows_.assign(lanes.num_slots(), std::nullopt);
  written_.clear();
  if (static_cast<int64_t>(cursors.size()) != lanes.count) {
    Complain(absl::StrCat("OnAttach: ", cursors.size(), " cursors"));
  }
  for (const Cursor& cursor : cursors) {
    // The live rows come with the OnWrite that follows.
    written_.push_back(cursor.written -
                       std::min(cursor.written, lanes.capacity));
  }
}

void MirrorObserver::CheckRanges(absl::Span<const SlotRange> ranges,
                                 const std::string& name) {
  for (const SlotRange& range : ranges) {
    if (range.count <= 0 || range.first < 0 ||
        range.first + range.count > lanes_.num_slots() ||
        lanes_.LaneOf(range.first) !=
            lanes_.LaneOf(range.first + range.count - 1)) {
      Complain(absl::StrCat(name, ": range [", range.first, ", +", range.count,
                            ")"));
    }
  }
}

void MirrorObserver::CheckBlocks(absl::Span<const SlotRange> ranges,
                                 absl::Span<const LaneBlock> known,
                                 const std::string& name) {
  if (known.empty()) return;
  LaneBlocks blocks(lanes_, ranges);
  for (LaneBlock block; blocks.Next(&block); known.remove_prefix(1)) {
    if (known.empty() || known.front() != block) {
      Complain(absl::StrCat(name, ": lanes [", block.lane, ", ", block.end(),
                            ") are another block"));
      return;
    }
  }
  if (!known.empty()) Complain(absl::StrCat(name, ": more blocks"));
}

void MirrorObserver::OnRetire(const WriteEvent& event) {
  ++num_calls_;
  ++open_;
  CheckRanges(event.retired, "retired");
  CheckBlocks(event.retired, event.retired_blocks, "retired");
  for (const SlotRange& range : event.retired) {
    for (Slot slot = range.first; slot < range.first + range.count; ++slot) {
      if (!rows_[slot].has_value()) {
        Complain(absl::StrCat("retired slot ", slot, " held no row"));
      }
      // Rows that are written over in place stay live.
      if (event.is_append) rows_[slot].reset();
    }
  }
}

void MirrorObserver::CheckOrder(const WriteEvent& event) {
  CheckRanges(event.written, "written");
  CheckBlocks(event.written, event.written_blocks, "written");
  int64_t lane = -1;
  for (const SlotRange& range : event.written) {
    if (event.is_append && lanes_.LaneOf(range.first) < lane) {
      Complain("lanes out of order");
    }
    lane = lanes_.LaneOf(range.first);
  }
  if (!event.is_append &&
      !std::equal(event.retired.begin(), event.retired.end(),
                  event.written.begin(), event.written.end())) {
    Complain("an overwrite retires other slots than it writes");
  }
}

void MirrorObserver::Take(const WriteEvent& event, size_t i, Slot slot) {
  if (event.is_append) {
    if (rows_[slot].has_value()) {
      Complain(absl::StrCat("slot ", slot, " written before it retired"));
    }
    rows_[slot] = Row();
    int64_t& written = written_[lanes_.LaneOf(slot)];
    // A long write leaves out its oldest steps.
    while (written % lanes_.capacity != lanes_.PositionOf(slot)) ++written;
    ++written;
  } else if (!rows_[slot].has_value()) {
    Complain(absl::StrCat("dead slot ", slot, " written over"));
    return;
  }
  Row& row = *rows_[slot];
  if (!event.ends.empty()) row.is_end = event.ends[i] != 0;
  if (!event.trajectory_ids.empty()) {
    row.trajectory_id = event.trajectory_ids[i];
  }
  if (!event.priorities.empty()) row.priority = event.priorities[i];
  if (!event.policy_versions.empty()) {
    row.policy_version = event.policy_versions[i];
  }
}

void MirrorObserver::OnWrite(const WriteEvent& event) {
  ++num_calls_;
  if (!event.retired.empty() && --open_ < 0) Complain("nothing was retired");
  CheckOrder(event);
  size_t n = 0;
  for (const SlotRange& range : event.written) n += range.count;
  for (const size_t size :
       {event.ends.size(), event.trajectory_ids.size(), event.priorities.size(),
        event.policy_versions.size()}) {
    if (size != n && (size != 0 || event.is_append)) {
      Complain(absl::StrCat("span of ", size, " values for ", n, " rows"));
      return;
    }
  }
  size_t i = 0;
  for (const SlotRange& range : event.written) {
    for (Slot slot = range.first; slot < range.first + range.count; ++slot) {
      Take(event, i++, slot);
    }
  }
}

void MirrorObserver::OnClear() {
  ++num_calls_;
  open_ = 0;
  std::fill(rows_.begin(), rows_.end(), std::nullopt);
  std::fill(written_.begin(), written_.end(), 0);
}

std::string MirrorObserver::Compare(const StorageOracle& oracle) const {
  std::string text = complaints_;
  if (open_ > 0) absl::StrAppend(&text, "OnRetire without its OnWrite; ");
  for (Slot slot = 0; slot < oracle.lanes().num_slots(); ++slot) {
    if (rows_[slot].has_value() != oracle.IsLive(slot)) {
      absl::StrAppend(&text, "slot ", slot, " live: ", !oracle.IsLive(slot),
                      "; ");
      continue;
    }
    if (!oracle.IsLive(slot)) continue;
    const auto id = [&](const char* key) {
      return oracle.Id(slot, ConformanceLeafNumber(key));
    };
    const Row& row = *rows_[slot];
    if (row.is_end != ConformanceEnd(id("next/done")) ||
        row.trajectory_id != ConformanceTrajectory(id("collector/traj_ids")) ||
        row.priority != ConformancePriority(id("priority")) ||
        row.policy_version != ConformancePolicyVersion(id("policy_version"))) {
      absl::StrAppend(&text, "values of slot ", slot, "; ");
    }
  }
  // Positions agree even where a long write left steps out.
  for (int64_t lane = 0; lane < oracle.lanes().count; ++lane) {
    if (written_[lane] % lanes_.capacity !=
        oracle.cursors()[lane].written % lanes_.capacity) {
      absl::StrAppend(&text, "cursor of lane ", lane, "; ");
    }
  }
  return text;
}

}  // namespace rill
