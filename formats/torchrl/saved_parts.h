// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_TORCHRL_SAVED_PARTS_H_
#define RILL_FORMATS_TORCHRL_SAVED_PARTS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/formats/plain_path.h"
#include "rill/formats/torchrl/torchrl_json.h"
#include "rill/formats/torchrl/torchrl_replay_buffer.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::formats_internal {

// A saved TorchRL buffer that is read, file by file. Paths are relative to its
// directory. Thread-safety: thread-compatible.
class SavedTorchRl {
 public:
  // `buffer` takes what is refused.
  SavedTorchRl(std::string directory, const ReadTorchRlOptions& options,
               TorchRlReplayBuffer* buffer)
      : directory_(std::move(directory)), options_(options), buffer_(buffer) {}

  const ReadTorchRlOptions& options() const { return options_; }
  std::string Path(absl::string_view path) const;
  // The beginning of messages.
  std::string Where(absl::string_view path) const;
  absl::StatusOr<PathKind> LookAt(absl::string_view path) const;
  // DATA_LOSS where the file is missing.
  absl::StatusOr<std::string> ReadText(absl::string_view path) const;
  // A file of nothing but elements, none where there are none.
  absl::StatusOr<Tensor> ReadLeaf(absl::string_view path, DType dtype,
                                  const Shape& shape) const;
  // A dictionary, its refused entries under the path.
  absl::StatusOr<TensorDict> ReadDict(absl::string_view path,
                                      LoadMemmapOptions::Mode mode) const;
  void Refuse(absl::string_view path, absl::string_view why) const;

 private:
  std::string directory_;
  const ReadTorchRlOptions& options_;
  TorchRlReplayBuffer* buffer_;
};

// Reads "storage": form, rows, capacity.
absl::Status ReadTorchRlRows(const SavedTorchRl& saved,
                             TorchRlReplayBuffer* buffer);
// Reads "sampler", which may be missing.
absl::Status ReadTorchRlSampler(const SavedTorchRl& saved,
                                TorchRlReplayBuffer* buffer);

// Files of rows, below the new directory `storage`.
absl::Status WriteTorchRlRows(const TorchRlReplayBuffer& buffer,
                              const WriteTorchRlOptions& options,
                              const std::string& storage);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_TORCHRL_SAVED_PARTS_H_
