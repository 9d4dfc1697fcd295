// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/consolidated.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/file.h"
#include "rill/base/file_writer.h"
#include "rill/base/mapped_file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/consolidated_meta.h"
#include "rill/formats/memmap/leaf_bytes.h"
#include "rill/formats/memmap/mapped_leaf.h"
#include "rill/formats/memmap/refusal.h"
#include "rill/formats/zip/little_endian.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/tensor.h"

namespace rill {
namespace {

using formats_internal::AppendLittle;
using formats_internal::ConsolidatedMeta;
using formats_internal::kMaxConsolidatedJsonBytes;
using Kind = ConsolidatedMeta::Kind;

constexpr int64_t kLengthBytes = 8;  // Of the JSON's length at the end.

// Where the leaves go, and which they are.
class Layout {
 public:
  explicit Layout(int64_t alignment) : alignment_(alignment) {}

  absl::StatusOr<ConsolidatedMeta> Place(const TensorDict& dict);
  int64_t data_bytes() const { return end_; }
  const std::vector<Tensor>& leaves() const { return leaves_; }
  const std::vector<int64_t>& pads() const { return pads_; }

 private:
  int64_t alignment_;
  int64_t end_ = 0;
  std::vector<Tensor> leaves_;
  std::vector<int64_t> pads_;
};

absl::StatusOr<ConsolidatedMeta> Layout::Place(const TensorDict& dict) {
  ConsolidatedMeta meta;
  meta.batch_shape = dict.batch_shape();
  meta.dim_names = dict.dim_names();
  meta.is_locked = dict.is_locked();
  for (const std::string& key : dict.Keys()) {
    RILL_ASSIGN_OR_RETURN(const std::vector<std::string> parts, SplitKey(key));
    ConsolidatedMeta::Entry entry{.name = parts[0]};
    if (const Tensor* const leaf = dict.Find(key)) {
      entry.dtype = leaf->dtype();
      entry.shape = leaf->shape();
      entry.pad = (alignment_ - leaf->size_bytes() % alignment_) % alignment_;
      entry.start = end_;
      entry.stop = end_ += leaf->size_bytes() + entry.pad;
      leaves_.push_back(*leaf);
      pads_.push_back(entry.pad);
    } else if (const TensorDict* const inner = dict.FindDict(key)) {
      entry.kind = Kind::kDict;
      RILL_ASSIGN_OR_RETURN(ConsolidatedMeta inner_meta, Place(*inner));
      entry.dict.push_back(std::move(inner_meta));
    } else if (dict.Kind(key) != EntryKind::kNonTensor) {
      return absl::InvalidArgumentError(absl::StrCat(
          "SaveConsolidated: key \"", key,
          "\": got a stack or a ragged tensor, want a tensor, a dictionary or "
          "one value; use SaveTdz or SaveMemmapDirectory"));
    } else {
      entry.kind = Kind::kValue;
      RILL_ASSIGN_OR_RETURN(NonTensor value, dict.GetNonTensor(key));
      entry.json = std::move(value.json);
    }
    meta.entries.push_back(std::move(entry));
  }
  return meta;
}

// 8 as the peer has it, which then cannot open its own file where a complex128
// lies behind 8 bytes of something else.
int64_t AlignmentOf(const TensorDict& dict) {
  int64_t alignment = 8;
  dict.ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
    alignment = std::max(alignment, DTypeSize(leaf.dtype()));
  });
  return alignment;
}

absl::Status WriteAll(const Layout& layout, absl::string_view json,
                      const std::string& path) {
  std::string tail(json);
  AppendLittle<int64_t>(static_cast<int64_t>(json.size()), &tail);
  RILL_ASSIGN_OR_RETURN(
      const std::unique_ptr<FileWriter> writer,
      FileWriter::Create(
          path, layout.data_bytes() + static_cast<int64_t>(tail.size())));
  for (size_t i = 0; i < layout.leaves().size(); ++i) {
    RILL_RETURN_IF_ERROR(formats_internal::ForEachPiece(
        layout.leaves()[i],
        [&](absl::string_view piece) { return writer->Append(piece); }));
    RILL_RETURN_IF_ERROR(writer->Append(std::string(layout.pads()[i], '\0')));
  }
  return writer->Append(tail);
}

class Loader {
 public:
  Loader(std::string where, std::shared_ptr<MappedFile> file,
         const LoadMemmapOptions& options)
      : where_(std::move(where)), file_(std::move(file)), options_(options) {}

  absl::StatusOr<TensorDict> Load();

 private:
  absl::StatusOr<TensorDict> LoadDict(const ConsolidatedMeta& meta,
                                      absl::string_view prefix);
  absl::Status LoadEntry(const ConsolidatedMeta::Entry& entry,
                         absl::string_view prefix, TensorDict* dict);

  std::string where_;
  std::shared_ptr<MappedFile> file_;
  const LoadMemmapOptions& options_;
};

