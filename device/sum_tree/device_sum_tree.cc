// SPDX-License-Identifier: Apache-2.0
#include "rill/device/sum_tree/device_sum_tree.h"

#include "absl/memory/memory.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"

namespace rill {

using device_internal::TreeFindKernel;
using device_internal::TreeLayoutOf;
using device_internal::TreeSampleKernel;
using device_internal::TreeSetKernel;

absl::StatusOr<std::unique_ptr<DeviceSumTree>> DeviceSumTree::Create(
    int64_t size, Device device) {
  // So that no shift and no count of bytes overflows.
  constexpr int64_t kMost = int64_t{1} << 56;
  if (size < 1 || size > kMost) {
    return InvalidArgument("DeviceSumTree::Create: size: got ", size,
                           ", want [1, ", kMost, "]");
  }
  auto tree = absl::WrapUnique(new DeviceSumTree());
  tree->size_ = size;
  tree->device_ = device;
  tree->layout_ = TreeLayoutOf(size);
  const int64_t bytes = tree->layout_.num_values *
                        static_cast<int64_t>(sizeof(double) + sizeof(int64_t));
  RILL_ASSIGN_OR_RETURN(
      tree->memory_, Buffer::Allocate(bytes, device,
                                      device.is_cpu() ? MemoryKind::kPageable
                                                      : MemoryKind::kDevice));
  RILL_ASSIGN_OR_RETURN(const Stream stream, Stream::Default(device));
  RILL_RETURN_IF_ERROR(stream.backend()->Fill(
      device.index, tree->memory_->data(), 0, bytes, stream.handle()));
  RILL_RETURN_IF_ERROR(stream.Synchronize());
  return tree;
}

double* DeviceSumTree::values() const {
  return reinterpret_cast<double*>(memory_->data());
}

const double* DeviceSumTree::total() const {
  return values() + layout_.offset[layout_.num_levels - 1];
}

absl::Status DeviceSumTree::Check(absl::string_view caller, int64_t count,
                                  const Stream& stream) const {
  if (count < 0) {
    return InvalidArgument("DeviceSumTree::", caller, ": count: got ", count,
                           ", want >= 0");
  }
  if (stream.device() != device_) {
    return InvalidArgument("DeviceSumTree::", caller, ": stream: got one of ",
                           stream.device().ToString(), ", want one of ",
                           device_.ToString());
  }
  return absl::OkStatus();
}

absl::Status DeviceSumTree::Set(const int64_t* slots, const double* weights,
                                int64_t count, const Stream& stream) {
  RILL_RETURN_IF_ERROR(Check("Set", count, stream));
  if (count == 0) return absl::OkStatus();
  const TreeSetKernel kernel = {
      .layout = layout_,
      .values = values(),
      .claims = reinterpret_cast<int64_t*>(values() + layout_.num_values),
      .first_number = next_number_,
      .slots = slots,
      .weights = weights,
      .count = count};
  next_number_ += count;
  return LaunchKernel(kernel, {.blocks = 1, .threads = TreeSetKernel::kThreads},
                      stream);
}

absl::Status DeviceSumTree::Find(const double* targets, int64_t* slots,
                                 int64_t count, const Stream& stream) const {
  RILL_RETURN_IF_ERROR(Check("Find", count, stream));
  if (count == 0) return absl::OkStatus();
  const TreeFindKernel kernel = {.layout = layout_,
                                 .values = values(),
                                 .targets = targets,
                                 .slots = slots,
                                 .count = count};
  return LaunchKernel(kernel, GridFor(count, /*threads=*/64), stream);
}

absl::Status DeviceSumTree::Sample(const Draws& draws, int64_t* slots,
                                   double* weights, int64_t count,
                                   const Stream& stream) const {
  RILL_RETURN_IF_ERROR(Check("Sample", count, stream));
  if (count == 0) return absl::OkStatus();
  const TreeSampleKernel kernel = {
      .layout = layout_,
      .values = values(),
      .seed = draws.seed,
      .stream = static_cast<uint32_t>(draws.stream),
      .first_draw = draws.first,
      .batch = draws.batch,
      .stratified = draws.stratified,
      .slots = slots,
      .weights = weights,
      .count = count};
  return LaunchKernel(kernel, GridFor(count, /*threads=*/64), stream);
}

}  // namespace rill
