// SPDX-License-Identifier: Apache-2.0
// WriteTorchRlReplayBuffer.
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/replaceable.h"
#include "rill/formats/torchrl/saved_parts.h"
#include "rill/formats/torchrl/torchrl_json.h"
#include "rill/formats/torchrl/torchrl_replay_buffer.h"
#include "rill/tensordict/non_tensor.h"

namespace rill {
namespace {

using formats_internal::TorchRlPrioritiesJson;
using formats_internal::TorchRlWriterJson;

constexpr char kCaller[] = "WriteTorchRlReplayBuffer";
constexpr char kMetadata[] = "buffer_metadata.json";

// The value of TorchRL's min tree where nothing was written.
constexpr double kNeverWritten = 3.4028234663852886e38;

absl::Status Bad(absl::string_view what, absl::string_view got,
                 absl::string_view want) {
  return InvalidArgument(kCaller, ": ", what, ": got ", got, ", want ", want);
}

absl::Status CheckLeaf(absl::string_view what, const Tensor& tensor,
                       DType dtype, int rank) {
  if (tensor.is_valid() && tensor.dtype() == dtype && tensor.rank() == rank) {
    return absl::OkStatus();
  }
  return Bad(what, tensor.DebugString(),
             absl::StrCat(DTypeName(dtype), " of rank ", rank));
}

// Refuses, before a file is made, what ReadTorchRlReplayBuffer would refuse.
absl::Status CheckBuffer(const TorchRlReplayBuffer& buffer) {
  const Shape& shape = buffer.rows.batch_shape();
  if (shape.rank() == 0 || shape.Suffix(1).num_elements() == 0) {
    return Bad("rows", shape.ToString(), "[steps] or [steps, lanes]");
  }
  if (buffer.capacity <= 0 || shape[0] > buffer.capacity) {
    return Bad("capacity", absl::StrCat(buffer.capacity),
               absl::StrCat("> 0, and at least the ", shape[0], " steps"));
  }
  if (buffer.cursor < 0 || buffer.cursor >= buffer.capacity) {
    return Bad("cursor", absl::StrCat(buffer.cursor),
               absl::StrCat("in [0, ", buffer.capacity, ")"));
  }
  if (buffer.write_count < 0) {
    return Bad("write_count", absl::StrCat(buffer.write_count), ">= 0");
  }
  if (buffer.rows.num_leaves() == 0) return Bad("rows", "no leaves", "some");
  if (buffer.generations) {
    RILL_RETURN_IF_ERROR(
        CheckLeaf("generations", *buffer.generations, DType::kInt64, 1));
    if (buffer.generations->shape()[0] != buffer.capacity) {
      return Bad("generations", buffer.generations->shape().ToString(),
                 absl::StrCat("[", buffer.capacity, "]"));
    }
  }
  return absl::OkStatus();
}

// A file of a tensor's elements.
absl::Status WriteLeaf(const Tensor& tensor, const std::string& path) {
  if (tensor.num_elements() == 0) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(const Tensor host, tensor.To(Device::Cpu()));
  RILL_ASSIGN_OR_RETURN(const Tensor flat, host.Contiguous());
  return WriteFileAtomically(path,
                             {reinterpret_cast<const char*>(flat.raw_data()),
                              static_cast<size_t>(flat.size_bytes())});
}

absl::StatusOr<Tensor> ScalarOf(int64_t value) {
  return Tensor::From<int64_t>({value}, {});
}
absl::StatusOr<Tensor> ScalarOf(bool value) {
  RILL_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Zeros(DType::kBool, {}));
  *tensor.data<bool>() = value;
  return tensor;
}

template <typename T>
absl::Status SetScalar(const char* name, T value, TensorDict* dict) {
  RILL_ASSIGN_OR_RETURN(Tensor tensor, ScalarOf(value));
  return dict->Set(name, std::move(tensor));
}

// --- Samplers ----------------------------------------------------------------

// One overload for each state, chosen by std::visit. Files are those that
// TorchRL's sampler of that name writes.
absl::Status WriteSampler(const std::monostate&, const TorchRlReplayBuffer&,
                          const std::string&) {
  return absl::OkStatus();
}

absl::Status WriteSampler(const TorchRlPriorities& priorities,
                          const TorchRlReplayBuffer& buffer,
                          const std::string& directory) {
  RILL_RETURN_IF_ERROR(
      CheckLeaf("sampler's values", priorities.values, DType::kFloat64, 1));
  const int64_t rows = buffer.rows.batch_shape().num_elements();
  RILL_ASSIGN_OR_RETURN(const Tensor values, priorities.values.Contiguous());
  const int64_t capacity = values.shape()[0];
  if (capacity < rows || capacity == 0) {
    return Bad("sampler's values", absl::StrCat(capacity),
               absl::StrCat("> 0, and at least the ", rows, " rows"));
  }
  for (const double number :
       {priorities.alpha, priorities.beta, priorities.epsilon,
        priorities.max_priority.value_or(1.0)}) {
    if (std::isfinite(number) && number >= 0) continue;
    return Bad("alpha, beta, epsilon, max_priority", absl::StrCat(number),
               "finite ones >= 0");
  }
  if (priorities.max_row < 0 || priorities.max_row >= capacity) {
    return Bad("max_row", absl::StrCat(priorities.max_row),
               absl::StrCat("in [0, ", capacity, ")"));
  }
  // TorchRL's min tree is the same leaves, with the largest float where none
  // is: it must not win a minimum.
  RILL_ASSIGN_OR_RETURN(const Tensor smallest, values.Clone());
  for (int64_t i = 0; i < capacity; ++i) {
    if (i >= rows) smallest.data<double>()[i] = kNeverWritten;
  }
  RILL_RETURN_IF_ERROR(CreateDirectories(directory));
  RILL_RETURN_IF_ERROR(
      WriteLeaf(values, JoinPath(directory, "sumtree.memmap")));
  RILL_RETURN_IF_ERROR(
      WriteLeaf(smallest, JoinPath(directory, "mintree.memmap")));
  // TorchRL has a default of 1 as long as there is none, and cannot save that.
  const TorchRlPrioritiesJson json = {
      .alpha = priorities.alpha,
      .beta = priorities.beta,
      .epsilon = priorities.epsilon,
      .max_priority = priorities.max_priority.value_or(1.0),
      .max_row = priorities.max_row,
      .capacity = capacity};
  return WriteFileAtomically(JoinPath(directory, "sampler_metadata.json"),
                             FormatTorchRlPriorities(json));
}

absl::Status WriteSampler(const TorchRlEpoch& epoch, const TorchRlReplayBuffer&,
                          const std::string& directory) {
  TensorDict dict;
  RILL_RETURN_IF_ERROR(SetScalar("len_storage", epoch.num_rows, &dict));
  if (epoch.remaining) {
    RILL_RETURN_IF_ERROR(
        CheckLeaf("remaining", *epoch.remaining, DType::kInt64, 1));
    RILL_RETURN_IF_ERROR(dict.Set("_sample_list", *epoch.remaining));
  } else {
    RILL_RETURN_IF_ERROR(dict.Set("_sample_list", NonTensor{"null"}));
  }
  RILL_RETURN_IF_ERROR(SetScalar("drop_last", epoch.drop_last, &dict));
  RILL_RETURN_IF_ERROR(SetScalar("_ran_out", epoch.ran_out, &dict));
  return SaveMemmapDirectory(dict, directory);
}

absl::Status WriteSampler(const TorchRlStaleness& staleness,
                          const TorchRlReplayBuffer&,
                          const std::string& directory) {
  TensorDict dict;
  RILL_RETURN_IF_ERROR(
      SetScalar("consumer_version", staleness.consumer_version, &dict));
  RILL_RETURN_IF_ERROR(
      SetScalar("max_staleness", staleness.max_staleness, &dict));
  return SaveMemmapDirectory(dict, directory);
}

// --- Writers -----------------------------------------------------------------

absl::Status WriteWriter(const TorchRlReplayBuffer& buffer,
                         const std::string& directory) {
  TorchRlWriterJson json = {.cursor = buffer.cursor,
                            .write_count = buffer.write_count};
  RILL_RETURN_IF_ERROR(CreateDirectories(directory));
  if (buffer.generations) {
    json.generation_shape = buffer.generations->shape();
    RILL_RETURN_IF_ERROR(WriteLeaf(*buffer.generations,
                                   JoinPath(directory, "generation.memmap")));
  }
  if (buffer.top_k) {
    const Tensor& heap = buffer.top_k->heap;
    if (heap.rank() != 2 || heap.shape()[1] != 2 ||
        (heap.dtype() != DType::kFloat32 && heap.dtype() != DType::kFloat64)) {
      return Bad("top_k's heap", heap.DebugString(),
                 "float32 or float64 [rows, 2]");
    }
    json.rank_key = buffer.top_k->rank_key;
    json.heap_dtype = heap.dtype();
    json.heap_shape = heap.shape();
    RILL_RETURN_IF_ERROR(
        WriteLeaf(heap, JoinPath(directory, "current_top_values.memmap")));
  }
  return WriteFileAtomically(JoinPath(directory, "metadata.json"),
                             FormatTorchRlWriter(json));
}

// Into a new directory that replaces the old one whole (ReplaceDirectory), so
// the order of the parts does not matter.
absl::Status WriteAll(const TorchRlReplayBuffer& buffer,
                      const WriteTorchRlOptions& options,
                      const std::string& directory) {
  RILL_RETURN_IF_ERROR(formats_internal::WriteTorchRlRows(
      buffer, options, JoinPath(directory, "storage")));
  RILL_RETURN_IF_ERROR(std::visit(
      [&](const auto& sampler) {
        return WriteSampler(sampler, buffer, JoinPath(directory, "sampler"));
      },
      buffer.sampler));
  RILL_RETURN_IF_ERROR(WriteWriter(buffer, JoinPath(directory, "writer")));
  if (buffer.rng_state) {
    RILL_RETURN_IF_ERROR(
        CheckLeaf("rng_state", *buffer.rng_state, DType::kUInt8, 1));
    TensorDict dict;
    RILL_RETURN_IF_ERROR(dict.Set("rng_state", *buffer.rng_state));
    RILL_RETURN_IF_ERROR(
        SaveMemmapDirectory(dict, JoinPath(directory, "rng_state")));
  }
  const formats_internal::TorchRlBufferJson json = {
      .batch_size = buffer.batch_size,
      .consume_after_n_samples = buffer.consume_after_n_samples};
  return WriteFileAtomically(JoinPath(directory, kMetadata),
                             formats_internal::FormatTorchRlBuffer(json));
}

}  // namespace

absl::Status WriteTorchRlReplayBuffer(const TorchRlReplayBuffer& buffer,
                                      const std::string& directory,
                                      const WriteTorchRlOptions& options) {
  RILL_RETURN_IF_ERROR(CheckBuffer(buffer));
  RILL_RETURN_IF_ERROR(CheckReplaceable(kCaller, directory, kMetadata));
  return ReplaceDirectory(directory, [&](const std::string& fresh) {
    return WriteAll(buffer, options, fresh);
  });
}

}  // namespace rill
