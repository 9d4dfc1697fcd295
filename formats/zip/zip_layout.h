// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_ZIP_ZIP_LAYOUT_H_
#define RILL_FORMATS_ZIP_ZIP_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rill::formats_internal {

// The place of each byte of a zip file, before the first one is written. Files
// are stored as they are, one behind the other, and the central directory, byte
// for byte as TorchRL writes them (docs/formats/tdz.md).
//
// Thread-safety: thread-compatible.
class ZipLayout {
 public:
  // The next file; its content starts at a multiple of kZipAlignment if
  // `is_aligned`. INVALID_ARGUMENT where the name has 64 KiB or more, or the
  // file's bytes would not fit in int64.
  absl::Status Add(absl::string_view name, int64_t size, bool is_aligned);

  int size() const { return static_cast<int>(files_.size()); }
  // The header of file `i`, right behind the content of the one before; the
  // content follows it. Its length does not depend on the CRC.
  std::string Header(int i) const;
  // Where that header starts.
  int64_t header_offset(int i) const { return files_[i].header_offset; }
  // Known only once the content was seen.
  void SetCrc(int i, uint32_t crc) { files_[i].crc = crc; }

  // The bytes behind the last content.
  std::string End() const;
  // Bytes of the whole zip file.
  int64_t total_bytes() const;

 private:
  struct File {
    std::string name;
    int64_t size = 0;
    int64_t header_offset = 0;
    int64_t padding = -1;  // Zeros in the field that aligns, -1 without one.
    uint32_t crc = 0;
  };
  static void AppendShared(const File& file, uint32_t shown, size_t extra_bytes,
                           std::string* out);
  std::string CentralRecord(const File& file) const;

  std::vector<File> files_;
  int64_t end_ = 0;  // Of the last content.
};

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_ZIP_ZIP_LAYOUT_H_
