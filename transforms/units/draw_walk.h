// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_UNITS_DRAW_WALK_H_
#define RILL_TRANSFORMS_UNITS_DRAW_WALK_H_

#include <cstddef>
#include <cstdint>

#include "rill/slots/sample_plan.h"
#include "rill/transforms/units/draw_rows.h"

namespace rill::transforms_internal {

// Goes through the draws of a plan for which HasWholeDraws.
class DrawWalk {
 public:
  // `behind` may be null: no list.
  DrawWalk(const SamplePlan& plan, const SamplePlan::Context* behind)
      : plan_(plan), behind_(behind) {}

  // False behind the last one.
  bool Next(DrawRows* rows) {
    if (draw_ == static_cast<int64_t>(plan_.draws.size())) return false;
    rows->draw = draw_;
    rows->begin = row_;
    if (plan_.rows.empty()) {
      ++row_;
    } else {
      Advance(plan_.segments, &row_);
    }
    rows->end = row_;
    rows->first = rows->begin;
    rows->last = rows->end - 1;
    if (!plan_.mask.empty()) {
      while (rows->first < rows->last && Pads(rows->first)) ++rows->first;
      while (rows->first < rows->last && Pads(rows->last)) --rows->last;
    }
    rows->behind = behind_row_;
    if (behind_ != nullptr) Advance(behind_->segments, &behind_row_);
    rows->num_behind = behind_row_ - rows->behind;
    ++draw_;
    return true;
  }

 private:
  bool Pads(int64_t row) const {
    return plan_.mask[static_cast<size_t>(row)] == 0;
  }
  template <typename Segments>
  void Advance(const Segments& segments, int64_t* row) const {
    const int64_t size = static_cast<int64_t>(segments.size());
    while (*row < size && segments[static_cast<size_t>(*row)] == draw_) ++*row;
  }

  const SamplePlan& plan_;
  const SamplePlan::Context* const behind_;
  int64_t draw_ = 0;
  int64_t row_ = 0;
  int64_t behind_row_ = 0;
};

// Every draw has a row that does not pad, and none that pads between two such.
inline bool HasWholeDraws(const SamplePlan& plan) {
  DrawWalk walk(plan, nullptr);
  for (DrawRows rows; walk.Next(&rows);) {
    if (rows.begin == rows.end) return false;
    if (plan.mask.empty()) continue;
    for (int64_t row = rows.first; row <= rows.last; ++row) {
      if (plan.mask[static_cast<size_t>(row)] == 0) return false;
    }
  }
  return true;
}

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_UNITS_DRAW_WALK_H_
