// SPDX-License-Identifier: Apache-2.0
#include "rill/device/uploads/stream_uploads.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "rill/base/status_macros.h"
#include "rill/device/capturing.h"
#include "rill/device/has_ended.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"

namespace rill {
namespace {

using device_internal::HasEnded;
using device_internal::UploadKernel;

constexpr int64_t kAlignment = 64;
constexpr int64_t kLeastChunk = 4096;

int64_t Aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

StreamUploads::~StreamUploads() {
  for (const auto& batch : batches_) {
    if (batch->end != nullptr) batch->end->Synchronize().IgnoreError();
  }
}

void StreamUploads::Reset(Batch* batch) {
  batch->end = nullptr;
  batch->kept.clear();
  for (Arena* arena : {&batch->pinned, &batch->device}) {
    arena->used = 0;
    // The next one is large enough for all.
    if (arena->chunks.size() > 1) {
      std::swap(arena->chunks.front(), arena->chunks.back());
      arena->chunks.resize(1);
    }
  }
}

absl::Status StreamUploads::Begin(const Stream& stream) {
  RILL_ASSIGN_OR_RETURN(stream_, Stream::Borrow(device_, stream.handle()));
  pieces_.clear();
  behind_.clear();
  num_fixed_ = 0;
  if (open_ == nullptr) {
    auto found =
        std::find_if(batches_.begin(), batches_.end(), [&](const auto& batch) {
          return batch->end == nullptr || HasEnded(*batch->end).value_or(true);
        });
    if (found == batches_.end() && batches_.size() == kMaxBatches) {
      found = batches_.begin();
      (*found)->end->Synchronize().IgnoreError();
    }
    if (found == batches_.end()) {
      open_ = std::make_unique<Batch>();
    } else {
      open_ = std::move(*found);
      batches_.erase(found);
    }
  }
  Reset(open_.get());
  return absl::OkStatus();
}

// A new chunk is as large as all that the batch has, so that few are made.
absl::StatusOr<std::byte*> StreamUploads::Take(int64_t bytes, MemoryKind kind,
                                               Arena* arena) {
  const int64_t size = Aligned(bytes);
  if (arena->chunks.empty() ||
      arena->used + size > arena->chunks.back()->size_bytes()) {
    int64_t all = size;
    for (const auto& chunk : arena->chunks) all += chunk->size_bytes();
    const int64_t room = static_cast<int64_t>(
        std::bit_ceil(static_cast<uint64_t>(std::max(all, kLeastChunk))));
    RILL_ASSIGN_OR_RETURN(arena->chunks.emplace_back(),
                          Buffer::Allocate(room, device_, kind));
    arena->used = 0;
  }
  std::byte* const data = arena->chunks.back()->data() + arena->used;
  arena->used += size;
  return data;
}

absl::StatusOr<std::byte*> StreamUploads::TakeFixed(int64_t bytes) {
  const int64_t size = std::max(Aligned(bytes), kAlignment);
  if (num_fixed_ == fixed_.size()) {
    RILL_ASSIGN_OR_RETURN(fixed_.emplace_back(),
                          Buffer::Allocate(size, device_, MemoryKind::kDevice));
  }
  const Buffer& fixed = *fixed_[num_fixed_];
  if (fixed.size_bytes() != size) {
    return FailedPrecondition("StreamUploads::Mirror: mirror ", num_fixed_,
                              " of a batch: got ", size, " bytes, want ",
                              fixed.size_bytes(), " as in the first one (",
                              "FixMirrors)");
  }
  ++num_fixed_;
  return fixed.data();
}

absl::StatusOr<StreamUploads::Values<void>> StreamUploads::TakeMirror(
    int64_t bytes) {
  Values<void> values;
  if (!fixes_mirrors_) {
    RILL_ASSIGN_OR_RETURN(values.device,
                          Take(bytes, MemoryKind::kDevice, &open_->device));
  } else {
    RILL_ASSIGN_OR_RETURN(values.device, TakeFixed(bytes));
  }
  RILL_ASSIGN_OR_RETURN(values.host, TakeRoom(bytes, values.device));
  return values;
}

absl::StatusOr<void*> StreamUploads::TakeRoom(int64_t bytes, void* to) {
  RILL_ASSIGN_OR_RETURN(std::byte* const from,
                        Take(bytes, MemoryKind::kPinned, &open_->pinned));
  const bool is_aligned =
      reinterpret_cast<uintptr_t>(to) % UploadKernel::kWord == 0;
  pieces_.push_back({.from = reinterpret_cast<const uint8_t*>(from),
                     .to = static_cast<uint8_t*>(to),
                     .bytes = bytes,
                     .words = is_aligned ? bytes / UploadKernel::kWord : 0});
  return static_cast<void*>(from);
}

absl::Status StreamUploads::Send() {
  RILL_RETURN_IF_ERROR(SendValues());
  return SendLaunches(*stream_);
}

absl::Status StreamUploads::SendLaunches(const Stream& stream) {
  const std::vector<LaunchFn> launches = std::exchange(behind_, {});
  for (const LaunchFn& launch : launches) {
    RILL_RETURN_IF_ERROR(launch(stream));
  }
  return absl::OkStatus();
}

absl::Status StreamUploads::SendValues() {
  if (!pieces_.empty()) {
    RILL_RETURN_IF_ERROR(
        device_internal::CheckNotCapturing("StreamUploads::Send"));
  }
  size_t sent = 0;
  while (sent < pieces_.size()) {
    UploadKernel kernel;
    int64_t most = 0;
    for (; sent < pieces_.size() && kernel.count < UploadKernel::kMaxPieces;
         ++sent) {
      const UploadKernel::Piece& piece = pieces_[sent];
      if (piece.bytes == 0) continue;
      kernel.pieces[kernel.count++] = piece;
      most = std::max(
          most, std::max(piece.words,
                         piece.bytes - piece.words * UploadKernel::kWord));
    }
    if (kernel.count == 0) break;
    RILL_RETURN_IF_ERROR(LaunchKernel(kernel, GridFor(most), *stream_));
  }
  pieces_.clear();
  return absl::OkStatus();
}

void StreamUploads::End(std::shared_ptr<const Event> end) {
  if (open_ == nullptr) return;
  open_->end = std::move(end);
  batches_.push_back(std::move(open_));
}

}  // namespace rill
