// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/rows/device_order.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/has_ended.h"

namespace rill::storage_internal {

using device_internal::HasEnded;

absl::StatusOr<std::unique_ptr<DeviceOrder>> DeviceOrder::Create(
    Device device) {
  RILL_ASSIGN_OR_RETURN(Stream stream, Stream::Create(device));
  return std::unique_ptr<DeviceOrder>(new DeviceOrder(std::move(stream)));
}

DeviceOrder::~DeviceOrder() {
  for (const Copy& read : reads_) read.end.Synchronize().IgnoreError();
  AwaitWrites();
}

absl::StatusOr<DeviceOrder::Copy> DeviceOrder::MakeCopy(
    const Stream& stream, absl::Span<const int64_t> rows) {
  if (spare_.empty()) {
    RILL_ASSIGN_OR_RETURN(Event end, Event::Record(stream));
    return Copy{std::move(end), {rows.begin(), rows.end()}, {}};
  }
  RILL_RETURN_IF_ERROR(spare_.back().end.RecordAgain(stream));
  Copy copy = std::move(spare_.back());
  spare_.pop_back();
  copy.rows.assign(rows.begin(), rows.end());
  return copy;
}

void DeviceOrder::Recycle(Copy copy) {
  copy.held.clear();
  spare_.push_back(std::move(copy));
}

absl::Status DeviceOrder::TakeFailure() {
  ForgetWritesThatEnded(/*await=*/false);
  return std::exchange(failure_, absl::OkStatus());
}

absl::Status DeviceOrder::CheckNotLost(absl::Span<const int64_t> rows) {
  ForgetWritesThatEnded(/*await=*/false);
  if (lost_.empty() || std::none_of(rows.begin(), rows.end(), [&](int64_t row) {
        return lost_.contains(row);
      })) {
    return absl::OkStatus();
  }
  return last_failure_;
}

absl::Status DeviceOrder::BeginRead(const Stream& stream) {
  return writes_.empty() ? absl::OkStatus()
                         : stream.WaitFor(writes_.back().end);
}

absl::StatusOr<Event> DeviceOrder::MarkRead() {
  absl::StatusOr<Copy> read = MakeCopy(stream_, {});
  if (!read.ok()) {
    stream_.Synchronize().IgnoreError();
    return read.status();
  }
  ++waited_reads_;
  return std::move(read->end);
}

void DeviceOrder::EndWaitedRead(Event end) {
  --waited_reads_;
  spare_.push_back({std::move(end), {}, {}});
}

absl::StatusOr<Event> DeviceOrder::EndRead(const Stream& stream,
                                           absl::Span<const int64_t> rows) {
  ForgetReadsThatEnded();
  // One event is the caller's, who may destroy it; writes wait for the other.
  absl::StatusOr<Event> end = Event::Record(stream);
  absl::StatusOr<Copy> read = MakeCopy(stream, rows);
  absl::Status status = end.status();
  status.Update(read.status());
  if (!status.ok()) {
    // Nobody could tell when what was enqueued has ended.
    stream.Synchronize().IgnoreError();
    return status;
  }
  reads_.push_back(*std::move(read));
  return end;
}

absl::Status DeviceOrder::BeginWrite(const Stream& stream,
                                     absl::Span<const int64_t> rows) {
  RILL_RETURN_IF_ERROR(BeginRead(stream));
  if (waited_reads_ > 0 && stream.handle().value != stream_.handle().value) {
    RILL_ASSIGN_OR_RETURN(Copy reads, MakeCopy(stream_, {}));
    const absl::Status waits = stream.WaitFor(reads.end);
    Recycle(std::move(reads));
    RILL_RETURN_IF_ERROR(waits);
  }
  ForgetReadsThatEnded();
  if (rows.empty() || reads_.empty()) return absl::OkStatus();
  const auto [low, high] = std::minmax_element(rows.begin(), rows.end());
  for (const Copy& read : reads_) {
    if (std::any_of(read.rows.begin(), read.rows.end(),
                    [first = *low, last = *high](int64_t row) {
                      return first <= row && row <= last;
                    })) {
      RILL_RETURN_IF_ERROR(stream.WaitFor(read.end));
    }
  }
  return absl::OkStatus();
}

absl::Status DeviceOrder::EndWrite(const Stream& stream,
                                   absl::Span<const int64_t> rows,
                                   std::vector<Tensor> held) {
  ForgetWritesThatEnded(/*await=*/false);
  absl::StatusOr<Copy> write = MakeCopy(stream, rows);
  if (!write.ok()) {
    stream.Synchronize().IgnoreError();
    return write.status();
  }
  write->held = std::move(held);
  writes_.push_back(*std::move(write));
  if (!lost_.empty()) {
    for (const int64_t row : rows) lost_.erase(row);
  }
  return absl::OkStatus();
}

// The event of a read that failed tells its error, not a write.
void DeviceOrder::ForgetReadsThatEnded() {
  size_t kept = 0;
  for (Copy& read : reads_) {
    const absl::StatusOr<bool> has_ended = HasEnded(read.end);
    if (has_ended.ok() && !*has_ended) {
      std::swap(reads_[kept++], read);
    } else {
      Recycle(std::move(read));
    }
  }
  reads_.erase(reads_.begin() + static_cast<std::ptrdiff_t>(kept),
               reads_.end());
}

void DeviceOrder::ForgetWritesThatEnded(bool await) {
  while (!writes_.empty()) {
    Copy& write = writes_.front();
    absl::Status status;
    if (await) {
      status = write.end.Synchronize();
    } else {
      const absl::StatusOr<bool> has_ended = HasEnded(write.end);
      if (has_ended.ok() && !*has_ended) return;
      status = has_ended.status();
    }
    if (!status.ok()) {
      failure_ = last_failure_ = absl::Status(
          status.code(),
          absl::StrCat("Storage: a write to ", stream_.device().ToString(),
                       " failed after it was enqueued, and its rows are "
                       "undefined until they are written again: ",
                       status.message()));
      lost_.insert(write.rows.begin(), write.rows.end());
      for (size_t i = 1; i < writes_.size(); ++i) {
        for (const int64_t row : writes_[i].rows) lost_.erase(row);
      }
    }
    Recycle(std::move(write));
    writes_.pop_front();
  }
}

void DeviceOrder::AwaitWrites() { ForgetWritesThatEnded(/*await=*/true); }

}  // namespace rill::storage_internal
