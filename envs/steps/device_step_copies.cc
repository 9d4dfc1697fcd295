// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/steps/device_step_copies.h"

#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/current_stream.h"

namespace rill::envs_internal {

absl::StatusOr<std::unique_ptr<DeviceStepCopies>> DeviceStepCopies::Create(
    Device device, int64_t lanes) {
  RILL_ASSIGN_OR_RETURN(Stream stream, Stream::Default(device));
  return absl::WrapUnique(new DeviceStepCopies(std::move(stream), lanes));
}

// Copies on their way use these tensors.
DeviceStepCopies::~DeviceStepCopies() { stream_.Synchronize().IgnoreError(); }

absl::StatusOr<Tensor> DeviceStepCopies::HostZeros(DType dtype,
                                                   const Shape& shape) const {
  RILL_ASSIGN_OR_RETURN(
      Tensor tensor,
      Tensor::Empty(dtype, shape, {stream_.device(), MemoryKind::kPinned}));
  std::memset(tensor.raw_data(), 0, static_cast<size_t>(tensor.size_bytes()));
  return tensor;
}

absl::StatusOr<Tensor> DeviceStepCopies::DeviceZeros(DType dtype,
                                                     const Shape& shape) const {
  RILL_ASSIGN_OR_RETURN(const Tensor zeros, Tensor::Zeros(dtype, shape));
  return zeros.To(stream_.device());
}

void DeviceStepCopies::TakeAction(const Tensor& leaf, const Tensor& host) {
  actions_to_host_.push_back({leaf, host});
}

void DeviceStepCopies::GiveAction(const Tensor& leaf, const Tensor& host) {
  actions_to_device_.push_back({host, leaf});
}

void DeviceStepCopies::TakeNext(const Tensor& leaf, const Tensor& host) {
  steps_to_host_.push_back({leaf, host});
}

void DeviceStepCopies::GiveNext(const Tensor& leaf, const Tensor& host) {
  steps_to_device_.push_back({host, leaf});
}

void DeviceStepCopies::Carry(const Tensor& next, const Tensor& root,
                             const Tensor& host) {
  steps_to_device_.push_back({next, root});
  roots_to_device_.push_back({host, root});
}

absl::Status DeviceStepCopies::TakeRoot(const Tensor& leaf,
                                        const Tensor& host) {
  RILL_ASSIGN_OR_RETURN(Tensor whole, HostZeros(leaf.dtype(), leaf.shape()));
  rows_to_host_.push_back({leaf, std::move(whole), host});
  return absl::OkStatus();
}

absl::Status DeviceStepCopies::GiveRoot(const Tensor& leaf,
                                        const Tensor& host) {
  RILL_ASSIGN_OR_RETURN(Tensor whole, DeviceZeros(leaf.dtype(), leaf.shape()));
  shown_rows_.Move(whole, leaf);
  rows_to_device_.push_back({host, std::move(whole)});
  return absl::OkStatus();
}

absl::Status DeviceStepCopies::Bind() {
  return shown_rows_.Bind(lanes_, stream_.device());
}

absl::Status DeviceStepCopies::Enqueue(const std::vector<Copy>& copies) const {
  for (const Copy& copy : copies) {
    RILL_RETURN_IF_ERROR(copy.to.CopyFromAsync(copy.from, stream_));
  }
  return absl::OkStatus();
}

// Also after an error: copies that were enqueued still use their tensors.
absl::Status DeviceStepCopies::Finish(absl::Status status) const {
  status.Update(stream_.Synchronize());
  return status;
}

absl::Status DeviceStepCopies::Run(const std::vector<Copy>& copies) const {
  if (copies.empty()) return absl::OkStatus();
  return Finish(Enqueue(copies));
}

absl::Status DeviceStepCopies::ActionsToHost() const {
  return Run(actions_to_host_);
}

absl::Status DeviceStepCopies::ActionsToDevice() const {
  return Enqueue(actions_to_device_);
}

absl::Status DeviceStepCopies::AwaitLeaves() const {
  RILL_ASSIGN_OR_RETURN(const Stream current, CurrentStream(stream_.device()));
  return stream_.WaitFor(current);
}

absl::Status DeviceStepCopies::StepsToHost() const {
  RILL_RETURN_IF_ERROR(AwaitLeaves());
  return Run(steps_to_host_);
}

absl::Status DeviceStepCopies::StepsToDevice() const {
  return Run(steps_to_device_);
}

absl::Status DeviceStepCopies::RootsToDevice() const {
  return Run(roots_to_device_);
}

absl::Status DeviceStepCopies::RowsToHost(
    absl::Span<const int64_t> rows) const {
  if (rows.empty()) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(AwaitLeaves());
  if (rows_to_host_.empty()) return absl::OkStatus();
  absl::Status status;
  for (const RowCopy& copy : rows_to_host_) {
    status.Update(copy.whole.CopyFromAsync(copy.leaf, stream_));
  }
  RILL_RETURN_IF_ERROR(Finish(std::move(status)));
  for (const RowCopy& copy : rows_to_host_) {
    const int64_t width = copy.host.size_bytes() / lanes_;
    for (const int64_t row : rows) {
      std::memcpy(copy.host.raw_data() + row * width,
                  copy.whole.raw_data() + row * width,
                  static_cast<size_t>(width));
    }
  }
  return absl::OkStatus();
}

absl::Status DeviceStepCopies::RowsToDevice(
    absl::Span<const int64_t> rows) const {
  if (rows.empty() || rows_to_device_.empty()) return absl::OkStatus();
  absl::Status status = Enqueue(rows_to_device_);
  if (status.ok()) status = shown_rows_.Run(rows, stream_);
  return Finish(std::move(status));
}

}  // namespace rill::envs_internal
