// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/ring/write_event_builder.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "rill/base/status_macros.h"
#include "rill/device/current_stream.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/tensordict/dim_names.h"
#include "rill/tensors/dtype.h"

namespace rill::storage_internal {
namespace {

// A leaf of a group of agents, which have a flag each: "next/agents/done".
bool IsOfGroup(absl::string_view key) {
  absl::ConsumePrefix(&key, "next/");
  return absl::StrContains(key, '/');
}

// The number of leaf `key`; none where the spec has no such leaf.
// INVALID_ARGUMENT where it has one that cannot be reported.
absl::StatusOr<std::optional<size_t>> FindLeaf(const TensorDictSpec& spec,
                                               const std::string& key,
                                               absl::string_view option,
                                               DType dtype) {
  for (size_t i = 0; i < spec.leaves().size(); ++i) {
    const TensorDictSpec::Leaf& leaf = spec.leaves()[i];
    if (leaf.key != key) continue;
    const int64_t width = leaf.spec.shape.num_elements();
    const bool may_be_wide = dtype == DType::kBool && IsOfGroup(key);
    if (leaf.spec.dtype != dtype || width == 0 || (width > 1 && !may_be_wide)) {
      return InvalidArgument("EventKeys::", option, ": leaf \"", key,
                             "\": got ", leaf.spec.ToString(), " a row, want ",
                             DTypeName(dtype),
                             "[1]; rename the leaf or the option");
    }
    return i;
  }
  return std::optional<size_t>();
}

// Calls fn(i, value) for every row, lane after lane.
template <typename T, typename Fn>
void ForEachValue(const Tensor& tensor, const BatchRows& rows, Fn fn) {
  const auto strides = tensor.strides_bytes();
  const int64_t step_stride = strides[rows.batch_rank - 1];
  const int64_t lane_stride = rows.batch_rank > 1 ? strides[0] : 0;
  // One step of many lanes is gone through as many steps of one.
  const bool is_step = rows.steps == 1;
  const int64_t steps = is_step ? rows.num_lanes : rows.steps;
  const int64_t stride = is_step ? lane_stride : step_stride;
  const int64_t lanes = is_step ? 1 : rows.num_lanes;
  int64_t i = 0;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    const std::byte* at = tensor.raw_data() + lane * lane_stride;
    for (int64_t step = 0; step < steps; ++step, at += stride) {
      T value;
      std::memcpy(&value, at, sizeof(T));
      fn(i++, value);
    }
  }
}

// Copies to host memory what a device's batch tells, with one wait: the values
// at this point of the thread's CurrentStream.
absl::Status Fetch(const EventLeaves& leaves, const ValuesRead& read,
                   const BatchLeaves& batch,
                   std::vector<std::pair<size_t, Tensor>>* fetched) {
  std::vector<size_t> wanted;
  if (read.trajectories) wanted = leaves.ends;
  const auto want = [&wanted](bool is_read, const std::optional<size_t>& leaf) {
    if (is_read && leaf.has_value()) wanted.push_back(*leaf);
  };
  want(read.trajectories, leaves.trajectory);
  want(read.priorities, leaves.priority);
  want(read.policy_versions, leaves.policy_version);
  std::optional<Stream> stream;
  const auto fetch = [&](size_t leaf) -> absl::Status {
    const BatchLeaf* const found = batch.Find(leaf);
    if (found == nullptr || found->given->is_host()) return absl::OkStatus();
    const Tensor& from = *found->given;
    if (!stream.has_value()) {
      RILL_ASSIGN_OR_RETURN(stream, CurrentStream(from.device()));
    }
    if (!from.is_contiguous()) {
      // Copied piece by piece, on another stream.
      RILL_RETURN_IF_ERROR(stream->Synchronize());
      RILL_ASSIGN_OR_RETURN(Tensor to, from.To(Device::Cpu()));
      fetched->emplace_back(leaf, std::move(to));
      return absl::OkStatus();
    }
    RILL_ASSIGN_OR_RETURN(Tensor to, Tensor::Empty(from.dtype(), from.shape()));
    fetched->emplace_back(leaf, to);
    return to.CopyFromAsync(from, *stream);
  };
  absl::Status status;
  for (const size_t leaf : wanted) {
    status.Update(fetch(leaf));
    if (!status.ok()) break;
  }
  // After an error too: what was enqueued still writes to the copies.
  if (stream.has_value()) status.Update(stream->Synchronize());
  return status;
}

}  // namespace

