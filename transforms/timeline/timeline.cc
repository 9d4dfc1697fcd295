// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/timeline/timeline.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "rill/base/status_macros.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/tensordict/dim_names.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/rows/device_leaves.h"
#include "rill/transforms/rows/group_ends.h"
#include "rill/transforms/timeline/stop_kernels.h"

namespace rill::transforms_internal {
namespace {

constexpr absl::string_view kLaneDone = "next/done";

// Flags of a group of agents: "next/agents/done".
bool IsOfGroup(absl::string_view done_key) {
  absl::ConsumePrefix(&done_key, "next/");
  return absl::StrContains(done_key, '/');
}

std::string ShapeText(const TensorDict& batch) {
  return absl::StrCat(batch.batch_shape().ToString(), " (",
                      absl::StrJoin(batch.dim_names(), ", "), ")");
}

bool AreStrangers(const TensorDict& batch) {
  const std::vector<std::string>& names = batch.dim_names();
  return !names.empty() && names.back() == kRowsName;
}

absl::Status CheckTimeIsNotBefore(absl::string_view caller,
                                  const TensorDict& batch) {
  const std::vector<std::string>& names = batch.dim_names();
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    if (names[i] != kTimeName) continue;
    return InvalidArgument(caller, ": batch ", ShapeText(batch),
                           ": got time in dimension ", i,
                           ", want it last; ops::Transpose moves it");
  }
  return absl::OkStatus();
}

absl::Status NoEnds(absl::string_view caller, absl::string_view done_key) {
  return NotFound(caller, ": \"", done_key,
                  "\": got neither that nor its parts \"terminated\" and "
                  "\"truncated\" beside it, want the ends of trajectories");
}

// Sets `stops` where a row of a line differs in `leaf` from the one behind it.
// Where `stops` is not the caller's own, true says that something is to be set.
bool MarkChanges(const Tensor& leaf, int64_t time, bool is_own, bool* stops,
                 int64_t rows) {
  const int64_t width = leaf.size_bytes() / rows;
  for (int64_t row = 0; row + 1 < rows; ++row) {
    if (stops[row] || (row + 1) % time == 0) continue;
    const std::byte* const at = leaf.raw_data() + row * width;
    if (std::memcmp(at, at + width, static_cast<size_t>(width)) == 0) continue;
    if (!is_own) return true;
    stops[row] = true;
  }
  return false;
}

}  // namespace

absl::Status CheckTimeIsLast(absl::string_view caller,
                             const TensorDict& batch) {
  if (!AreStrangers(batch)) return CheckTimeIsNotBefore(caller, batch);
  return InvalidArgument(
      caller, ": batch ", ShapeText(batch),
      ": got rows that do not follow one another, want steps in order of time; "
      "take a unit of marked slices or sequences of single steps (MakeSlices, "
      "MakeSequences)");
}

namespace {

// The flags that ReadEnds joins.
absl::StatusOr<EndKeys> FindEndKeys(absl::string_view caller,
                                    absl::string_view done_key,
                                    const TensorDict& batch) {
  const auto has = [&](absl::string_view key) {
    // An entry of another kind is named by ReadLeaf, but for a dictionary.
    return batch.Contains(key) && batch.FindDict(key) == nullptr;
  };
  EndKeys keys = EndsOf(done_key, has);
  if (keys.empty()) return NoEnds(caller, done_key);
  if (IsOfGroup(done_key)) {
    for (std::string& key : EndsOf(kLaneDone, has)) {
      keys.push_back(std::move(key));
    }
  }
  return keys;
}

// With `stops_too` the stops, else the ends.
absl::StatusOr<Tensor> ReadOnDevice(absl::string_view caller,
                                    absl::string_view done_key, bool stops_too,
                                    const TensorDict& batch,
                                    DeviceWork::Call* call) {
  RILL_ASSIGN_OR_RETURN(const EndKeys keys,
                        FindEndKeys(caller, done_key, batch));
  const Shape& batch_shape = batch.batch_shape();
  const Shape shape = batch_shape.Concat({1});
  StopKernel kernel = {.rows = batch_shape.num_elements()};
  for (const std::string& key : keys) {
    RILL_ASSIGN_OR_RETURN(
        const Tensor leaf,
        ReadDeviceLeaf(caller, key, DType::kBool, shape, batch, call));
    kernel.flags[kernel.num_flags++] = leaf.data<uint8_t>();
  }
  RILL_ASSIGN_OR_RETURN(Tensor stops, call->Take(DType::kBool, shape));
  if (kernel.rows == 0) return stops;
  if (stops_too) {
    kernel.all_stop = AreStrangers(batch);
    kernel.time = batch_shape[batch_shape.rank() - 1];
    for (const absl::string_view key : PieceKeys()) {
      if (batch.Find(key) == nullptr) continue;
      RILL_ASSIGN_OR_RETURN(const Tensor leaf,
                            ReadDeviceLeaf(caller, key, batch, call));
      kernel.pieces[kernel.num_pieces++] = {leaf.data<uint8_t>(),
                                            leaf.size_bytes() / kernel.rows};
    }
  }
  kernel.stops = stops.data<uint8_t>();
  RILL_RETURN_IF_ERROR(
      LaunchKernel(kernel, GridFor(kernel.rows), call->stream()))
      << caller;
  return stops;
}

}  // namespace

