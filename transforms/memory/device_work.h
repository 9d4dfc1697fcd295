// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_MEMORY_DEVICE_WORK_H_
#define RILL_TRANSFORMS_MEMORY_DEVICE_WORK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/memory/spare_tensors.h"

namespace rill::transforms_internal {

// Memory of work that a transform enqueues on devices: results, which are used
// again, numbers that kernels read, and tensors that are to live until the
// stream got there. The destructor waits for the latter. Tensors of a call
// whose work is captured (device/graphs/graph.h) live as long as this.
// Thread-safety: thread-safe; a Call belongs to one thread.
class DeviceWork {
 public:
  class Call;

  // Keeps so many results at most (SpareTensors).
  explicit DeviceWork(size_t most) : spare_(most) {}
  ~DeviceWork();

  // Keeps so many from now on, if that is more.
  void KeepUpTo(size_t most) { spare_.KeepUpTo(most); }
  // A capture has failed: nothing uses the tensors of its calls.
  void ForgetCaptured() {
    absl::MutexLock lock(&mutex_);
    captured_.clear();
  }

 private:
  struct Numbers {
    const void* key;
    Tensor tensor;
  };
  struct InFlight {
    Event done;
    std::vector<Tensor> tensors;
  };

  SpareTensors spare_;
  absl::Mutex mutex_;
  std::vector<Numbers> numbers_ ABSL_GUARDED_BY(mutex_);
  std::deque<InFlight> in_flight_ ABSL_GUARDED_BY(mutex_);
  std::vector<Tensor> captured_ ABSL_GUARDED_BY(mutex_);
};

// The work of one call, on the current stream of a device. Nothing waits but
// the first use of numbers, for their copy.
class DeviceWork::Call {
 public:
  explicit Call(DeviceWork* work) : work_(work) {}
  // As End; its error is lost.
  ~Call() { End().IgnoreError(); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // First. Errors of CurrentStream.
  absl::Status Begin(Device device);
  const Stream& stream() const { return *stream_; }

  // A tensor on the device that nobody else holds and no work uses.
  absl::StatusOr<Tensor> Take(DType dtype, const Shape& shape);
  // A copy on the device of numbers that stay where they are, unchanged, as
  // long as the DeviceWork lives.
  template <typename T>
  absl::StatusOr<const T*> Copy(absl::Span<const T> numbers) {
    absl::StatusOr<Tensor> copy = CopyBytes(
        numbers.data(), static_cast<int64_t>(numbers.size() * sizeof(T)));
    if (!copy.ok()) return copy.status();
    return copy->template data<T>();
  }
  // The tensor lives until the stream has done the work of this call.
  void Keep(Tensor tensor) { kept_.push_back(std::move(tensor)); }
  // Last, behind the work.
  absl::Status End();

 private:
  absl::StatusOr<Tensor> CopyBytes(const void* bytes, int64_t count);

  DeviceWork* const work_;
  std::optional<Stream> stream_;
  std::vector<Tensor> kept_;
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_MEMORY_DEVICE_WORK_H_
