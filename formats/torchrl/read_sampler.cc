// SPDX-License-Identifier: Apache-2.0
// ReadTorchRlSampler: the state of every kind of sampler.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/torchrl/saved_parts.h"

namespace rill::formats_internal {
namespace {

constexpr absl::string_view kMetadata = "sampler/sampler_metadata.json";

// The largest value, back to a priority, and where it is. A value is (priority
// + epsilon) ^ alpha, so the inverse is that to the power 1 / alpha less
// epsilon, cut at 0 where rounding leads below it.
void RecomputeMax(TorchRlPriorities* priorities) {
  const Tensor& values = priorities->values;
  const absl::Span<const double> all(values.data<double>(),
                                     values.num_elements());
  const auto max = std::max_element(all.begin(), all.end());
  // All values are 1, whatever was given.
  if (priorities->alpha == 0) return;
  if (max == all.end() || !(*max > 0)) {
    priorities->max_priority = std::nullopt;
    return;
  }
  priorities->max_priority = std::max(
      std::pow(*max, 1 / priorities->alpha) - priorities->epsilon, 0.0);
  priorities->max_row = max - all.begin();
}

// The sum tree alone: its leaves are the values, and the min tree has the same.
absl::Status ReadPriorities(const SavedTorchRl& saved,
                            TorchRlReplayBuffer* buffer) {
  RILL_ASSIGN_OR_RETURN(const std::string text, saved.ReadText(kMetadata));
  RILL_ASSIGN_OR_RETURN(const TorchRlPrioritiesJson json,
                        ParseTorchRlPriorities(saved.Where(kMetadata), text));
  const int64_t rows = buffer->rows.batch_shape().num_elements();
  if (json.capacity < rows) {
    return DataLoss(saved.Where(kMetadata), ": _max_capacity: got ",
                    json.capacity, ", want at least the ", rows, " rows");
  }
  TorchRlPriorities priorities = {.alpha = json.alpha,
                                  .beta = json.beta,
                                  .epsilon = json.epsilon,
                                  .max_priority = json.max_priority,
                                  .max_row = json.max_row};
  RILL_ASSIGN_OR_RETURN(priorities.values,
                        saved.ReadLeaf("sampler/sumtree.memmap",
                                       DType::kFloat64, {json.capacity}));
  // Old saves wrote a value of the tree there. Whether they did depends on an
  // option of the sampler, which is not saved: the caller has to know.
  if (json.version < 1 && saved.options().max_priority_within_buffer) {
    RecomputeMax(&priorities);
  }
  buffer->sampler = std::move(priorities);
  return absl::OkStatus();
}

// A leaf of the sampler's dictionary, contiguous; DATA_LOSS where it is missing
// or of another dtype or rank.
absl::StatusOr<Tensor> Leaf(const SavedTorchRl& saved, const TensorDict& dict,
                            const char* name, DType dtype, int rank) {
  const Tensor* leaf = dict.Find(name);
  if (leaf == nullptr || leaf->dtype() != dtype || leaf->rank() != rank) {
    return DataLoss(saved.Where("sampler"), ": \"", name, "\": got ",
                    leaf == nullptr ? std::string("none") : leaf->DebugString(),
                    ", want ", DTypeName(dtype), " of rank ", rank);
  }
  return leaf->Contiguous();
}

absl::StatusOr<int64_t> Int(const SavedTorchRl& saved, const TensorDict& dict,
                            const char* name) {
  RILL_ASSIGN_OR_RETURN(const Tensor leaf,
                        Leaf(saved, dict, name, DType::kInt64, 0));
  return leaf.Item<int64_t>();
}

// A byte of a file may be other than 0 and 1.
absl::StatusOr<bool> Bool(const SavedTorchRl& saved, const TensorDict& dict,
                          const char* name) {
  RILL_ASSIGN_OR_RETURN(const Tensor leaf,
                        Leaf(saved, dict, name, DType::kBool, 0));
  return *leaf.data<uint8_t>() != 0;
}

absl::Status ReadEpoch(const SavedTorchRl& saved, const TensorDict& dict,
                       TorchRlReplayBuffer* buffer) {
  TorchRlEpoch epoch;
  RILL_ASSIGN_OR_RETURN(epoch.num_rows, Int(saved, dict, "len_storage"));
  RILL_ASSIGN_OR_RETURN(epoch.drop_last, Bool(saved, dict, "drop_last"));
  RILL_ASSIGN_OR_RETURN(epoch.ran_out, Bool(saved, dict, "_ran_out"));
  const int64_t rows = buffer->rows.batch_shape().num_elements();
  if (epoch.num_rows < 0 || epoch.num_rows > rows) {
    return DataLoss(saved.Where("sampler"), ": len_storage: got ",
                    epoch.num_rows, ", want at most the ", rows, " rows");
  }
  // A value in its place is null: no batch was drawn yet.
  if (dict.Kind("_sample_list") != EntryKind::kNonTensor) {
    RILL_ASSIGN_OR_RETURN(epoch.remaining,
                          Leaf(saved, dict, "_sample_list", DType::kInt64, 1));
    const absl::Span<const int64_t> left(epoch.remaining->data<int64_t>(),
                                         epoch.remaining->num_elements());
    for (const int64_t row : left) {
      if (row >= 0 && row < epoch.num_rows) continue;
      return DataLoss(saved.Where("sampler"), ": _sample_list: got row ", row,
                      ", want one of ", epoch.num_rows);
    }
  }
  buffer->sampler = std::move(epoch);
  return absl::OkStatus();
}

absl::Status ReadStaleness(const SavedTorchRl& saved, const TensorDict& dict,
                           TorchRlReplayBuffer* buffer) {
  TorchRlStaleness staleness;
  RILL_ASSIGN_OR_RETURN(staleness.consumer_version,
                        Int(saved, dict, "consumer_version"));
  RILL_ASSIGN_OR_RETURN(staleness.max_staleness,
                        Int(saved, dict, "max_staleness"));
  buffer->sampler = staleness;
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadTorchRlSampler(const SavedTorchRl& saved,
                                TorchRlReplayBuffer* buffer) {
  RILL_ASSIGN_OR_RETURN(const PathKind kind, saved.LookAt("sampler"));
  if (kind == PathKind::kMissing) return absl::OkStatus();
  // No file names the class of the sampler, so what is there tells it.
  RILL_ASSIGN_OR_RETURN(const PathKind values,
                        saved.LookAt("sampler/sumtree.memmap"));
  RILL_ASSIGN_OR_RETURN(const PathKind metadata, saved.LookAt(kMetadata));
  if (values != PathKind::kMissing || metadata != PathKind::kMissing) {
    return ReadPriorities(saved, buffer);
  }
  RILL_ASSIGN_OR_RETURN(const PathKind meta, saved.LookAt("sampler/meta.json"));
  if (meta != PathKind::kMissing) {
    RILL_ASSIGN_OR_RETURN(
        const TensorDict dict,
        saved.ReadDict("sampler", LoadMemmapOptions::Mode::kCopy));
    if (dict.Contains("len_storage")) return ReadEpoch(saved, dict, buffer);
    if (dict.Contains("consumer_version")) {
      return ReadStaleness(saved, dict, buffer);
    }
  }
  // Another class: named file by file.
  RILL_ASSIGN_OR_RETURN(const auto names, ListDirectory(saved.Path("sampler")));
  for (const std::string& name : names) {
    saved.Refuse(JoinPath("sampler", name),
                 absl::EndsWith(name, ".pt")
                     ? "a pickle, which would run code"
                     : "state of a class of sampler that is not known here");
  }
  return absl::OkStatus();
}

}  // namespace rill::formats_internal
