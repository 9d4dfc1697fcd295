// SPDX-License-Identifier: Apache-2.0
#include "rill/device/testing/fake_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <iterator>

#include "absl/log/absl_check.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace rill {
namespace {

constexpr int64_t kSpaceBytes = int64_t{1} << 36;  // Addresses, not memory.
constexpr int64_t kAlignment = 256;
constexpr int64_t kGap = 4096;  // Between allocations.

std::string Describe(const void* data, int64_t bytes) {
  return absl::StrFormat("%d bytes at %p", bytes, data);
}

}  // namespace

FakeMemory::FakeMemory(int num_devices, int64_t limit_bytes)
    : limit_bytes_(limit_bytes), live_(num_devices * 2) {
  void* space = mmap(nullptr, kSpaceBytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ABSL_CHECK(space != MAP_FAILED) << "no address space for fake devices";
  space_ = reinterpret_cast<uintptr_t>(space);
  next_ = space_ + kGap;
}

FakeMemory::~FakeMemory() {
  for (auto& [address, allocation] : allocations_) std::free(allocation.host);
  munmap(reinterpret_cast<void*>(space_), kSpaceBytes);
}

bool FakeMemory::IsDeviceAddress(uintptr_t address) const {
  return address >= space_ && address < space_ + kSpaceBytes;
}

// The allocation that `address` lies in, or end().
FakeMemory::Allocations::const_iterator FakeMemory::Find(
    uintptr_t address) const {
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return allocations_.end();
  const auto found = std::prev(after);
  const bool inside =
      address - found->first < static_cast<uintptr_t>(found->second.bytes);
  return inside ? found : allocations_.end();
}

absl::StatusOr<void*> FakeMemory::Allocate(int index, MemoryKind kind,
                                           int64_t bytes) {
  if (kind != MemoryKind::kDevice && kind != MemoryKind::kPinned) {
    return absl::InvalidArgumentError(
        absl::StrCat("Buffer::Allocate: memory kind on fake:", index, ": got ",
                     MemoryKindName(kind), ", want device or pinned"));
  }
  if (bytes <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("Backend::Allocate: bytes: got ", bytes, ", want > 0"));
  }
  const int64_t free = limit_bytes_ - LiveBytes(index, kind);
  const int64_t addresses = space_ + kSpaceBytes - next_;
  void* host = nullptr;
  if (bytes > free || bytes > addresses - kGap - kAlignment ||
      posix_memalign(&host, kAlignment, bytes) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "Buffer::Allocate: ", MemoryKindName(kind), " memory of fake:", index,
        ": asked ", bytes, " bytes, of ", limit_bytes_, " bytes ", free,
        " are free; lower the capacity"));
  }
  std::memset(host, kNewByte, bytes);
  uintptr_t address = reinterpret_cast<uintptr_t>(host);
  if (kind == MemoryKind::kDevice) {
    address = (next_ + kAlignment - 1) / kAlignment * kAlignment;
    next_ = address + bytes + kGap;
  }
  Live& live = live_[Number(index, kind)];
  ++live.allocations;
  live.bytes += bytes;
  allocations_[address] = {index, kind, bytes, static_cast<std::byte*>(host)};
  return reinterpret_cast<void*>(address);
}

absl::Status FakeMemory::Free(int index, MemoryKind kind, void* data,
                              int64_t bytes) {
  const auto found = allocations_.find(reinterpret_cast<uintptr_t>(data));
  if (found == allocations_.end() || found->second.host == nullptr ||
      found->second.index != index || found->second.kind != kind ||
      found->second.bytes != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("FakeBackend::Free: ", MemoryKindName(kind),
                     " memory of fake:", index, ": got ", Describe(data, bytes),
                     ", want what Allocate gave, unchanged, once"));
  }
  Live& live = live_[Number(index, kind)];
  --live.allocations;
  live.bytes -= bytes;
  std::memset(found->second.host, kFreedByte, bytes);
  std::free(found->second.host);
  found->second.host = nullptr;
  // The address of pinned memory is the host allocator's to use again.
  if (kind == MemoryKind::kPinned) allocations_.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<std::byte*> FakeMemory::Resolve(int index, const void* data,
                                               int64_t bytes) const {
  const uintptr_t address = reinterpret_cast<uintptr_t>(data);
  if (bytes < 0 || (data == nullptr && bytes > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("FakeBackend: range: got ", Describe(data, bytes),
                     ", want >= 0 bytes of memory"));
  }
  std::byte* const host = reinterpret_cast<std::byte*>(address);
  if (bytes == 0) return host;
  const auto found = Find(address);
  if (found == allocations_.end()) {
    if (!IsDeviceAddress(address)) return host;
    return absl::InvalidArgumentError(
        absl::StrCat("FakeBackend: range: got ", Describe(data, bytes),
                     ", which no allocation of a fake device holds"));
  }
  const Allocation& allocation = found->second;
  const int64_t offset = address - found->first;
  if (allocation.host == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("FakeBackend: range: got ", Describe(data, bytes),
                     ", which was freed before the operation ran"));
  }
  if (bytes > allocation.bytes - offset) {
    return absl::InvalidArgumentError(absl::StrCat(
        "FakeBackend: range: got ", Describe(data, bytes), ", want <= ",
        allocation.bytes - offset, " bytes, the rest of the allocation"));
  }
  if (allocation.kind == MemoryKind::kDevice && allocation.index != index) {
    return absl::InvalidArgumentError(absl::StrCat(
        "FakeBackend: range: got ", Describe(data, bytes), " of fake:",
        allocation.index, ", want memory of fake:", index, " or of the host"));
  }
  return allocation.host + offset;
}

int FakeMemory::DeviceOf(const void* data) const {
  const auto found = Find(reinterpret_cast<uintptr_t>(data));
  const bool is_device =
      found != allocations_.end() && found->second.kind == MemoryKind::kDevice;
  return is_device ? found->second.index : -1;
}

absl::Status FakeMemory::CheckReachable(const void* data) const {
  const uintptr_t address = reinterpret_cast<uintptr_t>(data);
  if (IsDeviceAddress(address) || Find(address) != allocations_.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "FakeBackend: range: got pageable memory at %p, want device or pinned "
      "memory; copy it first",
      data));
}

}  // namespace rill
