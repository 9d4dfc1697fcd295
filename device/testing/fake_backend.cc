// SPDX-License-Identifier: Apache-2.0
#include "rill/device/testing/fake_backend.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/capturing.h"
#include "rill/device/row_copy.h"

namespace rill {
namespace {

[[maybe_unused]] const bool registered = [] {
  FakeBackend::Install({});
  return true;
}();

}  // namespace

FakeBackend* FakeBackend::Install(const Options& options) {
  auto backend = std::make_unique<FakeBackend>(options);
  FakeBackend* const installed = backend.get();
  RegisterBackend(std::move(backend));
  return installed;
}

FakeBackend::FakeBackend(const Options& options)
    : options_(options),
      failures_(options.num_devices),
      memory_(options.num_devices, options.memory_limit_bytes) {
  // The default streams come first.
  for (int index = 0; index < options.num_devices; ++index) {
    queues_.push_back(std::make_shared<Queue>(index, &failures_[index]));
  }
}

FakeBackend::~FakeBackend() = default;

absl::Status FakeBackend::CheckIndex(int index) const {
  if (index >= 0 && index < options_.num_devices) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("FakeBackend: index: got ",
                                                 index, ", want [0, ",
                                                 options_.num_devices, ")"));
}

absl::Status FakeBackend::Enter(int index) {
  RILL_RETURN_IF_ERROR(CheckIndex(index));
  RILL_RETURN_IF_ERROR(failures_[index]);
  if (call_failure_.ok() || --calls_to_failure_ != 0) return absl::OkStatus();
  if (is_lost_) {
    std::fill(failures_.begin(), failures_.end(), call_failure_);
    for (uint32_t step = 0; RunAny(Rng(0), step); ++step) {
    }
  }
  return call_failure_;
}

absl::Status FakeBackend::Reach(Operation operation) {
  Tally& tally = tallies_[static_cast<size_t>(operation)];
  ++tally.reached;
  for (const Fault& fault : tally.faults) {
    if (fault.at == tally.reached) return fault.status;
  }
  return absl::OkStatus();
}

absl::StatusOr<void*> FakeBackend::Allocate(int index, MemoryKind kind,
                                            int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  RILL_RETURN_IF_ERROR(Enter(index));
  ++tallies_[static_cast<size_t>(Operation::kAllocate)].asked;
  RILL_RETURN_IF_ERROR(Reach(Operation::kAllocate));
  return memory_.Allocate(index, kind, bytes);
}

void FakeBackend::Free(int index, MemoryKind kind, void* data, int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  for (const std::shared_ptr<Queue>& queue : queues_) {
    if (queue->Uses({data, bytes})) {
      misuse_.push_back(absl::StrCat(
          "Free: ", bytes, " bytes of ", MemoryKindName(kind),
          " memory of fake:", index, " that queued work still uses"));
    }
  }
  if (absl::Status status = memory_.Free(index, kind, data, bytes);
      !status.ok()) {
    misuse_.emplace_back(status.message());
  }
}

absl::StatusOr<StreamHandle> FakeBackend::CreateStream(int index) {
  absl::MutexLock lock(&mutex_);
  RILL_RETURN_IF_ERROR(Enter(index));
  ++tallies_[static_cast<size_t>(Operation::kCreateStream)].asked;
  RILL_RETURN_IF_ERROR(Reach(Operation::kCreateStream));
  queues_.push_back(std::make_shared<Queue>(index, &failures_[index]));
  Queue* const queue = queues_.back().get();
  streams_[queue] = queue;
  return StreamHandle{queue};
}

void FakeBackend::DestroyStream(int index, StreamHandle stream) {
  absl::MutexLock lock(&mutex_);
  const absl::StatusOr<Queue*> queue = FindQueue(index, stream);
  if (!queue.ok() || stream.value == nullptr) {
    misuse_.push_back("DestroyStream: no live stream, or the default one");
    return;
  }
  streams_.erase(stream.value);
  DropFinishedQueues();
}

