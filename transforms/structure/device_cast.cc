// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/structure/device_cast.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {
namespace {

// `moved` in place of the batch.
absl::Status Replace(absl::string_view caller, absl::StatusOr<TensorDict> moved,
                     TensorDict* batch) {
  RILL_RETURN_IF_ERROR(moved.status()) << "in " << caller;
  // Assigned only on success: with an error the batch stays where it is.
  *batch = *std::move(moved);
  return absl::OkStatus();
}

class DeviceCastTransform final : public BatchTransform {
 public:
  explicit DeviceCastTransform(const DeviceCast::Options& options)
      : options_(options) {}

  absl::string_view name() const override { return "DeviceCast"; }
  OptionValues option_values() const override {
    OptionValues values;
    values.Choice("device", options_.device.ToString());
    if (!options_.orig_device.has_value()) return values.None("orig_device");
    return values.Choice("orig_device", options_.orig_device->ToString());
  }

  absl::Status Forward(TensorDict* batch,
                       TensorDict* /*state*/) const override {
    return Replace(name(), batch->To(options_.device), batch);
  }
  absl::Status Inverse(TensorDict* batch,
                       TensorDict* /*state*/) const override {
    if (!options_.orig_device.has_value()) return absl::OkStatus();
    return Replace(name(), batch->To(*options_.orig_device), batch);
  }

  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override {
    TensorDictSpec after = spec;
    after.set_device(options_.device);
    return after;
  }
  absl::StatusOr<TensorDictSpec> InverseSpec(
      const TensorDictSpec& spec) const override {
    TensorDictSpec after = spec;
    if (options_.orig_device.has_value()) {
      after.set_device(*options_.orig_device);
    }
    return after;
  }

 private:
  const DeviceCast::Options options_;
};

class PinMemoryTransform final : public BatchTransform {
 public:
  explicit PinMemoryTransform(Device pin_for) : pin_for_(pin_for) {}

  absl::string_view name() const override { return "PinMemory"; }
  OptionValues option_values() const override {
    return OptionValues().Choice("pin_for", pin_for_.ToString());
  }

  absl::Status Forward(TensorDict* batch,
                       TensorDict* /*state*/) const override {
    if (batch->is_pinned()) return absl::OkStatus();
    // Leaves on a device stay there; Pin copies those of the host.
    return Replace(name(), batch->Pin(pin_for_), batch);
  }

 private:
  const Device pin_for_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchTransform>> DeviceCast::Create(
    const Options& options) {
  RILL_RETURN_IF_ERROR(GetBackend(options.device).status())
      << "DeviceCast::Create: device";
  if (options.orig_device.has_value()) {
    RILL_RETURN_IF_ERROR(GetBackend(*options.orig_device).status())
        << "DeviceCast::Create: orig_device";
  }
  return std::make_unique<DeviceCastTransform>(options);
}

absl::StatusOr<std::unique_ptr<BatchTransform>> PinMemory::Create(
    const Options& options) {
  if (options.pin_for == Device::Cpu()) {
    return InvalidArgument(
        "PinMemory::Create: pin_for: got cpu, want the device that copies are "
        "for");
  }
  RILL_RETURN_IF_ERROR(GetBackend(options.pin_for).status())
      << "PinMemory::Create: pin_for";
  return std::make_unique<PinMemoryTransform>(options.pin_for);
}

}  // namespace rill
