// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_CHANNEL_SHARED_CALLS_H_
#define RILL_FLOW_CHANNEL_SHARED_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/base/sparse_file.h"
#include "rill/flow/channel/anonymous_memory.h"

namespace rill::channel_internal {

// Calls from threads and processes to one server through anonymous memory (a
// memfd): each caller has a place for its question and one for the answer, of
// fixed sizes. The server answers several callers at once.
//
// A caller that dies, at any instruction, holds nobody up: its question is
// whole or not there, and its place may be opened again. Callers learn that the
// server has gone, however it went. Nothing has a name, so nothing is left
// behind. Another process that writes over the memory may spoil questions and
// answers, and never crashes the server.
//
// Thread-safety: one thread for each caller, and one for the server, at a time.
//   Close and the descriptor are thread-safe.
// Cost: a call is two futexes, some 10 us where both sides sleep.
class SharedCalls {
 public:
  static constexpr int64_t kMaxCallers = 4096;
  static constexpr int64_t kMaxBytes = int64_t{1} << 32;

  struct Sizes {
    int64_t callers = 0;         // [1, kMaxCallers].
    int64_t question_bytes = 0;  // [0, kMaxBytes], and so the next.
    int64_t answer_bytes = 0;
  };

  // This process is the server. RESOURCE_EXHAUSTED where memory does not
  // suffice: all of it is reserved here.
  static absl::StatusOr<std::shared_ptr<SharedCalls>> Create(
      const Sizes& sizes);
  // In another program, by a descriptor that it inherited, and now owns.
  // INVALID_ARGUMENT where that is something else, or of other sizes than
  // `sizes`, whose number of callers is not looked at.
  static absl::StatusOr<std::shared_ptr<SharedCalls>> Attach(
      int fd, const Sizes& sizes);
  SharedCalls(const SharedCalls&) = delete;
  SharedCalls& operator=(const SharedCalls&) = delete;

  int fd() const { return memory_->fd(); }
  int64_t callers() const { return callers_; }

  // Places of a caller, each at a multiple of 64 bytes. The question's bytes
  // are the caller's outside of Call, and the server's between AwaitQuestions
  // and Answer. The answer's are the server's in that time, else the caller's.
  std::byte* question(int64_t caller) const { return places_[caller].question; }
  std::byte* answer(int64_t caller) const { return places_[caller].answer; }

  // --- A caller -------------------------------------------------------------
  // OUT_OF_RANGE; FAILED_PRECONDITION where somebody alive has the place.
  // Waits for the answer to the last question of one that died. Errors as Call.
  absl::Status Open(int64_t caller);
  void CloseCaller(int64_t caller);
  // Asks what stands in question(), and waits until answer() is there.
  // CANCELLED where the server was closed, UNAVAILABLE where its process died;
  // the places are nobody's from then on.
  absl::Status Call(int64_t caller);

  // --- The server -----------------------------------------------------------
  // Waits until `least` callers have asked, or all that are open; or, since the
  // first of them, for `max_wait`. `who` gets those
  // that have asked, in order. CANCELLED: closed.
  absl::Status AwaitQuestions(int64_t least, absl::Duration max_wait,
                              std::vector<int64_t>* who);
  // Hands over what stands in answer(), to one of those that have asked.
  void Answer(int64_t caller);
  // No more calls; those that wait are CANCELLED.
  void Close();

 private:
  struct Shared;  // What lies in the memory.
  struct Slot;
  struct Place {
    Slot* slot;
    std::byte* question;
    std::byte* answer;
    // The server's own, which no caller can change.
    uint32_t answered = 0;
    uint32_t taken = 0;
  };

  explicit SharedCalls(std::unique_ptr<AnonymousMemory> memory)
      : memory_(std::move(memory)) {}
  static int64_t StrideOf(const Sizes& sizes);
  static int64_t TotalBytes(const Sizes& sizes);
  absl::Status Map(const Sizes& sizes);
  // Until the last question was answered.
  absl::Status AwaitAnswer(Slot& slot) const;
  static bool HasAsked(const Place& place);
  // Whether so many callers, or all that are open, have asked. `look`: dead
  // ones are closed first.
  bool HaveEnoughAsked(int64_t least, bool look) const;

  std::unique_ptr<AnonymousMemory> memory_;
  std::shared_ptr<AddressRange> range_;
  int64_t callers_ = 0;
  Shared* shared_ = nullptr;
  std::vector<Place> places_;
};

}  // namespace rill::channel_internal

#endif  // RILL_FLOW_CHANNEL_SHARED_CALLS_H_
