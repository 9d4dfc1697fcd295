// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/rows/trajectory_cut.h"

#include <algorithm>
#include <string>
#include <utility>

#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/specs/spec.h"
#include "rill/storage/event_keys.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::replay_internal {
namespace {

constexpr absl::string_view kCaller = "ReplayBuffer::Cut";
constexpr absl::string_view kTruncatedKey = "next/truncated";
constexpr absl::string_view kTerminatedKey = "next/terminated";
constexpr absl::string_view kDoneKey = "next/done";

bool HasFlag(const TensorDictSpec& spec, absl::string_view key) {
  const LeafSpec* const leaf = spec.Find(key);
  return leaf != nullptr && leaf->dtype == DType::kBool;
}

// With ids the next trajectory differs by its id; else whoever goes along
// trajectories has to be notified of a flag that the cut sets.
bool IsTold(const EventKeys& keys, const TensorDictSpec& spec,
            const std::vector<std::string>& cut_keys) {
  if (keys.is_endless()) return true;
  for (const std::string& key : keys.trajectories) {
    if (spec.Find(key) != nullptr) return true;
  }
  const std::vector<std::string> ends = keys.EndsOf(spec);
  return std::find_first_of(ends.begin(), ends.end(), cut_keys.begin(),
                            cut_keys.end()) != ends.end();
}

absl::Status CheckLanes(LaneRange lanes, const Lanes& there) {
  if (lanes.first >= 0 && lanes.count >= 0 && lanes.first <= there.count &&
      lanes.count <= there.count - lanes.first) {
    return absl::OkStatus();
  }
  return OutOfRange(kCaller, ": lanes: got ", lanes.count, " from ",
                    lanes.first, " on, want lanes in [0, ", there.count,
                    "), those of the storage");
}

// Where any of the flags is set.
absl::StatusOr<std::vector<uint8_t>> FindEnded(
    const TensorDict& rows, absl::Span<const std::string> keys, size_t n) {
  std::vector<uint8_t> ended(n);
  for (const std::string& key : keys) {
    RILL_ASSIGN_OR_RETURN(const Tensor leaf, rows.Get(key));
    RILL_ASSIGN_OR_RETURN(const Tensor on_host, leaf.To(Device::Cpu()));
    RILL_ASSIGN_OR_RETURN(const Tensor flags, on_host.Contiguous());
    const size_t width = static_cast<size_t>(flags.num_elements()) / n;
    const uint8_t* const values = flags.data<uint8_t>();
    for (size_t i = 0; i < n * width; ++i) ended[i / width] |= values[i];
  }
  return ended;
}

}  // namespace

absl::StatusOr<TrajectoryCut> TrajectoryCut::Plan(const RowReader& storage,
                                                  LaneRange lanes,
                                                  bool needs_order) {
  const Lanes there = storage.lanes();
  RILL_RETURN_IF_ERROR(CheckLanes(lanes, there));
  TrajectoryCut cut;
  std::vector<Slot> newest;
  const std::vector<Cursor> cursors = storage.cursors();
  for (size_t lane = static_cast<size_t>(lanes.first);
       lane <
       std::min(cursors.size(), static_cast<size_t>(lanes.first + lanes.count));
       ++lane) {
    if (cursors[lane].written == 0) continue;
    newest.push_back(
        there.SlotOf(static_cast<int64_t>(lane),
                     (cursors[lane].written - 1) % there.capacity));
  }
  if (newest.empty()) return cut;

  const TensorDictSpec spec = storage.spec();
  std::vector<std::string> cut_keys;
  if (HasFlag(spec, kTruncatedKey)) {
    cut_keys.emplace_back(kTruncatedKey);
    if (HasFlag(spec, kDoneKey)) cut_keys.emplace_back(kDoneKey);
  }
  const EventKeys& event_keys = storage.traits().event_keys;
  // Without a need of order nobody looks at ends.
  if (needs_order && !IsTold(event_keys, spec, cut_keys)) {
    return FailedPrecondition(
        kCaller, ": rows: got neither a bool \"", kTruncatedKey,
        "\" that ends trajectories nor a trajectory id, want one of them to "
        "tell where a trajectory was cut; write \"",
        kTruncatedKey, "\" too, and name it in EventKeys::ends of the storage");
  }
  if (cut_keys.empty()) return cut;
  // Rows without done end where a part of it is set.
  std::vector<std::string> keys = cut_keys;
  if (keys.size() == 1 && HasFlag(spec, kTerminatedKey)) {
    keys.emplace_back(kTerminatedKey);
  }
  TensorDict flags;
  absl::Status read = storage.ReadLeaves(newest, keys, &flags);
  if (absl::IsOutOfRange(read)) {
    // A killed writer may have taken all rows of a lane with it, and its cursor
    // stays.
    std::erase_if(newest, [&](Slot slot) {
      return absl::IsOutOfRange(storage.ReadLeaves({&slot, 1}, keys, &flags));
    });
    if (newest.empty()) return cut;
    read = storage.ReadLeaves(newest, keys, &flags);
  }
  RILL_RETURN_IF_ERROR(read);
  RILL_ASSIGN_OR_RETURN(const std::vector<uint8_t> ended,
                        FindEnded(flags, keys, newest.size()));
  for (size_t i = 0; i < newest.size(); ++i) {
    // A row that ends its trajectory stays as it is.
    if (ended[i] == 0) cut.slots.push_back(newest[i]);
  }
  const Shape n = {static_cast<int64_t>(cut.slots.size())};
  cut.rows = TensorDict(n);
  for (const std::string& key : cut_keys) {
    RILL_ASSIGN_OR_RETURN(
        Tensor set,
        Tensor::Empty(DType::kBool, n.Concat(spec.Find(key)->shape)));
    std::fill_n(set.data<uint8_t>(), set.num_elements(), uint8_t{1});
    RILL_RETURN_IF_ERROR(cut.rows.Set(key, std::move(set)));
  }
  return cut;
}

}  // namespace rill::replay_internal
