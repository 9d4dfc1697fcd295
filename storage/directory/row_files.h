// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_DIRECTORY_ROW_FILES_H_
#define RILL_STORAGE_DIRECTORY_ROW_FILES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/base/sparse_file.h"
#include "rill/device/buffer.h"
#include "rill/slots/slot.h"
#include "rill/storage/ring/lane_rings.h"
#include "rill/storage/rows/row_layout.h"

namespace rill::storage_internal {

// The files that hold the rows of a layout, mapped side by side into one run of
// addresses so that the layout's offsets hold. With kColumns there is one file
// a leaf and the meta.json of a memmap directory, which TorchRL opens too. With
// kRows there is one file of records. docs/formats/storage_directory.md.
//
// Files have their full length from the beginning, but space on the disk only
// where rows were written. Space is taken a chunk ahead of the rows. Where the
// disk has no space for a whole chunk, it is taken page by page.
//
// Thread-safety: thread-compatible; the bytes are the caller's to guard.
class RowFiles {
 public:
  enum class Mode { kCreate, kOpen, kOpenToRead };

  // The layout's columns start at multiples of AddressRange::PageBytes().
  // kCreate: makes the files in `directory`, where none of them is.
  // kOpen, kOpenToRead (read-only; never Reserve): DATA_LOSS where one is
  // missing, of another size or changed in what must not change;
  // INVALID_ARGUMENT or FAILED_PRECONDITION for symbolic links and special
  // files. Each names the file.
  static absl::StatusOr<std::unique_ptr<RowFiles>> Map(
      const RowLayout& layout, const Lanes& lanes, const std::string& directory,
      Mode mode);

  // All rows; keeps the files mapped.
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  // The addresses of buffer().
  const std::shared_ptr<AddressRange>& range() const { return range_; }

  // Makes sure that rows can be written to these slots. RESOURCE_EXHAUSTED
  // names asked and free bytes; nothing stored has changed then.
  // Cost: nothing once all is reserved, else some nanoseconds a range and file.
  absl::Status Reserve(absl::Span<const SlotRange> ranges);
  // Makes all rows that are not live read as zeros, with no space given back.
  // Where the disk refuses, their bytes stay: nothing of ours reads them.
  // Cost: what SparseFile::Zero costs a run of rows; in time-major order with
  // several lanes some ns a slot too.
  void ZeroAllBut(const LaneRings& live);
  // Bytes that the files take on the disk. Thread-safe.
  int64_t DiskBytes() const;
  // Brings everything written to the disk.
  absl::Status Sync() const;

 private:
  struct File {
    std::unique_ptr<SparseFile> file;
    int64_t stride = 0;  // From row to row.
    int chunk_shift = 0;
    std::vector<bool> reserved;  // One a chunk.
    // The pages that are reserved in each chunk that the disk had no space for
    // as a whole. The file itself does not tell before they are written.
    std::map<int64_t, std::vector<bool>> pages;
  };

  RowFiles(const RowLayout& layout, const Lanes& lanes)
      : layout_(layout), lanes_(lanes) {}
  absl::Status AddFile(const std::string& path, int64_t offset, int64_t bytes,
                       int64_t stride, const AddressRange& range, Mode mode);
  absl::Status MapColumns(const std::string& directory,
                          const AddressRange& range, Mode mode);
  absl::Status ReserveRows(int64_t first, int64_t last, File* file);
  absl::Status ReserveChunk(int64_t chunk, int64_t begin, int64_t end,
                            File* file);
  void ZeroRows(int64_t first, int64_t last);

  const RowLayout layout_;
  const Lanes lanes_;
  std::vector<File> files_;
  int64_t unreserved_ = 0;  // Chunks, over all files.
  std::shared_ptr<AddressRange> range_;
  std::shared_ptr<Buffer> buffer_;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_DIRECTORY_ROW_FILES_H_
