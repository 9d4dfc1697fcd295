// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/units/unit_input.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/shape.h"

namespace rill::transforms_internal {
namespace {

// Each row has a segment, segments ascend and name draws, and the mask is empty
// or has a value a row.
bool IsWhole(size_t num_draws, size_t num_rows,
             const std::vector<int64_t>& segments,
             const std::vector<uint8_t>& mask) {
  if (segments.size() != num_rows) return false;
  if (!mask.empty() && mask.size() != num_rows) return false;
  int64_t before = 0;
  for (const int64_t segment : segments) {
    if (segment < before) return false;
    before = segment;
  }
  return segments.empty() || segments.back() < static_cast<int64_t>(num_draws);
}

absl::Status NotWhole(absl::string_view caller, absl::string_view list,
                      size_t num_draws, size_t num_rows, size_t num_segments,
                      size_t num_mask) {
  return Internal(
      caller, ": plan: ", list, ": got ", num_rows, " rows, ", num_segments,
      " segments and ", num_mask, " mask values over ", num_draws,
      " draws, want as many of each, segments of the draws and ascending");
}

// A dictionary of [rows], or of more rows where it may have more: memory of
// lists is used again for shorter ones.
absl::Status CheckShape(absl::string_view caller, absl::string_view what,
                        int64_t rows, bool may_have_more,
                        const TensorDict& dict) {
  const Shape& got = dict.batch_shape();
  if (got.rank() == 1 && (may_have_more ? got[0] >= rows : got[0] == rows)) {
    return absl::OkStatus();
  }
  return Internal(caller, ": ", what, ": got batch shape ", got.ToString(),
                  ", want [", rows, "], the rows of the plan",
                  may_have_more ? ", or more" : "");
}

}  // namespace

int64_t NumRows(const SamplePlan& plan) {
  return static_cast<int64_t>(plan.rows.empty() ? plan.draws.size()
                                                : plan.rows.size());
}

absl::Status CheckLists(absl::string_view caller, const SamplePlan& plan,
                        size_t num_lists) {
  if (plan.context.size() != num_lists) {
    return Internal(caller, ": plan: got ", plan.context.size(),
                    " lists of context, want ", num_lists);
  }
  const size_t draws = plan.draws.size();
  if (!IsWhole(draws, plan.rows.size(), plan.segments, plan.mask)) {
    return NotWhole(caller, "rows", draws, plan.rows.size(),
                    plan.segments.size(), plan.mask.size());
  }
  for (size_t i = 0; i < num_lists; ++i) {
    const SamplePlan::Context& list = plan.context[i];
    if (IsWhole(draws, list.rows.size(), list.segments, list.mask)) continue;
    return NotWhole(caller, absl::StrCat("context[", i, "]"), draws,
                    list.rows.size(), list.segments.size(), list.mask.size());
  }
  return absl::OkStatus();
}

absl::Status CheckInput(absl::string_view caller, const SamplePlan& plan,
                        size_t num_lists, const TensorDict& rows,
                        absl::Span<const TensorDict> context,
                        const TensorDict& batch, bool may_have_more_rows) {
  RILL_RETURN_IF_ERROR(CheckLists(caller, plan, num_lists));
  if (context.size() != num_lists) {
    return Internal(caller, ": plan: got ", context.size(),
                    " dictionaries of lists of context, want ", num_lists);
  }
  RILL_RETURN_IF_ERROR(CheckShape(caller, "batch", NumRows(plan),
                                  /*may_have_more=*/false, batch));
  RILL_RETURN_IF_ERROR(
      CheckShape(caller, "rows", NumRows(plan), may_have_more_rows, rows));
  for (size_t i = 0; i < num_lists; ++i) {
    RILL_RETURN_IF_ERROR(
        CheckShape(caller, absl::StrCat("context[", i, "]"),
                   static_cast<int64_t>(plan.context[i].rows.size()),
                   /*may_have_more=*/true, context[i]));
  }
  return absl::OkStatus();
}

absl::Status CheckOneRowADraw(absl::string_view caller,
                              const SamplePlan& plan) {
  if (plan.rows.empty()) return absl::OkStatus();
  return Internal(caller, ": plan: got ", plan.rows.size(),
                  " rows, want none beside the draws");
}

bool IsNext(absl::string_view key) { return absl::StartsWith(key, "next/"); }

absl::Status CheckIsNew(absl::string_view caller, absl::string_view key,
                        const TensorDictSpec& rows) {
  if (rows.Find(key) == nullptr) return absl::OkStatus();
  return InvalidArgument(caller, ": rows: got a leaf \"", key,
                         "\", want none: this adds it; rename it");
}

}  // namespace rill::transforms_internal
