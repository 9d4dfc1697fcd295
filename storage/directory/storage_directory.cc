// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/directory/storage_directory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "rill/base/disk_space.h"
#include "rill/base/file.h"
#include "rill/base/file_writer.h"
#include "rill/base/new_directory.h"
#include "rill/base/status_macros.h"
#include "rill/formats/manifest.h"

namespace rill::storage_internal {
namespace {

// There from before the first file is made until all are.
constexpr char kUnfinishedFile[] = "rill.unfinished";
constexpr char kHistoryFile[] = "rill.history";

}  // namespace

absl::StatusOr<std::unique_ptr<StorageDirectory>> StorageDirectory::Create(
    absl::string_view caller, const std::string& path) {
  std::unique_ptr<StorageDirectory> directory(new StorageDirectory(path));
  RILL_RETURN_IF_ERROR(MakeNewDirectory(caller, "Options::directory", path));
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
    return FailedPrecondition(
        caller, ": \"", path, "\": got ", names.size(), " files (\"", names[0],
        "\" among them), want an empty directory; ",
        is_storage ? "open what is there, or" : "", " name another");
  };
  RILL_RETURN_IF_ERROR(check());
  RILL_ASSIGN_OR_RETURN(directory->lock_, DirectoryLock::Acquire(caller, path));
  RILL_ASSIGN_OR_RETURN(names, ListDirectory(path));
  // With the lock, as another owner may have made a storage meanwhile.
  RILL_RETURN_IF_ERROR(check());
  return directory;
}

absl::StatusOr<std::unique_ptr<StorageDirectory>> StorageDirectory::Open(
    absl::string_view caller, const std::string& path) {
  std::unique_ptr<StorageDirectory> directory(new StorageDirectory(path));
  RILL_RETURN_IF_ERROR(CheckDescriptionExists(caller, path));
  RILL_ASSIGN_OR_RETURN(directory->lock_, DirectoryLock::Acquire(caller, path));
  RILL_RETURN_IF_ERROR(directory->ReadDescription(caller));
  return directory;
}

