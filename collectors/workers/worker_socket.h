// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_WORKERS_WORKER_SOCKET_H_
#define RILL_COLLECTORS_WORKERS_WORKER_SOCKET_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/base/file_error.h"
#include "rill/base/status_macros.h"

namespace rill::workers_internal {

// Messages between collector and worker. Batches go through shared memory.
enum class MessageKind : uint32_t {
  // To the worker.
  // WorkerStart, argument, DictToBytes of the statistics to begin with; the
  // weights' descriptor. Only the next two come before it.
  kStart = 1,
  kBoard,  // int64: workers; the board's descriptor.
  // int64: number of its client, InferenceServer's layout; descriptor.
  kInference,
  kStatistics,  // int64: batches of a worker there; StatisticsSlots'
                // descriptor.
  kChannel,     // int64: number of its producer; the channel's descriptor.
  kCollect,     // WorkerAsk.
  // These take back the batches that were asked for.
  kPause,
  kSave,
  kLoad,            // DictToBytes of a state.
  kLoadStatistics,  // DictToBytes of statistics.
  // To the collector.
  // WorkerReady, SpecToJson, DictToBytes of fresh statistics. The answer to
  // kStart.
  kReady,
  kPaused,    // The answer to kPause.
  kState,     // DictToBytes. The answer to kSave.
  kLoaded,    // The answer to kLoad and kLoadStatistics.
  kRefused,   // int64 code, text. In place of an answer.
  kBatch,     // WorkerTimes. A batch is in the channel.
  kFailed,    // int64 code, text. In place of the batches asked for.
  kNoMemory,  // Text: who has found none. The process ends behind it.
};

// The structs of the messages: both ends are the same program.
struct WorkerStart {
  int64_t worker;
  int64_t workers;
  int64_t restarts;
  uint64_t seed;
  int64_t frames_per_batch;
  int64_t init_random_frames;
  int64_t max_frames_per_traj;
  int64_t producer;
  int64_t argument_bytes;
  bool explore;
  bool reset_at_each_batch;
  bool set_truncated;
  bool is_preemptive;  // Batches may be interrupted.
  bool times_steps;    // The board says when each step begins.
};
struct WorkerReady {
  int64_t lanes;
  int64_t spec_bytes;
};
struct WorkerAsk {
  int64_t batches;  // So many more.
  int64_t round;    // They, and those not begun, are of this one.
  // SyncCollector::RunFrames of the first of them; each batch is `during` on.
  int64_t before = 0;
  int64_t during = 0;
  int64_t earlier = 0;
};
struct WorkerTimes {
  int64_t env_ns;
  int64_t policy_ns;
  int64_t other_ns;
};

// A value of fixed size and the text behind it.
template <typename T>
std::string Pack(const T& value, absl::string_view text = "") {
  std::string bytes(reinterpret_cast<const char*>(&value), sizeof(value));
  bytes.append(text);
  return bytes;
}
template <typename T>
absl::StatusOr<std::pair<T, absl::string_view>> Unpack(
    absl::string_view bytes) {
  std::pair<T, absl::string_view> parts;
  if (bytes.size() < sizeof(T)) {
    return DataLoss("a message is too short");
  }
  bytes.copy(reinterpret_cast<char*>(&parts.first), sizeof(T));
  parts.second = bytes.substr(sizeof(T));
  return parts;
}

// One end of a pair of sockets that carry messages.
// Thread-safety: thread-compatible; the two ends are apart.
class WorkerSocket {
 public:
  struct Message {
    MessageKind kind = MessageKind::kStart;
    std::string bytes;
    // One that came with the message; closed with it. Null: none.
    std::unique_ptr<base_internal::FileDescriptor> descriptor = nullptr;
  };

  static absl::StatusOr<std::pair<WorkerSocket, WorkerSocket>> MakePair();
  explicit WorkerSocket(int fd)
      : fd_(std::make_unique<base_internal::FileDescriptor>(fd)) {}

  int fd() const { return fd_->get(); }

  // UNAVAILABLE where the other end has gone, DEADLINE_EXCEEDED where it reads
  // nothing, RESOURCE_EXHAUSTED where poll fails. After any of these, no more
  // can be sent.
  absl::Status Send(MessageKind kind, absl::string_view bytes,
                    absl::Time deadline, int descriptor = -1);
  // Nothing: there is none before `deadline`; the past asks only. UNAVAILABLE
  // where the other end has gone and all that it sent was received.
  // RESOURCE_EXHAUSTED where poll fails; a later call may receive more.
  absl::StatusOr<std::optional<Message>> Receive(absl::Time deadline);

 private:
  // Bytes that the inbox lacks of its message, or first of the header.
  uint64_t MissingBytes() const;
  // True if there was something to read; waits for it until `deadline`.
  absl::StatusOr<bool> ReadSome(absl::Time deadline);
  // The message, where all of it is there.
  std::optional<Message> Take();

  std::unique_ptr<base_internal::FileDescriptor> fd_;
  std::string inbox_;  // Of one message.
  std::unique_ptr<base_internal::FileDescriptor> descriptor_;  // Its own.
};

}  // namespace rill::workers_internal

#endif  // RILL_COLLECTORS_WORKERS_WORKER_SOCKET_H_
