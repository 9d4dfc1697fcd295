// SPDX-License-Identifier: Apache-2.0
#include "rill/device/host_backend.h"

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <cstdlib>
#include <cstring>

#include "rill/base/fault_point.h"
#include "rill/base/status_macros.h"
#include "rill/device/row_copy.h"

namespace rill {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kHugePage = 2 << 20;
constexpr int64_t kUseHugePagesFrom = 4 << 20;

struct HostMemory {
  int64_t total_bytes;  // Memory and swap.
  int64_t free_bytes;
};

HostMemory MeasureHostMemory() {
  struct sysinfo info;
  // A system that does not tell refuses nothing.
  if (sysinfo(&info) != 0) return {INT64_MAX, -1};
  const int64_t unit = info.mem_unit;
  return {static_cast<int64_t>(info.totalram + info.totalswap) * unit,
          static_cast<int64_t>(info.freeram + info.bufferram + info.freeswap) *
              unit};
}

absl::Status OutOfMemory(int64_t bytes, const HostMemory& memory) {
  return ResourceExhausted(
      "Buffer::Allocate: memory of cpu: asked ", bytes, " bytes, of ",
      memory.total_bytes, " bytes about ", memory.free_bytes,
      " are free; lower the capacity or use a storage on disk");
}

absl::Status CheckCopy(absl::string_view what, const void* a, const void* b,
                       int64_t bytes) {
  if (bytes < 0 || (bytes > 0 && (a == nullptr || b == nullptr))) {
    return InvalidArgument("Backend::", what, ": bytes: got ", bytes,
                           bytes < 0 ? ", want >= 0" : " with a null pointer");
  }
  return absl::OkStatus();
}

class HostBackend final : public Backend {
 public:
  Device::Type type() const override { return Device::Type::kCpu; }
  absl::StatusOr<int> NumDevices() override { return 1; }

  absl::StatusOr<void*> Allocate(int /*index*/, MemoryKind kind,
                                 int64_t bytes) override {
    if (kind != MemoryKind::kPageable) {
      return InvalidArgument("Buffer::Allocate: memory kind on cpu: got ",
                             MemoryKindName(kind),
                             ", want pageable; name a device");
    }
    if (bytes <= 0) {
      return InvalidArgument("Backend::Allocate: bytes: got ", bytes,
                             ", want > 0");
    }
    RILL_RETURN_IF_ERROR(FaultPoint("host.allocate", "cpu"));
    const bool is_big = bytes >= kUseHugePagesFrom;
    // The kernel promises more than there is; asking it costs a microsecond.
    if (is_big && bytes > MeasureHostMemory().total_bytes) {
      return OutOfMemory(bytes, MeasureHostMemory());
    }
    void* data = nullptr;
    // A huge page begins at a multiple of its size. Aligned so, the first bytes
    // are in one too.
    if (posix_memalign(&data, is_big ? kHugePage : kAlignment, bytes) != 0) {
      return OutOfMemory(bytes, MeasureHostMemory());
    }
    // Advice only: a kernel without huge pages says no and nothing is lost.
    if (is_big) madvise(data, bytes, MADV_HUGEPAGE);
    return data;
  }
  void Free(int /*index*/, MemoryKind /*kind*/, void* data,
            int64_t /*bytes*/) override {
    std::free(data);
  }

  absl::StatusOr<StreamHandle> CreateStream(int /*index*/) override {
    return StreamHandle();
  }
  void DestroyStream(int /*index*/, StreamHandle /*stream*/) override {}
  absl::StatusOr<EventHandle> CreateEvent(int /*index*/) override {
    return EventHandle();
  }
  void DestroyEvent(int /*index*/, EventHandle /*event*/) override {}

  absl::Status Copy(int /*index*/, void* to, const void* from, int64_t bytes,
                    StreamHandle /*stream*/) override {
    RILL_RETURN_IF_ERROR(CheckCopy("Copy", to, from, bytes));
    if (bytes > 0) std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  absl::Status Fill(int /*index*/, void* to, uint8_t value, int64_t bytes,
                    StreamHandle /*stream*/) override {
    RILL_RETURN_IF_ERROR(CheckCopy("Fill", to, to, bytes));
    if (bytes > 0) std::memset(to, value, bytes);
    return absl::OkStatus();
  }
  absl::Status GatherRows(int /*index*/, absl::Span<const RowColumn> columns,
                          absl::Span<const int64_t> rows,
                          StreamHandle /*stream*/) override {
    GatherRowsOnHost(columns, rows);
    return absl::OkStatus();
  }
  absl::Status ScatterRows(int /*index*/, absl::Span<const RowColumn> columns,
                           absl::Span<const int64_t> rows,
                           StreamHandle /*stream*/) override {
    ScatterRowsOnHost(columns, rows);
    return absl::OkStatus();
  }

  absl::Status Record(int /*index*/, EventHandle /*event*/,
                      StreamHandle /*stream*/) override {
    return absl::OkStatus();
  }
  absl::Status Wait(int /*index*/, StreamHandle /*stream*/,
                    EventHandle /*event*/) override {
    return absl::OkStatus();
  }
  absl::Status SynchronizeStream(int /*index*/,
                                 StreamHandle /*stream*/) override {
    return absl::OkStatus();
  }
  absl::Status SynchronizeEvent(int /*index*/, EventHandle /*event*/) override {
    return absl::OkStatus();
  }
  absl::StatusOr<bool> IsComplete(int /*index*/,
                                  EventHandle /*event*/) override {
    return true;
  }
};

}  // namespace

std::unique_ptr<Backend> MakeHostBackend() {
  return std::make_unique<HostBackend>();
}

}  // namespace rill
