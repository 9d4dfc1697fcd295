// SPDX-License-Identifier: Apache-2.0
#include "rill/device/cuda/cuda_backend.h"

#include <cuda_runtime_api.h>

#include "absl/base/no_destructor.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/capturing.h"
#include "rill/device/cuda/block_pool.h"
#include "rill/device/cuda/cuda_start.h"
#include "rill/device/cuda/cuda_status.h"
#include "rill/device/cuda/device_pool.h"
#include "rill/device/cuda/row_copy_kernels.h"
#include "rill/device/cuda/row_list.h"

// Each call makes the device of `index` current for its own time
// (ScopedDevice): the runtime keeps the current device by thread, and the
// caller's must stay. Entering also starts the driver, and is what a forked
// child is refused by.

namespace rill {
namespace {

using cuda_internal::CudaStatus;
using cuda_internal::DeviceNumbers;
using cuda_internal::DevicePool;
using cuda_internal::KeepLastPlaces;
using cuda_internal::LastPlaces;
using cuda_internal::ScopedDevice;
using cuda_internal::StartCuda;
using device_internal::CheckNotCapturing;

cudaStream_t Native(StreamHandle stream) {
  return static_cast<cudaStream_t>(stream.value);
}
cudaEvent_t Native(EventHandle event) {
  return static_cast<cudaEvent_t>(event.value);
}

absl::Status CheckRange(absl::string_view what, const void* a, const void* b,
                        int64_t bytes) {
  if (bytes < 0 || (bytes > 0 && (a == nullptr || b == nullptr))) {
    return InvalidArgument("CudaBackend::", what, ": bytes: got ", bytes,
                           bytes < 0 ? ", want >= 0" : " with a null pointer");
  }
  return absl::OkStatus();
}

absl::Status OutOfMemory(int index, MemoryKind kind, int64_t bytes,
                         cudaError_t error) {
  const absl::Status status = CudaStatus(error, "Allocate");
  size_t free = 0, total = 0;
  // Where this fails too, both numbers stay 0.
  cudaMemGetInfo(&free, &total);
  return absl::Status(
      status.code(), absl::StrCat("Buffer::Allocate: ", MemoryKindName(kind),
                                  " memory of cuda:", index, ": asked ", bytes,
                                  " bytes, of ", total, " bytes of the device ",
                                  free, " are free; ", status.message()));
}

// Page-locked memory takes milliseconds to get, and giving it back waits for
// the device. It serves all devices. Never destroyed, as it may be freed by
// destructors of static objects.
BlockPool& Pinned() {
  constexpr int64_t kMostUnusedBytes = int64_t{256} << 20;
  static absl::NoDestructor<BlockPool> pool(
      kMostUnusedBytes,
      [](int64_t bytes) -> absl::StatusOr<void*> {
        void* data = nullptr;
        const cudaError_t error =
            cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
        if (error == cudaSuccess) return data;
        int index = 0;
        cudaGetDevice(&index);
        return OutOfMemory(index, MemoryKind::kPinned, bytes, error);
      },
      [](void* data) { cudaFreeHost(data); });
  return *pool;
}

class CudaBackend final : public Backend {
 public:
  Device::Type type() const override { return Device::Type::kCuda; }
  absl::StatusOr<int> NumDevices() override { return StartCuda(); }

  absl::StatusOr<void*> Allocate(int index, MemoryKind kind,
                                 int64_t bytes) override;
  void Free(int index, MemoryKind kind, void* data, int64_t bytes) override;

