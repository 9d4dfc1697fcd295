// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/budget/byte_budget.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/base/sparse_file.h"
#include "rill/base/status_macros.h"
#include "rill/storage/ring/ring_options.h"
#include "rill/storage/rows/row_layout.h"

namespace rill {
namespace {

using storage_internal::kMaxLanes;
using storage_internal::kMaxSlots;
using storage_internal::RowLayout;

constexpr int64_t kLineBytes = 64;

absl::Status Refuse(absl::string_view what, const absl::AlphaNum& got,
                    const absl::AlphaNum& want) {
  return InvalidArgument("CapacityForBytes: ", what, ": got ", got, ", want ",
                         want);
}

absl::StatusOr<RowLayout> LayoutOf(const TensorDictSpec& spec,
                                   const ByteBudgetOptions& options,
                                   int64_t lane_rows) {
  return RowLayout::Create(
      spec, {.count = options.lanes, .capacity = lane_rows}, options.layout,
      StorageOrder::kLaneMajor,
      options.in_files ? AddressRange::PageBytes() : kLineBytes);
}

}  // namespace

absl::StatusOr<int64_t> CapacityForBytes(const TensorDictSpec& spec,
                                         int64_t bytes,
                                         const ByteBudgetOptions& options) {
  if (options.lanes < 1 || options.lanes > kMaxLanes) {
    return Refuse("lanes", options.lanes, absl::StrCat("[1, ", kMaxLanes, "]"));
  }
  if (spec.leaves().empty()) {
    return Refuse("spec", "none",
                  "what a row holds: bytes cannot be told before; take "
                  "TensorDictSpec::Of of a first batch");
  }
  RILL_ASSIGN_OR_RETURN(const RowLayout one, LayoutOf(spec, options, 1));
  if (one.row_bytes() == 0) {
    return Refuse("spec", "rows of 0 bytes",
                  "rows of some: any number of these fits");
  }
  if (one.size_bytes() > bytes) {
    return Refuse("bytes", bytes,
                  absl::StrCat(">= ", one.size_bytes(), ", for one row in ",
                               "each of ", options.lanes, " lanes"));
  }
  // Gaps between records and columns make a formula of the layout's own rules;
  // a search by halves asks the layout instead.
  // Bytes grow with the rows, and are never less than the rows' own.
  int64_t fits = 1;
  int64_t too_many =
      std::min(bytes / one.row_bytes(), kMaxSlots) / options.lanes + 1;
  while (too_many - fits > 1) {
    const int64_t middle = fits + (too_many - fits) / 2;
    const auto layout = LayoutOf(spec, options, middle);
    // A layout that int64 cannot count has too many rows.
    (layout.ok() && layout->size_bytes() <= bytes ? fits : too_many) = middle;
  }
  return fits * options.lanes;
}

}  // namespace rill
