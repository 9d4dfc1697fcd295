// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/blocking_stream.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/reply_window.h"

namespace rill {

// Far longer than the threads take where the other side reads.
constexpr absl::Duration kThreadsEnd = absl::Milliseconds(200);

// Shared by the caller and the two threads.
class BlockingStream::Core {
 public:
  Core(std::unique_ptr<BlockingExchange> exchange, std::string who,
       int64_t window)
      : exchange_(std::move(exchange)), replies_(std::move(who), window) {}

  absl::Status Send(const Message& request, absl::Time deadline);
  absl::StatusOr<Reply> Receive(absl::Time deadline) {
    return replies_.Receive(deadline);
  }

  // The threads.
  void WriteRequests();
  void ReadReplies();

  // Both threads' calls return, and the threads end. True once they have.
  bool Stop();

 private:
  // False where the stream has ended.
  bool Take(BlockingExchange::Write* write);
  // The status with which the stream ends.
  absl::Status BeginAndRead();
  void End(const absl::Status& why);
  // Calls that there are return; before Begin there is none.
  void Cancel();
  void EndThread() {
    absl::MutexLock lock(&mu_);
    --threads_;
  }

  const std::unique_ptr<BlockingExchange> exchange_;
  ReplyWindow replies_;
  absl::Mutex mu_;
  bool has_begun_ ABSL_GUARDED_BY(mu_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mu_) = false;
  int threads_ ABSL_GUARDED_BY(mu_) = 2;
  std::deque<BlockingExchange::Write> writes_ ABSL_GUARDED_BY(mu_);
};

absl::Status BlockingStream::Core::Send(const Message& request,
                                        absl::Time deadline) {
  RILL_RETURN_IF_ERROR(replies_.AwaitRoom(deadline));
  RILL_ASSIGN_OR_RETURN(BlockingExchange::Write write,
                        exchange_->Prepare(request, deadline));
  absl::MutexLock lock(&mu_);
  RILL_RETURN_IF_ERROR(replies_.Sent());
  writes_.push_back(std::move(write));
  return absl::OkStatus();
}

bool BlockingStream::Core::Take(BlockingExchange::Write* write) {
  absl::MutexLock lock(&mu_);
  const auto is_there = [this] {
    mu_.AssertReaderHeld();
    return has_ended_ || (has_begun_ && !writes_.empty());
  };
  mu_.Await(absl::Condition(&is_there));
  if (has_ended_) return false;
  *write = std::move(writes_.front());
  writes_.pop_front();
  return true;
}

void BlockingStream::Core::WriteRequests() {
  absl::Status status;
  BlockingExchange::Write write;
  while (status.ok() && Take(&write)) {
    status = write();
    write = nullptr;  // And with it the request.
  }
  // The reader ends the stream with the status of the call, which says more.
  // Where the error is not the call's, the call has to be ended.
  if (!status.ok()) Cancel();
  EndThread();
}

absl::Status BlockingStream::Core::BeginAndRead() {
  RILL_RETURN_IF_ERROR(exchange_->Begin());
  {
    absl::MutexLock lock(&mu_);
    has_begun_ = true;
    if (has_ended_) return absl::CancelledError("stopped before it began");
  }
  for (;;) {
    RILL_ASSIGN_OR_RETURN(Reply reply, exchange_->Read());
    replies_.Push(std::move(reply));
  }
}

void BlockingStream::Core::ReadReplies() {
  End(BeginAndRead());
  Cancel();  // A write may wait for a peer that reads no more.
  EndThread();
}

void BlockingStream::Core::End(const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  replies_.End(why);
  has_ended_ = true;
  writes_.clear();
}

void BlockingStream::Core::Cancel() {
  {
    absl::MutexLock lock(&mu_);
    if (!has_begun_) return;
  }
  exchange_->Cancel();
}

bool BlockingStream::Core::Stop() {
  End(absl::CancelledError("the client has ended the stream"));
  Cancel();
  absl::MutexLock lock(&mu_);
  const auto is_done = [this] {
    mu_.AssertReaderHeld();
    return threads_ == 0;
  };
  return mu_.AwaitWithTimeout(absl::Condition(&is_done), kThreadsEnd);
}

BlockingStream::BlockingStream(std::unique_ptr<BlockingExchange> exchange,
                               std::string who, int64_t window)
    : core_(
          std::make_shared<Core>(std::move(exchange), std::move(who), window)),
      writes_([core = core_] { core->WriteRequests(); }),
      reads_([core = core_] { core->ReadReplies(); }) {}

BlockingStream::~BlockingStream() {
  const bool has_stopped = core_->Stop();
  for (std::thread* thread : {&writes_, &reads_}) {
    has_stopped ? thread->join() : thread->detach();
  }
}

absl::Status BlockingStream::Send(const Message& request, absl::Time deadline) {
  return core_->Send(request, deadline);
}

absl::StatusOr<Reply> BlockingStream::Receive(absl::Time deadline) {
  return core_->Receive(deadline);
}

}  // namespace rill
