// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_TORCHRL_TORCHRL_REPLAY_BUFFER_H_
#define RILL_FORMATS_TORCHRL_TORCHRL_REPLAY_BUFFER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/formats/memmap_options.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {

// The directory of TorchRL's ReplayBuffer.dumps and loads, in both directions.
// docs/formats/torchrl_replay_buffer.md says what is in it.
// replay/torchrl/torchrl.h makes a ReplayBuffer of it.

// State of its PrioritizedSampler.
struct TorchRlPriorities {
  double alpha = 0.6;
  double beta = 0.4;
  double epsilon = 1e-8;
  // The largest that was ever given, before epsilon and alpha, and whose it
  // was: what new rows get. None where no row was ever written.
  std::optional<double> max_priority = 1.0;
  int64_t max_row = 0;
  // float64 [at least the rows]: (priority + epsilon) ^ alpha of each row, step
  // after step with all lanes of a step side by side; 0 where none is.
  Tensor values = {};
};

// State of TorchRL's SamplerWithoutReplacement.
struct TorchRlEpoch {
  int64_t num_rows = 0;  // That the storage held when the epoch began.
  // int64 [k]: what is left of it, in order. None: no batch was drawn yet.
  std::optional<Tensor> remaining = std::nullopt;
  bool drop_last = false;
  bool ran_out = false;
};

// State of TorchRL's StalenessAwareSampler.
struct TorchRlStaleness {
  int64_t consumer_version = 0;
  int64_t max_staleness = -1;
};

// None: a sampler without a state (random, slices).
using TorchRlSampler = std::variant<std::monostate, TorchRlPriorities,
                                    TorchRlEpoch, TorchRlStaleness>;

// State of TorchRL's TensorDictMaxValueWriter.
struct TorchRlTopK {
  std::string rank_key = "next/reward";
  Tensor heap = {};  // [k, 2] of rank and row, float32 or float64, as a heap.
};

// Thread-safety: thread-compatible.
struct TorchRlReplayBuffer {
  enum class Form : uint8_t {
    kTensorDict,  // Of a dictionary.
    // For anything else whose leaves are tensors. A single tensor is the leaf
    // kTorchRlSingleTensor.
    kPytree,
    // FlatStorageCheckpointer, NestedStorageCheckpointer: observations once.
    kFlat,
    kNested,
  };

  Form form = Form::kTensorDict;
  // The places that were written, in their order (not in that of age): [steps],
  // or [steps, lanes ...].
  TensorDict rows = {};
  int64_t capacity = 0;  // Places, in steps.
  int64_t cursor = 0;    // The place of the next step.
  int64_t write_count = 0;
  // None is written as null, which TorchRL's `loads` puts over the number that
  // its user gave; its `sample()` then wants one each time.
  std::optional<int64_t> batch_size = std::nullopt;
  std::optional<int64_t> consume_after_n_samples = std::nullopt;
  TorchRlSampler sampler = {};
  // int64 [capacity], -1 where never written; where the writer counts them.
  std::optional<Tensor> generations = std::nullopt;
  std::optional<TorchRlTopK> top_k = std::nullopt;
  std::optional<Tensor> rng_state = std::nullopt;  // torch.Generator's, uint8.
  // Parts that were left out when it was read, and why: "prefetch.pkl",
  // "storage/agent". Not written.
  std::vector<RefusedEntry> refused = {};

  int64_t steps() const { return rows.batch_shape()[0]; }
  int64_t lanes() const { return rows.batch_shape().Suffix(1).num_elements(); }
  bool is_full() const { return steps() == capacity; }
};

inline constexpr char kTorchRlSingleTensor[] = "_-single-tensor-_";

// Keys that TorchRL's flat and nested checkpointers treat apart; they are not
// saved, so both sides must name the same.
struct TorchRlFlatKeys {
  std::vector<std::string> done = {"done", "truncated", "terminated"};
  std::vector<std::string> reward = {"reward"};
};

struct ReadTorchRlOptions {
  // For the rows and the sampler's values; flat and nested ones are copied.
  LoadMemmapOptions::Mode mode = LoadMemmapOptions::Mode::kMapReadOnly;
  // The saved sampler's options. Saves of old versions then hold another number
  // for max_priority, and it is made from the values.
  bool max_priority_within_buffer = false;
  TorchRlFlatKeys flat_keys = {};
};

// Everything in there is checked before it is used, and nothing is unpickled.
// Pickled parts, and parts of classes that are not known here, are named in
// `refused`, and the rest is read.
//
// NOT_FOUND where there is no such directory; DATA_LOSS where a file is
// missing, broken or too short, or files contradict one another;
// INVALID_ARGUMENT where the storage is of a kind that is not read (lists,
// ensembles), or for what LoadMemmapDirectory refuses. Each names the file and
// both sides. Thread-safety: thread-safe.
//
// Example (TorchRlReplayBufferTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(TorchRlReplayBuffer buffer,
//                         ReadTorchRlReplayBuffer(directory));
//   buffer.sampler = {};
//   RILL_RETURN_IF_ERROR(WriteTorchRlReplayBuffer(buffer, other));
absl::StatusOr<TorchRlReplayBuffer> ReadTorchRlReplayBuffer(
    const std::string& directory, const ReadTorchRlOptions& options = {});

struct WriteTorchRlOptions {
  // Adds the leaf `index` that TorchRL's TensorDict writers (the default of
  // its TensorDictReplayBuffer) keep in every row.
  bool add_index = false;
  TorchRlFlatKeys flat_keys = {};
};

// For a buffer of the same classes and capacity. Files of rows have the size
// that TorchRL wants, capacity x row, and take the room of the rows that there
// are: places without a row are holes. Equal buffers give equal bytes.
// Replaces what was saved at `directory` as a whole or not at all;
// FAILED_PRECONDITION where something else is there. INVALID_ARGUMENT names
// what the form cannot hold; with kFlat and kNested that is whatever would not
// read as it was. Flat and nested rows are laid out in memory first.
// Thread-safety: thread-safe for different directories.
absl::Status WriteTorchRlReplayBuffer(const TorchRlReplayBuffer& buffer,
                                      const std::string& directory,
                                      const WriteTorchRlOptions& options = {});

}  // namespace rill

#endif  // RILL_FORMATS_TORCHRL_TORCHRL_REPLAY_BUFFER_H_
