// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/tdz_archive.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/file.h"
#include "rill/base/file_writer.h"
#include "rill/base/mapped_file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/memmap/leaf_bytes.h"
#include "rill/formats/memmap/mapped_leaf.h"
#include "rill/formats/memmap/memmap_files.h"
#include "rill/formats/memmap/memmap_reader.h"
#include "rill/formats/memmap/memmap_source.h"
#include "rill/formats/plain_path.h"
#include "rill/formats/zip/crc32.h"
#include "rill/formats/zip/zip_directory.h"
#include "rill/formats/zip/zip_layout.h"
#include "rill/tensordict/tensor.h"

namespace rill {
namespace {

using formats_internal::ExtendCrc32;
using formats_internal::ListMemmapFiles;
using formats_internal::MemmapFile;
using formats_internal::MemmapSource;
using formats_internal::PathKind;
using formats_internal::ZipEntry;
using formats_internal::ZipLayout;
using Mode = LoadMemmapOptions::Mode;

// The checksum is taken of what is still in the cache when it is written.
constexpr size_t kPieceBytes = size_t{4} << 20;

std::string Quoted(absl::string_view caller, absl::string_view archive,
                   absl::string_view path) {
  return absl::StrCat(caller, ": \"", JoinPath(archive, path), "\"");
}

// The content of file `i` behind its header, and then the header again, which
// holds the checksum.
absl::Status WriteMember(const MemmapFile& file, int i, ZipLayout* layout,
                         FileWriter* writer) {
  RILL_RETURN_IF_ERROR(writer->Append(layout->Header(i)));
  uint32_t crc = 0;
  const auto append = [&](absl::string_view bytes) -> absl::Status {
    for (; !bytes.empty();
         bytes.remove_prefix(std::min(kPieceBytes, bytes.size()))) {
      const absl::string_view piece = bytes.substr(0, kPieceBytes);
      crc = ExtendCrc32(crc, piece);
      RILL_RETURN_IF_ERROR(writer->Append(piece));
    }
    return absl::OkStatus();
  };
  RILL_RETURN_IF_ERROR(file.leaf
                           ? formats_internal::ForEachPiece(*file.leaf, append)
                           : append(file.text));
  layout->SetCrc(i, crc);
  return writer->Overwrite(layout->header_offset(i), layout->Header(i));
}

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
    RILL_ASSIGN_OR_RETURN(std::vector<ZipEntry> entries,
                          formats_internal::ParseZipDirectory(
                              source.Where(""), source.Bytes(0, -1)));
    for (ZipEntry& entry : entries) {
      source.entries_[entry.name] = std::move(entry);
    }
    return source;
  }

  std::string Where(absl::string_view path) const override {
    return Quoted("LoadTdz", path_, path);
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
    if (entry.size > max_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(Where(path), ": size: got ", entry.size,
                       " bytes, want <= ", max_bytes));
    }
    std::string text(Bytes(entry.offset, entry.size));
    if (const uint32_t crc = ExtendCrc32(0, text); crc != entry.crc) {
      return absl::DataLossError(absl::StrCat(Where(path), ": CRC: got ",
                                              absl::Hex(crc), ", want ",
                                              absl::Hex(entry.crc)));
    }
    return text;
  }

  absl::StatusOr<Tensor> OpenLeaf(const std::string& path, DType dtype,
                                  const Shape& shape,
                                  int64_t bytes) const override {
    const ZipEntry& entry = entries_.at(path);
    if (entry.size < bytes) {
      return absl::DataLossError(absl::StrCat(Where(path), ": got ", entry.size,
                                              " bytes, want ", bytes));
    }
    return formats_internal::MappedLeaf(Where(path), file_, entry.offset, dtype,
                                        shape, mode_);
  }

 private:
  ArchiveSource(std::string path, Mode mode)
      : path_(std::move(path)), mode_(mode) {}

  // Up to the end where `size` is negative.
  absl::string_view Bytes(int64_t offset, int64_t size) const {
    const absl::string_view all(reinterpret_cast<const char*>(file_->data()),
                                static_cast<size_t>(file_->size_bytes()));
    return all.substr(offset, size < 0 ? all.npos : size);
  }

  std::string path_;
  Mode mode_;
  std::shared_ptr<MappedFile> file_;
  std::map<std::string, ZipEntry> entries_;
};

template <typename T>  // TensorDict or LazyStack.
absl::Status Save(absl::string_view caller, const T& what,
                  const std::string& path) {
  RILL_ASSIGN_OR_RETURN(const std::vector<MemmapFile> files,
                        ListMemmapFiles(caller, what));
  ZipLayout layout;
  for (const MemmapFile& file : files) {
    RILL_RETURN_IF_ERROR(
        layout.Add(file.path, file.size(), file.leaf.has_value()))
        << Quoted(caller, path, file.path);
  }
  return ReplaceFile(path, [&](const std::string& fresh) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer,
                          FileWriter::Create(fresh, layout.total_bytes()));
    for (int i = 0; i < layout.size(); ++i) {
      RILL_RETURN_IF_ERROR(WriteMember(files[i], i, &layout, writer.get()));
    }
    return writer->Append(layout.End());
  });
}

}  // namespace

absl::Status SaveTdz(const TensorDict& dict, const std::string& path) {
  return Save("SaveTdz", dict, path);
}

absl::Status SaveTdzLazyStack(const LazyStack& stack, const std::string& path) {
  return Save("SaveTdzLazyStack", stack, path);
}

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
