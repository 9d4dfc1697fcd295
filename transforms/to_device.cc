// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/to_device.h"

#include "rill/base/status_macros.h"
#include "rill/device/backend.h"

namespace rill {
namespace {

class ToDeviceTransform final : public BatchTransform {
 public:
  explicit ToDeviceTransform(Device device) : device_(device) {}

  absl::string_view name() const override { return "ToDevice"; }
  OptionValues option_values() const override {
    return OptionValues().Choice("device", device_.ToString());
  }

  absl::Status Forward(TensorDict* batch,
                       TensorDict* /*state*/) const override {
    RILL_ASSIGN_OR_RETURN(*batch, batch->To(device_));
    return absl::OkStatus();
  }

  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override {
    TensorDictSpec after = spec;
    after.set_device(device_);
    return after;
  }

 private:
  const Device device_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchTransform>> ToDevice::Create(
    Device device) {
  RILL_RETURN_IF_ERROR(GetBackend(device).status()) << "ToDevice::Create";
  return std::make_unique<ToDeviceTransform>(device);
}

}  // namespace rill
