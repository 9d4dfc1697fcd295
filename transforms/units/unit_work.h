// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_UNITS_UNIT_WORK_H_
#define RILL_TRANSFORMS_UNITS_UNIT_WORK_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/device/device.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/device/stream.h"
#include "rill/device/uploads/stream_uploads.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::transforms_internal {

// The work of a unit's parts on the leaves of a batch on a device
// (UnitTransform::Enqueue). Each adds values of the host and kernels; Run sends
// all values at once, and then launches the kernels in order. Leave leaves both
// to the next Send of the uploads.
// Thread-safety: thread-compatible.
class UnitWork {
 public:
  // `caller` ("NStepReturns::Enqueue") starts the messages of errors.
  UnitWork(absl::string_view caller, StreamUploads* uploads)
      : caller_(caller), uploads_(*uploads) {}

  StreamUploads& uploads() { return uploads_; }

  // Leaves on the device, contiguous. NOT_FOUND; INVALID_ARGUMENT names both
  // sides of another dtype or shape; FAILED_PRECONDITION where it is strided or
  // lies elsewhere.
  absl::StatusOr<Tensor> Read(absl::string_view key,
                              const TensorDict& dict) const;
  absl::StatusOr<Tensor> Read(absl::string_view key, DType dtype,
                              const Shape& shape, const TensorDict& dict) const;
  // A leaf of the batch to be written whole. One that it replaces is kept.
  absl::StatusOr<Tensor> Write(absl::string_view key, DType dtype,
                               const Shape& shape, TensorDict* batch);

  template <typename Kernel>
  void Launch(const Kernel& kernel, const KernelGrid& grid) {
    launches_.push_back([kernel, grid](const Stream& stream) {
      return LaunchKernel(kernel, grid, stream);
    });
  }
  absl::Status Run();
  void Leave();

 private:
  const std::string caller_;
  StreamUploads& uploads_;
  std::vector<std::function<absl::Status(const Stream&)>> launches_;
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_UNITS_UNIT_WORK_H_
