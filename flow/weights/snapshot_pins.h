// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_WEIGHTS_SNAPSHOT_PINS_H_
#define RILL_FLOW_WEIGHTS_SNAPSHOT_PINS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace rill::weights_internal {

// How one writer replaces snapshots while readers read them in place, without
// a lock, a wait or a loop that another process can prolong.
//
// There are N readers and N + 2 buffers. A word names a snapshot: its version
// and the buffer that it lies in. No word is used twice, so equal words are one
// snapshot. `current` is the word of the newest snapshot; each reader has a
// pin, the word of what it reads.
//
// | reader, PinNewest               | writer, Publish                         |
// |---------------------------------|-----------------------------------------|
// | R1 pin becomes kTaking          | W1 looks at every pin                   |
// | R2 c is current                 | W2 one that is kTaking becomes w, the   |
// | R3 pin becomes c if it is still |    word in current (compare-exchange)   |
// |    kTaking (compare-exchange);  | W3 copies into a buffer that neither    |
// |    else it is the word to read  |    current nor a pin has                |
// |                                 | W4 current becomes the new word         |
//
// All but the copy are sequentially consistent, so they have one order.
//
// W3 always finds a buffer: N pins and current take N + 1 at most.
//
// W3 never writes to what is read. Take a reader's R1, and the last publish
// whose W1 looked at this pin before it: current is w then. R2 comes later, so
// until the next publish looks at the pin, R2 finds w or that publish's own
// word. W3 of that publish writes to neither: w is current, and its own buffer
// is whole when W4 names it. Then the next W1 finds kTaking, or what R3 left.
// Each W1 from there on avoids what R3 left, until the reader's next R1. Where
// it finds kTaking, W2 sets the pin to the word in current, which is avoided as
// well, or fails because R3 came first, and finds what R3 left. R3 after W2
// fails, so a word that R2 found long ago is never used.
//
// A W2 that comes so late that the pin is kTaking for a later R1 is as good:
// its word is in current still.
//
// The bytes are ordered too. W4 or W2 releases those of W3 to R2 or R3. R1
// releases the end of reading to the W1 that finds it, or what R3 or W2 made of
// it, so W3 overwrites nothing that is still to be read.
//
// Versions never go back. A reader comes here because it has found a newer word
// in current, before R1. A word that W2 sets is in current after R1, so it is
// that one or newer.
//
// A reader that was killed leaves its pin, kTaking or not: one buffer at most.
//
// Cost: PinNewest is a store, a load and a compare-exchange. FreeBuffer is a
// load a reader.
inline constexpr uint64_t kTaking = ~uint64_t{0};
inline constexpr uint64_t kNoSnapshot = kTaking - 1;

inline constexpr int kBufferBits = 16;
inline constexpr int64_t kMaxVersion = int64_t{1} << 46;

constexpr uint64_t SnapshotWord(int64_t version, size_t buffer) {
  return static_cast<uint64_t>(version) << kBufferBits | buffer;
}
constexpr int64_t VersionOf(uint64_t word) {
  return static_cast<int64_t>(word >> kBufferBits);
}
// No buffer's number where there is no snapshot.
constexpr size_t BufferOf(uint64_t word) {
  return word & ((uint64_t{1} << kBufferBits) - 1);
}

// A line for each reader, which no other reader writes to.
template <typename Atomic>
struct alignas(64) ReaderSlot {
  Atomic pin{kNoSnapshot};
  Atomic holder{0};  // The reader's process.
};

// Pins the newest snapshot in place of what was pinned; its word.
template <typename Atomic>
uint64_t PinNewest(const Atomic& current, Atomic* pin) {
  pin->store(kTaking);
  const uint64_t newest = current.load();
  uint64_t given = kTaking;
  return pin->compare_exchange_strong(given, newest) ? newest : given;
}

// A buffer that the writer, whose newest snapshot is `current`, may write to:
// the first. `is_used` has an element a buffer and is overwritten. A word that
// names no buffer, because there is no snapshot or somebody wrote over it, does
// not count.
template <typename Atomic>
size_t FreeBuffer(absl::Span<ReaderSlot<Atomic>> readers, uint64_t current,
                  absl::Span<uint8_t> is_used) {
  std::fill(is_used.begin(), is_used.end(), 0);
  const auto mark = [&](uint64_t word) {
    if (BufferOf(word) < is_used.size()) is_used[BufferOf(word)] = 1;
  };
  mark(current);
  for (ReaderSlot<Atomic>& reader : readers) {
    uint64_t word = reader.pin.load();
    // Where this succeeds, the buffer is that of `current`, which is marked.
    if (word == kTaking) reader.pin.compare_exchange_strong(word, current);
    mark(word);
  }
  return std::find(is_used.begin(), is_used.end(), 0) - is_used.begin();
}

}  // namespace rill::weights_internal

#endif  // RILL_FLOW_WEIGHTS_SNAPSHOT_PINS_H_
