// SPDX-License-Identifier: Apache-2.0
#include "rill/slots/plan_layout.h"

namespace rill {

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
