// SPDX-License-Identifier: Apache-2.0
#include "rill/device/cuda/kernel_registry.h"

#include "absl/base/no_destructor.h"
#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace rill::cuda_internal {
namespace {

struct Registry {
  absl::Mutex mutex;
  absl::flat_hash_map<absl::string_view, CudaLaunch> launches
      ABSL_GUARDED_BY(mutex);
};

Registry& TheRegistry() {
  static absl::NoDestructor<Registry> registry;
  return *registry;
}

}  // namespace

bool RegisterCudaKernel(const char* name, CudaLaunch launch) {
  Registry& registry = TheRegistry();
  absl::MutexLock lock(&registry.mutex);
  registry.launches[name] = launch;
  return true;
}

CudaLaunch FindCudaKernel(const char* name) {
  Registry& registry = TheRegistry();
  absl::MutexLock lock(&registry.mutex);
  const auto found = registry.launches.find(name);
  return found == registry.launches.end() ? nullptr : found->second;
}

}  // namespace rill::cuda_internal
