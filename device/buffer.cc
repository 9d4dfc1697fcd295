// SPDX-License-Identifier: Apache-2.0
#include "rill/device/buffer.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"

namespace rill {

absl::StatusOr<std::shared_ptr<Buffer>> Buffer::Allocate(int64_t bytes,
                                                         Device device,
                                                         MemoryKind kind) {
  if (bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("Buffer::Allocate: bytes: got ", bytes, ", want >= 0"));
  }
  if (kind == MemoryKind::kMappedFile) {
    return absl::InvalidArgumentError(
        "Buffer::Allocate: memory kind: got mapped file, want pageable, pinned "
        "or device; map the file and use Buffer::Wrap");
  }
  if (kind != MemoryKind::kPageable && device.is_cpu()) {
    return absl::InvalidArgumentError(
        absl::StrCat("Buffer::Allocate: device for ", MemoryKindName(kind),
                     " memory: got cpu, want a device such as cuda:0"));
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

Buffer::~Buffer() {
  if (backend_ == nullptr || data_ == nullptr) return;
  backend_->Free(backend_index_, kind_, data_, size_bytes_);
}

}  // namespace rill
