// SPDX-License-Identifier: Apache-2.0
// Reads fields of a storage directory's rill.json. An accepted description has
// a layout within bounds and is described by the same fields. A layout that is
// possible can be described and is accepted.
#include <cstddef>
#include <cstdint>
#include <string>

#include "rill/formats/manifest.h"
#include "rill/formats/spec_json.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/storage/directory/storage_description.h"
#include "rill/storage/ring/ring_options.h"
#include "rill/storage/rows/row_layout.h"
#include "rill/storage/storage_layout.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill::storage_internal {
namespace {

void CheckLayout(const RowLayout& layout, const Lanes& lanes) {
  RILL_FUZZ_CHECK(layout.size_bytes() >= 0);
  for (const RowField& field : layout.fields()) {
    int64_t end;
    RILL_FUZZ_CHECK(field.offset >= 0 && field.width >= 0);
    RILL_FUZZ_CHECK(
        !__builtin_mul_overflow(lanes.num_slots() - 1, field.stride, &end) &&
        !__builtin_add_overflow(end, field.offset, &end) &&
        !__builtin_add_overflow(end, field.width, &end) &&
        end <= layout.size_bytes());
  }
}

// Accepted fields are those that describe what they were accepted as.
void Try(const Manifest& manifest) {
  const auto found = ParseDescription("fuzz", "path", manifest);
  if (!found.ok()) return;
  const auto layout = LayoutOf(*found);
  RILL_FUZZ_CHECK(layout.ok());
  CheckLayout(*layout, found->lanes);
  const auto again = Describe(*layout, found->lanes);
  RILL_FUZZ_CHECK(again.ok());
  for (const auto& name : {"layout", "order", "record"}) {
    RILL_FUZZ_CHECK(again->fields.at(name) == manifest.fields.at(name));
  }
  const auto reparsed = ParseDescription("fuzz", "path", *again);
  RILL_FUZZ_CHECK(reparsed.ok() && reparsed->spec == found->spec);
  RILL_FUZZ_CHECK(reparsed->lanes == found->lanes &&
                  reparsed->order == found->order);
}

// The same fields with the right places of the leaves.
void TryWithPlaces(Manifest manifest) {
  StorageDescription description;
  const auto lanes = manifest.Int("lanes");
  const auto capacity = manifest.Int("lane_capacity");
  auto spec = SpecFromJson(manifest.fields["spec"]);
  if (!lanes.ok() || !capacity.ok() || !spec.ok()) return;
  if (*lanes < 1 || *lanes > kMaxLanes || *capacity < 1 ||
      *capacity > kMaxSlots / *lanes) {
    return;
  }
  description.lanes = {*lanes, *capacity};
  description.spec = *spec;
  description.layout = manifest.fields["layout"] == "rows"
                           ? StorageLayout::kRows
                           : StorageLayout::kColumns;
  description.order = manifest.fields["order"] == "time_major"
                          ? StorageOrder::kTimeMajor
                          : StorageOrder::kLaneMajor;
  const auto layout = LayoutOf(description);
  if (!layout.ok()) return;
  const auto described = Describe(*layout, description.lanes);
  RILL_FUZZ_CHECK(described.ok());
  RILL_FUZZ_CHECK(ParseDescription("fuzz", "path", *described).ok());
  Try(*described);
}

}  // namespace
}  // namespace rill::storage_internal

// Texts with a zero byte behind each: lanes, slots of a lane, layout, order,
// places, spec.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rill::FuzzInput input(data, size);
  rill::Manifest manifest = {.kind = "storage_directory"};
  for (const auto& name :
       {"lanes", "lane_capacity", "layout", "order", "record", "spec"}) {
    manifest.fields[name] = std::string(input.TakeText());
  }
  rill::storage_internal::Try(manifest);
  rill::storage_internal::TryWithPlaces(manifest);
  return 0;
}
