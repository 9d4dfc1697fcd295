// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_TESTING_FAKE_MEMORY_H_
#define RILL_DEVICE_TESTING_FAKE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/device/device.h"

namespace rill {

// The memory of fake devices, tracked by range.
//
// Device memory has addresses of its own that the host cannot touch. The range
// is mapped without any right, so a host load or store there is a segmentation
// fault, as on a real device. Its bytes lie elsewhere and Resolve finds them.
// Addresses are never used twice, so a stale pointer is always recognised.
// Pinned memory is ordinary host memory that is tracked too.
// New memory is filled with 0xCD and freed memory with 0xDD.
//
// Thread-safety: thread-compatible (FakeBackend locks around it).
class FakeMemory {
 public:
  static constexpr uint8_t kNewByte = 0xCD;
  static constexpr uint8_t kFreedByte = 0xDD;

  // `limit_bytes`: of each device, and of pinned memory for each device.
  FakeMemory(int num_devices, int64_t limit_bytes);
  ~FakeMemory();
  FakeMemory(const FakeMemory&) = delete;
  FakeMemory& operator=(const FakeMemory&) = delete;

  absl::StatusOr<void*> Allocate(int index, MemoryKind kind, int64_t bytes);
  // INVALID_ARGUMENT for what Allocate did not give like this.
  absl::Status Free(int index, MemoryKind kind, void* data, int64_t bytes);

  // Where the host finds [data, data + bytes) for work on device `index`: the
  // same address for host memory. INVALID_ARGUMENT for memory of another
  // device, memory that was never allocated and ranges that leave their
  // allocation; FAILED_PRECONDITION for freed memory.
  absl::StatusOr<std::byte*> Resolve(int index, const void* data,
                                     int64_t bytes) const;

  // INVALID_ARGUMENT for memory that a kernel could not touch: neither device
  // nor pinned.
  absl::Status CheckReachable(const void* data) const;

  // The device whose memory that is, or was; -1 of other memory.
  int DeviceOf(const void* data) const;

  // The address is one of device memory.
  bool IsDevice(const void* data) const {
    return IsDeviceAddress(reinterpret_cast<uintptr_t>(data));
  }

  // Live allocations of one kind (device or pinned), and their bytes.
  int64_t NumLive(int index, MemoryKind kind) const {
    return live_[Number(index, kind)].allocations;
  }
  int64_t LiveBytes(int index, MemoryKind kind) const {
    return live_[Number(index, kind)].bytes;
  }

 private:
  struct Allocation {
    int index;
    MemoryKind kind;
    int64_t bytes;
    std::byte* host;  // The bytes; null once freed.
  };
  using Allocations = std::map<uintptr_t, Allocation>;

  struct Live {
    int64_t allocations = 0;
    int64_t bytes = 0;
  };

  static size_t Number(int index, MemoryKind kind) {
    return static_cast<size_t>(index) * 2 + (kind == MemoryKind::kDevice);
  }
  bool IsDeviceAddress(uintptr_t address) const;
  Allocations::const_iterator Find(uintptr_t address) const;

  int64_t limit_bytes_;
  std::vector<Live> live_;  // By Number().
  uintptr_t space_ = 0;     // The addresses of device memory.
  uintptr_t next_ = 0;
  Allocations allocations_;  // By first address. Device ones stay when freed.
};

}  // namespace rill

#endif  // RILL_DEVICE_TESTING_FAKE_MEMORY_H_
