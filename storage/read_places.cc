// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/read_places.h"

#include <utility>

#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor.h"

namespace rill::storage_internal {
namespace {

// One contiguous array a leaf. Leaves `places` unusable where `out` does not
// fit.
bool FindIn(const RowTable& table, const SpecTree& tree, int64_t n,
            const TensorDict& out, std::vector<LeafBatch>* places) {
  thread_local std::vector<const Tensor*> tensors;
  const Shape batch_shape = {n};
  if (!(out.batch_shape() == batch_shape) || !tree.Find(out, &tensors)) {
    return false;
  }
  const auto& leaves = table.spec().leaves();
  places->clear();
  for (size_t i = 0; i < leaves.size(); ++i) {
    const Tensor* const tensor = tensors[i];
    if (tensor == nullptr || tensor->dtype() != leaves[i].spec.dtype ||
        tensor->shape().sizes().subspan(1) != leaves[i].spec.shape.sizes() ||
        !tensor->is_writable() || !tensor->is_contiguous() ||
        !table.Reaches(*tensor) || table.Holds(*tensor)) {
      return false;
    }
    places->push_back({i, tensor->raw_data(), table.layout().leaf_bytes(i)});
  }
  return true;
}

}  // namespace

ReadPlaces& ReadPlaces::OfThread() {
  thread_local ReadPlaces places;
  return places;
}

absl::Status ReadPlaces::Find(const RowTable& table, const SpecTree& tree,
                              int64_t n, const TensorDict* out) {
  fresh.reset();
  if (FindIn(table, tree, n, *out, &leaves)) return absl::OkStatus();
  const Device device = table.device();
  RILL_ASSIGN_OR_RETURN(
      fresh,
      table.spec().Empty({n}, {device, device.is_cpu() ? MemoryKind::kPageable
                                                       : MemoryKind::kDevice}));
  if (FindIn(table, tree, n, *fresh, &leaves)) return absl::OkStatus();
  return absl::InternalError("Storage::Read: made an unfit batch");
}

void ReadPlaces::Finish(TensorDict* out) {
  if (fresh) *out = *std::exchange(fresh, std::nullopt);
}

}  // namespace rill::storage_internal
