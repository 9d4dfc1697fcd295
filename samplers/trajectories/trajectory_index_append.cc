// SPDX-License-Identifier: Apache-2.0
// An append whose rows come before somebody has looked at what it retires. Each
// lane loses as many rows as it gets:
//
// - A lane in the middle of one trajectory slides, 64 at a time.
// - A lane whose first trajectory shrinks while its last one grows is changed
// at
//   once, unless one of them so enters or leaves a set.
// - All other lanes lose their rows first, and get the new ones last, as in two
//   calls: the order of the sets depends on it.
#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"
#include "rill/samplers/trajectories/trajectory_index.h"
#include "rill/slots/lane_blocks.h"

namespace rill {

using samplers_internal::PieceScanner;
using samplers_internal::SlidingLanes;

void TrajectoryIndex::OnAppend(const WriteEvent& event,
                               absl::Span<const LaneBlock> blocks) {
  const bool has_ids = !event.trajectory_ids.empty();
  if (has_ids != sliding_have_ids_) StopSliding();
  sliding_have_ids_ = has_ids;
  late_.clear();
  PieceScanner ends(event.ends, {});
  PieceScanner pieces(event.ends, event.trajectory_ids);
  int64_t row = 0;
  for (const LaneBlock& block : blocks) {
    SlideLanes(block, row, event, &ends);
    AdvanceLanes(block, row, event, &pieces);
    row += block.num_lanes * block.count;
  }
  rows_seen_ += row;
  pieces = PieceScanner(event.ends, event.trajectory_ids);
  for (const LateRows& late : late_) {
    SkipTo(late.lane, late.position, late.count);
    AppendRows(late.lane, late.count, late.row, event, &pieces);
  }
}

void TrajectoryIndex::StopSliding() {
  for (int64_t lane = 0; lane < num_lanes(); ++lane) runs_.StopSliding(lane);
}

bool TrajectoryIndex::MaySlide(const LaneBlock& block) const {
  const int64_t capacity = lanes().capacity;
  const int64_t rest = capacity - block.count;
  return rest > 0 &&
         std::all_of(rules_.begin(), rules_.end(), [&](const StartRule& rule) {
           // In between it would leave the set, and come back behind others.
           return rule.Count(rest, /*is_cut=*/true, /*is_closed=*/false) > 0 ||
                  rule.Count(capacity, /*is_cut=*/true,
                             /*is_closed=*/false) == 0;
         });
}

void TrajectoryIndex::SlideLanes(const LaneBlock& block, int64_t row,
                                 const WriteEvent& event, PieceScanner* ends) {
  constexpr int64_t kNeighbours = SlidingLanes::kNeighbours;
  SlidingLanes& sliding = runs_.sliding();
  const bool may_slide = MaySlide(block);
  others_.clear();
  // The end of the last neighbours, and its position: a division for all that
  // are in step.
  int64_t end = 0;
  int64_t position = 0;
  for (int64_t lane = block.lane; lane < block.end();) {
    const int64_t first = lane - lane % kNeighbours;
    const int64_t next = std::min(first + kNeighbours, block.end());
    const int64_t end_row = row + (next - lane) * block.count;
    // A bit a neighbour.
    const uint64_t written = ~uint64_t{0} >> (kNeighbours - (next - lane))
                                                 << (lane - first);
    const uint64_t slid = sliding.Neighbours(lane);
    uint64_t slide = 0;
    if (slid != 0 && may_slide && (slid & ~written) == 0) {
      if (sliding.end(lane) != end) {
        end = sliding.end(lane);
        position = end % lanes().capacity;
      }
      if (position == block.position) slide = slid;
    }
    for (int64_t at = ends->NextEnd(row); at < end_row;
         at = ends->NextEnd(at + 1)) {
      slide &= ~(uint64_t{1} << (lane - first + (at - row) / block.count));
    }
    if (sliding_have_ids_) {
      for (uint64_t left = slide; left != 0; left &= left - 1) {
        const int64_t it = first + __builtin_ctzll(left);
        const auto ids = event.trajectory_ids.subspan(
            row + (it - lane) * block.count, block.count);
        const int64_t id = by_lane_[it].tail_key.id;
        if (std::any_of(ids.begin(), ids.end(),
                        [id](int64_t other) { return other != id; })) {
          slide &= ~(left & -left);
        }
      }
    }
    for (uint64_t left = written & ~slide; left != 0; left &= left - 1) {
      others_.push_back(first + __builtin_ctzll(left));
      runs_.StopSliding(others_.back());
    }
    if (slide != 0) sliding.Slide(lane, block.count);
    lane = next;
    row = end_row;
  }
}

void TrajectoryIndex::AdvanceLanes(const LaneBlock& block, int64_t row,
                                   const WriteEvent& event,
                                   PieceScanner* pieces) {
  constexpr size_t kAhead = 8;
  const int64_t capacity = lanes().capacity;
  const bool may_slide = MaySlide(block);
  int64_t end = 0;
  int64_t position = 0;
  for (size_t i = 0; i < others_.size(); ++i) {
    const auto ahead = [&](size_t turns) {
      return others_[std::min(i + turns * kAhead, others_.size() - 1)];
    };
    runs_.PrefetchLanes(ahead(3), ahead(2), ahead(1));
    __builtin_prefetch(&by_lane_[ahead(3)]);
    const int64_t lane = others_[i];
    const int64_t first_row = row + (lane - block.lane) * block.count;
    if (runs_.end(lane) != end) {
      end = runs_.end(lane);
      position = end % capacity;
    }
    if (position == block.position && end - runs_.begin(lane) == capacity &&
        Advance(lane, first_row, block.count, may_slide, event, pieces)) {
      continue;
    }
    Evict(lane, block.count);
    late_.push_back({.lane = lane,
                     .row = first_row,
                     .position = block.position,
                     .count = block.count});
  }
}

bool TrajectoryIndex::Advance(int64_t lane, int64_t row, int64_t count,
                              bool may_slide, const WriteEvent& event,
                              PieceScanner* pieces) {
  const PieceScanner::Piece piece = pieces->Next(row, count);
  if (piece.count < count || piece.is_end) return false;
  Key key = {.has_id = !event.trajectory_ids.empty()};
  if (key.has_id) key.id = event.trajectory_ids[row];
  if (const Handle only = runs_.OnlyRun(lane); only >= 0) {
    const Runs::Record& record = runs_.at(only);
    const bool slides = may_slide && record.is_cut && !record.is_closed &&
                        !record.has_fingers && record.has_id == key.has_id &&
                        record.id == key.id;
    if (slides) runs_.Slide(lane, count);
    return slides;
  }
  const Runs::Taken first = runs_.FirstRun(lane);
  const Handle last = FindOpen(lane, key);
  if (last < 0 || last == first.trajectory || first.rows <= count) return false;
  const Runs::Record& from = runs_.at(first.trajectory);
  const Runs::Record& to = runs_.at(last);
  for (const StartRule& rule : rules_) {
    const auto has_starts = [&](int64_t rows, bool is_cut, bool is_closed) {
      return rule.Count(rows, is_cut, is_closed) > 0;
    };
    if (has_starts(from.rows, from.is_cut, from.is_closed) !=
            has_starts(from.rows - count, /*is_cut=*/true, from.is_closed) ||
        has_starts(to.rows, to.is_cut, to.is_closed) !=
            has_starts(to.rows + count, to.is_cut, to.is_closed)) {
      return false;
    }
  }
  Evict(lane, count);
  Append(lane, count, key, /*is_end=*/false, /*is_cut_if_new=*/false);
  return true;
}

}  // namespace rill