absl::StatusOr<EventHandle> FakeBackend::CreateEvent(int index) {
  absl::MutexLock lock(&mutex_);
  RILL_RETURN_IF_ERROR(Enter(index));
  ++tallies_[static_cast<size_t>(Operation::kCreateEvent)].asked;
  RILL_RETURN_IF_ERROR(Reach(Operation::kCreateEvent));
  auto event = std::make_unique<Event>();
  void* const handle = event.get();
  events_[handle] = {index, std::move(event)};
  return EventHandle{handle};
}

void FakeBackend::DestroyEvent(int index, EventHandle event) {
  absl::MutexLock lock(&mutex_);
  if (!FindEvent(index, event).ok()) {
    misuse_.push_back("DestroyEvent: no live event");
    return;
  }
  events_.erase(event.value);
}

absl::StatusOr<FakeBackend::Queue*> FakeBackend::FindQueue(
    int index, StreamHandle stream) const {
  RILL_RETURN_IF_ERROR(CheckIndex(index));
  if (stream.value == nullptr) return queues_[index].get();
  const auto found = streams_.find(stream.value);
  if (found == streams_.end() || found->second->index() != index) {
    return absl::InvalidArgumentError(absl::StrCat(
        "FakeBackend: stream: got one that is destroyed or of another device, "
        "want a live one of fake:",
        index));
  }
  return found->second;
}

absl::StatusOr<FakeBackend::Event*> FakeBackend::FindEvent(
    int index, EventHandle event) const {
  RILL_RETURN_IF_ERROR(CheckIndex(index));
  const auto found = events_.find(event.value);
  if (found == events_.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "FakeBackend: event: got one that is destroyed or of another backend, "
        "want a live one of fake:",
        index));
  }
  return found->second.second.get();
}

absl::Status FakeBackend::CheckRanges(Operation operation, int index,
                                      absl::Span<const Range> ranges) const {
  for (const Range& range : ranges) {
    if (operation != Operation::kCopy) {
      RILL_RETURN_IF_ERROR(memory_.CheckReachable(range.data));
    }
    RILL_RETURN_IF_ERROR(
        memory_.Resolve(range.DeviceFor(index), range.data, range.bytes)
            .status());
  }
  return absl::OkStatus();
}

absl::Status FakeBackend::Enqueue(Operation operation, int index,
                                  StreamHandle stream,
                                  std::vector<Range> ranges, Kernel run,
                                  absl::Span<const Move> moves) {
  absl::MutexLock lock(&mutex_);
  RILL_RETURN_IF_ERROR(Enter(index));
  ++tallies_[static_cast<size_t>(operation)].asked;
  RILL_ASSIGN_OR_RETURN(Queue* const queue, FindQueue(index, stream));
  RILL_RETURN_IF_ERROR(CheckRanges(operation, index, ranges));
  // The queue runs under mutex_, which the analysis cannot see.
  auto body = [this, operation, index, ranges, run = std::move(run)]()
                  ABSL_NO_THREAD_SAFETY_ANALYSIS -> absl::Status {
    RILL_RETURN_IF_ERROR(Reach(operation));
    std::vector<std::byte*> addresses;
    for (const Range& range : ranges) {
      RILL_ASSIGN_OR_RETURN(
          std::byte* const address,
          memory_.Resolve(range.DeviceFor(index), range.data, range.bytes));
      addresses.push_back(address);
    }
    run(addresses);
    return absl::OkStatus();
  };
  int64_t host_bytes = 0;
  for (const Range& range : ranges) {
    if (!memory_.IsDevice(range.data)) host_bytes += range.bytes;
  }
  queue->Push(std::move(ranges), std::move(body));
  for (const Move& move : moves) {
    Note({.kind = Call::Kind::kCopy,
          .stream = stream.value,
          .bytes = move.bytes,
          .from_device = memory_.IsDevice(move.from),
          .to_device = memory_.IsDevice(move.to)});
  }
  if (moves.empty()) {
    Note({.kind = Call::Kind::kCompute,
          .stream = stream.value,
          .host_bytes = host_bytes});
  }
  RunSome();
  return absl::OkStatus();
}

absl::Status FakeBackend::Launch(int index, StreamHandle stream,
                                 std::vector<Range> ranges, Kernel kernel) {
  return Enqueue(Operation::kLaunch, index, stream, std::move(ranges),
                 std::move(kernel));
}

