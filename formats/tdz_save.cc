// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/file.h"
#include "rill/base/file_writer.h"
#include "rill/base/status_macros.h"
#include "rill/formats/memmap/leaf_bytes.h"
#include "rill/formats/memmap/memmap_files.h"
#include "rill/formats/tdz_archive.h"
#include "rill/formats/zip/crc32.h"
#include "rill/formats/zip/zip_layout.h"

namespace rill {
namespace {

using formats_internal::ExtendCrc32;
using formats_internal::ListMemmapFiles;
using formats_internal::MemmapFile;
using formats_internal::ZipLayout;

// The checksum is taken of what is still in the cache when it is written.
constexpr size_t kPieceBytes = size_t{4} << 20;

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

template <typename T>  // TensorDict or LazyStack.
absl::Status Save(absl::string_view caller, const T& what,
                  const std::string& path) {
  RILL_ASSIGN_OR_RETURN(const std::vector<MemmapFile> files,
                        ListMemmapFiles(caller, what));
  // All offsets first, then the bytes in one pass. A header holds its content's
  // checksum and stands before it. Its length does not depend on that, so it is
  // written twice, and no content is read twice.
  ZipLayout layout;
  for (const MemmapFile& file : files) {
    RILL_RETURN_IF_ERROR(
        layout.Add(file.path, file.size(), file.leaf.has_value()))
        << absl::StrCat(caller, ": \"", JoinPath(path, file.path), "\"");
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

}  // namespace rill
