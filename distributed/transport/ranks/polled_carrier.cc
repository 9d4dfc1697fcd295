// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/ranks/polled_carrier.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/ranks/rank_carrier.h"
#include "rill/flow/frames/frame.h"

namespace rill {
namespace {

// How long a thread asks without a pause when nothing happens. Large blocks
// move only while it asks, which does not show until they are there.
constexpr absl::Duration kBusyFor = absl::Microseconds(100);
constexpr absl::Duration kBusyForTransfers = absl::Milliseconds(50);
// Behind kBusyFor the engine's thread waits between two questions. It does so
// for a share of the time without anything, which bounds how late it is then.
constexpr int kIdleShare = 8;
constexpr absl::Duration kMaxWait = absl::Milliseconds(1);
// Between two looks whether others still help, at first. While they do it
// doubles up to kMaxWait, since each look takes time of their processors.
constexpr absl::Duration kHelpedWait = absl::Microseconds(200);

class PolledCarrier final : public RankCarrier {
 public:
  explicit PolledCarrier(std::unique_ptr<PolledFrames> frames)
      : frames_(std::move(frames)) {}
  ~PolledCarrier() override { Finish(); }

  absl::Status Start(Events events) override;
  int rank() const override { return place_.rank; }
  int num_ranks() const override { return place_.num_ranks; }
  int64_t max_bytes() const override { return place_.max_bytes; }
  void Send(int rank, FramePieces frame) override;
  void Help(absl::Duration patience,
            absl::FunctionRef<bool()> is_done) override;
  void Finish() override;

 private:
  struct Outgoing {
    int rank;
    FramePieces frame;
  };

  // All of these on the engine's thread.
  void Run();
  absl::Status Init();
  // Until Finish, and then until all that was sent has arrived.
  absl::Status Serve();
  // Until all ranks are here.
  absl::Status AwaitAll();
  // `last_move`: when something has happened; others may have asked meanwhile.
  void Pause(absl::Time* last_move);
  // Until the thread is wanted, but no longer than `most`.
  void Wait(absl::Duration most);
  bool MayFinish();

  // One thread at a time calls the library. Each of these says in `moves`
  // whether something has happened.
  absl::Status Step(bool* moves) ABSL_LOCKS_EXCLUDED(frames_mu_);
  absl::Status SendQueued(bool* moves)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(frames_mu_);
  // So that nobody waits for the thread that calls the library: that one sends.
  void SendSoon();
  bool HasOutgoing();

  Events events_;
  std::thread thread_;

  absl::Mutex frames_mu_;
  const std::unique_ptr<PolledFrames> frames_ ABSL_PT_GUARDED_BY(frames_mu_);
  absl::Status broken_ ABSL_GUARDED_BY(frames_mu_);
  PolledFrames::Place place_;  // Set by Start.
  // Whether something is on its way, and whether others ask: read without the
  // mutex.
  std::atomic<bool> has_transfers_ = false;
  std::atomic<bool> is_helped_ = false;

