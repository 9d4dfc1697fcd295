// SPDX-License-Identifier: Apache-2.0
#include "rill/slots/plan_layout.h"

namespace rill {

std::vector<int64_t> PlanLayout::RowsOfLists(int64_t batch_size) const {
  const int64_t draws = batch_size / rows_a_draw().value_or(1);
  std::vector<int64_t> rows;
  for (const List& list : context) {
    rows.push_back(list.rows * (list.name == kWindowEnds ? batch_size : draws));
  }
  return rows;
}

std::string PlanLayout::ContextString() const {
  if (context.empty()) return "none";
  std::string text;
  for (const List& list : context) {
    if (!text.empty()) text += ", ";
    text += list.name + " (" + std::to_string(list.rows) +
            (list.rows == 1 ? " row)" : " rows)");
  }
  return text;
}

}  // namespace rill
