// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/directory/row_files.h"

#include <algorithm>
#include <bit>

#include "absl/strings/string_view.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/plain_path.h"
#include "rill/tensors/shape.h"

namespace rill::storage_internal {
namespace {

using formats_internal::LookAt;
using formats_internal::PathKind;

constexpr absl::string_view kCaller = "MemmapStorage";
constexpr char kRecordsFile[] = "rows.bin";
// A file is reserved in about 256 pieces within these bounds: few calls, and
// little that no row has reached.
constexpr int kSmallestChunkShift = 16;
constexpr int kLargestChunkShift = 23;

int ChunkShift(int64_t bytes) {
  return std::clamp<int>(std::bit_width(static_cast<uint64_t>(bytes)) - 8,
                         kSmallestChunkShift, kLargestChunkShift);
}

// The batch shape that the memmap directory of columns shows.
Shape BatchShape(const RowLayout& layout, const Lanes& lanes) {
  if (lanes.count == 1) return {lanes.capacity};
  if (layout.order() == StorageOrder::kTimeMajor) {
    return {lanes.capacity, lanes.count};
  }
  return {lanes.count, lanes.capacity};
}

// "next/obs.memmap" without links on the way to it.
absl::Status CheckWay(const std::string& directory, const std::string& path) {
  for (size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string folder = JoinPath(directory, path.substr(0, slash));
    RILL_ASSIGN_OR_RETURN(const PathKind kind, LookAt(kCaller, folder));
    if (kind == PathKind::kDirectory) continue;
    return DataLoss(kCaller, ": \"", folder, "\": got no directory, want one");
  }
  RILL_ASSIGN_OR_RETURN(const PathKind kind,
                        LookAt(kCaller, JoinPath(directory, path)));
  if (kind == PathKind::kFile) return absl::OkStatus();
  return DataLoss(kCaller, ": \"", JoinPath(directory, path),
                  "\": got no file, want one");
}

// Inner folders first, so that the sync that each brings covers what it names.
absl::Status WriteTexts(const std::string& directory,
                        absl::Span<const MemmapDirectoryPlan::Text> texts) {
  for (auto text = texts.rbegin(); text != texts.rend(); ++text) {
    RILL_RETURN_IF_ERROR(
        WriteFileAtomically(JoinPath(directory, text->path), text->content));
  }
  return absl::OkStatus();
}

// DATA_LOSS unless each file has these very bytes. Sizes come first, so that a
// file of any size is not read.
absl::Status CheckTexts(const std::string& directory,
                        absl::Span<const MemmapDirectoryPlan::Text> texts) {
  for (const MemmapDirectoryPlan::Text& text : texts) {
    RILL_RETURN_IF_ERROR(CheckWay(directory, text.path));
    const std::string path = JoinPath(directory, text.path);
    RILL_ASSIGN_OR_RETURN(const int64_t bytes, FileSize(path));
    const int64_t want = static_cast<int64_t>(text.content.size());
    if (bytes == want) {
      RILL_ASSIGN_OR_RETURN(const std::string content, ReadFile(path, want));
      if (absl::string_view(content) == text.content) continue;
    }
    return DataLoss(kCaller, ": \"", path,
                    "\": got other keys or shapes, want ",
                    text.content.substr(0, 400), "; the file was changed");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowFiles>> RowFiles::Map(
    const RowLayout& layout, const Lanes& lanes, const std::string& directory,
    Mode mode) {
  std::unique_ptr<RowFiles> files(new RowFiles(layout, lanes));
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<AddressRange> range,
                        AddressRange::Create(layout.size_bytes()));
  if (layout.layout() == StorageLayout::kColumns) {
    RILL_RETURN_IF_ERROR(files->MapColumns(directory, *range, mode));
  } else if (layout.size_bytes() > 0) {
    if (mode != Mode::kCreate) {
      RILL_RETURN_IF_ERROR(CheckWay(directory, kRecordsFile));
    }
    RILL_RETURN_IF_ERROR(files->AddFile(
        JoinPath(directory, kRecordsFile), 0, layout.size_bytes(),
        layout.size_bytes() / lanes.num_slots(), *range, mode));
  }
  // The buffer shares the range: files stay mapped as long as any tensor does.
  files->buffer_ = Buffer::Wrap(range->data(), range->size_bytes(),
                                Device::Cpu(), MemoryKind::kMappedFile, range);
  files->range_ = std::move(range);
  return files;
}

absl::Status RowFiles::MapColumns(const std::string& directory,
                                  const AddressRange& range, Mode mode) {
  RILL_ASSIGN_OR_RETURN(
      const MemmapDirectoryPlan plan,
      PlanMemmapDirectory(layout_.spec(), BatchShape(layout_, lanes_)));
  for (const MemmapDirectoryPlan::Text& text : plan.texts) {
    const size_t slash = text.path.rfind('/');
    if (mode != Mode::kCreate || slash == std::string::npos) continue;
    RILL_RETURN_IF_ERROR(
        CreateDirectories(JoinPath(directory, text.path.substr(0, slash))));
  }
  for (size_t i = 0; i < plan.leaves.size(); ++i) {
    const auto& [path, bytes] = plan.leaves[i];
    if (bytes == 0) continue;
    if (mode != Mode::kCreate) {
      RILL_RETURN_IF_ERROR(CheckWay(directory, path));
    }
    const RowField& field = layout_.fields()[i];
    RILL_RETURN_IF_ERROR(AddFile(JoinPath(directory, path), field.offset, bytes,
                                 field.stride, range, mode));
  }
  return mode == Mode::kCreate ? WriteTexts(directory, plan.texts)
                               : CheckTexts(directory, plan.texts);
}

absl::Status RowFiles::AddFile(const std::string& path, int64_t offset,
                               int64_t bytes, int64_t stride,
                               const AddressRange& range, Mode mode) {
  File file;
  RILL_ASSIGN_OR_RETURN(
      file.file, mode == Mode::kCreate
                     ? SparseFile::Create(path, bytes)
                     : SparseFile::Open(path, bytes,
                                        mode == Mode::kOpen
                                            ? SparseFile::Mode::kReadWrite
                                            : SparseFile::Mode::kReadOnly));
  RILL_RETURN_IF_ERROR(file.file->Map(range, offset));
  file.stride = stride;
  file.chunk_shift = ChunkShift(bytes);
  file.reserved.resize(((bytes - 1) >> file.chunk_shift) + 1);
  unreserved_ += static_cast<int64_t>(file.reserved.size());
  files_.push_back(std::move(file));
  return absl::OkStatus();
}

absl::Status RowFiles::ReserveRows(int64_t first, int64_t last, File* file) {
  const int64_t begin = first * file->stride;
  const int64_t end = (last + 1) * file->stride;
  const int64_t last_chunk = (end - 1) >> file->chunk_shift;
  for (int64_t chunk = begin >> file->chunk_shift; chunk <= last_chunk;
       ++chunk) {
    if (file->reserved[chunk]) continue;
    RILL_RETURN_IF_ERROR(ReserveChunk(chunk, begin, end, file));
  }
  return absl::OkStatus();
}

// All of the chunk, or what lies in [begin, end) of it.
absl::Status RowFiles::ReserveChunk(int64_t chunk, int64_t begin, int64_t end,
                                    File* file) {
  const int64_t page = AddressRange::PageBytes();
  const int64_t start = chunk << file->chunk_shift;
  const int64_t bytes = std::min(int64_t{1} << file->chunk_shift,
                                 file->file->size_bytes() - start);
  auto found = file->pages.find(chunk);
  if (found == file->pages.end()) {
    const absl::Status status = file->file->Reserve(start, bytes);
    if (status.ok()) {
      file->reserved[chunk] = true;
      --unreserved_;
    }
    // Success, or an error that single pages would meet too.
    if (!absl::IsResourceExhausted(status)) return status;
    found = file->pages.emplace(chunk, (bytes + page - 1) / page).first;
  }
  // Little space is left: only the pages that these rows touch, run by run.
  // Pages that an error leaves reserved are noted: none is asked for twice.
  std::vector<bool>& pages = found->second;
  const int64_t last = (std::min(end - start, bytes) - 1) / page;
  for (int64_t i = std::max<int64_t>(begin - start, 0) / page; i <= last;) {
    const int64_t from = i;
    while (i <= last && !pages[i]) ++i;
    if (from == i) {
      ++i;
      continue;
    }
    RILL_RETURN_IF_ERROR(file->file->Reserve(
        start + from * page, std::min(i * page, bytes) - from * page));
    std::fill(pages.begin() + from, pages.begin() + i, true);
  }
  if (std::find(pages.begin(), pages.end(), false) == pages.end()) {
    file->reserved[chunk] = true;
    --unreserved_;
    file->pages.erase(found);
  }
  return absl::OkStatus();
}

absl::Status RowFiles::Reserve(absl::Span<const SlotRange> ranges) {
  if (unreserved_ == 0) return absl::OkStatus();
  for (const SlotRange& range : ranges) {
    if (range.count == 0) continue;
    // In time-major order the rows of the other lanes lie between.
    const int64_t first = layout_.RowOf(range.first);
    const int64_t last = layout_.RowOf(range.first + range.count - 1);
    for (File& file : files_) {
      RILL_RETURN_IF_ERROR(ReserveRows(first, last, &file));
    }
  }
  return absl::OkStatus();
}

void RowFiles::ZeroRows(int64_t first, int64_t last) {
  for (File& file : files_) {
    file.file->Zero(first * file.stride, (last + 1 - first) * file.stride)
        .IgnoreError();
  }
}

void RowFiles::ZeroAllBut(const LaneRings& live) {
  if (live.size() == 0) return ZeroRows(0, lanes_.num_slots() - 1);
  if (live.size() == lanes_.num_slots()) return;
  int64_t begin = 0;  // Of the run of rows that are not live.
  // Zeroes the rows from the last live one to `row`, as one run.
  const auto end_run = [&](int64_t row) {
    if (begin < row) ZeroRows(begin, row - 1);
    begin = row + 1;
  };
  if (layout_.row_is_slot()) {
    std::vector<SlotRange> ranges;
    live.LiveRanges(&ranges);
    std::sort(ranges.begin(), ranges.end(),
              [](SlotRange a, SlotRange b) { return a.first < b.first; });
    for (const SlotRange& range : ranges) {
      end_run(range.first);
      begin = range.first + range.count;
    }
  } else {
    // In the order of the file, so that runs are as long as they can be.
    for (int64_t position = 0; position < lanes_.capacity; ++position) {
      for (int64_t lane = 0; lane < lanes_.count; ++lane) {
        const Slot slot = lanes_.SlotOf(lane, position);
        if (live.IsLive(slot)) end_run(layout_.RowOf(slot));
      }
    }
  }
  end_run(lanes_.num_slots());
}

int64_t RowFiles::DiskBytes() const {
  int64_t bytes = 0;
  for (const File& file : files_) bytes += file.file->DiskBytes();
  return bytes;
}

absl::Status RowFiles::Sync() const {
  for (const File& file : files_) RILL_RETURN_IF_ERROR(file.file->Sync());
  return absl::OkStatus();
}

}  // namespace rill::storage_internal
