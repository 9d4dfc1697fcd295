// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/mpi/mpi_transport.h"

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/distributed/transport/ranks/rank_carrier.h"
#include "rill/flow/frames/frame.h"

namespace rill {
namespace {

constexpr int kTag = 0;
// How long the thread asks MPI without a pause when nothing happens. Large
// blocks move only while it asks, which does not show until they are there.
constexpr absl::Duration kBusyFor = absl::Microseconds(100);
constexpr absl::Duration kBusyForTransfers = absl::Milliseconds(50);
// Then it waits between two questions for a share of the time that nothing has
// happened for, so that what comes is not late by more than that.
constexpr int kIdleShare = 8;
constexpr absl::Duration kMaxWait = absl::Milliseconds(1);

absl::Status Of(absl::string_view call, int code) {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING];
  int size = 0;
  MPI_Error_string(code, text, &size);
  return Unavailable("MpiTransport: ", call, ": ",
                     absl::string_view(text, static_cast<size_t>(size)));
}

class MpiCarrier final : public RankCarrier {
 public:
  ~MpiCarrier() override { Finish(); }

  absl::Status Start(Events events) override;
  int rank() const override { return rank_; }
  int num_ranks() const override { return num_ranks_; }
  // MPI counts in int: blocks are counted in their alignment, up to 128 GiB.
  int64_t max_bytes() const override {
    return kFrameAlignment * std::numeric_limits<int>::max();
  }
  void Send(int rank, std::shared_ptr<Buffer> bytes) override;
  void Finish() override;

 private:
  struct Outgoing {
    int rank;
    std::shared_ptr<Buffer> bytes;
  };
  struct Transfer {
    std::shared_ptr<Buffer> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  // All of these on the thread.
  void Run();
  absl::Status Init();
  // Until Finish, and then until all that was sent has arrived.
  absl::Status Serve();
  // Until all ranks are here.
  absl::Status AwaitAll();
  // Each says in `moves` whether something has happened.
  absl::Status Step(bool* moves);
  absl::Status SendQueued(bool* moves);
  absl::Status FinishSends(bool* moves);
  absl::Status Accept(bool* moves);
  absl::Status FinishReceives(bool* moves);
  void Pause(absl::Time last_move);
  bool is_idle() const { return sends_.empty() && receives_.empty(); }

  Events events_;
  std::thread thread_;
  // The thread's own, but for these two behind Start.
  int rank_ = 0;
  int num_ranks_ = 0;
  MPI_Datatype unit_ = MPI_DATATYPE_NULL;
  std::list<Transfer> sends_;
  std::map<int, std::deque<Transfer>> receives_;  // By rank, in order.

