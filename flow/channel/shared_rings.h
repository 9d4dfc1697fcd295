// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_CHANNEL_SHARED_RINGS_H_
#define RILL_FLOW_CHANNEL_SHARED_RINGS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/base/sparse_file.h"
#include "rill/flow/channel/anonymous_memory.h"

namespace rill::channel_internal {

// Rings of bytes in anonymous memory (a memfd) that one process reads and
// others write: one ring a writer. A commit of a writer is seen whole or not at
// all. Nothing has a name, so nothing is left behind when processes die.
//
// Both sides may sleep (futexes in the memory), and both learn that the other
// is dead, however it died: who sleeps looks now and then (shared_signal.h).
//
// Each ring is mapped twice in a row, so that any run of up to ring_bytes() is
// contiguous. All memory is reserved at the start: too little of it is
// RESOURCE_EXHAUSTED, never SIGBUS.
//
// Thread-safety: one thread for each ring's writer and one for the reader at a
//   time. A process that is forked may use the object it inherits, to write.
class SharedRings {
 public:
  static constexpr int64_t kMaxRings = 4096;
  static constexpr int64_t kMaxRingBytes = int64_t{1} << 40;

  // Rings of at least `ring_bytes`, of which this process is the reader. `tag`
  // is what both sides must agree on.
  static absl::StatusOr<std::shared_ptr<SharedRings>> Create(int64_t num_rings,
                                                             int64_t ring_bytes,
                                                             uint64_t tag);
  // In another process, by a descriptor that it inherited, and now owns.
  // INVALID_ARGUMENT where that is something else, or of another tag.
  static absl::StatusOr<std::shared_ptr<SharedRings>> Attach(int fd,
                                                             uint64_t tag);
  SharedRings(const SharedRings&) = delete;
  SharedRings& operator=(const SharedRings&) = delete;

  int fd() const { return memory_->fd(); }
  int64_t num_rings() const { return static_cast<int64_t>(rings_.size()); }
  int64_t ring_bytes() const { return ring_bytes_; }

  enum class WriterState { kNone, kAlive, kClosed, kDied };

  // --- The writer of a ring -------------------------------------------------
  // Returns what became of the writer before: kNone, kClosed or kDied. This one
  // goes on behind what that one committed. FAILED_PRECONDITION where somebody
  // alive has it, with the process, or it was abandoned.
  absl::StatusOr<WriterState> OpenWriter(int64_t ring);
  // A writer that followed one that died, and committed nothing, leaves the
  // state kDied behind, so that the next one learns of it too.
  void CloseWriter(int64_t ring);
  // A place for `bytes` (<= ring_bytes()) behind what was committed, when there
  // is one. DEADLINE_EXCEEDED; UNAVAILABLE where the reader has gone or has
  // abandoned the ring.
  absl::StatusOr<std::byte*> Reserve(int64_t ring, int64_t bytes,
                                     absl::Duration timeout);
  void Commit(int64_t ring, int64_t bytes);
  // Until the reader has released all that was committed. Errors as Reserve.
  absl::Status WaitUntilReleased(int64_t ring, absl::Duration timeout);

  // --- The reader -----------------------------------------------------------
  // What was committed and not released. DATA_LOSS where the writer has left
  // numbers that cannot be.
  absl::StatusOr<absl::Span<const std::byte>> Readable(int64_t ring) const;
  void Release(int64_t ring, int64_t bytes);
  // Never reads it again, and tells its writer.
  void Abandon(int64_t ring);
  // Reads no ring again. Does nothing in a process that is not the reader.
  void CloseReader();
  // Until some ring is readable: DEADLINE_EXCEEDED; UNAVAILABLE where all rings
  // had writers and the last of them has gone, or was abandoned.
  absl::Status WaitForData(absl::Duration timeout);

  WriterState writer_state(int64_t ring) const;

 private:
  struct Shared;  // What lies in the memory.
  struct RingHeader;
  struct Ring {
    RingHeader* header;
    std::byte* data;
    uint64_t released = 0;  // The reader's own, which no writer can change.
    bool is_abandoned = false;
    uint64_t closed_as = 0;  // The writer's own: what CloseWriter leaves.
  };

  explicit SharedRings(std::unique_ptr<AnonymousMemory> memory)
      : memory_(std::move(memory)) {}
  absl::Status Map(int64_t num_rings, int64_t ring_bytes);
  absl::StatusOr<bool> ReaderIsGone(const RingHeader& header, bool look) const;
  bool IsReadable(const Ring& ring) const;

  std::unique_ptr<AnonymousMemory> memory_;
  int64_t ring_bytes_ = 0;
  std::shared_ptr<AddressRange> range_;
  Shared* shared_ = nullptr;
  std::vector<Ring> rings_;
};

}  // namespace rill::channel_internal

#endif  // RILL_FLOW_CHANNEL_SHARED_RINGS_H_
