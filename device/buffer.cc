// SPDX-License-Identifier: Apache-2.0
#include "rill/device/buffer.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include "rill/base/fault_point.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/capturing.h"

namespace rill {
namespace {

constexpr int64_t kAlignment = 64;
// Up to here bytes are made together with their Buffer: a dictionary of small
// leaves is made of little but allocations.
constexpr int64_t kMaxInlineBytes = 16 * 1024;
// Bytes before those of the buffer: the Buffer and the counts of its
// shared_ptr.
constexpr size_t kInlineHeader = 128;

// Gives out memory that is there already, once. The node of allocate_shared is
// at the beginning of the block. Freeing it therefore frees the bytes too, when
// the last shared_ptr and weak_ptr are gone.
template <typename T>
struct PlacedAllocator {
  using value_type = T;

  explicit PlacedAllocator(void* memory) : memory(memory) {}
  template <typename U>
  explicit PlacedAllocator(const PlacedAllocator<U>& other)
      : memory(other.memory) {}
  T* allocate(size_t) {
    static_assert(sizeof(T) <= kInlineHeader);
    return static_cast<T*>(memory);
  }
  void deallocate(T* at, size_t) { std::free(at); }

  void* memory;
};

}  // namespace

// So that allocate_shared may make one.
struct Buffer::Inline : Buffer {
  Inline() = default;
};

std::shared_ptr<Buffer> Buffer::AllocateInline(int64_t bytes) {
  void* const memory =
      std::malloc(kInlineHeader + static_cast<size_t>(bytes) + kAlignment - 1);
  if (memory == nullptr) return nullptr;
  std::shared_ptr<Buffer> buffer =
      std::allocate_shared<Inline>(PlacedAllocator<Inline>(memory));
  // malloc aligns to 16 only; the block has the bytes to round up. backend_
  // stays null: the destructor has nothing to free.
  std::byte* const end = static_cast<std::byte*>(memory) + kInlineHeader;
  buffer->data_ = end + (-reinterpret_cast<uintptr_t>(end) & (kAlignment - 1));
  buffer->size_bytes_ = bytes;
  return buffer;
}

absl::StatusOr<std::shared_ptr<Buffer>> Buffer::Allocate(int64_t bytes,
                                                         Device device,
                                                         MemoryKind kind) {
  if (bytes < 0) {
    return InvalidArgument("Buffer::Allocate: bytes: got ", bytes,
                           ", want >= 0");
  }
  if (kind == MemoryKind::kMappedFile) {
    return InvalidArgument(
        "Buffer::Allocate: memory kind: got mapped file, want pageable, pinned "
        "or device; map the file and use Buffer::Wrap");
  }
  if (kind != MemoryKind::kPageable && device.is_cpu()) {
    return InvalidArgument("Buffer::Allocate: device for ",
                           MemoryKindName(kind),
                           " memory: got cpu, want a device such as cuda:0");
  }
  if (kind == MemoryKind::kPageable && bytes > 0 && bytes <= kMaxInlineBytes) {
    RILL_RETURN_IF_ERROR(FaultPoint("host.allocate", "cpu"));
    // Without memory the backend below fails as well, and says how much is
    // free.
    if (std::shared_ptr<Buffer> buffer = AllocateInline(bytes)) return buffer;
  }
  if (kind != MemoryKind::kPageable) {
    RILL_RETURN_IF_ERROR(
        device_internal::CheckNotCapturing("Buffer::Allocate"));
  }
  const Device maker = kind == MemoryKind::kPageable ? Device::Cpu() : device;
  RILL_ASSIGN_OR_RETURN(Backend* const backend, GetBackend(maker));
  std::shared_ptr<Buffer> buffer(new Buffer);
  if (bytes > 0) {
    RILL_ASSIGN_OR_RETURN(void* const data,
                          backend->Allocate(maker.index, kind, bytes));
    buffer->data_ = static_cast<std::byte*>(data);
  }
  buffer->size_bytes_ = bytes;
  // Pinned memory is the host's, but only the backend that pinned it can free
  // it.
  buffer->device_ = kind == MemoryKind::kDevice ? device : Device::Cpu();
  buffer->kind_ = kind;
  buffer->backend_ = backend;
  buffer->backend_index_ = maker.index;
  return buffer;
}

std::shared_ptr<Buffer> Buffer::Wrap(void* data, int64_t bytes, Device device,
                                     MemoryKind kind,
                                     std::shared_ptr<const void> owner,
                                     bool is_writable) {
  std::shared_ptr<Buffer> buffer(new Buffer);
  buffer->data_ = static_cast<std::byte*>(data);
  buffer->size_bytes_ = bytes;
  buffer->device_ = device;
  buffer->kind_ = kind;
  buffer->writable_ = is_writable;
  buffer->owner_ = std::move(owner);
  return buffer;
}

std::shared_ptr<Buffer> Buffer::Lend(std::shared_ptr<Buffer> owner) {
  std::shared_ptr<Buffer> buffer =
      Wrap(owner->data(), owner->size_bytes(), owner->device(),
           owner->memory_kind(), owner, owner->is_writable());
  buffer->lent_ = true;
  return buffer;
}

Buffer::~Buffer() {
  if (backend_ == nullptr || data_ == nullptr) return;
  backend_->Free(backend_index_, kind_, data_, size_bytes_);
}

}  // namespace rill
