// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_CHANNEL_RECORD_CHANNEL_H_
#define RILL_FLOW_CHANNEL_RECORD_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/flow/channel/shared_rings.h"
#include "rill/flow/producers.h"
#include "rill/flow/sink.h"
#include "rill/specs/spec.h"

namespace rill {

// Batches of steps from producers in other processes, through anonymous shared
// memory: a simulator that crashes takes its process along and nothing else.
// The process that owns the replay buffer creates the channel and drains it
// into a Sink; a producer's end is a Sink too, which a collector fills.
//
// - A batch arrives whole or not at all, those of one producer in order, under
//   the number each was written with. A producer that is killed in the middle
//   of a Write loses that batch only.
// - A producer that died has left its trajectories open: they are cut
//   (Sink::Cut) behind its last batch, and before one that follows it writes.
//   One that closes its sink may go on later; if it will not, it calls Cut.
// - Nobody hangs: a wait for a process that has died ends with UNAVAILABLE.
// - Nothing has a name, so nothing is left behind. Memory is reserved at the
//   start: RESOURCE_EXHAUSTED then, never SIGBUS later.
// - Memory that a producer's process wrote is checked before it is used.
//
// Shapes: batches [lanes, time] or [time] of host tensors.
// Thread-safety: thread-compatible; each producer's sink too, apart from the
//   channel and from one another.
// Cost: one copy of the bytes in Write, none of a batch from Reserve; Drain
//   hands out views of the memory. It
//   asks the kernel about one producer at most, of those that have sent
//   nothing. So a death is found within as many calls as there are producers.
//
// Example (RecordChannelTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto channel,
//                         RecordChannel::Create({.spec = spec}));
//   if (fork() == 0) {
//     auto sink = channel->OpenProducer(0);  // Or AttachProducer after exec.
//     const bool is_sent = sink.ok() && (*sink)->Write(batch, {}).ok();
//     _exit(is_sent ? 0 : 1);
//   }
//   while (channel->Wait(absl::Seconds(60)).ok()) {
//     RILL_RETURN_IF_ERROR(channel->Drain(&buffer).status());
//   }
class RecordChannel {
 public:
  struct Options {
    TensorDictSpec spec = {};           // Of a step. Tensors only.
    int64_t producers = 1;              // [1, 4096].
    int64_t bytes = int64_t{16} << 20;  // A producer; the largest batch.
    // How long a Write waits for space.
    absl::Duration timeout = absl::InfiniteDuration();
  };
  enum class ProducerState {
    kNone,  // Not opened yet.
    kAlive,
    kClosed,  // Its sink was destroyed.
    // Its process ended without that. Stays where a sink that follows it is
    // destroyed and has written nothing.
    kDied,
  };

  ~RecordChannel() { rings_->CloseReader(); }
  RecordChannel(const RecordChannel&) = delete;
  RecordChannel& operator=(const RecordChannel&) = delete;

  // INVALID_ARGUMENT names the option; RESOURCE_EXHAUSTED where there is not as
  // much memory.
  static absl::StatusOr<std::unique_ptr<RecordChannel>> Create(
      const Options& options);

  // A producer's end, in this process or a forked child. FAILED_PRECONDITION
  // where another that lives has this number. After one that died, a new one
  // goes on. The sink's Write: INVALID_ARGUMENT where the batch is not of the
  // spec or larger than `bytes`; DEADLINE_EXCEEDED after `timeout`; UNAVAILABLE
  // where the channel has gone. Its Flush waits until all is drained.
  absl::StatusOr<std::unique_ptr<Sink>> OpenProducer(int64_t producer);
  // The same in a program that inherited fd() (and now gives it away), with the
  // same spec; INVALID_ARGUMENT where it is another.
  static absl::StatusOr<std::unique_ptr<Sink>> AttachProducer(
      int fd, int64_t producer, const Options& options);
  // Closed on exec: posix_spawn_file_actions_adddup2 keeps it open in a child.
  int fd() const { return rings_->fd(); }

  // Until a batch is there, or a producer's memory is broken (Drain says so).
  // DEADLINE_EXCEEDED; UNAVAILABLE where all producers were there and have
  // gone, and nothing is left, not even a cut.
  absl::Status Wait(absl::Duration timeout);
  // Hands to `sink` what was there when this was called, producers in turn, and
  // returns the number of batches. WriteInfo is the producer's, `producer`
  // the number it was opened with. On an error of the sink the batch or cut
  // stays, first of its producer's; Drain again, or DrainOne into a sink that
  // drops it. DATA_LOSS names a producer whose process wrote over the memory:
  // nothing more comes from that one, Drain again for the others.
  absl::StatusOr<int64_t> Drain(Sink* sink);
  // The same for the first batch of one producer, with the cuts before it;
  // whether there was one. It does not ask whether the process lives.
  absl::StatusOr<bool> DrainOne(int64_t producer, Sink* sink);
  // Cuts what a producer that died has left open, where all that it sent was
  // handed on. OK where nothing is due.
  absl::Status CutIfDead(int64_t producer, Sink* sink);

  ProducerState producer_state(int64_t producer) const;
  int64_t producers() const { return rings_->num_rings(); }

 private:
  // Where a producer's trajectories may be open.
  struct Open {
    std::vector<LaneRange> lanes;  // Written since the last cut.
    bool has_ended = false;        // To be cut.
  };

  RecordChannel(const Options& options,
                std::shared_ptr<channel_internal::SharedRings> rings)
      : options_(options),
        rings_(std::move(rings)),
        open_(static_cast<size_t>(rings_->num_rings())) {}

  // Hands on the first record of `bytes`, a batch or a cut, and takes it away
  // there; whether it was a batch.
  absl::StatusOr<bool> DeliverFirst(int64_t producer,
                                    absl::Span<const std::byte>* bytes,
                                    Sink* sink);
  // Keeps in mind that a batch of these lanes was handed on.
  void NoteOpen(int64_t producer, LaneRange lanes);
  // Cuts all that the producer has open.
  absl::Status CutOpen(int64_t producer, Sink* sink);
  // The producer's process has ended, and all that it sent was handed on.
  bool HasEnded(int64_t producer) const;
  // CutOpen where a producer will not go on. Asks whether one process lives,
  // those of the producers that have sent nothing in turn.
  absl::Status CutWhatEnded(absl::Span<const uint8_t> has_sent, Sink* sink);
  absl::Status CheckProducer(absl::string_view caller, int64_t producer) const;
  // `why`, with the producer, which is not read any more.
  absl::Status Broken(int64_t producer, const absl::Status& why);

  Options options_;
  std::shared_ptr<channel_internal::SharedRings> rings_;
  const uint64_t source_ = NewSource();
  std::vector<Open> open_;  // By producer.
  int64_t looked_at_ = 0;   // The producer whose process was asked for last.
};

}  // namespace rill

#endif  // RILL_FLOW_CHANNEL_RECORD_CHANNEL_H_