absl::Status StorageDirectory::ReadDescription(absl::string_view caller) {
  RILL_ASSIGN_OR_RETURN(StorageDescription found,
                        storage_internal::ReadDescription(caller, path_));
  RILL_ASSIGN_OR_RETURN(const RowLayout layout, LayoutOf(found));
  RILL_RETURN_IF_ERROR(OpenFiles(layout, found.lanes));
  description_ = std::move(found);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Buffer>> StorageDirectory::MapRows(
    const RowLayout& layout, const Lanes& lanes) {
  if (!description_) {
    RILL_RETURN_IF_ERROR(MakeFiles(layout, lanes));
  }
  if (goes_by_holds_ && holds_ == nullptr) {
    RILL_ASSIGN_OR_RETURN(holds_, ReaderHolds::Open(path_, lanes));
    BeginHolds();
  }
  return rows_->buffer();
}

absl::Status StorageDirectory::MakeFiles(const RowLayout& layout,
                                         const Lanes& lanes) {
  RILL_ASSIGN_OR_RETURN(const Manifest manifest, Describe(layout, lanes));
  // Files of an earlier attempt go first; no row was ever in them.
  record_.reset();
  rows_.reset();
  RILL_ASSIGN_OR_RETURN(const auto names, ListDirectory(path_));
  const std::string unfinished = JoinPath(path_, kUnfinishedFile);
  if (!PathExists(unfinished)) {
    RILL_RETURN_IF_ERROR(FileWriter::Create(unfinished, 0).status());
  }
  // From here until rill.json is written a kill leaves a directory that Open
  // does not take for a storage and that Create clears.
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
  RILL_ASSIGN_OR_RETURN(CommitView found,
                        CommitRecord::Read(RecordBytes(), lanes));
  const bool was_killed = found.is_in_place() || !found.state.in_flight.empty();
  marks_ = CommitRecord::Settle(std::move(found.state), lanes).marks;
  RILL_ASSIGN_OR_RETURN(
      rows_, RowFiles::Map(layout, lanes, path_, RowFiles::Mode::kOpen));
  const LaneRings rings = RingsOf(lanes, marks_);
  if (was_killed) {
    // Half rows and rows that were being discarded are not to look like some.
    RILL_RETURN_IF_ERROR(record_file_->Sync());
    rows_->ZeroAllBut(rings);
  }
  // Files that were copied may have holes where rows are, and on some file
  // systems even a read takes space there.
  std::vector<SlotRange> live;
  rings.LiveRanges(&live);
  RILL_RETURN_IF_ERROR(rows_->Reserve(live));
  // The settled marks under an even generation. They come after the zeros:
  // killed before, the next owner finds the old state and zeroes again.
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

absl::Status StorageDirectory::BeginDiscard(const LaneRings& now,
                                            const LaneRings& kept) {
  if (!record_) return absl::OkStatus();
  // The order is what a kill and a loss of power allow. The record leaves the
  // rows first, with an odd generation, and is synced. The storage waits until
  // no reader is inside, and EndDiscard zeroes them and begins the even
  // generation. The next owner after a kill in between finds the odd one and
  // zeroes what is not live. Zeroed space stays reserved, so neither a writer
  // nor a reader meets a hole.
  record_->BeginInPlace();
  record_->Set(MarksOf(kept));
  // Zeros must not come to the disk before the record that expects them.
  const absl::Status synced = record_file_->Sync();
  if (!synced.ok()) {
    record_->Set(MarksOf(now));
    record_->EndInPlace();
  }
  return synced;
}

void StorageDirectory::EndDiscard(const LaneRings& live) {
  if (!record_) return;
  // Zeros before the marks: rows that are not live must not look like some to
  // programs that open the files without the record.
  rows_->ZeroAllBut(live);
  record_->Set(MarksOf(live));
  record_->EndInPlace();
  // Steps may be counted from 0 again.
  if (holds_ != nullptr) BeginHolds();
}

void StorageDirectory::BeginHolds() {
  holds_->Begin([&](int64_t lane) { return record_->FirstKept({}, lane); });
}

absl::Status StorageDirectory::Announce(const LaneSteps& append) {
  if (holds_ != nullptr) {
    RILL_RETURN_IF_ERROR(holds_->Overwrite(append, [&](int64_t lane) {
      return record_->FirstKept(append, lane);
    }));
  }
  record_->Announce(append);
  return absl::OkStatus();
}

std::optional<LaneRings> StorageDirectory::FoundRings(
    const Lanes& lanes) const {
  if (marks_.empty()) return std::nullopt;
  return RingsOf(lanes, marks_);
}

std::optional<int64_t> StorageDirectory::FreeDiskBytes() const {
  return rill::FreeDiskBytes(path_);
}

absl::Status StorageDirectory::Sync() const {
  if (!record_) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(rows_->Sync());
  return record_file_->Sync();
}

// --- Positions ---------------------------------------------------------------

absl::StatusOr<std::vector<RowLine>> StorageDirectory::ReadHistory(
    absl::string_view caller, const Lanes& lanes) const {
  const std::string path = JoinPath(path_, kHistoryFile);
  if (!PathExists(path)) return std::vector<RowLine>();
  RILL_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  return DecodeLines(absl::StrCat(caller, ": \"", path, "\""), bytes, lanes);
}

absl::Status StorageDirectory::WriteHistory(
    const Lanes& lanes, std::vector<RowLine> history) const {
  RILL_ASSIGN_OR_RETURN(history.emplace_back(), NewLine(lanes));
  return WriteFileAtomically(JoinPath(path_, kHistoryFile),
                             EncodeLines(lanes, history));
}

absl::StatusOr<std::string> StorageDirectory::SavePosition(
    const LaneRings& now) const {
  constexpr absl::string_view kCaller = "Storage::SavePosition";
  RILL_RETURN_IF_ERROR(Sync());
  RILL_ASSIGN_OR_RETURN(auto history, ReadHistory(kCaller, now.lanes()));
  // The first position begins the history. Without one Clear and Load write
  // none.
  if (history.empty()) {
    RILL_RETURN_IF_ERROR(WriteHistory(now.lanes(), {}));
    RILL_ASSIGN_OR_RETURN(history, ReadHistory(kCaller, now.lanes()));
  }
  const RowLine position = {.name = history.back().name, .marks = MarksOf(now)};
  return EncodeLines(now.lanes(), absl::MakeConstSpan(&position, 1));
}

absl::StatusOr<FoundPosition> StorageDirectory::FindPosition(
    absl::string_view position, const LaneRings& now) const {
  constexpr absl::string_view kCaller = "Storage::LoadPosition";
  const std::string what =
      absl::StrCat(kCaller, ": position for \"", path_, "\"");
  RILL_ASSIGN_OR_RETURN(const std::vector<RowLine> lines,
                        DecodeLines(what, position, now.lanes()));
  if (lines.size() != 1) {
    return DataLoss(what, ": got ", lines.size(), " lines, want one");
  }
  RILL_ASSIGN_OR_RETURN(const auto history, ReadHistory(kCaller, now.lanes()));
  return storage_internal::FindPosition(what, lines[0], history, now);
}

absl::Status StorageDirectory::GoBack(const LaneRings& now,
                                      FoundPosition found) {
  // The history first: where only that is there, rows that come later are of a
  // line of their own, and positions that tell of others are refused.
  RILL_RETURN_IF_ERROR(
      WriteHistory(found.rings.lanes(), std::move(found.history)));
  return BeginDiscard(now, found.rings);
}

absl::Status StorageDirectory::ForgetPositions(const Lanes& lanes) const {
  if (!record_ || !PathExists(JoinPath(path_, kHistoryFile))) {
    return absl::OkStatus();
  }
  return WriteHistory(lanes, {});
}

}  // namespace rill::storage_internal
