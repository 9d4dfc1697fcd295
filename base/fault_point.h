// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_FAULT_POINT_H_
#define RILL_BASE_FAULT_POINT_H_

#include <atomic>
#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rill {

// A named place where a test can make an operation of the system fail: open,
// write, sync, rename, map, allocate. Without a hook it costs one relaxed load.
//
// Thread-safety: thread-safe.
//
// A point is reached with its name ("file.write") and the object it works on
// (a path, a device). A hook that returns an error makes the operation fail
// with it before anything has been done.
using FaultHook = std::function<absl::Status(absl::string_view point,
                                             absl::string_view object)>;

namespace base_internal {
extern std::atomic<bool> fault_hook_set;
absl::Status ReachFaultPoint(absl::string_view point, absl::string_view object);
}  // namespace base_internal

inline absl::Status FaultPoint(absl::string_view point,
                               absl::string_view object) {
  if (!base_internal::fault_hook_set.load(std::memory_order_relaxed)) {
    return absl::OkStatus();
  }
  return base_internal::ReachFaultPoint(point, object);
}

// Installs `hook` for the whole process while it lives; the one installed
// before it is back afterwards, so scopes must nest. The hook may be called by
// several threads at once; the destructor waits for calls that are running.
// Operations of a hook reach no fault point.
class ScopedFaultHook {
 public:
  explicit ScopedFaultHook(FaultHook hook);
  // One that returns `error` at `point`, whatever the object.
  ScopedFaultHook(absl::string_view point, const absl::Status& error);
  ~ScopedFaultHook();
  ScopedFaultHook(const ScopedFaultHook&) = delete;
  ScopedFaultHook& operator=(const ScopedFaultHook&) = delete;

 private:
  FaultHook hook_;
  const FaultHook* previous_ = nullptr;
};

}  // namespace rill

#endif  // RILL_BASE_FAULT_POINT_H_
