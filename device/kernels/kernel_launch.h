// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_KERNELS_KERNEL_LAUNCH_H_
#define RILL_DEVICE_KERNELS_KERNEL_LAUNCH_H_

#include <cstdint>
#include <memory>
#include <type_traits>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/device/backend.h"
#include "rill/device/device.h"
#include "rill/device/kernels/host_grid.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/stream.h"

namespace rill {

// A kernel and its grid, whose type is forgotten.
struct KernelCall {
  using Visit = absl::FunctionRef<void(void*& data, int64_t bytes)>;

  const char* name = nullptr;
  const void* kernel = nullptr;  // Copied before Launch returns.
  int64_t bytes = 0;             // Of the struct.
  KernelGrid grid = {};
  void (*visit_memory)(void* kernel, Visit visit) = nullptr;
  void (*run_on_host)(const void* kernel, const KernelGrid& grid,
                      uint64_t order) = nullptr;
};

// Launches kernels on a kind of device: beside its Backend, and registered with
// it.
// Thread-safety: thread-safe.
class KernelLauncher {
 public:
  virtual ~KernelLauncher() = default;

  // Enqueues the call, as Backend's operations do. FAILED_PRECONDITION where
  // the device has no code of that name.
  virtual absl::Status Launch(int index, const KernelCall& call,
                              StreamHandle stream) = 0;
};

// A second launcher of a type replaces the first, which nobody may be using.
void RegisterKernelLauncher(Device::Type type,
                            std::unique_ptr<KernelLauncher> launcher);

namespace device_internal {

// Checks the call. On the CPU the grid has run when this returns.
absl::Status LaunchCall(const KernelCall& call, const Stream& stream);

}  // namespace device_internal

// Runs `kernel` (kernel.h) on the device of `stream`, behind the stream's work.
// The caller keeps what the kernel reads and writes alive until the stream got
// there, and has checked it: threads check nothing.
// Errors: INVALID_ARGUMENT names a bad grid. FAILED_PRECONDITION where nothing
//   launches kernels on such a device, or the kernel's code was not linked in,
//   with what to link.
// Cost: a launch; no allocation but on the fake device.
//
// Example (KernelLaunchTest.Example runs it):
//   const Scale kernel = {.values = values, .count = n, .factor = 2};
//   RILL_RETURN_IF_ERROR(LaunchKernel(kernel, GridFor(n), stream));
template <typename Kernel>
absl::Status LaunchKernel(const Kernel& kernel, const KernelGrid& grid,
                          const Stream& stream) {
  static_assert(std::is_trivially_copyable_v<Kernel> &&
                sizeof(Kernel) <= kMaxKernelBytes);
  return device_internal::LaunchCall(
      {.name = Kernel::kName,
       .kernel = &kernel,
       .bytes = sizeof(Kernel),
       .grid = grid,
       .visit_memory =
           [](void* copy, KernelCall::Visit visit) {
             static_cast<Kernel*>(copy)->VisitMemory(
                 [&]<typename T>(T*& pointer, int64_t bytes) {
                   void* data = const_cast<std::remove_const_t<T>*>(pointer);
                   visit(data, bytes);
                   pointer = static_cast<T*>(data);
                 });
           },
       .run_on_host =
           [](const void* copy, const KernelGrid& shape, uint64_t order) {
             RunGridOnHost(*static_cast<const Kernel*>(copy), shape, order);
           }},
      stream);
}

}  // namespace rill

#endif  // RILL_DEVICE_KERNELS_KERNEL_LAUNCH_H_
