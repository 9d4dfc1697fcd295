// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/statistics_slots.h"

#include <cstring>
#include <string>

#include "absl/memory/memory.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/specs/layout_difference.h"
#include "rill/specs/spec.h"
#include "rill/tensors/tensor.h"

namespace rill::workers_internal {
namespace {

// Of one place, so that no two share a cache line.
int64_t SlotBytes(const TensorDict& layout) {
  return (layout.size_bytes() + 63) / 64 * 64;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StatisticsSlots>> StatisticsSlots::Create(
    const TensorDict& layout, int64_t workers, int64_t depth) {
  RILL_ASSIGN_OR_RETURN(
      auto area,
      SharedArea::Create("StatisticsSlots::Create", "rill_worker_statistics",
                         workers * depth * SlotBytes(layout)));
  return absl::WrapUnique(new StatisticsSlots(std::move(area), layout, depth));
}

absl::StatusOr<std::unique_ptr<StatisticsSlots>> StatisticsSlots::Attach(
    int fd, const TensorDict& layout, int64_t workers, int64_t depth) {
  RILL_ASSIGN_OR_RETURN(
      auto area, SharedArea::Attach("StatisticsSlots::Attach", fd,
                                    workers * depth * SlotBytes(layout)));
  return absl::WrapUnique(new StatisticsSlots(std::move(area), layout, depth));
}

std::byte* StatisticsSlots::SlotOf(int64_t worker, int64_t sequence) const {
  return area_->data() +
         (worker * depth_ + sequence % depth_) * SlotBytes(layout_);
}

absl::Status StatisticsSlots::Write(int64_t worker, int64_t sequence,
                                    const TensorDict& statistics) {
  const std::string difference = LayoutDifference(
      TensorDictSpec::Of(statistics), TensorDictSpec::Of(layout_));
  if (!difference.empty()) {
    return FailedPrecondition("StatisticsSlots::Write: ", difference);
  }
  std::byte* to = SlotOf(worker, sequence);
  absl::Status status;
  statistics.ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
    const absl::StatusOr<Tensor> dense = leaf.Contiguous();
    status.Update(dense.status());
    if (!status.ok()) return;
    const auto bytes = static_cast<size_t>(dense->size_bytes());
    std::memcpy(to, dense->raw_data(), bytes);
    to += bytes;
  });
  return status;
}

absl::StatusOr<TensorDict> StatisticsSlots::Read(int64_t worker,
                                                 int64_t sequence) const {
  RILL_ASSIGN_OR_RETURN(TensorDict statistics, layout_.Clone());
  const std::byte* from = SlotOf(worker, sequence);
  statistics.ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
    const auto bytes = static_cast<size_t>(leaf.size_bytes());
    std::memcpy(leaf.raw_data(), from, bytes);
    from += bytes;
  });
  return statistics;
}

}  // namespace rill::workers_internal
