// SPDX-License-Identifier: Apache-2.0
#include "rill/slots/plan_layout.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rill {

std::string PlanLayout::ContextString() const {
  if (context.empty()) return "none";
  return absl::StrJoin(context, ", ", [](std::string* out, const List& list) {
    absl::StrAppend(out, list.name, " (", list.rows,
                    list.rows == 1 ? " row)" : " rows)");
  });
}

}  // namespace rill