absl::StatusOr<EventLeaves> EventLeaves::Find(const TensorDictSpec& spec,
                                              const EventKeys& keys) {
  EventLeaves leaves;
  for (const std::string& key : keys.EndsOf(spec)) {
    RILL_ASSIGN_OR_RETURN(const std::optional<size_t> leaf,
                          FindLeaf(spec, key, "ends", DType::kBool));
    leaves.ends.push_back(*leaf);
  }
  for (const std::string& key : keys.trajectories) {
    RILL_ASSIGN_OR_RETURN(leaves.trajectory,
                          FindLeaf(spec, key, "trajectories", DType::kInt64));
    if (leaves.trajectory.has_value()) break;
  }
  RILL_ASSIGN_OR_RETURN(leaves.priority, FindLeaf(spec, keys.priority,
                                                  "priority", DType::kFloat32));
  RILL_ASSIGN_OR_RETURN(
      leaves.policy_version,
      FindLeaf(spec, keys.policy_version, "policy_version", DType::kInt64));
  return leaves;
}

absl::StatusOr<BatchRows> BatchRows::Find(const Lanes& lanes,
                                          const TensorDict& batch,
                                          const WriteInfo& info) {
  const Shape& shape = batch.batch_shape();
  const int64_t first = info.first_lane;
  if (shape.rank() != 2 && !(shape.rank() == 1 && lanes.count == 1)) {
    return InvalidArgument("Storage::Extend: batch shape: got ",
                           shape.ToString(), ", want [lanes, time]",
                           lanes.count == 1 ? " or [time]" : "",
                           " of a storage with Options::lanes = ", lanes.count);
  }
  const std::vector<std::string>& names = batch.dim_names();
  if (names.size() == 2 && names[0] == kTimeName) {
    return InvalidArgument("Storage::Extend: batch ", shape.ToString(), " (",
                           names[0], ", ", names[1],
                           "): want [lanes, time]; ops::Transpose swaps them");
  }
  const int64_t num_lanes = shape.rank() == 2 ? shape[0] : 1;
  if (first < 0 || first > lanes.count || num_lanes > lanes.count - first) {
    return InvalidArgument(
        "Storage::Extend: lanes: got ", num_lanes, " from lane ", first,
        " on, want lanes of [0, ", lanes.count,
        "), as Options::lanes of the storage is ", lanes.count,
        "; write as many, or make a storage of as many");
  }
  if (int64_t num_rows;
      __builtin_mul_overflow(num_lanes, shape[shape.rank() - 1], &num_rows)) {
    return InvalidArgument("Storage::Extend: batch shape: got ",
                           shape.ToString(), ", want at most ", INT64_MAX,
                           " rows");
  }
  return BatchRows{.batch_rank = shape.rank(),
                   .num_lanes = num_lanes,
                   .steps = shape[shape.rank() - 1]};
}

absl::Status WriteEventBuilder::Fill(const EventLeaves& leaves,
                                     const ValuesRead& read,
                                     const BatchRows& rows, LeafSource source) {
  Clear();
  const size_t n = static_cast<size_t>(rows.num_lanes * rows.steps);
  for (const size_t leaf : leaves.ends) {
    if (!read.trajectories) break;
    RILL_ASSIGN_OR_RETURN(const Tensor tensor, source(leaf));
    if (!tensor.is_valid()) continue;
    ends_.resize(n, 0);
    if (const auto width = static_cast<size_t>(
            n == 0 ? 1 : tensor.num_elements() / static_cast<int64_t>(n));
        width > 1) {
      RILL_ASSIGN_OR_RETURN(const Tensor flags, tensor.Contiguous());
      const auto* const values =
          reinterpret_cast<const uint8_t*>(flags.raw_data());
      for (size_t i = 0; i < n * width; ++i) {
        ends_[i / width] |= values[i] != 0 ? 1 : 0;
      }
      continue;
    }
    ForEachValue<uint8_t>(tensor, rows, [&](int64_t i, uint8_t value) {
      ends_[i] |= value != 0 ? 1 : 0;
    });
  }
  const auto fill = [&](bool is_read, const std::optional<size_t>& leaf,
                        auto type, auto* values) -> absl::Status {
    if (!is_read || !leaf.has_value()) return absl::OkStatus();
    RILL_ASSIGN_OR_RETURN(const Tensor tensor, source(*leaf));
    if (!tensor.is_valid()) return absl::OkStatus();
    values->resize(n);
    ForEachValue<decltype(type)>(
        tensor, rows, [&](int64_t i, auto value) { (*values)[i] = value; });
    return absl::OkStatus();
  };
  RILL_RETURN_IF_ERROR(
      fill(read.trajectories, leaves.trajectory, int64_t{}, &trajectory_ids_));
  RILL_RETURN_IF_ERROR(
      fill(read.priorities, leaves.priority, float{}, &priorities_));
  return fill(read.policy_versions, leaves.policy_version, int64_t{},
              &policy_versions_);
}

