// SPDX-License-Identifier: Apache-2.0
// SaveMemmapDirectory and CreateMemmapDirectory.
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rill/base/file.h"
#include "rill/base/mapped_file.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/memmap_key.h"
#include "rill/formats/memmap_meta.h"
#include "rill/formats/replaceable.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/tensor.h"

namespace rill {
namespace {

using formats_internal::kMaxMemmapDepth;
using formats_internal::MemmapFileName;
using formats_internal::MemmapMeta;

constexpr absl::string_view kCaller = "SaveMemmapDirectory";

// Makes the file of a leaf and maps it; no file where it has no elements.
absl::StatusOr<Tensor> CreateLeaf(const Tensor& like, const std::string& path) {
  const int64_t bytes = like.size_bytes();
  if (bytes == 0) return Tensor::Empty(like.dtype(), like.shape());
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<MappedFile> file,
                        MappedFile::Create(path, bytes));
  std::byte* const data = file->data();
  return Tensor::View(Buffer::Wrap(data, bytes, Device::Cpu(),
                                   MemoryKind::kMappedFile, std::move(file)),
                      like.dtype(), like.shape(), /*offset_bytes=*/0);
}

absl::Status CopyToFile(const Tensor& from, const Tensor& file) {
  if (from.num_elements() == 0) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(const Tensor host, from.To(Device::Cpu()));
  return file.CopyFrom(host);
}

absl::Status WriteMeta(const MemmapMeta& meta, const std::string& directory) {
  RILL_ASSIGN_OR_RETURN(const std::string text,
                        formats_internal::FormatMemmapMeta(meta));
  return WriteFileAtomically(JoinPath(directory, "meta.json"), text);
}

// Writes one level and those below it; gives the files back, mapped.
class TreeWriter {
 public:
  explicit TreeWriter(bool copies) : copies_(copies) {}

  absl::StatusOr<TensorDict> Write(const TensorDict& dict,
                                   const std::string& directory, int depth) {
    if (depth > kMaxMemmapDepth) {
      return absl::InvalidArgumentError(
          absl::StrCat(kCaller, ": depth: got more than ", kMaxMemmapDepth,
                       " dictionaries in one another, want at most that"));
    }
    RILL_RETURN_IF_ERROR(CreateDirectories(directory));
    TensorDict files(dict.batch_shape());
    MemmapMeta meta;
    meta.batch_shape = dict.batch_shape();
    std::set<std::string> names = {"meta.json"};
    for (const std::string& key : dict.Keys()) {
      RILL_ASSIGN_OR_RETURN(const std::vector<std::string> parts,
                            SplitKey(key));
      const std::string& name = parts[0];
      const Tensor* const leaf = dict.Find(key);
      const std::string file =
          absl::StrCat(MemmapFileName(name), leaf != nullptr ? ".memmap" : "");
      if (formats_internal::IsReservedMemmapName(name) ||
          !names.insert(file).second) {
        return absl::InvalidArgumentError(absl::StrCat(
            kCaller, ": key: got \"", key,
            "\", want none of \"shape\", \"device\", \"_type\", and no two "
            "entries in one file; rename the entry"));
      }
      RILL_ASSIGN_OR_RETURN(
          MemmapMeta::Entry entry,
          WriteEntry(dict, key, JoinPath(directory, file), depth, &files));
      entry.name = name;
      meta.entries.push_back(std::move(entry));
    }
    RILL_RETURN_IF_ERROR(WriteMeta(meta, directory));
    return files;
  }

 private:
  absl::StatusOr<MemmapMeta::Entry> WriteEntry(const TensorDict& dict,
                                               const std::string& key,
                                               const std::string& path,
                                               int depth, TensorDict* files) {
    MemmapMeta::Entry entry;
    if (const Tensor* const leaf = dict.Find(key)) {
      entry.dtype = leaf->dtype();
      entry.shape = leaf->shape();
      RILL_ASSIGN_OR_RETURN(Tensor file, CreateLeaf(*leaf, path));
      if (copies_) {
        RILL_RETURN_IF_ERROR(CopyToFile(*leaf, file));
      }
      RILL_RETURN_IF_ERROR(files->Set(key, std::move(file)));
      return entry;
    }
    entry.is_leaf = false;
    if (const TensorDict* const inner = dict.FindDict(key)) {
      RILL_ASSIGN_OR_RETURN(TensorDict inner_files,
                            Write(*inner, path, depth + 1));
      RILL_RETURN_IF_ERROR(files->Set(key, std::move(inner_files)));
      return entry;
    }
    entry.type = "NonTensorData";
    RILL_ASSIGN_OR_RETURN(NonTensor value, dict.GetNonTensor(key));
    MemmapMeta meta;
    meta.is_dict = false;
    meta.json = std::move(value.json);
    RILL_RETURN_IF_ERROR(CreateDirectories(path));
    RILL_RETURN_IF_ERROR(WriteMeta(meta, path));
    return entry;
  }

  bool copies_;
};

}  // namespace

absl::Status SaveMemmapDirectory(const TensorDict& dict,
                                 const std::string& directory) {
  RILL_RETURN_IF_ERROR(CheckReplaceable(kCaller, directory, "meta.json"));
  return ReplaceDirectory(directory, [&](const std::string& fresh) {
    return TreeWriter(/*copies=*/true).Write(dict, fresh, /*depth=*/1).status();
  });
}

absl::StatusOr<TensorDict> CreateMemmapDirectory(const TensorDictSpec& spec,
                                                 const Shape& batch_shape,
                                                 const std::string& directory) {
  // Single elements stand for the leaves: only their shapes are looked at.
  TensorDict like(batch_shape);
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    std::vector<int64_t> sizes(batch_shape.sizes().begin(),
                               batch_shape.sizes().end());
    sizes.insert(sizes.end(), leaf.spec.shape.sizes().begin(),
                 leaf.spec.shape.sizes().end());
    RILL_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(sizes));
    RILL_ASSIGN_OR_RETURN(const Tensor one, Tensor::Zeros(leaf.spec.dtype, {}));
    RILL_ASSIGN_OR_RETURN(Tensor all, one.Expand(shape));
    RILL_RETURN_IF_ERROR(like.Set(leaf.key, std::move(all)));
  }
  return TreeWriter(/*copies=*/false).Write(like, directory, /*depth=*/1);
}

}  // namespace rill
