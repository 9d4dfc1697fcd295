// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/testing/fake_torch_device.h"

#include <atomic>

#include "ATen/detail/PrivateUse1HooksInterface.h"
#include "c10/core/DeviceType.h"
#include "c10/core/impl/DeviceGuardImplInterface.h"
#include "rill/libtorch/testing/fake_torch_kernels.h"

namespace rill {
namespace {

std::atomic<void*> current_stream = nullptr;

class FakeGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::DeviceType::PrivateUse1; }
  c10::Device exchangeDevice(c10::Device /*device*/) const override {
    return getDevice();
  }
  c10::Device getDevice() const override { return {type(), 0}; }
  void setDevice(c10::Device /*device*/) const override {}
  void uncheckedSetDevice(c10::Device /*device*/) const noexcept override {}
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::UNSAFE, device,
                       reinterpret_cast<c10::StreamId>(current_stream.load()));
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return getStream(device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream before = getStream(stream.device());
    current_stream = getStreamNativeHandle(stream);
    return before;
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return reinterpret_cast<void*>(stream.id());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return 2; }
};

struct FakeHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*index*/) const override {
    return true;
  }
};

}  // namespace

void RegisterFakeTorchDevice() {
  [[maybe_unused]] static const bool is_registered = [] {
    c10::register_privateuse1_backend("fake");
    // Torch keeps both for good.
    at::RegisterPrivateUse1HooksInterface(new FakeHooks);
    c10::impl::registerDeviceGuard(c10::DeviceType::PrivateUse1, new FakeGuard);
    libtorch_internal::RegisterFakeTorchKernels();
    return true;
  }();
}

void SetFakeTorchStream(StreamHandle stream) { current_stream = stream.value; }

}  // namespace rill
