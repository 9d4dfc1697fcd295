// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_BUFFER_H_
#define RILL_DEVICE_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/device/device.h"

namespace rill {

class Backend;

// A run of bytes somewhere, owned: freed, unmapped or given back when the last
// shared_ptr goes.
// Thread-safety: immutable (the bytes are the users' to synchronise).
class Buffer {
 public:
  // `bytes` >= 0 of uninitialised memory (0 gives a buffer without bytes).
  // kPageable and kPinned need no device memory: the memory is then pinned for
  // `device`, and the buffer's own device() is the CPU.
  // Aligned to 64 bytes. RESOURCE_EXHAUSTED names asked and free bytes.
  static absl::StatusOr<std::shared_ptr<Buffer>> Allocate(
      int64_t bytes, Device device = Device::Cpu(),
      MemoryKind kind = MemoryKind::kPageable);

  // Shares memory that somebody else owns; `owner` is held as long as the
  // buffer lives.
  static std::shared_ptr<Buffer> Wrap(void* data, int64_t bytes, Device device,
                                      MemoryKind kind,
                                      std::shared_ptr<const void> owner,
                                      bool is_writable = true);

  // The bytes of `owner` once more, for views that are lent. is_lent() tells a
  // caller that looks for memory to write to leave them alone.
  static std::shared_ptr<Buffer> Lend(std::shared_ptr<Buffer> owner);

  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return data_; }
  int64_t size_bytes() const { return size_bytes_; }
  Device device() const { return device_; }
  MemoryKind memory_kind() const { return kind_; }
  bool is_writable() const { return writable_; }
  bool is_lent() const { return lent_; }

 private:
  struct Inline;

  Buffer() = default;
  // Little host memory in one allocation with its Buffer; null where there is
  // no memory.
  static std::shared_ptr<Buffer> AllocateInline(int64_t bytes);

  std::byte* data_ = nullptr;
  int64_t size_bytes_ = 0;
  Device device_;  // Where the bytes are addressed: CPU unless kDevice.
  MemoryKind kind_ = MemoryKind::kPageable;
  bool writable_ = true;
  bool lent_ = false;
  Backend* backend_ = nullptr;  // Who made the bytes; null if wrapped.
  int backend_index_ = 0;
  std::shared_ptr<const void> owner_;  // Keeps wrapped bytes alive.
};

}  // namespace rill

#endif  // RILL_DEVICE_BUFFER_H_