absl::Status WriteEventBuilder::FromBatch(const EventLeaves& leaves,
                                          const ValuesRead& read,
                                          const BatchLeaves& batch,
                                          const BatchRows& rows) {
  // From `given`: `ready` may lie on a device.
  std::vector<std::pair<size_t, Tensor>> fetched;
  if (const auto all = batch.leaves();
      std::any_of(all.begin(), all.end(), [](const BatchLeaf& leaf) {
        return !leaf.given->is_host();
      })) {
    RILL_RETURN_IF_ERROR(Fetch(leaves, read, batch, &fetched));
  }
  return Fill(leaves, read, rows, [&](size_t leaf) -> absl::StatusOr<Tensor> {
    const BatchLeaf* const found = batch.Find(leaf);
    if (found == nullptr) return Tensor();
    if (found->given->is_host()) return *found->given;
    return std::find_if(fetched.begin(), fetched.end(),
                        [leaf](const auto& one) { return one.first == leaf; })
        ->second;
  });
}

absl::Status WriteEventBuilder::FromStored(const EventLeaves& leaves,
                                           const ValuesRead& read,
                                           int64_t num_rows, LeafSource stored,
                                           const BatchLeaves* written) {
  const auto is_wanted = [&](size_t leaf) {
    return written == nullptr || written->Find(leaf) != nullptr;
  };
  // A row's end flag is the OR of all end leaves. Where one of them was written
  // the others are read too.
  const bool wants_ends =
      std::any_of(leaves.ends.begin(), leaves.ends.end(), is_wanted);
  const auto is_end = [&](size_t leaf) {
    return std::find(leaves.ends.begin(), leaves.ends.end(), leaf) !=
           leaves.ends.end();
  };
  return Fill(leaves, read, {.steps = num_rows},
              [&](size_t leaf) -> absl::StatusOr<Tensor> {
                if (!(is_end(leaf) ? wants_ends : is_wanted(leaf))) {
                  return Tensor();
                }
                return stored(leaf);
              });
}

void WriteEventBuilder::DropAllBut(int64_t kept, const BatchRows& rows) {
  const int64_t dropped = rows.steps - kept;
  // Walks each lane from its first step. `open` has the ids of trajectories
  // that began in dropped steps and did not end there; the first kept row of
  // each is cut.
  begins_cut_.assign(static_cast<size_t>(rows.num_lanes * kept), 0);
  absl::flat_hash_set<int64_t> open;  // Ids that go on behind dropped rows.
  for (int64_t lane = 0; lane < rows.num_lanes; ++lane) {
    open.clear();
    for (int64_t step = 0; step < rows.steps; ++step) {
      if (step >= dropped && open.empty()) break;
      const int64_t i = lane * rows.steps + step;
      const int64_t id = trajectory_ids_.empty() ? 0 : trajectory_ids_[i];
      if (step >= dropped) {
        begins_cut_[lane * kept + step - dropped] = open.erase(id) > 0 ? 1 : 0;
      } else if (!ends_.empty() && ends_[i] != 0) {
        open.erase(id);
      } else {
        open.insert(id);
      }
    }
  }
  const auto drop = [&](auto* values) {
    if (values->empty()) return;
    for (int64_t lane = 0; lane < rows.num_lanes; ++lane) {
      const auto end = values->begin() + (lane + 1) * rows.steps;
      // In place: a lane's rows move towards the front, never over rows that
      // are still to move.
      std::copy(end - kept, end, values->begin() + lane * kept);
    }
    values->resize(begins_cut_.size());
  };
  drop(&ends_);
  drop(&trajectory_ids_);
  drop(&priorities_);
  drop(&policy_versions_);
}

void WriteEventBuilder::TakeLast(absl::Span<const Slot> slots) {
  // Slots that ascend are named once.
  if (std::adjacent_find(slots.begin(), slots.end(),
                         std::greater_equal<Slot>()) == slots.end()) {
    return;
  }
  absl::flat_hash_map<Slot, size_t> last;
  last.reserve(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) last[slots[i]] = i;
  if (last.size() == slots.size()) return;
  const auto take = [&](auto* values) {
    // In place: the last row of a slot lies behind its others.
    for (size_t i = 0; i < values->size(); ++i) {
      (*values)[i] = (*values)[last[slots[i]]];
    }
  };
  take(&ends_);
  take(&trajectory_ids_);
  take(&priorities_);
  take(&policy_versions_);
}

void WriteEventBuilder::Clear() {
  ends_.clear();
  trajectory_ids_.clear();
  priorities_.clear();
  policy_versions_.clear();
  begins_cut_.clear();
}

WriteEvent WriteEventBuilder::Event(bool is_append,
                                    absl::Span<const SlotRange> retired,
                                    absl::Span<const SlotRange> written) const {
  return {.is_append = is_append,
          .retired = retired,
          .written = written,
          .ends = ends_,
          .trajectory_ids = trajectory_ids_,
          .priorities = priorities_,
          .policy_versions = policy_versions_,
          .begins_cut = begins_cut_};
}

WriteEvent WriteEventBuilder::Event(const AppendPlan& plan) const {
  WriteEvent event = Event(/*is_append=*/true, plan.retired, plan.written);
  event.retired_blocks = plan.retired_blocks;
  event.written_blocks = plan.written_blocks;
  return event;
}

}  // namespace rill::storage_internal
