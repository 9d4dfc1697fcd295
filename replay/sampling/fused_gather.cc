// SPDX-License-Identifier: Apache-2.0
// Gather and transforms in one step. Blocks of rows that fit the first cache go
// from the storage through all maps of a leaf into the batch, so no batch is
// made between two transforms. Wide leaves are mapped where they lie (Shown), a
// few rows at a time inside a reader's epoch. Frames of them go straight to
// their places in stacks. A copy of such a row would be one more pass over the
// memory.
#include "rill/replay/sampling/fused_gather.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill::replay_internal {
namespace {

int64_t RowBytes(const LeafSpec& leaf) {
  return leaf.shape.num_elements() * DTypeSize(leaf.dtype);
}

// More than a core's caches hold: nothing of it is there when it is read.
bool IsPastCaches(const BoundLeaf& leaf) {
  return leaf.rows * leaf.width >= int64_t{16} << 20;
}

absl::Status Named(absl::string_view key, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("ReplayBuffer: transforms: \"", key,
                                   "\": ", status.message()));
}

}  // namespace

size_t NumberOf(const TensorDictSpec& spec, absl::string_view key) {
  const auto& leaves = spec.leaves();
  return static_cast<size_t>(
      absl::c_find_if(leaves,
                      [&](const auto& leaf) { return leaf.key == key; }) -
      leaves.begin());
}

bool FusedGather::IsShowable(const GatherPlan& plan, absl::string_view key,
                             size_t parts) {
  return absl::c_all_of(plan.leaves, [&](const GatherPlan::Leaf& leaf) {
    // Every output of the leaf must have maps, and maps of a row in parts must
    // work on each part by itself.
    return leaf.from != key ||
           (!leaf.maps.empty() &&
            (parts == 1 || absl::c_all_of(leaf.maps, [](const auto& map) {
               return map->is_flat();
             })));
  });
}

absl::StatusOr<FusedGather> FusedGather::Create(const GatherPlan& plan,
                                                const TensorDictSpec& rows,
                                                std::vector<Shown> shown) {
  FusedGather gather;
  for (const TensorDictSpec::Leaf& leaf : rows.leaves()) {
    gather.row_keys_.push_back(leaf.key);
  }
  // Two passes over the plan: a place in the batch is known once the spec has
  // all leaves.
  std::vector<size_t> numbers;
  std::vector<std::optional<RowPipeline>> pipelines;
  for (const GatherPlan::Leaf& leaf : plan.leaves) {
    numbers.push_back(NumberOf(rows, leaf.from));
    const LeafSpec& from = rows.leaves()[numbers.back()].spec;
    std::optional<RowPipeline>& pipeline = pipelines.emplace_back();
    if (!leaf.maps.empty()) {
      absl::StatusOr<RowPipeline> made =
          RowPipeline::Create(from, leaf.maps, leaf.places);
      if (!made.ok()) return Named(leaf.key, made.status());
      pipeline = *std::move(made);
    }
    RILL_RETURN_IF_ERROR(
        gather.spec_.Set(leaf.key, pipeline ? pipeline->spec() : from));
  }
  for (size_t i = 0; i < numbers.size(); ++i) {
    const size_t number = numbers[i];
    const LeafSpec& from = rows.leaves()[number].spec;
    const size_t into = NumberOf(gather.spec_, plan.leaves[i].key);
    if (!pipelines[i]) {
      // A leaf that goes to several places needs a gather for each, as ReadInto
      // takes a leaf once.
      auto list = absl::c_find_if(gather.copied_, [&](const Gather& copied) {
        return !absl::c_linear_search(copied.leaves, number);
      });
      if (list == gather.copied_.end()) {
        list = gather.copied_.insert(list, Gather());
      }
      list->leaves.push_back(number);
      list->into.push_back(into);
      continue;
    }
    RowPipeline& pipeline = *pipelines[i];
    const int64_t width = RowBytes(pipeline.spec());
    const auto show = absl::c_find_if(shown, [&](const Shown& leaf) {
      return leaf.key == plan.leaves[i].from &&
             IsShowable(plan, leaf.key, leaf.parts.size());
    });
    if (show != shown.end()) {
      gather.mapped_.push_back({.into = into,
                                .width = width,
                                .from = plan.leaves[i].from,
                                .parts = show->parts,
                                .pipeline = std::move(pipeline)});
      continue;
    }
    // The smallest block of all, since leaves are gathered block by block
    // together.
    gather.block_rows_ =
        gather.blocks_.leaves.empty()
            ? pipeline.block_rows()
            : std::min(gather.block_rows_, pipeline.block_rows());
    auto& blocks = gather.blocks_;
    // A leaf of which several outputs are made is gathered once.
    const auto same = static_cast<size_t>(absl::c_find(blocks.leaves, number) -
                                          blocks.leaves.begin());
    if (same == blocks.leaves.size()) {
      blocks.leaves.push_back(number);
      blocks.places.push_back({.data = pipeline.block(),
                               .width = RowBytes(from),
                               .dtype = from.dtype,
                               .device = Device::Cpu(),
                               .is_writable = true,
                               .shape = from.shape});
    }
    gather.mapped_.push_back({.into = into,
                              .width = width,
                              .from = plan.leaves[i].from,
                              .block = blocks.places[same].data,
                              .pipeline = std::move(pipeline)});
  }
  return gather;
}

