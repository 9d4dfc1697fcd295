// SPDX-License-Identifier: Apache-2.0
// ReadTorchRlReplayBuffer.
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/torchrl/saved_parts.h"
#include "rill/formats/torchrl/torchrl_json.h"
#include "rill/formats/torchrl/torchrl_replay_buffer.h"

namespace rill {
namespace {

using formats_internal::PathKind;
using formats_internal::SavedTorchRl;
using formats_internal::TorchRlWriterJson;

constexpr char kMetadata[] = "buffer_metadata.json";
constexpr char kWriter[] = "writer/metadata.json";
constexpr char kPickle[] = "a pickle, which would run code";

// The pickle of a queue that holds nothing, byte for byte. Every buffer has
// one. Its bytes alone tell it from others: no pickle is opened.
constexpr absl::string_view kEmptyPrefetch(
    "\x80\x04\x95\x27\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x07version\x94K\x01"
    "\x8c\x08"
    "capacity\x94K\x00\x8c\x05queue\x94)u.",
    50);

absl::Status ReadMetadata(const SavedTorchRl& saved,
                          TorchRlReplayBuffer* buffer) {
  RILL_ASSIGN_OR_RETURN(const std::string text, saved.ReadText(kMetadata));
  RILL_ASSIGN_OR_RETURN(
      const formats_internal::TorchRlBufferJson json,
      formats_internal::ParseTorchRlBuffer(saved.Where(kMetadata), text));
  buffer->batch_size = json.batch_size;
  buffer->consume_after_n_samples = json.consume_after_n_samples;
  return absl::OkStatus();
}

// The heap of a writer of largest values: rank and row of each kept row. Rows
// are numbers of the rank's dtype.
absl::Status ReadTopK(const SavedTorchRl& saved, const TorchRlWriterJson& json,
                      TorchRlReplayBuffer* buffer) {
  TorchRlTopK top_k = {.rank_key = *json.rank_key};
  const Shape& shape = json.heap_shape;
  const bool is_empty = shape.num_elements() == 0;
  if ((!is_empty && (shape.rank() != 2 || shape[1] != 2)) ||
      (json.heap_dtype != DType::kFloat32 &&
       json.heap_dtype != DType::kFloat64)) {
    return DataLoss(saved.Where(kWriter), ": got a heap of ",
                    DTypeName(json.heap_dtype), shape.ToString(),
                    ", want float32 or float64 [rows, 2]");
  }
  RILL_ASSIGN_OR_RETURN(
      top_k.heap,
      saved.ReadLeaf("writer/current_top_values.memmap", json.heap_dtype,
                     is_empty ? Shape({0, 2}) : shape));
  RILL_ASSIGN_OR_RETURN(const Tensor numbers,
                        Cast(top_k.heap, DType::kFloat64));
  for (int64_t i = 0; i < numbers.shape()[0]; ++i) {
    const double row = numbers.data<double>()[2 * i + 1];
    if (row >= 0 && row < static_cast<double>(buffer->steps())) continue;
    return DataLoss(saved.Where(kWriter), ": got a heap with the row ", row,
                    ", want one of ", buffer->steps());
  }
  buffer->top_k = std::move(top_k);
  return absl::OkStatus();
}

// A writer of a dataset has no state: its rows were all written in order. Comes
// after the rows, whose number and capacity the cursor must fit.
absl::Status ReadWriter(const SavedTorchRl& saved,
                        TorchRlReplayBuffer* buffer) {
  RILL_ASSIGN_OR_RETURN(const PathKind kind, saved.LookAt("writer"));
  if (kind == PathKind::kMissing) {
    buffer->write_count = buffer->steps();
    buffer->cursor = buffer->write_count % buffer->capacity;
    return absl::OkStatus();
  }
  RILL_ASSIGN_OR_RETURN(const std::string text, saved.ReadText(kWriter));
  RILL_ASSIGN_OR_RETURN(
      const TorchRlWriterJson json,
      formats_internal::ParseTorchRlWriter(saved.Where(kWriter), text));
  if (json.cursor >= buffer->capacity) {
    return DataLoss(saved.Where(kWriter), ": cursor: got ", json.cursor,
                    ", want below the ", buffer->capacity, " places");
  }
  buffer->cursor = json.cursor;
  buffer->write_count = json.write_count.value_or(buffer->steps());
  // TorchRL counts in 32 bits, and goes on below 0.
  if (buffer->write_count < 0) buffer->write_count += int64_t{1} << 32;
  if (buffer->write_count < 0) {
    return DataLoss(saved.Where(kWriter), ": write_count: got ",
                    *json.write_count, ", want >= 0");
  }
  if (json.generation_shape) {
    if (*json.generation_shape != Shape({buffer->capacity})) {
      return DataLoss(saved.Where(kWriter), ": generation_shape: got ",
                      json.generation_shape->ToString(), ", want [",
                      buffer->capacity, "]");
    }
    RILL_ASSIGN_OR_RETURN(
        buffer->generations,
        saved.ReadLeaf("writer/generation.memmap", DType::kInt64,
                       *json.generation_shape));
  }
  return json.rank_key ? ReadTopK(saved, json, buffer) : absl::OkStatus();
}

absl::Status ReadRngState(const SavedTorchRl& saved,
                          TorchRlReplayBuffer* buffer) {
  RILL_ASSIGN_OR_RETURN(const PathKind kind, saved.LookAt("rng_state"));
  if (kind == PathKind::kMissing) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(
      const TensorDict dict,
      saved.ReadDict("rng_state", LoadMemmapOptions::Mode::kCopy));
  const Tensor* state = dict.Find("rng_state");
  if (state == nullptr || state->dtype() != DType::kUInt8 ||
      state->rank() != 1) {
    return DataLoss(saved.Where("rng_state"), ": got ", dict.DebugString(),
                    ", want \"rng_state\", uint8 of rank 1");
  }
  buffer->rng_state = *state;
  return absl::OkStatus();
}

// 51 bytes would be another file: ReadFile refuses more than 50.
absl::Status NamePickles(const SavedTorchRl& saved) {
  RILL_ASSIGN_OR_RETURN(const PathKind prefetch, saved.LookAt("prefetch.pkl"));
  if (prefetch != PathKind::kMissing) {
    const auto content = ReadFile(saved.Path("prefetch.pkl"), 50);
    if (!content.ok() || *content != kEmptyPrefetch) {
      saved.Refuse("prefetch.pkl", kPickle);
    }
  }
  RILL_ASSIGN_OR_RETURN(const PathKind transform, saved.LookAt("transform.t"));
  if (transform != PathKind::kMissing) saved.Refuse("transform.t", kPickle);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TorchRlReplayBuffer> ReadTorchRlReplayBuffer(
    const std::string& directory, const ReadTorchRlOptions& options) {
  if (!IsDirectory(directory)) {
    return NotFound("ReadTorchRlReplayBuffer: \"", directory,
                    "\": got no directory");
  }
  TorchRlReplayBuffer buffer;
  const SavedTorchRl saved(directory, options, &buffer);
  // A save without metadata broke off. Rows come before what is checked against
  // them.
  RILL_RETURN_IF_ERROR(ReadMetadata(saved, &buffer));
  RILL_RETURN_IF_ERROR(ReadTorchRlRows(saved, &buffer));
  RILL_RETURN_IF_ERROR(ReadWriter(saved, &buffer));
  RILL_RETURN_IF_ERROR(ReadTorchRlSampler(saved, &buffer));
  RILL_RETURN_IF_ERROR(ReadRngState(saved, &buffer));
  RILL_RETURN_IF_ERROR(NamePickles(saved));
  return buffer;
}

}  // namespace rill