  absl::Mutex mu_;
  std::optional<absl::Status> has_begun_ ABSL_GUARDED_BY(mu_);
  bool is_finishing_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<Outgoing> outgoing_ ABSL_GUARDED_BY(mu_);
};

absl::Status MpiCarrier::Start(Events events) {
  int is_there = 0;
  MPI_Initialized(&is_there);
  if (is_there != 0) {
    return FailedPrecondition(
        "CreateMpiTransport: got MPI that was begun in this process before, "
        "want to begin it here; make one transport, and use MPI nowhere else");
  }
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

void MpiCarrier::Send(int rank, std::shared_ptr<Buffer> bytes) {
  absl::MutexLock lock(&mu_);
  outgoing_.push_back({rank, std::move(bytes)});
}

void MpiCarrier::Finish() {
  {
    absl::MutexLock lock(&mu_);
    is_finishing_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status MpiCarrier::Init() {
  int provided = 0;
  RILL_RETURN_IF_ERROR(
      Of("MPI_Init_thread",
         MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided)));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks_);
  RILL_RETURN_IF_ERROR(
      Of("MPI_Type_contiguous",
         MPI_Type_contiguous(kFrameAlignment, MPI_BYTE, &unit_)));
  return Of("MPI_Type_commit", MPI_Type_commit(&unit_));
}

// Synchronous sends: one that is done has been received, so that MPI_Finalize
// finds nothing on the way.
absl::Status MpiCarrier::SendQueued(bool* moves) {
  std::deque<Outgoing> queued;
  {
    absl::MutexLock lock(&mu_);
    queued.swap(outgoing_);
  }
  *moves = *moves || !queued.empty();
  for (Outgoing& one : queued) {
    Transfer& transfer = sends_.emplace_back(Transfer{std::move(one.bytes)});
    const int64_t units = transfer.bytes->size_bytes() / kFrameAlignment;
    RILL_RETURN_IF_ERROR(
        Of("MPI_Issend",
           MPI_Issend(transfer.bytes->data(), static_cast<int>(units), unit_,
                      one.rank, kTag, MPI_COMM_WORLD, &transfer.request)));
  }
  return absl::OkStatus();
}

absl::Status MpiCarrier::FinishSends(bool* moves) {
  for (auto it = sends_.begin(); it != sends_.end();) {
    int is_done = 0;
    RILL_RETURN_IF_ERROR(
        Of("MPI_Test", MPI_Test(&it->request, &is_done, MPI_STATUS_IGNORE)));
    *moves = *moves || is_done != 0;
    it = is_done != 0 ? sends_.erase(it) : std::next(it);
  }
  return absl::OkStatus();
}

absl::Status MpiCarrier::Accept(bool* moves) {
  for (;;) {
    int is_there = 0;
    MPI_Message message;
    MPI_Status status;
    RILL_RETURN_IF_ERROR(
        Of("MPI_Improbe", MPI_Improbe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD,
                                      &is_there, &message, &status)));
    if (is_there == 0) return absl::OkStatus();
    *moves = true;
    int units = 0;
    MPI_Get_count(&status, unit_, &units);
    RILL_ASSIGN_OR_RETURN(
        std::shared_ptr<Buffer> bytes,
        Buffer::Allocate(std::max(units, 0) * kFrameAlignment));
    Transfer& transfer =
        receives_[status.MPI_SOURCE].emplace_back(Transfer{std::move(bytes)});
    RILL_RETURN_IF_ERROR(
        Of("MPI_Imrecv", MPI_Imrecv(transfer.bytes->data(), units, unit_,
                                    &message, &transfer.request)));
  }
}

// Blocks are handed on in the order in which they were sent, though a small one
// may be here before a large one that was first.
absl::Status MpiCarrier::FinishReceives(bool* moves) {
  for (auto it = receives_.begin(); it != receives_.end();) {
    auto& [rank, waiting] = *it;
    while (!waiting.empty()) {
      int is_done = 0;
      RILL_RETURN_IF_ERROR(
          Of("MPI_Test",
             MPI_Test(&waiting.front().request, &is_done, MPI_STATUS_IGNORE)));
      if (is_done == 0) break;
      *moves = true;
      events_.receive(rank, std::move(waiting.front().bytes));
      waiting.pop_front();
    }
    it = waiting.empty() ? receives_.erase(it) : std::next(it);
  }
  return absl::OkStatus();
}

absl::Status MpiCarrier::Step(bool* moves) {
  RILL_RETURN_IF_ERROR(SendQueued(moves));
  RILL_RETURN_IF_ERROR(Accept(moves));
  RILL_RETURN_IF_ERROR(FinishReceives(moves));
  return FinishSends(moves);
}

void MpiCarrier::Pause(absl::Time last_move) {
  const absl::Duration idle = Clock::Steady().Now() - last_move;
  if (idle < (is_idle() ? kBusyFor : kBusyForTransfers)) {
    std::this_thread::yield();  // Ranks may share a processor.
    return;
  }
  absl::MutexLock lock(&mu_);
  const auto has_work = [this] {
    mu_.AssertReaderHeld();
    return !outgoing_.empty();
  };
  mu_.AwaitWithTimeout(absl::Condition(&has_work),
                       std::min(idle / kIdleShare, kMaxWait));
}

absl::Status MpiCarrier::Serve() {
  absl::Time last = Clock::Steady().Now();
  for (;;) {
    bool moves = false;
    RILL_RETURN_IF_ERROR(Step(&moves));
    if (moves) {
      last = Clock::Steady().Now();
      continue;
    }
    if (is_idle()) {
      absl::MutexLock lock(&mu_);
      if (is_finishing_ && outgoing_.empty()) {
        return absl::OkStatus();
      }
    }
    Pause(last);
  }
}

// Twice. Behind the first barrier nobody begins to send, but may answer what
// came before. Behind the second one all answers have arrived too.
absl::Status MpiCarrier::AwaitAll() {
  for (int i = 0; i < 2; ++i) {
    RILL_RETURN_IF_ERROR(Serve());
    MPI_Request barrier;
    RILL_RETURN_IF_ERROR(
        Of("MPI_Ibarrier", MPI_Ibarrier(MPI_COMM_WORLD, &barrier)));
    absl::Time last = Clock::Steady().Now();
    for (int is_done = 0; is_done == 0;) {
      RILL_RETURN_IF_ERROR(
          Of("MPI_Test", MPI_Test(&barrier, &is_done, MPI_STATUS_IGNORE)));
      bool moves = false;
      RILL_RETURN_IF_ERROR(Step(&moves));
      if (moves) last = Clock::Steady().Now();
      if (is_done == 0) Pause(last);
    }
  }
  return Serve();  // What arrives is here, but may not be done yet.
}

void MpiCarrier::Run() {
  absl::Status status = Init();
  {
    absl::MutexLock lock(&mu_);
    has_begun_ = status;
  }
  if (!status.ok()) return;
  status = Serve();
  if (status.ok()) status = AwaitAll();
  if (!status.ok()) {
    // MPI may still use the blocks that are on their way, and MPI_Finalize
    // would wait for ranks that may be gone: they stay, and it is not called.
    new std::list<Transfer>(std::move(sends_));
    new std::map<int, std::deque<Transfer>>(std::move(receives_));
    events_.fail(status);
    return;
  }
  MPI_Type_free(&unit_);
  MPI_Finalize();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankTransport>> CreateMpiTransport() {
  return RankTransport::Create(std::make_unique<MpiCarrier>());
}

}  // namespace rill
