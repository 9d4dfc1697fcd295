// SPDX-License-Identifier: Apache-2.0
#include "rill/device/staging/staging_ring.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "rill/base/status_macros.h"

namespace rill {
namespace {

constexpr int64_t kAlignment = 64;
// Small parts share an event, up to an eighth of the ring.
constexpr int64_t kEvents = 8;

}  // namespace

StagingRing::~StagingRing() { AwaitAll(); }

int64_t StagingRing::FindRoom(int64_t bytes) const {
  if (used_.empty() && taken_bytes_ == 0) return bytes <= size_ ? 0 : -1;
  const int64_t tail = used_.empty() ? taken_begin_ : used_.front().begin;
  if (tail >= head_) return tail - head_ >= bytes ? head_ : -1;
  if (size_ - head_ >= bytes) return head_;
  return tail >= bytes ? 0 : -1;
}

void StagingRing::AwaitOldest() {
  // Work that failed reads no more either.
  const Event& end = used_.front().end_of_use;
  if (!end.IsComplete().value_or(false)) end.Synchronize().IgnoreError();
  spare_events_.push_back(std::move(used_.front().end_of_use));
  used_.pop_front();
}

void StagingRing::AwaitAll() {
  while (!used_.empty()) AwaitOldest();
}

absl::Status StagingRing::Reserve(int64_t bytes) {
  if (size_ >= std::max(bytes, std::min(4 * bytes, kMaxBytes))) {
    return absl::OkStatus();
  }
  if (taken_bytes_ > 0) {
    return FailedPrecondition("StagingRing::Take: got ", bytes,
                              " bytes behind ", taken_bytes_,
                              ", want a Release between, or a Take of both");
  }
  AwaitAll();
  const int64_t want =
      std::max(bytes, std::clamp(4 * bytes, kMinBytes, kMaxBytes));
  const auto size =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(want)));
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> host,
                        Buffer::Allocate(size, device_, MemoryKind::kPinned));
  RILL_ASSIGN_OR_RETURN(there_,
                        Buffer::Allocate(size, device_, MemoryKind::kDevice));
  host_ = std::move(host);
  size_ = size;
  head_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<StagingRing::Part> StagingRing::Take(int64_t bytes) {
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  RILL_RETURN_IF_ERROR(Reserve(bytes));
  int64_t at = FindRoom(bytes);
  for (; at < 0 && !used_.empty(); at = FindRoom(bytes)) AwaitOldest();
  if (at < 0) {
    return FailedPrecondition("StagingRing::Take: got ", bytes,
                              " bytes behind ", taken_bytes_, " of ", size_,
                              ", want a Release between");
  }
  if (taken_bytes_ == 0) taken_begin_ = at;
  taken_bytes_ += bytes;
  head_ = at + bytes;
  return Part{host_->data() + at, there_->data() + at};
}

absl::Status StagingRing::Release(const Stream& stream) {
  if (taken_bytes_ == 0) return absl::OkStatus();
  const int64_t bytes = std::exchange(taken_bytes_, 0);
  absl::Status status;
  if (!used_.empty() && used_.back().bytes < size_ / kEvents) {
    used_.back().bytes += bytes;
    status = used_.back().end_of_use.RecordAgain(stream);
  } else if (!spare_events_.empty()) {
    status = spare_events_.back().RecordAgain(stream);
    used_.push_back({taken_begin_, bytes, std::move(spare_events_.back())});
    spare_events_.pop_back();
  } else if (absl::StatusOr<Event> event = Event::Record(stream); event.ok()) {
    used_.push_back({taken_begin_, bytes, *std::move(event)});
  } else {
    status = event.status();
  }
  // Nothing tells when the work is done, so it is done now. An event that was
  // not recorded counts as reached, or is that of earlier work.
  if (!status.ok()) stream.Synchronize().IgnoreError();
  return status;
}

}  // namespace rill
