// SPDX-License-Identifier: Apache-2.0
// LoadMemmapDirectory: the files below a directory.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/file.h"
#include "rill/base/mapped_file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/memmap/mapped_leaf.h"
#include "rill/formats/memmap/memmap_reader.h"
#include "rill/formats/memmap/memmap_source.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/plain_path.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using formats_internal::MemmapSource;
using formats_internal::PathKind;
using Mode = LoadMemmapOptions::Mode;

constexpr absl::string_view kCaller = "LoadMemmapDirectory";

class DirectorySource : public MemmapSource {
 public:
  DirectorySource(std::string directory, Mode mode)
      : directory_(std::move(directory)), mode_(mode) {}

  std::string Where(absl::string_view path) const override {
    return absl::StrCat(kCaller, ": \"", JoinPath(directory_, path), "\"");
  }
  absl::StatusOr<PathKind> LookAt(const std::string& path) const override {
    return formats_internal::LookAt(kCaller, JoinPath(directory_, path));
  }
  absl::StatusOr<std::string> ReadText(const std::string& path,
                                       int64_t max_bytes) const override {
    return ReadFile(JoinPath(directory_, path), max_bytes);
  }

  absl::StatusOr<Tensor> OpenLeaf(const std::string& path, DType dtype,
                                  const Shape& shape,
                                  int64_t bytes) const override {
    const bool is_writable = mode_ == Mode::kMapShared;
    RILL_ASSIGN_OR_RETURN(
        const std::shared_ptr<MappedFile> file,
        MappedFile::Open(JoinPath(directory_, path),
                         is_writable ? MappedFile::Mode::kReadWrite
                                     : MappedFile::Mode::kReadOnly,
                         bytes));
    return formats_internal::MappedLeaf(Where(path), file, /*offset=*/0, dtype,
                                        shape, mode_);
  }

 private:
  std::string directory_;
  Mode mode_;
};

}  // namespace

absl::StatusOr<TensorDict> LoadMemmapDirectory(
    const std::string& directory, const LoadMemmapOptions& options) {
  return ReadMemmapTree(DirectorySource(directory, options.mode), options);
}

absl::StatusOr<LazyStack> LoadMemmapLazyStack(
    const std::string& directory, const LoadMemmapOptions& options) {
  return ReadMemmapLazyStack(DirectorySource(directory, options.mode), options);
}

}  // namespace rill