  absl::StatusOr<StreamHandle> CreateStream(int index) override {
    ScopedDevice device;
    RILL_RETURN_IF_ERROR(device.Enter(index));
    cudaStream_t stream = nullptr;
    RILL_CUDA_RETURN_IF_ERROR(
        "CreateStream",
        // Not ordered with the legacy default stream: an implicit order would
        // make unrelated work wait.
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return StreamHandle{stream};
  }
  void DestroyStream(int /*index*/, StreamHandle stream) override {
    if (StartCuda().ok()) cudaStreamDestroy(Native(stream));
  }
  absl::StatusOr<EventHandle> CreateEvent(int index) override {
    ScopedDevice device;
    RILL_RETURN_IF_ERROR(device.Enter(index));
    cudaEvent_t event = nullptr;
    RILL_CUDA_RETURN_IF_ERROR(
        "CreateEvent",
        // Nobody reads the time of an event, and taking it costs.
        cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return EventHandle{event};
  }
  void DestroyEvent(int /*index*/, EventHandle event) override {
    if (StartCuda().ok()) cudaEventDestroy(Native(event));
  }

  absl::StatusOr<bool> ReachesPeer(int index, int peer) override;
  // Memory says which device it is of, so that one call serves peers too.
  absl::Status Copy(int index, void* to, const void* from, int64_t bytes,
                    StreamHandle stream) override {
    RILL_RETURN_IF_ERROR(CheckRange("Copy", to, from, bytes));
    ScopedDevice device;
    RILL_RETURN_IF_ERROR(device.Enter(index));
    if (bytes == 0) return absl::OkStatus();
    RILL_CUDA_RETURN_IF_ERROR(
        "Copy",
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, Native(stream)));
    return absl::OkStatus();
  }
  absl::Status Fill(int index, void* to, uint8_t value, int64_t bytes,
                    StreamHandle stream) override {
    RILL_RETURN_IF_ERROR(CheckRange("Fill", to, to, bytes));
    ScopedDevice device;
    RILL_RETURN_IF_ERROR(device.Enter(index));
    if (bytes == 0) return absl::OkStatus();
    RILL_CUDA_RETURN_IF_ERROR(
        "Fill", cudaMemsetAsync(to, value, bytes, Native(stream)));
    return absl::OkStatus();
  }
  absl::Status GatherRows(int index, absl::Span<const RowColumn> columns,
                          absl::Span<const int64_t> rows,
                          StreamHandle stream) override;
  absl::Status ScatterRows(int index, absl::Span<const RowColumn> columns,
                           absl::Span<const int64_t> rows,
                           StreamHandle stream) override;

  absl::Status Record(int index, EventHandle event,
                      StreamHandle stream) override {
    ScopedDevice device;
    RILL_RETURN_IF_ERROR(device.Enter(index));
    RILL_CUDA_RETURN_IF_ERROR("Record",
                              cudaEventRecord(Native(event), Native(stream)));
    return absl::OkStatus();
  }
  absl::Status Wait(int index, StreamHandle stream,
                    EventHandle event) override {
    ScopedDevice device;
    RILL_RETURN_IF_ERROR(device.Enter(index));
    RILL_CUDA_RETURN_IF_ERROR(
        "Wait", cudaStreamWaitEvent(Native(stream), Native(event), 0));
    return absl::OkStatus();
  }
  absl::Status SynchronizeStream(int index, StreamHandle stream) override {
    ScopedDevice device;
    RILL_RETURN_IF_ERROR(device.Enter(index));
    RILL_CUDA_RETURN_IF_ERROR("SynchronizeStream",
                              cudaStreamSynchronize(Native(stream)));
    return absl::OkStatus();
  }
  absl::Status SynchronizeEvent(int index, EventHandle event) override {
    ScopedDevice device;
    RILL_RETURN_IF_ERROR(device.Enter(index));
    RILL_CUDA_RETURN_IF_ERROR("SynchronizeEvent",
                              cudaEventSynchronize(Native(event)));
    return absl::OkStatus();
  }
  absl::StatusOr<bool> IsComplete(int index, EventHandle event) override {
    ScopedDevice device;
    RILL_RETURN_IF_ERROR(device.Enter(index));
    const cudaError_t error = cudaEventQuery(Native(event));
    if (error == cudaErrorNotReady) {
      // "Not ready" is kept as the last error as well, where the next check of
      // somebody else would find it.
      cudaGetLastError();
      return false;
    }
    RILL_CUDA_RETURN_IF_ERROR("IsComplete", error);
    return true;
  }
};

absl::StatusOr<void*> CudaBackend::Allocate(int index, MemoryKind kind,
                                            int64_t bytes) {
  ScopedDevice device;
  RILL_RETURN_IF_ERROR(device.Enter(index));
  if (kind != MemoryKind::kDevice && kind != MemoryKind::kPinned) {
    return InvalidArgument("Buffer::Allocate: memory kind on cuda:", index,
                           ": got ", MemoryKindName(kind),
                           ", want device or pinned");
  }
  if (bytes <= 0) {
    return InvalidArgument("Backend::Allocate: bytes: got ", bytes,
                           ", want > 0");
  }
  void* data = nullptr;
  cudaError_t error;
  if (kind == MemoryKind::kDevice) {
    RILL_ASSIGN_OR_RETURN(DevicePool* const pool, DevicePool::Of(index));
    error = pool->Allocate(bytes, &data);
  } else {
    return Pinned().Allocate(bytes);
  }
  if (error != cudaSuccess) return OutOfMemory(index, kind, bytes, error);
  return data;
}

void CudaBackend::Free(int index, MemoryKind kind, void* data, int64_t bytes) {
  ScopedDevice device;
  // A child of a fork must leave the parent's memory alone.
  if (!device.Enter(index).ok()) return;
  if (kind == MemoryKind::kDevice) {
    // It was there for Allocate.
    if (const auto pool = DevicePool::Of(index); pool.ok()) {
      (*pool)->Free(data);
    }
  } else {
    Pinned().Free(data, bytes);
  }
}

absl::StatusOr<bool> CudaBackend::ReachesPeer(int index, int peer) {
  ScopedDevice device;
  RILL_RETURN_IF_ERROR(device.Enter(index));
  if (index == peer) return true;
  // Either may be lost. A pool is made on its own device.
  ScopedDevice other;
  RILL_RETURN_IF_ERROR(other.Enter(peer));
  RILL_ASSIGN_OR_RETURN(DevicePool* const pool, DevicePool::Of(peer));
  return pool->OpenTo(index);
}

absl::Status CudaBackend::GatherRows(int index,
                                     absl::Span<const RowColumn> columns,
                                     absl::Span<const int64_t> rows,
                                     StreamHandle stream) {
  RILL_RETURN_IF_ERROR(CheckNotCapturing("Backend: a copy of rows"));
  ScopedDevice device;
  RILL_RETURN_IF_ERROR(device.Enter(index));
  if (columns.empty() || rows.empty()) return absl::OkStatus();
  DeviceNumbers numbers(Native(stream));
  RILL_RETURN_IF_ERROR(numbers.Upload(index, rows));
  RILL_CUDA_RETURN_IF_ERROR(
      "GatherRows",
      static_cast<cudaError_t>(cuda_internal::LaunchGatherRows(
          columns.data(), columns.size(), numbers.list(), stream.value)));
  return absl::OkStatus();
}

absl::Status CudaBackend::ScatterRows(int index,
                                      absl::Span<const RowColumn> columns,
                                      absl::Span<const int64_t> rows,
                                      StreamHandle stream) {
  RILL_RETURN_IF_ERROR(CheckNotCapturing("Backend: a copy of rows"));
  ScopedDevice device;
  RILL_RETURN_IF_ERROR(device.Enter(index));
  if (columns.empty() || rows.empty()) return absl::OkStatus();
  // Host kernels let the later place of a row win; threads have no order, so
  // the places that lose are left out.
  const LastPlaces last = KeepLastPlaces(rows);
  DeviceNumbers kept_rows(Native(stream)), kept_places(Native(stream));
  RILL_RETURN_IF_ERROR(kept_rows.Upload(index, last.rows));
  RILL_RETURN_IF_ERROR(kept_places.Upload(index, last.places));
  RILL_CUDA_RETURN_IF_ERROR(
      "ScatterRows", static_cast<cudaError_t>(cuda_internal::LaunchScatterRows(
                         columns.data(), columns.size(), kept_rows.list(),
                         kept_places.list(), stream.value)));
  return absl::OkStatus();
}

// Constructs an object without a call of the runtime, so a program that stays
// on the CPU does not start the driver.
[[maybe_unused]] const bool registered = [] {
  RegisterBackend(MakeCudaBackend());
  return true;
}();

}  // namespace

std::unique_ptr<Backend> MakeCudaBackend() {
  return std::make_unique<CudaBackend>();
}

}  // namespace rill