absl::Status Loader::LoadEntry(const ConsolidatedMeta::Entry& entry,
                               absl::string_view prefix, TensorDict* dict) {
  const std::string key = EscapeKeyComponent(entry.name);
  const std::string whole = absl::StrCat(prefix, key);
  const std::string where = absl::StrCat(where_, ": entry \"", whole, "\"");
  if (entry.kind == Kind::kRefused || entry.name.empty()) {
    return formats_internal::RefuseEntry(
        options_, whole, where,
        entry.refusal.empty() ? "name: got none" : entry.refusal);
  }
  if (dict->Contains(key)) {
    return absl::DataLossError(absl::StrCat(where, ": got it twice"));
  }
  if (entry.kind == Kind::kValue) {
    return dict->Set(key, NonTensor{entry.json});
  }
  if (entry.kind == Kind::kDict) {
    RILL_ASSIGN_OR_RETURN(TensorDict inner,
                          LoadDict(entry.dict[0], absl::StrCat(whole, "/")));
    return dict->Set(key, std::move(inner));
  }
  RILL_ASSIGN_OR_RETURN(Tensor leaf, formats_internal::MappedLeaf(
                                         where, file_, entry.start, entry.dtype,
                                         entry.shape, options_.mode));
  return dict->Set(key, std::move(leaf));
}

absl::StatusOr<TensorDict> Loader::LoadDict(const ConsolidatedMeta& meta,
                                            absl::string_view prefix) {
  TensorDict dict(meta.batch_shape);
  for (const ConsolidatedMeta::Entry& entry : meta.entries) {
    RILL_RETURN_IF_ERROR(LoadEntry(entry, prefix, &dict))
        << "while loading " << where_;
  }
  if (!meta.dim_names.empty()) {
    if (const absl::Status status = dict.SetDimNames(meta.dim_names);
        !status.ok()) {
      return absl::DataLossError(
          absl::StrCat(where_, ": names: ", status.message()));
    }
  }
  if (meta.is_locked) dict.Lock();
  return dict;
}

absl::StatusOr<TensorDict> Loader::Load() {
  const int64_t size = file_->size_bytes();
  const char* const bytes = reinterpret_cast<const char*>(file_->data());
  if (size < kLengthBytes) {
    return absl::DataLossError(absl::StrCat(
        where_, ": got ", size, " bytes, want at least ", kLengthBytes));
  }
  const int64_t json_bytes =
      formats_internal::LoadLittle<int64_t>(bytes + size - kLengthBytes);
  if (json_bytes <= 0 || json_bytes > size - kLengthBytes) {
    return absl::DataLossError(
        absl::StrCat(where_, ": length of the JSON at the end: got ",
                     json_bytes, ", want one in [1, ", size - kLengthBytes,
                     "]; it is no consolidated file or was cut short"));
  }
  if (json_bytes > kMaxConsolidatedJsonBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(where_, ": length of the JSON at the end: got ",
                     json_bytes, ", want <= ", kMaxConsolidatedJsonBytes));
  }
  const int64_t data_bytes = size - kLengthBytes - json_bytes;
  RILL_ASSIGN_OR_RETURN(
      const ConsolidatedMeta meta,
      formats_internal::ParseConsolidatedMeta(
          where_, absl::string_view(bytes + data_bytes, json_bytes),
          data_bytes));
  return LoadDict(meta, "");
}

}  // namespace

absl::Status SaveConsolidated(const TensorDict& dict, const std::string& path) {
  constexpr absl::string_view kCaller = "SaveConsolidated";
  Layout layout(AlignmentOf(dict));
  RILL_ASSIGN_OR_RETURN(const ConsolidatedMeta meta, layout.Place(dict));
  RILL_ASSIGN_OR_RETURN(
      const std::string json,
      formats_internal::FormatConsolidatedMeta(kCaller, meta));
  if (static_cast<int64_t>(json.size()) > kMaxConsolidatedJsonBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(kCaller, ": keys and values: got ", json.size(),
                     " bytes of JSON, want <= ", kMaxConsolidatedJsonBytes));
  }
  return ReplaceFile(path, [&](const std::string& fresh) {
    return WriteAll(layout, json, fresh);
  });
}

absl::StatusOr<TensorDict> LoadConsolidated(const std::string& path,
                                            const LoadMemmapOptions& options) {
  const bool is_writable = options.mode == LoadMemmapOptions::Mode::kMapShared;
  RILL_ASSIGN_OR_RETURN(
      std::shared_ptr<MappedFile> file,
      MappedFile::Open(path, is_writable ? MappedFile::Mode::kReadWrite
                                         : MappedFile::Mode::kReadOnly));
  return Loader(absl::StrCat("LoadConsolidated: \"", path, "\""),
                std::move(file), options)
      .Load();
}

}  // namespace rill
