// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_TORCHRL_TORCHRL_JSON_H_
#define RILL_FORMATS_TORCHRL_TORCHRL_JSON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace rill::formats_internal {

// The JSON files of a saved TorchRL buffer, between text and struct, for
// docs/formats/torchrl_replay_buffer.md. `where` starts the messages: DATA_LOSS
// where the text is not such a file; INVALID_ARGUMENT where it asks for what is
// refused (sizes, depths, dtypes). A parsed value has one text.
// Thread-safety: thread-safe.

inline constexpr int64_t kMaxTorchRlJsonBytes = int64_t{1} << 20;

struct TorchRlBufferJson {  // buffer_metadata.json
  std::optional<int64_t> batch_size = std::nullopt;
  std::optional<int64_t> consume_after_n_samples = std::nullopt;
  friend bool operator==(const TorchRlBufferJson&,
                         const TorchRlBufferJson&) = default;
};
absl::StatusOr<TorchRlBufferJson> ParseTorchRlBuffer(absl::string_view where,
                                                     absl::string_view text);
std::string FormatTorchRlBuffer(const TorchRlBufferJson& json);

struct TorchRlStorageJson {  // storage/storage_metadata.json
  struct Leaf {
    std::string path;  // "y.1.z": components joined by dots.
    DType dtype = DType::kFloat32;
    Shape shape = {};
    friend bool operator==(const Leaf&, const Leaf&) = default;
  };
  int64_t len = 0;
  bool is_pytree = false;
  std::vector<Leaf> leaves = {};  // Of a pytree.
  friend bool operator==(const TorchRlStorageJson&,
                         const TorchRlStorageJson&) = default;
};
absl::StatusOr<TorchRlStorageJson> ParseTorchRlStorage(absl::string_view where,
                                                       absl::string_view text);
std::string FormatTorchRlStorage(const TorchRlStorageJson& json);

struct TorchRlPrioritiesJson {  // sampler/sampler_metadata.json
  double alpha = 0;
  double beta = 0;
  double epsilon = 0;
  std::optional<double> max_priority = std::nullopt;
  int64_t max_row = 0;
  int64_t capacity = 0;
  int64_t version = 1;
  friend bool operator==(const TorchRlPrioritiesJson&,
                         const TorchRlPrioritiesJson&) = default;
};
absl::StatusOr<TorchRlPrioritiesJson> ParseTorchRlPriorities(
    absl::string_view where, absl::string_view text);
std::string FormatTorchRlPriorities(const TorchRlPrioritiesJson& json);

struct TorchRlWriterJson {  // writer/metadata.json
  int64_t cursor = 0;
  std::optional<int64_t> write_count = std::nullopt;
  std::optional<Shape> generation_shape = std::nullopt;  // int64.
  // For a writer of largest values: a key as in key.h.
  std::optional<std::string> rank_key = std::nullopt;
  DType heap_dtype = DType::kFloat32;
  Shape heap_shape = {};
  friend bool operator==(const TorchRlWriterJson&,
                         const TorchRlWriterJson&) = default;
};
absl::StatusOr<TorchRlWriterJson> ParseTorchRlWriter(absl::string_view where,
                                                     absl::string_view text);
std::string FormatTorchRlWriter(const TorchRlWriterJson& json);

// Values that the flat checkpointers keep beside their leaves.
absl::StatusOr<int64_t> ParseTorchRlInt(absl::string_view where,
                                        absl::string_view text);
absl::StatusOr<bool> ParseTorchRlBool(absl::string_view where,
                                      absl::string_view text);
// [4, 2], or a number for one dimension; rank at least 1, no size 0.
absl::StatusOr<Shape> ParseTorchRlShape(absl::string_view where,
                                        absl::string_view text);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_TORCHRL_TORCHRL_JSON_H_
