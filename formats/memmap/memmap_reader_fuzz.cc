// SPDX-License-Identifier: Apache-2.0
// Whole trees of files from memory: what is read can be listed for saving and
// reads the same.
// Input: paths and contents in turn, each up to a zero byte; but for elements,
// a byte says how many bytes they are.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/formats/memmap/memmap_files.h"
#include "rill/formats/memmap/memmap_reader.h"
#include "rill/formats/memmap/memmap_source.h"
#include "rill/formats/memmap_options.h"
#include "rill/formats/plain_path.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill::formats_internal {
namespace {

class MapSource : public MemmapSource {
 public:
  explicit MapSource(std::map<std::string, std::string> files)
      : files_(std::move(files)) {}

  std::string Where(absl::string_view path) const override {
    return absl::StrCat("Fuzz: \"", path, "\"");
  }
  absl::StatusOr<PathKind> LookAt(const std::string& path) const override {
    if (files_.contains(path)) return PathKind::kFile;
    const std::string inside = path.empty() ? "" : absl::StrCat(path, "/");
    const auto next = files_.lower_bound(inside);
    return next != files_.end() && absl::StartsWith(next->first, inside)
               ? PathKind::kDirectory
               : PathKind::kMissing;
  }
  absl::StatusOr<std::string> ReadText(const std::string& path,
                                       int64_t max_bytes) const override {
    const std::string& text = files_.at(path);
    RILL_FUZZ_CHECK(static_cast<int64_t>(text.size()) <= max_bytes);
    return text;
  }
  absl::StatusOr<Tensor> OpenLeaf(const std::string& path, DType dtype,
                                  const Shape& shape,
                                  int64_t bytes) const override {
    const std::string& content = files_.at(path);
    RILL_FUZZ_CHECK(bytes > 0);
    RILL_FUZZ_CHECK(shape.num_elements() * DTypeSize(dtype) == bytes);
    if (static_cast<int64_t>(content.size()) < bytes) {
      return absl::DataLossError(Where(path));
    }
    auto leaf = Tensor::Empty(dtype, shape);
    if (leaf.ok()) std::memcpy(leaf->raw_data(), content.data(), bytes);
    return leaf;
  }

 private:
  std::map<std::string, std::string> files_;
};

std::map<std::string, std::string> FilesOf(
    const std::vector<MemmapFile>& list) {
  std::map<std::string, std::string> files;
  for (const MemmapFile& file : list) {
    RILL_FUZZ_CHECK(IsPlainRelativePath(file.path));
    std::string content = file.text;
    if (file.leaf && file.leaf->size_bytes() > 0) {
      const auto flat = file.leaf->Contiguous();
      RILL_FUZZ_CHECK(flat.ok());
      content.assign(reinterpret_cast<const char*>(flat->raw_data()),
                     flat->size_bytes());
    }
    RILL_FUZZ_CHECK(files.emplace(file.path, std::move(content)).second);
  }
  return files;
}

void Try(const std::map<std::string, std::string>& files) {
  const MapSource source(files);
  std::vector<RefusedEntry> refused;
  LoadMemmapOptions options;
  const auto strict = ReadMemmapTree(source, options);
  options.refused = &refused;
  const auto dict = ReadMemmapTree(source, options);
  RILL_FUZZ_CHECK(!strict.ok() || (dict.ok() && refused.empty()));
  if (!dict.ok()) return;
  (void)dict->DebugString();
  const auto list = ListMemmapFiles("Fuzz", *dict);
  if (!list.ok()) return;
  const auto again = ReadMemmapTree(MapSource(FilesOf(*list)), {});
  RILL_FUZZ_CHECK(again.ok());
  RILL_FUZZ_CHECK(again->CheckEqual(*dict).ok());
}

}  // namespace
}  // namespace rill::formats_internal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rill::FuzzInput input(data, size);
  std::map<std::string, std::string> files;
  while (!input.is_empty()) {
    std::string path(input.TakeText());
    files[path] = std::string(absl::EndsWith(path, ".memmap")
                                  ? input.TakeBytes(input.Take<uint8_t>())
                                  : input.TakeText());
  }
  rill::formats_internal::Try(files);
  return 0;
}