absl::StatusOr<bool> FakeBackend::ReachesPeer(int index, int peer) {
  RILL_RETURN_IF_ERROR(CheckIndex(peer));
  absl::MutexLock lock(&mutex_);
  RILL_RETURN_IF_ERROR(Enter(index));
  RILL_RETURN_IF_ERROR(failures_[peer]);
  return index == peer || options_.reach_peers;
}

int FakeBackend::PeerOf(int index, const void* data, const void* other) const {
  absl::MutexLock lock(&mutex_);
  return options_.reach_peers && memory_.DeviceOf(other) == index
             ? memory_.DeviceOf(data)
             : -1;
}

absl::Status FakeBackend::Copy(int index, void* to, const void* from,
                               int64_t bytes, StreamHandle stream) {
  return Enqueue(Operation::kCopy, index, stream,
                 {{to, bytes, PeerOf(index, to, from)},
                  {from, bytes, PeerOf(index, from, to)}},
                 [bytes](absl::Span<std::byte* const> at) {
                   if (bytes > 0) std::memmove(at[0], at[1], bytes);
                 },
                 {{.to = to, .from = from, .bytes = bytes}});
}

absl::Status FakeBackend::Fill(int index, void* to, uint8_t value,
                               int64_t bytes, StreamHandle stream) {
  return Enqueue(Operation::kFill, index, stream, {{to, bytes}},
                 [value, bytes](absl::Span<std::byte* const> at) {
                   if (bytes > 0) std::memset(at[0], value, bytes);
                 });
}

absl::Status FakeBackend::EnqueueRows(Operation operation, int index,
                                      absl::Span<const RowColumn> columns,
                                      absl::Span<const int64_t> rows,
                                      StreamHandle stream) {
  RILL_RETURN_IF_ERROR(
      device_internal::CheckNotCapturing("Backend: a copy of rows"));
  if (rows.empty()) return absl::OkStatus();
  const auto [low, high] = std::minmax_element(rows.begin(), rows.end());
  const int64_t first = *low;
  const int64_t more = *high - *low;
  std::vector<Range> ranges;  // Of each column: the table, then the batch.
  std::vector<Move> moves;
  for (const RowColumn& column : columns) {
    const bool gathers = operation == Operation::kGatherRows;
    moves.push_back(
        {.to = gathers ? column.batch : column.table,
         .from = gathers ? column.table : column.batch,
         .bytes = column.width * static_cast<int64_t>(rows.size())});
    ranges.push_back({column.table + first * column.table_stride,
                      more * column.table_stride + column.width});
    ranges.push_back({column.batch, static_cast<int64_t>(rows.size() - 1) *
                                            column.batch_stride +
                                        column.width});
  }
  std::vector<int64_t> from_first(rows.begin(), rows.end());
  for (int64_t& row : from_first) row -= first;
  return Enqueue(
      operation, index, stream, std::move(ranges),
      [operation, from_first = std::move(from_first),
       moved = std::vector<RowColumn>(columns.begin(), columns.end())](
          absl::Span<std::byte* const> at) mutable {
        for (size_t i = 0; i < moved.size(); ++i) {
          moved[i].table = at[2 * i];
          moved[i].batch = at[2 * i + 1];
        }
        if (operation == Operation::kGatherRows) {
          GatherRowsOnHost(moved, from_first);
        } else {
          ScatterRowsOnHost(moved, from_first);
        }
      },
      moves);
}

absl::Status FakeBackend::GatherRows(int index,
                                     absl::Span<const RowColumn> columns,
                                     absl::Span<const int64_t> rows,
                                     StreamHandle stream) {
  return EnqueueRows(Operation::kGatherRows, index, columns, rows, stream);
}

absl::Status FakeBackend::ScatterRows(int index,
                                      absl::Span<const RowColumn> columns,
                                      absl::Span<const int64_t> rows,
                                      StreamHandle stream) {
  return EnqueueRows(Operation::kScatterRows, index, columns, rows, stream);
}

}  // namespace rill