bool FusedGather::IsMapped(size_t i) const {
  return absl::c_any_of(mapped_,
                        [i](const Mapped& mapped) { return mapped.into == i; });
}

absl::Status FusedGather::ReadBlock(const RowReader& storage,
                                    absl::Span<const Slot> slots, int64_t first,
                                    absl::Span<const BoundLeaf> places) {
  const auto count = static_cast<int64_t>(slots.size());
  for (BoundLeaf& block : blocks_.places) {
    block.rows = count;
    block.strides[0] = block.strides[1] = block.width;
  }
  RILL_RETURN_IF_ERROR(storage.ReadInto(slots, blocks_.leaves, blocks_.places));
  for (const Mapped& mapped : mapped_) {
    if (!mapped.parts.empty()) continue;
    const BoundLeaf& to = places[mapped.into];
    const absl::Status status = mapped.pipeline.Run(
        count, mapped.block, to.data + first * mapped.width, IsPastCaches(to));
    if (!status.ok()) return Named(spec_.leaves()[mapped.into].key, status);
  }
  return absl::OkStatus();
}

// One leaf of the storage after the other.
absl::Status FusedGather::ReadShown(const RowReader& storage,
                                    const Mapped& mapped,
                                    absl::Span<const Slot> slots,
                                    const BoundLeaf& to) {
  const size_t parts = mapped.parts.size();
  const int64_t width = mapped.width / static_cast<int64_t>(parts);
  const bool is_streamed = IsPastCaches(to);
  for (size_t first = 0; first < parts; ++first) {
    const size_t leaf = mapped.parts[first];
    // Parts of one leaf of the storage are shown in one call.
    if (absl::c_find(mapped.parts, leaf) - mapped.parts.begin() !=
        static_cast<std::ptrdiff_t>(first)) {
      continue;
    }
    part_slots_.clear();
    part_numbers_.clear();
    for (size_t i = first; i < slots.size(); ++i) {
      if (mapped.parts[i % parts] != leaf) continue;
      part_slots_.push_back(slots[i]);
      part_numbers_.push_back(static_cast<int64_t>(i));
    }
    const auto show = storage.ShowRows(
        part_slots_, leaf, [&](size_t i, const std::byte* row) {
          absl::Status status = mapped.pipeline.RunPart(
              static_cast<int64_t>(parts), row,
              to.data + part_numbers_[i] * width, is_streamed);
          if (status.ok()) return status;
          return Named(spec_.leaves()[mapped.into].key, status);
        });
    RILL_RETURN_IF_ERROR(show.status());
    if (!*show) {
      return Internal(
          "ReplayBuffer: transforms: \"", mapped.from,
          "\": got a storage that no longer shows rows, want one that does");
    }
  }
  return absl::OkStatus();
}

absl::Status FusedGather::ReadShown(const RowReader& storage,
                                    absl::string_view key,
                                    absl::Span<const Slot> slots,
                                    absl::Span<const BoundLeaf> places) {
  for (const Mapped& mapped : mapped_) {
    if (mapped.parts.empty() || mapped.from != key) continue;
    RILL_RETURN_IF_ERROR(
        ReadShown(storage, mapped, slots, places[mapped.into]));
  }
  return absl::OkStatus();
}

absl::Status FusedGather::Read(const RowReader& storage,
                               absl::Span<const Slot> slots,
                               absl::Span<const BoundLeaf> places) {
  for (Gather& copied : copied_) {
    copied.places.clear();
    for (const size_t into : copied.into) {
      copied.places.push_back(places[into]);
    }
    RILL_RETURN_IF_ERROR(storage.ReadInto(slots, copied.leaves, copied.places));
  }
  for (const Mapped& mapped : mapped_) {
    if (mapped.parts.empty()) continue;
    RILL_RETURN_IF_ERROR(
        ReadShown(storage, mapped, slots, places[mapped.into]));
  }
  if (blocks_.leaves.empty()) return absl::OkStatus();
  const auto n = static_cast<int64_t>(slots.size());
  for (int64_t first = 0; first < n; first += block_rows_) {
    const auto count = static_cast<size_t>(std::min(block_rows_, n - first));
    RILL_RETURN_IF_ERROR(
        ReadBlock(storage, slots.subspan(static_cast<size_t>(first), count),
                  first, places));
  }
  return absl::OkStatus();
}

absl::Status FusedGather::Map(const TensorDict& rows, int64_t first,
                              absl::Span<const BoundLeaf> places) const {
  for (const Gather& copied : copied_) {
    for (size_t i = 0; i < copied.leaves.size(); ++i) {
      const Tensor& from = *rows.Find(row_keys_[copied.leaves[i]]);
      const BoundLeaf& to = places[copied.into[i]];
      std::memcpy(to.data + first * to.width, from.raw_data(),
                  static_cast<size_t>(from.size_bytes()));
    }
  }
  const int64_t count = rows.batch_shape()[0];
  for (const Mapped& mapped : mapped_) {
    if (!mapped.parts.empty()) continue;
    const BoundLeaf& to = places[mapped.into];
    const absl::Status status =
        mapped.pipeline.Run(count, rows.Find(mapped.from)->raw_data(),
                            to.data + first * mapped.width, IsPastCaches(to));
    if (!status.ok()) return Named(spec_.leaves()[mapped.into].key, status);
  }
  return absl::OkStatus();
}

}  // namespace rill::replay_internal
