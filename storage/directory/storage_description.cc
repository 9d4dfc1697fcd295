// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/directory/storage_description.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/file.h"
#include "rill/base/sparse_file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/spec_json.h"
#include "rill/storage/ring/ring_options.h"

namespace rill::storage_internal {
namespace {

constexpr char kKind[] = "storage_directory";
constexpr int64_t kVersion = 1;

absl::string_view NameOf(StorageLayout layout) {
  return StorageLayoutName(layout);
}
absl::string_view NameOf(StorageOrder order) {
  return order == StorageOrder::kLaneMajor ? "lane_major" : "time_major";
}

// Where the leaves of a record lie, so that a directory never is read by
// another arithmetic than wrote it.
std::string RecordText(const RowLayout& layout) {
  if (layout.layout() != StorageLayout::kRows) return "";
  return absl::StrCat(
      layout.fields().empty() ? 0 : layout.fields()[0].stride, ":",
      absl::StrJoin(layout.fields(), ",",
                    [](std::string* out, const RowField& field) {
                      absl::StrAppend(out, field.offset);
                    }));
}

absl::Status BadField(absl::string_view caller, const std::string& path,
                      absl::string_view name, absl::string_view got,
                      absl::string_view want) {
  return DataLoss(caller, ": field \"", name, "\" of \"", path, "\": got \"",
                  got.substr(0, 80), "\", want ", want);
}

template <typename T>
absl::StatusOr<T> ParseName(absl::string_view caller, const std::string& path,
                            const Manifest& manifest, const std::string& name,
                            T first, T second) {
  RILL_ASSIGN_OR_RETURN(const std::string text, manifest.Text(name));
  if (text == NameOf(first)) return first;
  if (text == NameOf(second)) return second;
  return BadField(
      caller, path, name, text,
      absl::StrCat("\"", NameOf(first), "\" or \"", NameOf(second), "\""));
}

}  // namespace

absl::StatusOr<Manifest> Describe(const RowLayout& layout, const Lanes& lanes) {
  Manifest manifest;
  manifest.kind = kKind;
  manifest.version = kVersion;
  manifest.SetInt("lanes", lanes.count);
  manifest.SetInt("lane_capacity", lanes.capacity);
  manifest.fields["layout"] = std::string(NameOf(layout.layout()));
  manifest.fields["order"] = std::string(NameOf(layout.order()));
  manifest.fields["record"] = RecordText(layout);
  RILL_ASSIGN_OR_RETURN(manifest.fields["spec"], SpecToJson(layout.spec()));
  return manifest;
}

absl::StatusOr<RowLayout> LayoutOf(const StorageDescription& description) {
  return RowLayout::Create(description.spec, description.lanes,
                           description.layout, description.order,
                           AddressRange::PageBytes());
}

absl::StatusOr<StorageDescription> ParseDescription(absl::string_view caller,
                                                    const std::string& path,
                                                    const Manifest& manifest) {
  StorageDescription found;
  RILL_ASSIGN_OR_RETURN(found.lanes.count, manifest.Int("lanes"));
  RILL_ASSIGN_OR_RETURN(found.lanes.capacity, manifest.Int("lane_capacity"));
  if (found.lanes.count < 1 || found.lanes.count > kMaxLanes) {
    return BadField(caller, path, "lanes", absl::StrCat(found.lanes.count),
                    absl::StrCat("one in [1, ", kMaxLanes, "]"));
  }
  const int64_t most = kMaxSlots / found.lanes.count;
  if (found.lanes.capacity < 1 || found.lanes.capacity > most) {
    return BadField(caller, path, "lane_capacity",
                    absl::StrCat(found.lanes.capacity),
                    absl::StrCat("one in [1, ", most, "]"));
  }
  RILL_ASSIGN_OR_RETURN(
      found.layout, ParseName(caller, path, manifest, "layout",
                              StorageLayout::kRows, StorageLayout::kColumns));
  RILL_ASSIGN_OR_RETURN(found.order, ParseName(caller, path, manifest, "order",
                                               StorageOrder::kLaneMajor,
                                               StorageOrder::kTimeMajor));
  RILL_ASSIGN_OR_RETURN(const std::string spec, manifest.Text("spec"));
  RILL_ASSIGN_OR_RETURN(found.spec, SpecFromJson(spec));
  RILL_ASSIGN_OR_RETURN(const RowLayout layout, LayoutOf(found));
  RILL_ASSIGN_OR_RETURN(const std::string record, manifest.Text("record"));
  // The spec decides where leaves lie. A program with other rules of packing
  // wrote this text differently, and its rows would be read wrongly.
  if (record != RecordText(layout)) {
    return BadField(caller, path, "record", record,
                    absl::StrCat("\"", RecordText(layout), "\""));
  }
  return found;
}

absl::Status CheckDescriptionExists(absl::string_view caller,
                                    const std::string& path) {
  if (PathExists(JoinPath(path, kManifestFile))) return absl::OkStatus();
  return NotFound(caller, ": \"", path, "\": got no \"", kManifestFile,
                  "\", want one; create it first");
}

absl::StatusOr<StorageDescription> ReadDescription(absl::string_view caller,
                                                   const std::string& path) {
  RILL_ASSIGN_OR_RETURN(const Manifest manifest,
                        ReadManifest(path, kKind, kVersion));
  return ParseDescription(caller, path, manifest);
}

}  // namespace rill::storage_internal
