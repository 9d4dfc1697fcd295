// SPDX-License-Identifier: Apache-2.0
// LoadMemmapDirectory. Nothing on the disk is believed before it was checked.
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/file.h"
#include "rill/base/mapped_file.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/memmap_key.h"
#include "rill/formats/memmap_meta.h"
#include "rill/formats/plain_path.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/tensor.h"

namespace rill {
namespace {

using formats_internal::kMaxMemmapDepth;
using formats_internal::kMaxMetaBytes;
using formats_internal::LookAt;
using formats_internal::MemmapFileName;
using formats_internal::MemmapMeta;
using formats_internal::PathKind;

constexpr absl::string_view kCaller = "LoadMemmapDirectory";

absl::StatusOr<MemmapMeta> ReadMeta(const std::string& directory,
                                    absl::StatusCode missing) {
  const std::string path = JoinPath(directory, "meta.json");
  RILL_ASSIGN_OR_RETURN(const PathKind kind, LookAt(kCaller, path));
  if (kind != PathKind::kFile) {
    return absl::Status(missing,
                        absl::StrCat(kCaller, ": \"", directory,
                                     "\": got no \"meta.json\", want one; it "
                                     "is no directory of a TensorDict"));
  }
  RILL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxMetaBytes));
  return formats_internal::ParseMemmapMeta(path, text);
}

// The path of an entry: its encoded name, or the bare one as older files have
// it. Empty where neither is there.
absl::StatusOr<std::string> FindEntry(const std::string& directory,
                                      const std::string& name,
                                      absl::string_view suffix, PathKind want) {
  for (const bool is_encoded : {true, false}) {
    if (!is_encoded && !formats_internal::MayNameFileItself(name)) break;
    const std::string path = JoinPath(
        directory,
        absl::StrCat(is_encoded ? MemmapFileName(name) : name, suffix));
    RILL_ASSIGN_OR_RETURN(const PathKind kind, LookAt(kCaller, path));
    if (kind == want) return path;
  }
  return std::string();
}

absl::Status Missing(const std::string& directory, const std::string& name,
                     absl::string_view what, absl::string_view want) {
  return absl::DataLossError(absl::StrCat(
      kCaller, ": \"", directory, "\": entry \"", EscapeKeyComponent(name),
      "\": got no ", what, " \"", MemmapFileName(name),
      what == "file" ? ".memmap" : "", "\", want ", want));
}

absl::StatusOr<int64_t> LeafBytes(const std::string& directory,
                                  const MemmapMeta::Entry& entry) {
  int64_t bytes = DTypeSize(entry.dtype);
  for (const int64_t size : entry.shape.sizes()) {
    if (size == 0) return 0;
    if (__builtin_mul_overflow(bytes, size, &bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat(kCaller, ": \"", directory, "\": entry \"",
                       EscapeKeyComponent(entry.name), "\": bytes of ",
                       DTypeName(entry.dtype), entry.shape.ToString(),
                       " do not fit in int64"));
    }
  }
  return bytes;
}

absl::StatusOr<Tensor> LoadLeaf(const std::string& directory,
                                const MemmapMeta::Entry& entry,
                                LoadMemmapOptions::Mode mode) {
  using Mode = LoadMemmapOptions::Mode;
  RILL_ASSIGN_OR_RETURN(const int64_t bytes, LeafBytes(directory, entry));
  if (bytes == 0) return Tensor::Empty(entry.dtype, entry.shape);
  RILL_ASSIGN_OR_RETURN(
      const std::string path,
      FindEntry(directory, entry.name, ".memmap", PathKind::kFile));
  if (path.empty()) {
    return Missing(directory, entry.name, "file",
                   absl::StrCat("one of ", bytes, " bytes"));
  }
  const bool is_writable = mode == Mode::kMapShared;
  RILL_ASSIGN_OR_RETURN(
      std::shared_ptr<MappedFile> file,
      MappedFile::Open(path,
                       is_writable ? MappedFile::Mode::kReadWrite
                                   : MappedFile::Mode::kReadOnly,
                       bytes));
  if (mode == Mode::kCopy) {
    RILL_ASSIGN_OR_RETURN(Tensor copy, Tensor::Empty(entry.dtype, entry.shape));
    std::memcpy(copy.raw_data(), file->data(), bytes);
    return copy;
  }
  std::byte* const data = file->data();
  return Tensor::View(
      Buffer::Wrap(data, bytes, Device::Cpu(), MemoryKind::kMappedFile,
                   std::move(file), is_writable),
      entry.dtype, entry.shape, /*offset_bytes=*/0);
}

absl::StatusOr<TensorDict> LoadDict(const std::string& directory,
                                    const MemmapMeta& meta, int depth,
                                    LoadMemmapOptions::Mode mode);

absl::Status LoadEntry(const std::string& directory,
                       const MemmapMeta::Entry& entry, int depth,
                       LoadMemmapOptions::Mode mode, TensorDict* dict) {
  const std::string key = EscapeKeyComponent(entry.name);
  if (entry.is_leaf) {
    RILL_ASSIGN_OR_RETURN(Tensor leaf, LoadLeaf(directory, entry, mode));
    return dict->Set(key, std::move(leaf));
  }
  RILL_ASSIGN_OR_RETURN(
      const std::string path,
      FindEntry(directory, entry.name, "", PathKind::kDirectory));
  if (path.empty()) {
    return Missing(directory, entry.name, "directory",
                   absl::StrCat("one of a ", entry.type.substr(0, 80)));
  }
  if (depth >= kMaxMemmapDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat(kCaller, ": \"", path, "\": depth: got ", depth + 1,
                     ", want at most ", kMaxMemmapDepth));
  }
  RILL_ASSIGN_OR_RETURN(const MemmapMeta meta,
                        ReadMeta(path, absl::StatusCode::kDataLoss));
  if (!meta.is_dict) return dict->Set(key, NonTensor{meta.json});
  RILL_ASSIGN_OR_RETURN(TensorDict inner,
                        LoadDict(path, meta, depth + 1, mode));
  return dict->Set(key, std::move(inner));
}

absl::StatusOr<TensorDict> LoadDict(const std::string& directory,
                                    const MemmapMeta& meta, int depth,
                                    LoadMemmapOptions::Mode mode) {
  TensorDict dict(meta.batch_shape);
  for (const MemmapMeta::Entry& entry : meta.entries) {
    RILL_RETURN_IF_ERROR(LoadEntry(directory, entry, depth, mode, &dict))
        << "while loading \"" << directory << "\"";
  }
  return dict;
}

}  // namespace

absl::StatusOr<TensorDict> LoadMemmapDirectory(
    const std::string& directory, const LoadMemmapOptions& options) {
  RILL_ASSIGN_OR_RETURN(const MemmapMeta meta,
                        ReadMeta(directory, absl::StatusCode::kNotFound));
  if (!meta.is_dict) {
    return absl::InvalidArgumentError(
        absl::StrCat(kCaller, ": \"", directory,
                     "\": got a single value, want a TensorDict"));
  }
  return LoadDict(directory, meta, /*depth=*/1, options.mode);
}

}  // namespace rill
