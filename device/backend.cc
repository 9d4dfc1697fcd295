// SPDX-License-Identifier: Apache-2.0
#include "rill/device/backend.h"

#include <array>
#include <atomic>

#include "absl/base/const_init.h"
#include "absl/synchronization/mutex.h"
#include "rill/base/status_macros.h"
#include "rill/device/host_backend.h"

namespace rill {
namespace {

constexpr size_t kNumTypes = 3;

// Constant-initialised, because backends register themselves while the program
// starts. They are never destroyed: buffers may outlive main.
ABSL_CONST_INIT absl::Mutex registration_mutex(absl::kConstInit);
ABSL_CONST_INIT std::array<std::atomic<Backend*>, kNumTypes> backends{};

absl::Status NotLinked(Device device) {
  if (device.type == Device::Type::kCuda) {
    return FailedPrecondition("GetBackend: device ", device.ToString(),
                              ": built without CUDA; build with "
                              "--repo_env=RILL_CUDA=hermetic and link "
                              "@rill//device/cuda:cuda_backend");
  }
  return FailedPrecondition(
      "GetBackend: device ", device.ToString(),
      ": no backend of its type is registered; a test links "
      "//device/testing:fake_backend and registers it");
}

}  // namespace

void RegisterBackend(std::unique_ptr<Backend> backend) {
  absl::MutexLock lock(&registration_mutex);
  const size_t type = static_cast<size_t>(backend->type());
  // The one before may go: it has no live buffers (backend.h).
  delete backends[type].exchange(backend.release(), std::memory_order_acq_rel);
}

absl::StatusOr<Backend*> GetBackend(Device device) {
  if (device.is_cpu()) {
    if (device.index != 0) {
      return InvalidArgument("GetBackend: index of cpu: got ", device.index,
                             ", want 0");
    }
    // Made on demand, not registered, so that it is there for whatever runs
    // before main.
    static Backend* const host = MakeHostBackend().release();
    return host;
  }
  Backend* const backend = backends[static_cast<size_t>(device.type)].load(
      std::memory_order_acquire);
  if (backend == nullptr) return NotLinked(device);
  RILL_ASSIGN_OR_RETURN(const int count, backend->NumDevices());
  if (device.index < 0 || device.index >= count) {
    return InvalidArgument("GetBackend: index of ", device.ToString(), ": got ",
                           device.index, ", want [0, ", count, ")");
  }
  return backend;
}

}  // namespace rill
