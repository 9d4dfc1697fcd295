// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STEPS_DEVICE_STEPS_H_
#define RILL_TRANSFORMS_STEPS_DEVICE_STEPS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/stream.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {

// A StepTransform that also works on leaves that lie on a device derives from
// this too. Its calls are the same, with the same values bit for bit. A call
// enqueues its work on the call's stream and does not wait.
//
// Leaves are those of StepPlan::leaves, [lanes, ...], contiguous. They and the
// state's tensors lie on the device of the stream, which is the current one
// (device/current_stream.h). A tensor of the state is not written: a call sets
// another one in its place.
// Errors: those of memory and of launches. The host learns later of values that
//   are wrong: see Call::fault.
// Inheritance: a class that changes the calls of a StepTransform changes those
//   of its DeviceSteps too, or works_on_device.
// Thread-safety: as StepTransform.
class DeviceSteps {
 public:
  using Tensors = absl::Span<const Tensor>;

  struct Call {
    const Stream& stream;
    // OnReset: the lanes that begin, in host memory and on the device. Some do.
    absl::Span<const uint8_t> lanes = {};
    const uint8_t* mask = nullptr;
    // On the device: 0, or the largest number that kernels have set it to
    // (AtomicMax) since the caller has read it. A transform that finds one
    // there leaves its statistics as they are.
    int64_t* fault = nullptr;
  };

  virtual ~DeviceSteps() = default;

  // False: with its options the transform works in host memory alone.
  virtual bool works_on_device() const { return true; }

  virtual absl::Status OnDeviceReset(const Call& /*call*/, Tensors /*leaves*/,
                                     TensorDict* /*state*/) const {
    return absl::OkStatus();
  }
  virtual absl::Status OnDeviceAction(const Call& /*call*/, Tensors /*leaves*/,
                                      TensorDict* /*state*/) const {
    return absl::OkStatus();
  }
  virtual absl::Status OnDeviceStep(const Call& /*call*/, Tensors /*leaves*/,
                                    TensorDict* /*state*/) const {
    return absl::OkStatus();
  }
  // Whether a kernel may find values that it does not take.
  virtual bool has_faults() const { return false; }
  // The error that a fault stands for.
  virtual absl::Status FaultOf(int64_t fault) const {
    return Internal("DeviceSteps: fault: got ", fault, ", want none");
  }
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_STEPS_DEVICE_STEPS_H_