  absl::Mutex mu_;
  std::optional<absl::Status> has_begun_ ABSL_GUARDED_BY(mu_);
  bool is_finishing_ ABSL_GUARDED_BY(mu_) = false;
  bool is_wanted_ ABSL_GUARDED_BY(mu_) = false;  // The engine's thread.
  std::deque<Outgoing> outgoing_ ABSL_GUARDED_BY(mu_);
};

absl::Status PolledCarrier::Start(Events events) {
  events_ = std::move(events);
  thread_ = std::thread([this] { Run(); });
  absl::MutexLock lock(&mu_);
  const auto has_begun = [this] {
    mu_.AssertReaderHeld();
    return has_begun_.has_value();
  };
  mu_.Await(absl::Condition(&has_begun));
  return *has_begun_;
}

void PolledCarrier::Send(int rank, FramePieces frame) {
  {
    absl::MutexLock lock(&mu_);
    outgoing_.push_back({rank, std::move(frame)});
  }
  SendSoon();
}

bool PolledCarrier::HasOutgoing() {
  absl::MutexLock lock(&mu_);
  return !outgoing_.empty();
}

void PolledCarrier::SendSoon() {
  while (HasOutgoing() && frames_mu_.TryLock()) {
    bool moves = false;
    broken_.Update(SendQueued(&moves));
    frames_mu_.Unlock();
  }
}

void PolledCarrier::Help(absl::Duration patience,
                         absl::FunctionRef<bool()> is_done) {
  const Clock& clock = Clock::Steady();
  absl::Time last = clock.Now();
  while (!is_done()) {
    bool moves = false;
    is_helped_ = true;
    if (!Step(&moves).ok()) break;
    const absl::Time now = clock.Now();
    if (moves) last = now;
    if (now - last < patience) {
      if (!moves) std::this_thread::yield();
      continue;
    }
    // The engine's thread goes on.
    is_helped_ = false;
    absl::MutexLock lock(&mu_);
    is_wanted_ = true;
    break;
  }
}

void PolledCarrier::Finish() {
  {
    absl::MutexLock lock(&mu_);
    is_finishing_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status PolledCarrier::SendQueued(bool* moves) {
  std::deque<Outgoing> queued;
  {
    absl::MutexLock lock(&mu_);
    queued.swap(outgoing_);
  }
  RILL_RETURN_IF_ERROR(broken_);
  *moves = *moves || !queued.empty();
  for (const Outgoing& one : queued) {
    RILL_RETURN_IF_ERROR(frames_->Send(one.rank, one.frame));
  }
  has_transfers_ = frames_->has_transfers();
  return absl::OkStatus();
}

absl::Status PolledCarrier::Step(bool* moves) {
  {
    absl::MutexLock lock(&frames_mu_);
    const auto step = [&]() -> absl::Status {
      frames_mu_.AssertHeld();
      RILL_RETURN_IF_ERROR(SendQueued(moves));
      return frames_->Step(moves);
    };
    broken_.Update(step());
    RILL_RETURN_IF_ERROR(broken_);
    has_transfers_ = frames_->has_transfers();
  }
  SendSoon();
  return absl::OkStatus();
}

void PolledCarrier::Wait(absl::Duration most) {
  absl::MutexLock lock(&mu_);
  const auto is_wanted = [this] {
    mu_.AssertReaderHeld();
    return is_wanted_;
  };
  mu_.AwaitWithTimeout(absl::Condition(&is_wanted), most);
  is_wanted_ = false;
}

void PolledCarrier::Pause(absl::Time* last_move) {
  // One that asks beside those who help only keeps them waiting.
  bool was_helped = false;
  for (absl::Duration wait = kHelpedWait; is_helped_.exchange(false);
       wait = std::min(2 * wait, kMaxWait)) {
    was_helped = true;
    Wait(wait);
  }
  const absl::Time now = Clock::Steady().Now();
  if (was_helped) {
    *last_move = now;
    return;
  }
  const absl::Duration idle = now - *last_move;
  if (idle < (has_transfers_ ? kBusyForTransfers : kBusyFor)) {
    std::this_thread::yield();  // Ranks may share a processor.
    return;
  }
  Wait(std::min(idle / kIdleShare, kMaxWait));
}

bool PolledCarrier::MayFinish() {
  absl::MutexLock lock(&mu_);
  return is_finishing_ && outgoing_.empty() && !has_transfers_;
}

absl::Status PolledCarrier::Serve() {
  absl::Time last = Clock::Steady().Now();
  for (;;) {
    bool moves = false;
    RILL_RETURN_IF_ERROR(Step(&moves));
    if (moves) {
      last = Clock::Steady().Now();
      continue;
    }
    if (MayFinish()) return absl::OkStatus();
    Pause(&last);
  }
}

// Twice. Behind the first barrier nobody begins to send, but may answer what
// came before. Behind the second one all answers have arrived too.
absl::Status PolledCarrier::AwaitAll() {
  for (int i = 0; i < 2; ++i) {
    RILL_RETURN_IF_ERROR(Serve());
    {
      absl::MutexLock lock(&frames_mu_);
      RILL_RETURN_IF_ERROR(frames_->BeginBarrier());
    }
    absl::Time last = Clock::Steady().Now();
    for (bool is_done = false; !is_done;) {
      {
        absl::MutexLock lock(&frames_mu_);
        RILL_ASSIGN_OR_RETURN(is_done, frames_->TestBarrier());
      }
      bool moves = false;
      RILL_RETURN_IF_ERROR(Step(&moves));
      if (moves) last = Clock::Steady().Now();
      if (!is_done) Pause(&last);
    }
  }
  return Serve();  // What arrives is here, but may not be done yet.
}

absl::Status PolledCarrier::Init() {
  absl::MutexLock lock(&frames_mu_);
  absl::StatusOr<PolledFrames::Place> place = frames_->Init(events_.receive);
  if (place.ok()) {
    place_ = *place;
  } else {
    frames_->Abandon();
  }
  return place.status();
}

void PolledCarrier::Run() {
  absl::Status status = Init();
  {
    absl::MutexLock lock(&mu_);
    has_begun_ = status;
  }
  if (!status.ok()) return;
  status = Serve();
  if (status.ok()) status = AwaitAll();
  {
    absl::MutexLock lock(&frames_mu_);
    if (status.ok()) {
      frames_->Finalize();
    } else {
      frames_->Abandon();
    }
    // Threads that still help ask no more.
    broken_.Update(Unavailable("RankTransport: it has ended"));
  }
  if (!status.ok()) events_.fail(status);
}

}  // namespace

std::unique_ptr<RankCarrier> MakePolledCarrier(
    std::unique_ptr<PolledFrames> frames) {
  return std::make_unique<PolledCarrier>(std::move(frames));
}

}  // namespace rill
