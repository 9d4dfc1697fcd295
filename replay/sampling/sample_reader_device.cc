// SPDX-License-Identifier: Apache-2.0
// What a SampleReader does for rows on a device.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/current_stream.h"
#include "rill/device/device.h"
#include "rill/replay/sampling/fused_gather.h"
#include "rill/replay/sampling/sample_reader.h"
#include "rill/slots/slot.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/storage/row_reader.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/unit_transform.h"

namespace rill::replay_internal {

// On a device leaves that are joined are gathered from where the rows lie, and
// the unit's arithmetic leaves them out.
absl::Status SampleReader::LearnJoined(Device device,
                                       const TensorDictSpec& rows,
                                       const TensorDictSpec& batch) {
  joined_.clear();
  joined_gathers_.clear();
  part_unit_ = nullptr;
  if (device.is_cpu()) return absl::OkStatus();
  joined_ = options_.unit->JoinedLeaves(rows);
  if (joined_.empty()) return absl::OkStatus();
  part_unit_ = options_.unit->WithoutJoined();
  for (const UnitTransform::Joined& joined : joined_) {
    JoinedGather& gather = joined_gathers_.emplace_back();
    gather.into = NumberOf(batch, joined.key);
    for (const std::string& part : joined.parts) {
      gather.parts.push_back(NumberOf(rows, part));
    }
  }
  return absl::OkStatus();
}

absl::Status SampleReader::BindBatchAndKeep(int64_t n, TensorDict* out) {
  before_.clear();
  out->ForEachLeaf([this](absl::string_view, const Tensor& leaf) {
    if (leaf.device().is_cpu() || leaf.buffer() == mask_.buffer()) return;
    before_.push_back(leaf);
  });
  const absl::Status status = BindBatch(n, out);
  for (const Tensor& leaf : before_) {
    const bool is_bound =
        status.ok() &&
        absl::c_any_of(batch_.leaves(), [&leaf](const BoundLeaf& bound) {
          return bound.data == leaf.raw_data();
        });
    if (!is_bound) uploads_->Keep(leaf.buffer());
  }
  before_.clear();
  return status;
}

absl::Status SampleReader::ReadJoined(const RowReader& storage,
                                      const SamplePlan& plan) {
  for (size_t i = 0; i < joined_.size(); ++i) {
    JoinedGather& gather = joined_gathers_[i];
    RILL_RETURN_IF_ERROR(
        options_.unit->JoinedSlots(plan, joined_[i], &joined_slots_));
    const size_t count = gather.parts.size();
    gather.slots.resize(count);
    for (size_t k = 0; k < count; ++k) {
      gather.slots[k].clear();
      for (size_t at = k; at < joined_slots_.size(); at += count) {
        gather.slots[k].push_back(joined_slots_[at]);
      }
    }
    for (Mapped& mapped : gather.mapped) {
      NoteMapped(gather.slots[mapped.read.part], &mapped);
    }
    if (!gather.into.has_value()) continue;
    BoundLeaf place = batch_[*gather.into];
    place.strides[0] = place.width;
    place.strides[1] = 0;
    place.width /= static_cast<int64_t>(count);
    place.is_flat = count == 1;
    gather.places.assign(count, place);
    for (size_t k = 0; k < count; ++k) {
      gather.places[k].data += static_cast<int64_t>(k) * place.width;
      RILL_RETURN_IF_ERROR(
          ReadPlaces(storage, gather.slots[k],
                     absl::MakeConstSpan(gather.parts).subspan(k, 1),
                     absl::MakeConstSpan(gather.places).subspan(k, 1)));
    }
  }
  return absl::OkStatus();
}

// Joined leaves go where the chain puts them.
void SampleReader::MapJoined(const TensorDictSpec& batch) {
  const auto& outputs = device_gather_->outputs();
  for (size_t j = 0; j < joined_.size(); ++j) {
    JoinedGather& gather = joined_gathers_[j];
    gather.into.reset();
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].from != joined_[j].key) continue;
      if (outputs[i].maps.empty()) {
        gather.into = NumberOf(batch, outputs[i].key);
        continue;
      }
      const size_t count = gather.parts.size();
      for (size_t k = 0; k < count; ++k) {
        gather.mapped.push_back(
            {.leaf = gather.parts[k],
             .read = {.output = i, .part = k, .parts = count}});
      }
    }
  }
}

void SampleReader::NoteMapped(absl::Span<const Slot> slots, Mapped* mapped) {
  noted_.push_back({.slots = slots,
                    .leaves = absl::MakeConstSpan(&mapped->leaf, 1),
                    .table = &mapped->read.table});
  noted_maps_.push_back(&mapped->read);
}

void SampleReader::FixLists(std::vector<int64_t> rows, bool has_mask) {
  fixed_lists_.resize(rows.size());
  rows_of_lists_ = std::move(rows);
  fixes_mask_ = has_mask;
}

absl::Span<const Slot> SampleReader::FixedList(size_t list,
                                               absl::Span<const Slot> slots,
                                               Slot filler) {
  std::vector<Slot>& fixed = fixed_lists_[list];
  const auto most = static_cast<size_t>((*rows_of_lists_)[list]);
  fixed.assign(slots.begin(), slots.end());
  if (fixed.size() < most) fixed.resize(most, filler);
  return fixed;
}

void SampleReader::MakeGraph() {
  uploads_->FixMirrors();
  graph_ = std::make_unique<ReadGraph>();
}

absl::Status SampleReader::EnqueueMade(Device device, const TensorDict& batch) {
  RILL_RETURN_IF_ERROR(uploads_->Send());
  return device_gather_ == nullptr ? absl::OkStatus()
                                   : device_gather_->EnqueueMade(device, batch);
}

// All copies go in one launch, and all maps of few leaves in another.
absl::Status SampleReader::ReadNoted(const RowReader& storage,
                                     const TensorDict& batch,
                                     bool leaves_launches) {
  const Device device = storage.device();
  const auto launch = [&]() -> absl::Status {
    if (!noted_maps_.empty()) {
      RILL_RETURN_IF_ERROR(device_gather_->Enqueue(noted_maps_, device, batch));
    }
    if (!leaves_launches) return absl::OkStatus();
    RILL_RETURN_IF_ERROR(uploads_->SendValues());
    RILL_ASSIGN_OR_RETURN(const Stream current, CurrentStream(device));
    RILL_RETURN_IF_ERROR(uploads_->SendLaunches(current));
    return device_gather_ == nullptr
               ? absl::OkStatus()
               : device_gather_->EnqueueMade(device, batch);
  };
  const absl::Status status =
      storage.EnqueueReadsInto(noted_, uploads_.get(), launch, graph_.get());
  // The tables are the storage's.
  for (DeviceGather::Read* read : noted_maps_) read->table = {};
  noted_maps_.clear();
  // Those that a graph has done.
  uploads_->DropLaunches();
  if (!status.ok() && graph_ != nullptr && !graph_->graph.has_value() &&
      device_gather_ != nullptr) {
    device_gather_->ForgetCaptured();
  }
  return status;
}

}  // namespace rill::replay_internal
