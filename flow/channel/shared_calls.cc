// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/channel/shared_calls.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/flow/channel/process_id.h"
#include "rill/flow/channel/shared_signal.h"

// A call is a number. The caller writes its question, then counts `asked` up
// and raises the server's signal. The server writes the answer, sets `answered`
// to the number it took, and raises the caller's signal. Each number has one
// writer at a time. The release store of a number publishes the bytes written
// before it to the acquire load that finds it.
//
// A caller that dies before its store has asked nothing. After it, the server
// answers into the place all the same. The next holder of the place waits for
// that (Open), else it would take the answer for its own.

namespace rill::channel_internal {
namespace {

constexpr uint64_t kMagic = 0x314c4143'4c4c4952;  // "RILLCAL1"
constexpr uint64_t kNobody = 0;
constexpr char kName[] = "rill_calls";  // In /proc, for people.
constexpr int64_t kLine = 64;

int64_t RoundUp(int64_t bytes, int64_t to) {
  return (bytes + to - 1) / to * to;
}

}  // namespace

struct SharedCalls::Shared {
  uint64_t magic;
  int64_t callers;
  int64_t question_bytes;
  int64_t answer_bytes;
  std::atomic<uint64_t> server;  // ProcessId.
  std::atomic<bool> is_closed;
  alignas(kLine) SharedSignal asked;
};

// The caller's words and the server's lie on lines of their own. A question
// waits for its answer where the two numbers differ.
struct SharedCalls::Slot {
  alignas(kLine) std::atomic<uint64_t> caller;  // ProcessId, or kNobody.
  std::atomic<uint32_t> asked;
  alignas(kLine) std::atomic<uint32_t> answered;
  SharedSignal has_answered;
};

absl::StatusOr<std::shared_ptr<SharedCalls>> SharedCalls::Create(
    const Sizes& sizes) {
  constexpr absl::string_view kCreate = "SharedCalls::Create";
  const auto is_possible = [](int64_t bytes) {
    return bytes >= 0 && bytes <= kMaxBytes;
  };
  if (sizes.callers < 1 || sizes.callers > kMaxCallers ||
      !is_possible(sizes.question_bytes) || !is_possible(sizes.answer_bytes)) {
    return InvalidArgument(kCreate, ": got ", sizes.callers, " callers of ",
                           sizes.question_bytes, " and ", sizes.answer_bytes,
                           " bytes, want 1 to ", kMaxCallers, " of at most ",
                           kMaxBytes);
  }
  const int64_t bytes = TotalBytes(sizes);
  RILL_ASSIGN_OR_RETURN(auto memory,
                        AnonymousMemory::Create(kCreate, kName, bytes));
  RILL_RETURN_IF_ERROR(memory->Reserve(kCreate, 0, bytes));
  std::shared_ptr<SharedCalls> calls(new SharedCalls(std::move(memory)));
  RILL_RETURN_IF_ERROR(calls->Map(sizes));
  Shared* const shared = calls->shared_;
  shared->callers = sizes.callers;
  shared->question_bytes = sizes.question_bytes;
  shared->answer_bytes = sizes.answer_bytes;
  shared->server.store(ProcessId::Mine().word());
  shared->magic = kMagic;
  return calls;
}

absl::StatusOr<std::shared_ptr<SharedCalls>> SharedCalls::Attach(
    int fd, const Sizes& sizes) {
  // Read, not mapped: sizes are checked before anything depends on them.
  auto memory = AnonymousMemory::Adopt(fd);
  struct {
    uint64_t magic;
    Sizes sizes;
  } first;
  static_assert(offsetof(Shared, server) == sizeof(first));
  if (memory == nullptr ||
      !memory->Read(
          0, absl::MakeSpan(reinterpret_cast<char*>(&first), sizeof(first))) ||
      first.magic != kMagic || first.sizes.callers < 1 ||
      first.sizes.callers > kMaxCallers ||
      first.sizes.question_bytes != sizes.question_bytes ||
      first.sizes.answer_bytes != sizes.answer_bytes ||
      memory->size_bytes() != TotalBytes(first.sizes)) {
    return InvalidArgument(
        "SharedCalls::Attach: descriptor ", fd,
        ": got something else, want that of calls of these sizes");
  }
  std::shared_ptr<SharedCalls> calls(new SharedCalls(std::move(memory)));
  RILL_RETURN_IF_ERROR(calls->Map(first.sizes));
  return calls;
}

int64_t SharedCalls::TotalBytes(const Sizes& sizes) {
  return RoundUp(sizeof(Shared) + sizes.callers * StrideOf(sizes),
                 AddressRange::PageBytes());
}

int64_t SharedCalls::StrideOf(const Sizes& sizes) {
  return static_cast<int64_t>(sizeof(Slot)) +
         RoundUp(sizes.question_bytes, kLine) +
         RoundUp(sizes.answer_bytes, kLine);
}

absl::Status SharedCalls::Map(const Sizes& sizes) {
  const int64_t bytes = TotalBytes(sizes);
  RILL_ASSIGN_OR_RETURN(range_, AddressRange::Create(bytes));
  RILL_RETURN_IF_ERROR(memory_->Map("SharedCalls", *range_, 0, 0, bytes));
  shared_ = reinterpret_cast<Shared*>(range_->data());
  for (int64_t i = 0; i < sizes.callers; ++i) {
    std::byte* const at = range_->data() + sizeof(Shared) + i * StrideOf(sizes);
    std::byte* const question = at + sizeof(Slot);
    places_.push_back(
        {.slot = reinterpret_cast<Slot*>(at),
         .question = question,
         .answer = question + RoundUp(sizes.question_bytes, kLine)});
  }
  callers_ = sizes.callers;
  return absl::OkStatus();
}

// Closed is looked at first: a closed server's places are nobody's, whatever
// the numbers say.
absl::Status SharedCalls::AwaitAnswer(Slot& slot) const {
  return slot.has_answered.Await(
      absl::InfiniteDuration(), [&](bool look) -> absl::StatusOr<bool> {
        if (shared_->is_closed.load()) {
          return absl::CancelledError("the server was stopped");
        }
        if (slot.answered.load(std::memory_order_acquire) ==
            slot.asked.load(std::memory_order_relaxed)) {
          return true;
        }
        if (look && !ProcessId::OfWord(shared_->server.load()).IsAlive()) {
          return Unavailable("the server's process has ended");
        }
        return false;
      });
}

absl::Status SharedCalls::Open(int64_t caller) {
  constexpr absl::string_view kOpen = "SharedCalls::Open";
  if (caller < 0 || caller >= callers_) {
    return OutOfRange(kOpen, ": caller: got ", caller, ", want [0, ", callers_,
                      ")");
  }
  Slot& slot = *places_[caller].slot;
  const uint64_t mine = ProcessId::Mine().word();
  uint64_t holder = slot.caller.load();
  // Where the exchange fails, `holder` is the one that came first, and is
  // looked at next.
  do {
    if (holder != kNobody && ProcessId::OfWord(holder).IsAlive()) {
      return FailedPrecondition(
          kOpen, ": caller ", caller, " is open in process ",
          ProcessId::OfWord(holder).pid(), "; use another");
    }
  } while (!slot.caller.compare_exchange_strong(holder, mine));
  const absl::Status answered = AwaitAnswer(slot);
  if (!answered.ok()) CloseCaller(caller);
  return answered;
}

void SharedCalls::CloseCaller(int64_t caller) {
  uint64_t mine = ProcessId::Mine().word();  // Not that of a forked copy.
  places_[caller].slot->caller.compare_exchange_strong(mine, kNobody);
  shared_->asked.Raise();  // One less to wait for.
}

absl::Status SharedCalls::Call(int64_t caller) {
  Slot& slot = *places_[caller].slot;
  slot.asked.store(slot.asked.load(std::memory_order_relaxed) + 1,
                   std::memory_order_release);
  shared_->asked.Raise();
  return AwaitAnswer(slot);
}

bool SharedCalls::HasAsked(const Place& place) {
  return place.slot->asked.load() != place.answered;
}

// A dead caller's question counts, as it will be answered, but its place is not
// waited for. compare_exchange: a new caller may have taken it meanwhile.
bool SharedCalls::HaveEnoughAsked(int64_t least, bool look) const {
  int64_t open = 0;
  int64_t asked = 0;
  for (const Place& place : places_) {
    std::atomic<uint64_t>& caller = place.slot->caller;
    uint64_t holder = caller.load();
    if (look && holder != kNobody && !ProcessId::OfWord(holder).IsAlive() &&
        caller.compare_exchange_strong(holder, kNobody)) {
      holder = kNobody;
    }
    const bool has_asked = HasAsked(place);
    asked += has_asked;
    open += has_asked || holder != kNobody;
  }
  return asked >= std::min(least, open);
}

absl::Status SharedCalls::AwaitQuestions(int64_t least, absl::Duration max_wait,
                                         std::vector<int64_t>* who) {
  const auto await = [&](absl::Duration timeout, auto is_over) {
    return shared_->asked.Await(
        timeout, [&](bool look) -> absl::StatusOr<bool> {
          if (shared_->is_closed.load()) {
            return absl::CancelledError("the server was stopped");
          }
          return is_over(look);
        });
  };
  // Two waits, since max_wait counts from the first question.
  RILL_RETURN_IF_ERROR(await(absl::InfiniteDuration(), [&](bool /*look*/) {
    return std::any_of(places_.begin(), places_.end(), HasAsked);
  }));
  const absl::Status enough =
      await(max_wait, [&](bool look) { return HaveEnoughAsked(least, look); });
  if (!enough.ok() && !absl::IsDeadlineExceeded(enough)) return enough;
  who->clear();
  for (int64_t i = 0; i < callers_; ++i) {
    Place& place = places_[i];
    // Kept here: the caller's process could change the number before Answer.
    place.taken = place.slot->asked.load(std::memory_order_acquire);
    if (place.taken != place.answered) who->push_back(i);
  }
  return absl::OkStatus();
}

void SharedCalls::Answer(int64_t caller) {
  Place& place = places_[caller];
  place.answered = place.taken;
  place.slot->answered.store(place.taken, std::memory_order_release);
  place.slot->has_answered.Raise();
}

void SharedCalls::Close() {
  shared_->is_closed.store(true);
  shared_->asked.Raise();
  for (const Place& place : places_) place.slot->has_answered.Raise();
}

}  // namespace rill::channel_internal
