// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/torch_stream.h"

#include "absl/status/status.h"
#include "c10/core/Stream.h"
#include "c10/core/impl/DeviceGuardImplInterface.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/libtorch/torch_call.h"

namespace rill {
namespace {

constexpr c10::DeviceType kFakeType = c10::DeviceType::PrivateUse1;

}  // namespace

absl::StatusOr<Device> DeviceOfTorch(c10::Device device) {
  if (device.is_cpu()) return Device::Cpu();
  if (device.is_cuda()) return Device::Cuda(device.index());
  if (device.type() == kFakeType) return Device::Fake(device.index());
  return InvalidArgument("device: got ", device.str(),
                         ", want cpu or cuda:N; use to(at::kCPU)");
}

absl::StatusOr<c10::Device> TorchDevice(Device device) {
  if (device.is_cpu()) return c10::Device(c10::DeviceType::CPU);
  const c10::DeviceType type =
      device.type == Device::Type::kCuda ? c10::DeviceType::CUDA : kFakeType;
  if (!c10::impl::hasDeviceGuardImpl(type) ||
      device.index >= c10::impl::getDeviceGuardImpl(type)->deviceCount()) {
    return FailedPrecondition(
        "device: got ", device.ToString(),
        ", which this LibTorch has not; link one that was built with CUDA and "
        "sees the device, or use To(Device::Cpu())");
  }
  return c10::Device(type, static_cast<c10::DeviceIndex>(device.index));
}

absl::StatusOr<Stream> CurrentTorchStream(Device device) {
  if (device.is_cpu()) return Stream::Default(device);
  return CallTorch(
      [&]() -> absl::StatusOr<Stream> {
        RILL_ASSIGN_OR_RETURN(const c10::Device place, TorchDevice(device));
        const auto* torch = c10::impl::getDeviceGuardImpl(place.type());
        const absl::Status backend = GetBackend(device).status();
        if (!backend.ok()) return FailedPrecondition(backend.message());
        return Stream::Borrow(
            device,
            {.value = torch->getStreamNativeHandle(torch->getStream(place))});
      },
      "CurrentTorchStream");
}

}  // namespace rill
