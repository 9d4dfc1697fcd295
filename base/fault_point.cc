// SPDX-License-Identifier: Apache-2.0
#include "rill/base/fault_point.h"

#include <string>
#include <utility>

#include "absl/base/const_init.h"
#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace rill {
namespace {

absl::Mutex hook_mutex(absl::kConstInit);
const FaultHook* hook ABSL_GUARDED_BY(hook_mutex) = nullptr;
// Keeps a hook that itself reads or writes files from being called again, and
// from taking hook_mutex a second time in one thread.
thread_local bool inside_hook = false;

}  // namespace

namespace base_internal {

// A hint only, hence relaxed: ReachFaultPoint looks again under the mutex.
std::atomic<bool> fault_hook_set{false};

absl::Status ReachFaultPoint(absl::string_view point,
                             absl::string_view object) {
  if (inside_hook) return absl::OkStatus();
  // Held while the hook runs, so that it cannot be taken away under it.
  absl::ReaderMutexLock lock(&hook_mutex);
  if (hook == nullptr) return absl::OkStatus();
  inside_hook = true;
  absl::Status status = (*hook)(point, object);
  inside_hook = false;
  return status;
}

}  // namespace base_internal

ScopedFaultHook::ScopedFaultHook(FaultHook new_hook)
    : hook_(std::move(new_hook)) {
  absl::MutexLock lock(&hook_mutex);
  previous_ = hook;
  hook = &hook_;
  base_internal::fault_hook_set.store(true, std::memory_order_relaxed);
}

ScopedFaultHook::ScopedFaultHook(absl::string_view point,
                                 const absl::Status& error)
    : ScopedFaultHook([point = std::string(point), error](
                          absl::string_view reached, absl::string_view) {
        return reached == point ? error : absl::OkStatus();
      }) {}

ScopedFaultHook::~ScopedFaultHook() {
  absl::MutexLock lock(&hook_mutex);
  hook = previous_;
  base_internal::fault_hook_set.store(hook != nullptr,
                                      std::memory_order_relaxed);
}

}  // namespace rill
