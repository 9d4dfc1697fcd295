// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/sampling/device_gather.h"

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/rows/element_copies.h"

namespace rill::replay_internal {
namespace {

using transforms_internal::DeviceWork;
using transforms_internal::ElementCopies;

// The leaves of a unit's batch that are stored rows, and of how many each.
std::map<std::string, size_t> FindStored(const TensorDictSpec& rows,
                                         const UnitTransform* unit) {
  std::map<std::string, size_t> stored;
  if (unit == nullptr) {
    for (const std::string& key : rows.LeafKeys()) stored[key] = 1;
    return stored;
  }
  const std::vector<UnitTransform::Joined> joined = unit->JoinedLeaves(rows);
  for (const UnitTransform::Joined& leaf : joined) {
    stored[leaf.key] = leaf.parts.size();
  }
  const std::unique_ptr<UnitTransform> rest =
      joined.empty() ? nullptr : unit->WithoutJoined();
  const absl::StatusOr<UnitTransform::Reads> reads =
      (rest == nullptr ? *unit : *rest).PlanReads(rows);
  if (!reads.ok()) return stored;
  for (const std::string& key : reads->rows.untouched) stored[key] = 1;
  for (const UnitTransform::Reads::List& list : reads->context) {
    for (const std::string& key : list.untouched) stored[key] = 1;
  }
  return stored;
}

}  // namespace

bool DeviceGather::CanMap(const GatherPlan& plan, const TensorDictSpec& rows,
                          const UnitTransform* unit) {
  const std::map<std::string, size_t> stored = FindStored(rows, unit);
  std::set<std::string> copied;
  for (const GatherPlan::Leaf& leaf : plan.leaves) {
    const auto found = stored.find(leaf.from);
    const bool is_stored = found != stored.end();
    const bool is_whole = is_stored && found->second == 1;
    if (!absl::c_all_of(leaf.maps, [&](const auto& map) {
          return map->maps_on_device() &&
                 (is_whole ||
                  (is_stored ? map->is_flat() : map->is_in_place()));
        })) {
      return false;
    }
    // A gather has one place for a leaf, and a unit makes a leaf by its key.
    if (is_stored && !leaf.maps.empty()) continue;
    if (!copied.insert(leaf.from).second) return false;
    if (!is_stored && leaf.key != leaf.from) return false;
  }
  if (unit == nullptr) return true;
  // A leaf that the unit makes, and nobody wants, has no place.
  const absl::StatusOr<TensorDictSpec> batch = unit->BatchSpec(rows);
  return batch.ok() &&
         absl::c_all_of(batch->leaves(), [&](const TensorDictSpec::Leaf& leaf) {
           return stored.contains(leaf.key) || copied.contains(leaf.key);
         });
}

absl::StatusOr<std::unique_ptr<DeviceGather>> DeviceGather::Create(
    const GatherPlan& plan, const TensorDictSpec& rows,
    const UnitTransform* unit, const TensorDictSpec& unit_batch) {
  const std::map<std::string, size_t> stored = FindStored(rows, unit);
  auto gather = absl::WrapUnique(new DeviceGather());
  size_t results = 0;
  for (const GatherPlan::Leaf& leaf : plan.leaves) {
    const auto found = stored.find(leaf.from);
    const size_t parts = found == stored.end() ? 1 : found->second;
    // A map takes two at most, and the gather one.
    results += parts * (2 * leaf.maps.size() + 1);
    LeafSpec spec = *unit_batch.Find(leaf.from);
    for (size_t i = 0; i < leaf.maps.size(); ++i) {
      absl::StatusOr<LeafSpec> after = leaf.maps[i]->MapSpec(spec);
      RILL_RETURN_IF_ERROR(after.status())
          << "\"" << leaf.key << "\"; in " << leaf.places[i];
      spec = *std::move(after);
    }
    RILL_RETURN_IF_ERROR(gather->spec_.Set(leaf.key, std::move(spec)));
    gather->outputs_.push_back({.from = leaf.from,
                                .key = leaf.key,
                                .maps = leaf.maps,
                                .is_made = !stored.contains(leaf.from)});
  }
  // A batch finds those of the last one, so that a captured one makes none.
  gather->work_.KeepUpTo(results);
  return gather;
}

absl::Status DeviceGather::Map(const Read& read, const TensorDict& batch,
                               DeviceWork::Call* call,
                               ElementCopies* copies) const {
  if (read.table.count == 0) return absl::OkStatus();
  const Output& output = outputs_[read.output];
  Tensor to = *batch.Find(output.key);
  RILL_ASSIGN_OR_RETURN(DeviceRows rows,
                        DeviceRows::Gather(read.table.table, read.table.rows,
                                           read.table.count, call, copies));
  if (read.parts > 1) {
    // Flat maps: elements of a part stay those of its part.
    const int64_t elements = rows.shape().num_elements();
    RILL_RETURN_IF_ERROR(rows.Reshape({elements}));
    RILL_ASSIGN_OR_RETURN(
        to, to.ViewAs({read.table.count, static_cast<int64_t>(read.parts),
                       elements}));
    RILL_ASSIGN_OR_RETURN(to, to.Select(1, static_cast<int64_t>(read.part)));
  }
  for (const std::shared_ptr<const RowMap>& map : output.maps) {
    RILL_RETURN_IF_ERROR(map->MapOnDevice(&rows));
  }
  return rows.FinishInto(to);
}

absl::Status DeviceGather::EnqueueMade(Device device, const TensorDict& batch) {
  DeviceWork::Call call(&work_);
  RILL_RETURN_IF_ERROR(call.Begin(device));
  ElementCopies copies(&call.stream());
  for (const Output& output : outputs_) {
    if (!output.is_made || output.maps.empty()) continue;
    const Tensor& leaf = *batch.Find(output.key);
    DeviceRows rows(leaf, 1, &call, &copies);
    absl::Status status;
    for (const std::shared_ptr<const RowMap>& map : output.maps) {
      status.Update(map->MapOnDevice(&rows));
    }
    if (status.ok()) status = rows.FinishInto(leaf);
    RILL_RETURN_IF_ERROR(status)
        << "ReplayBuffer: transforms: \"" << output.key << "\"";
  }
  RILL_RETURN_IF_ERROR(copies.Launch());
  return call.End();
}

absl::Status DeviceGather::Enqueue(absl::Span<Read* const> reads, Device device,
                                   const TensorDict& batch) {
  DeviceWork::Call call(&work_);
  RILL_RETURN_IF_ERROR(call.Begin(device));
  ElementCopies copies(&call.stream());
  for (const Read* read : reads) {
    RILL_RETURN_IF_ERROR(Map(*read, batch, &call, &copies))
        << "ReplayBuffer: transforms: \"" << outputs_[read->output].key << "\"";
  }
  RILL_RETURN_IF_ERROR(copies.Launch());
  return call.End();
}

}  // namespace rill::replay_internal
