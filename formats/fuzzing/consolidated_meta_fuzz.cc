// SPDX-License-Identifier: Apache-2.0
// Texts as the JSON of a consolidated file: leaves lie in the data, apart from
// each other, and what is read can be written and reads the same.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "rill/formats/consolidated/consolidated_meta.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill::formats_internal {
namespace {

using Kind = ConsolidatedMeta::Kind;
using Ranges = std::vector<std::pair<int64_t, int64_t>>;

constexpr int64_t kDataBytes = 1 << 20;

void AddLeaf(const ConsolidatedMeta::Entry& leaf, Ranges* ranges) {
  RILL_FUZZ_CHECK(leaf.pad >= 0);
  RILL_FUZZ_CHECK(leaf.shape.num_elements() * DTypeSize(leaf.dtype) ==
                  leaf.stop - leaf.pad - leaf.start);
  ranges->emplace_back(leaf.start, leaf.stop);
}

// The bytes of all leaves; whether nothing was refused.
bool Walk(const ConsolidatedMeta& meta, Ranges* ranges) {
  bool is_whole = true;
  RILL_FUZZ_CHECK(meta.refusal.empty());
  for (const ConsolidatedMeta::Entry& entry : meta.entries) {
    if (entry.kind == Kind::kInner) {
      RILL_FUZZ_CHECK(entry.inner.size() == 1);
      RILL_FUZZ_CHECK(meta.type != ConsolidatedMeta::Type::kLazyStack ||
                      entry.inner[0].type == ConsolidatedMeta::Type::kDict);
      is_whole = Walk(entry.inner[0], ranges) && is_whole;
    } else if (entry.kind == Kind::kLeaf || entry.kind == Kind::kJagged) {
      AddLeaf(entry, ranges);
      for (const auto& part : entry.parts) AddLeaf(part, ranges);
      RILL_FUZZ_CHECK(entry.ragged_dim == 0 ||
                      entry.ragged_dim < entry.shape.rank());
    } else {
      is_whole = is_whole && entry.kind == Kind::kValue;
    }
  }
  return is_whole;
}

void CheckRanges(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end());
  int64_t end = 0;
  for (const auto& [start, stop] : ranges) {
    RILL_FUZZ_CHECK(start >= end && stop >= start && stop <= kDataBytes);
    end = stop;
  }
}

void CheckSame(const ConsolidatedMeta& a, const ConsolidatedMeta& b) {
  RILL_FUZZ_CHECK(a.batch_shape == b.batch_shape);
  RILL_FUZZ_CHECK(a.is_locked == b.is_locked && a.type == b.type);
  RILL_FUZZ_CHECK(a.stack_dim == b.stack_dim);
  RILL_FUZZ_CHECK(a.entries.size() == b.entries.size());
  for (const ConsolidatedMeta::Entry& x : a.entries) {
    const auto y = std::find_if(
        b.entries.begin(), b.entries.end(), [&](const auto& entry) {
          return entry.name == x.name && entry.kind == x.kind;
        });
    RILL_FUZZ_CHECK(y != b.entries.end());
    RILL_FUZZ_CHECK(x.dtype == y->dtype && x.parts.size() == y->parts.size());
    RILL_FUZZ_CHECK(x.shape == y->shape || x.kind == Kind::kValue);
    RILL_FUZZ_CHECK(x.start == y->start && x.stop == y->stop);
    RILL_FUZZ_CHECK(x.json == y->json);
    RILL_FUZZ_CHECK(x.ragged_dim == y->ragged_dim);
    if (x.kind == Kind::kInner) CheckSame(x.inner[0], y->inner[0]);
  }
}

}  // namespace
}  // namespace rill::formats_internal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rill::formats_internal;  // NOLINT: the target's only user.
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto meta = ParseConsolidatedMeta("Fuzz", text, kDataBytes);
  if (!meta.ok()) return 0;
  Ranges ranges;
  const bool is_whole = Walk(*meta, &ranges);
  CheckRanges(ranges);
  if (!is_whole) return 0;
  const auto written = FormatConsolidatedMeta("Fuzz", *meta);
  if (!written.ok()) return 0;  // Names that mean something there.
  const auto again = ParseConsolidatedMeta("Fuzz", *written, kDataBytes);
  RILL_FUZZ_CHECK(again.ok());
  CheckSame(*meta, *again);
  return 0;
}
