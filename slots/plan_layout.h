// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SLOTS_PLAN_LAYOUT_H_
#define RILL_SLOTS_PLAN_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rill {

// The form of all plans (sample_plan.h) of one unit, whatever is drawn. A unit
// states it, and a unit's transform accepts it or not, so that halves that do
// not belong together are found before the first batch.
//
// Thread-safety: a value.
struct PlanLayout {
  // A list of SamplePlan::context.
  struct List {
    std::string name;  // What its rows are, as those below.
    int64_t rows = 0;  // At most so many a draw; of kWindowEnds, a row.
    friend bool operator==(const List&, const List&) = default;
  };
  // The rows before the first row of each draw, oldest first; always `rows` of
  // them. Mask 0: there is none, and the trajectory's first row stands there.
  static constexpr char kFramesBefore[] = "frames before";
  // The rows that follow the last row of each draw, at most `rows` of them.
  static constexpr char kStepsBehind[] = "steps behind";
  // For each row of the batch the last row of its window of steps.
  static constexpr char kWindowEnds[] = "window ends";
  // For some draws the row whose goal they get.
  static constexpr char kGoals[] = "goals";

  // The rows of a draw: `burn_in` before its anchor, at most `length` from the
  // anchor on, at most `bootstrap` behind those.
  int64_t burn_in = 0;
  int64_t length = 1;
  int64_t bootstrap = 0;
  // A draw has this in place of those of them that there are not.
  enum class Missing {
    kNothing,  // It has fewer rows.
    kNone,     // All rows of each draw are there.
    kPadding,  // Rows that only pad (SamplePlan::mask).
  };
  Missing missing = Missing::kNothing;
  std::vector<List> context = {};  // SamplePlan::context, in its order.

  bool may_pad() const { return missing == Missing::kPadding; }
  // The rows of each draw, in every plan; none where these differ.
  std::optional<int64_t> rows_a_draw() const {
    const int64_t most = burn_in + length + bootstrap;
    if (missing == Missing::kNothing && most != 1) return std::nullopt;
    return most;
  }

  // The most rows of each list in a plan for a batch of so many rows, where
  // there are rows_a_draw.
  std::vector<int64_t> RowsOfLists(int64_t batch_size) const;

  // "none" / "frames before (3 rows), window ends (1 row)".
  std::string ContextString() const;

  friend bool operator==(const PlanLayout&, const PlanLayout&) = default;
};

}  // namespace rill

#endif  // RILL_SLOTS_PLAN_LAYOUT_H_
