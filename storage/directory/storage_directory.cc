// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/directory/storage_directory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/file.h"
#include "rill/base/file_writer.h"
#include "rill/base/status_macros.h"
#include "rill/formats/manifest.h"
#include "rill/formats/spec_json.h"

namespace rill::storage_internal {
namespace {

constexpr char kKind[] = "storage_directory";
constexpr int64_t kVersion = 1;
constexpr char kRecordFile[] = "rill.commit";
// There from before the first file is made until all are.
constexpr char kUnfinishedFile[] = "rill.unfinished";
constexpr int64_t kMaxLanes = int64_t{1} << 24;

absl::string_view NameOf(StorageLayout layout) {
  return layout == StorageLayout::kRows ? "rows" : "columns";
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

absl::Status BadField(absl::string_view caller, const std::string& path,
                      absl::string_view name, absl::string_view got,
                      absl::string_view want) {
  return absl::DataLossError(
      absl::StrCat(caller, ": field \"", name, "\" of \"", path, "\": got \"",
                   got.substr(0, 80), "\", want ", want));
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

std::vector<LaneMark> MarksOf(const LaneRings& rings) {
  std::vector<LaneMark> marks(rings.cursors().size());
  for (size_t lane = 0; lane < marks.size(); ++lane) {
    marks[lane].written = rings.cursors()[lane].written;
    if (!rings.first_live().empty()) {
      marks[lane].first_live = rings.first_live()[lane];
    }
  }
  return marks;
}

LaneRings RingsOf(const Lanes& lanes, absl::Span<const LaneMark> marks) {
  LaneRings rings(lanes);
  std::vector<Cursor> cursors;
  std::vector<int64_t> first_live;
  for (const LaneMark& mark : marks) {
    cursors.push_back({mark.written});
    first_live.push_back(mark.first_live);
  }
  rings.Restore(cursors, first_live);
  return rings;
}

absl::StatusOr<std::unique_ptr<StorageDirectory>> StorageDirectory::Create(
    absl::string_view caller, const std::string& path) {
  std::unique_ptr<StorageDirectory> directory(new StorageDirectory(path));
  RILL_RETURN_IF_ERROR(CreateDirectories(path));
  RILL_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(path));
  // A look before a lock file is left in what is somebody else's.
  const auto check = [&]() -> absl::Status {
    names.erase(std::remove(names.begin(), names.end(), kLockFile),
                names.end());
    const bool is_storage =
        std::find(names.begin(), names.end(), kManifestFile) != names.end();
    const bool is_unfinished =
        std::find(names.begin(), names.end(), kUnfinishedFile) != names.end();
    if (names.empty() || (is_unfinished && !is_storage)) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrCat(
        caller, ": \"", path, "\": got ", names.size(), " files (\"", names[0],
        "\" among them), want an empty directory; ",
        is_storage ? "open what is there, or" : "", " name another"));
  };
  RILL_RETURN_IF_ERROR(check());
  RILL_ASSIGN_OR_RETURN(directory->lock_, DirectoryLock::Acquire(caller, path));
  RILL_ASSIGN_OR_RETURN(names, ListDirectory(path));
  RILL_RETURN_IF_ERROR(check());
  return directory;
}

absl::StatusOr<std::unique_ptr<StorageDirectory>> StorageDirectory::Open(
    absl::string_view caller, const std::string& path) {
  std::unique_ptr<StorageDirectory> directory(new StorageDirectory(path));
  if (!PathExists(JoinPath(path, kManifestFile))) {
    return absl::NotFoundError(absl::StrCat(caller, ": \"", path,
                                            "\": got no \"", kManifestFile,
                                            "\", want one; create it first"));
  }
  RILL_ASSIGN_OR_RETURN(directory->lock_, DirectoryLock::Acquire(caller, path));
  RILL_RETURN_IF_ERROR(directory->ReadDescription(caller));
  return directory;
}

absl::Status StorageDirectory::ReadDescription(absl::string_view caller) {
  RILL_ASSIGN_OR_RETURN(const Manifest manifest,
                        ReadManifest(path_, kKind, kVersion));
  Description found;
  RILL_ASSIGN_OR_RETURN(found.lanes.count, manifest.Int("lanes"));
  RILL_ASSIGN_OR_RETURN(found.lanes.capacity, manifest.Int("lane_capacity"));
  if (found.lanes.count < 1 || found.lanes.count > kMaxLanes) {
    return BadField(caller, path_, "lanes", absl::StrCat(found.lanes.count),
                    absl::StrCat("one in [1, ", kMaxLanes, "]"));
  }
  if (int64_t slots;
      found.lanes.capacity < 1 ||
      __builtin_mul_overflow(found.lanes.count, found.lanes.capacity, &slots)) {
    return BadField(caller, path_, "lane_capacity",
                    absl::StrCat(found.lanes.capacity),
                    "one > 0 whose slots fit in int64");
  }
  RILL_ASSIGN_OR_RETURN(
      found.layout, ParseName(caller, path_, manifest, "layout",
                              StorageLayout::kRows, StorageLayout::kColumns));
  RILL_ASSIGN_OR_RETURN(found.order, ParseName(caller, path_, manifest, "order",
                                               StorageOrder::kLaneMajor,
                                               StorageOrder::kTimeMajor));
  RILL_ASSIGN_OR_RETURN(const std::string spec, manifest.Text("spec"));
  RILL_ASSIGN_OR_RETURN(found.spec, SpecFromJson(spec));
  RILL_ASSIGN_OR_RETURN(
      const RowLayout layout,
      RowLayout::Create(found.spec, found.lanes, found.layout, found.order,
                        AddressRange::PageBytes()));
  RILL_ASSIGN_OR_RETURN(const std::string record, manifest.Text("record"));
  if (record != RecordText(layout)) {
    return BadField(caller, path_, "record", record,
                    absl::StrCat("\"", RecordText(layout), "\""));
  }
  RILL_RETURN_IF_ERROR(OpenFiles(layout, found.lanes));
  description_ = std::move(found);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Buffer>> StorageDirectory::MapRows(
    const RowLayout& layout, const Lanes& lanes) {
  if (!description_) {
    RILL_RETURN_IF_ERROR(MakeFiles(layout, lanes));
  }
  return rows_->buffer();
}

absl::Status StorageDirectory::MakeFiles(const RowLayout& layout,
                                         const Lanes& lanes) {
  RILL_ASSIGN_OR_RETURN(const Manifest manifest, Describe(layout, lanes));
  // What an earlier attempt has left goes first; no row was ever in it.
  record_.reset();
  rows_.reset();
  RILL_ASSIGN_OR_RETURN(const auto names, ListDirectory(path_));
  const std::string unfinished = JoinPath(path_, kUnfinishedFile);
  if (!PathExists(unfinished)) {
    RILL_RETURN_IF_ERROR(FileWriter::Create(unfinished, 0).status());
  }
  RILL_RETURN_IF_ERROR(RemoveAll(JoinPath(path_, kManifestFile)));
  for (const std::string& name : names) {
    if (name == kLockFile || name == kUnfinishedFile) continue;
    RILL_RETURN_IF_ERROR(RemoveAll(JoinPath(path_, name)));
  }
  RILL_ASSIGN_OR_RETURN(
      rows_, RowFiles::Map(layout, lanes, path_, RowFiles::Mode::kCreate));
  RILL_RETURN_IF_ERROR(MapRecord(lanes, /*is_new=*/true));
  marks_.assign(lanes.count, LaneMark());
  record_.emplace(RecordBytes(), lanes, marks_);
  RILL_RETURN_IF_ERROR(WriteManifestAlone(manifest, path_));
  return RemoveAll(unfinished);
}

absl::Status StorageDirectory::OpenFiles(const RowLayout& layout,
                                         const Lanes& lanes) {
  RILL_RETURN_IF_ERROR(MapRecord(lanes, /*is_new=*/false));
  RILL_ASSIGN_OR_RETURN(CommitState state,
                        CommitRecord::Read(RecordBytes(), lanes));
  marks_ = CommitRecord::Settle(std::move(state), lanes).marks;
  RILL_ASSIGN_OR_RETURN(
      rows_, RowFiles::Map(layout, lanes, path_, RowFiles::Mode::kOpen));
  // Files that were copied may have holes where rows are, and on some file
  // systems even a read takes space there.
  std::vector<SlotRange> live;
  RingsOf(lanes, marks_).LiveRanges(&live);
  RILL_RETURN_IF_ERROR(rows_->Reserve(live));
  record_.emplace(RecordBytes(), lanes, marks_);
  return absl::OkStatus();
}

absl::Status StorageDirectory::MapRecord(const Lanes& lanes, bool is_new) {
  const std::string path = JoinPath(path_, kRecordFile);
  const int64_t bytes = CommitRecord::SizeBytes(lanes.count);
  RILL_ASSIGN_OR_RETURN(
      record_file_,
      is_new ? SparseFile::Create(path, bytes)
             : SparseFile::Open(path, bytes, SparseFile::Mode::kReadWrite));
  RILL_RETURN_IF_ERROR(record_file_->Reserve(0, bytes));
  RILL_ASSIGN_OR_RETURN(record_range_, AddressRange::Create(bytes));
  return record_file_->Map(*record_range_, 0);
}

absl::Span<std::byte> StorageDirectory::RecordBytes() const {
  return absl::MakeSpan(record_range_->data(), record_range_->size_bytes());
}

void StorageDirectory::Set(absl::Span<const LaneMark> marks) {
  if (record_) record_->Set(marks);
}

absl::Status StorageDirectory::Sync() const {
  if (!record_) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(rows_->Sync());
  return record_file_->Sync();
}

}  // namespace rill::storage_internal
