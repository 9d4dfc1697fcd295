// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/file.h"
#include "rill/base/mapped_file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/memmap/mapped_leaf.h"
#include "rill/formats/memmap/memmap_reader.h"
#include "rill/formats/memmap/memmap_source.h"
#include "rill/formats/plain_path.h"
#include "rill/formats/tdz_archive.h"
#include "rill/formats/zip/crc32.h"
#include "rill/formats/zip/inflate.h"
#include "rill/formats/zip/zip_directory.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using formats_internal::ExtendCrc32;
using formats_internal::InflateEntry;
using formats_internal::MemmapSource;
using formats_internal::PathKind;
using formats_internal::ZipEntry;
using Mode = LoadMemmapOptions::Mode;

// The files of an archive, by name. The map is sorted, so whether a folder is
// there is one look-up: the first name behind "folder/" begins with it, or none
// does. Archives need no entries for folders.
class ArchiveSource : public MemmapSource {
 public:
  static absl::StatusOr<ArchiveSource> Open(const std::string& path,
                                            Mode mode) {
    ArchiveSource source(path, mode);
    RILL_ASSIGN_OR_RETURN(
        source.file_,
        MappedFile::Open(path, mode == Mode::kMapShared
                                   ? MappedFile::Mode::kReadWrite
                                   : MappedFile::Mode::kReadOnly));
    RILL_ASSIGN_OR_RETURN(
        std::vector<ZipEntry> entries,
        formats_internal::ParseZipDirectory(source.Where(""), source.Bytes()));
    for (ZipEntry& entry : entries) {
      source.entries_[entry.name] = std::move(entry);
    }
    return source;
  }

  std::string Where(absl::string_view path) const override {
    return absl::StrCat("LoadTdz: \"", JoinPath(path_, path), "\"");
  }

  absl::StatusOr<PathKind> LookAt(const std::string& path) const override {
    if (entries_.contains(path)) return PathKind::kFile;
    if (path.empty()) return PathKind::kDirectory;
    const std::string inside = absl::StrCat(path, "/");
    const auto next = entries_.lower_bound(inside);
    return next != entries_.end() && absl::StartsWith(next->first, inside)
               ? PathKind::kDirectory
               : PathKind::kMissing;
  }

  absl::StatusOr<std::string> ReadText(const std::string& path,
                                       int64_t max_bytes) const override {
    const ZipEntry& entry = entries_.at(path);
    // Before memory is taken: the size is what the archive says.
    if (entry.size > max_bytes) {
      return InvalidArgument(Where(path), ": size: got ", entry.size,
                             " bytes, want <= ", max_bytes);
    }
    std::string text;
    if (entry.is_deflated) {
      text.resize(entry.size);
      RILL_RETURN_IF_ERROR(
          InflateEntry(Where(path), entry, Bytes(), absl::MakeSpan(text)));
      return text;
    }
    text = Bytes().substr(entry.offset, entry.size);
    if (const uint32_t crc = ExtendCrc32(0, text); crc != entry.crc) {
      return DataLoss(Where(path), ": CRC: got ", absl::Hex(crc), ", want ",
                      absl::Hex(entry.crc));
    }
    return text;
  }

  absl::StatusOr<Tensor> OpenLeaf(const std::string& path, DType dtype,
                                  const Shape& shape,
                                  int64_t bytes) const override {
    const ZipEntry& entry = entries_.at(path);
    if (entry.size < bytes) {
      return DataLoss(Where(path), ": got ", entry.size, " bytes, want ",
                      bytes);
    }
    // The checksum of a stored tensor is not looked at: that would read all of
    // it, and writes through a shared mapping leave it out of date.
    if (entry.is_deflated) return InflatedLeaf(path, entry, dtype, shape);
    return formats_internal::MappedLeaf(Where(path), file_, entry.offset, dtype,
                                        shape, mode_);
  }

 private:
  ArchiveSource(std::string path, Mode mode)
      : path_(std::move(path)), mode_(mode) {}

  // Bytes of the whole file.
  absl::string_view Bytes() const {
    return absl::string_view(reinterpret_cast<const char*>(file_->data()),
                             static_cast<size_t>(file_->size_bytes()));
  }

  absl::StatusOr<Tensor> InflatedLeaf(const std::string& path,
                                      const ZipEntry& entry, DType dtype,
                                      const Shape& shape) const {
    if (mode_ == Mode::kMapShared) {
      return InvalidArgument(Where(path),
                             ": got it compressed, want it stored to map it "
                             "writable; load it read-only and save it again");
    }
    RILL_ASSIGN_OR_RETURN(Tensor leaf, Tensor::Empty(dtype, shape));
    const int64_t bytes = shape.num_elements() * DTypeSize(dtype);
    RILL_RETURN_IF_ERROR(InflateEntry(
        Where(path), entry, Bytes(),
        absl::MakeSpan(reinterpret_cast<char*>(leaf.raw_data()), bytes)));
    return leaf;
  }

  std::string path_;
  Mode mode_;
  std::shared_ptr<MappedFile> file_;
  std::map<std::string, ZipEntry> entries_;
};

}  // namespace

absl::StatusOr<TensorDict> LoadTdz(const std::string& path,
                                   const LoadMemmapOptions& options) {
  RILL_ASSIGN_OR_RETURN(const ArchiveSource source,
                        ArchiveSource::Open(path, options.mode));
  return ReadMemmapTree(source, options);
}

absl::StatusOr<LazyStack> LoadTdzLazyStack(const std::string& path,
                                           const LoadMemmapOptions& options) {
  RILL_ASSIGN_OR_RETURN(const ArchiveSource source,
                        ArchiveSource::Open(path, options.mode));
  return ReadMemmapLazyStack(source, options);
}

}  // namespace rill