absl::StatusOr<Tensor> ReadEnds(absl::string_view caller,
                                absl::string_view done_key,
                                const TensorDict& batch,
                                DeviceWork::Call* call) {
  if (call != nullptr) {
    return ReadOnDevice(caller, done_key, /*stops_too=*/false, batch, call);
  }
  RILL_ASSIGN_OR_RETURN(const EndKeys keys,
                        FindEndKeys(caller, done_key, batch));
  const Shape shape = batch.batch_shape().Concat({1});
  RILL_ASSIGN_OR_RETURN(Tensor ends,
                        ReadLeaf(caller, keys[0], DType::kBool, shape, batch));
  if (keys.size() == 1) return ends;
  RILL_ASSIGN_OR_RETURN(ends, ends.Clone());
  for (size_t k = 1; k < keys.size(); ++k) {
    RILL_ASSIGN_OR_RETURN(
        const Tensor more,
        ReadLeaf(caller, keys[k], DType::kBool, shape, batch));
    for (int64_t i = 0; i < ends.num_elements(); ++i) {
      ends.data<bool>()[i] |= more.data<bool>()[i];
    }
  }
  return ends;
}

absl::Status CheckHasEnds(absl::string_view caller, absl::string_view done_key,
                          const TensorDictSpec& spec) {
  const std::vector<std::string> keys = EndsOf(done_key, spec);
  if (keys.empty()) return NoEnds(caller, done_key);
  for (const std::string& key : keys) {
    RILL_RETURN_IF_ERROR(CheckIsFlagAnywhere(caller, key, spec));
  }
  return absl::OkStatus();
}

absl::Span<const absl::string_view> PieceKeys() {
  static constexpr absl::string_view kKeys[] = {
      "sequence_id", "collector/traj_ids", "validity_mask", "collector/mask",
      "buffer_ids"};
  return kKeys;
}

absl::StatusOr<Tensor> ReadStops(absl::string_view caller,
                                 absl::string_view done_key,
                                 const TensorDict& batch,
                                 DeviceWork::Call* call) {
  RILL_RETURN_IF_ERROR(CheckTimeIsNotBefore(caller, batch));
  if (call != nullptr) {
    return ReadOnDevice(caller, done_key, /*stops_too=*/true, batch, call);
  }
  RILL_ASSIGN_OR_RETURN(Tensor stops, ReadEnds(caller, done_key, batch));
  const Shape& shape = batch.batch_shape();
  const int64_t rows = shape.num_elements();
  if (rows == 0) return stops;
  if (AreStrangers(batch)) {
    RILL_ASSIGN_OR_RETURN(stops, Tensor::Empty(DType::kBool, stops.shape()));
    std::fill_n(stops.data<bool>(), rows, true);
    return stops;
  }
  bool is_own = false;
  for (const absl::string_view key : PieceKeys()) {
    if (batch.Find(key) == nullptr) continue;
    RILL_ASSIGN_OR_RETURN(const Tensor leaf, ReadLeaf(caller, key, batch));
    const int64_t time = shape[shape.rank() - 1];
    if (MarkChanges(leaf, time, is_own, stops.data<bool>(), rows)) {
      // The flags are the batch's: they stay as they are.
      RILL_ASSIGN_OR_RETURN(stops, stops.Clone());
      is_own = true;
      MarkChanges(leaf, time, is_own, stops.data<bool>(), rows);
    }
  }
  return stops;
}

}  // namespace rill::transforms_internal
