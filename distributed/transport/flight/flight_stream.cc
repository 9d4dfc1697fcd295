// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/flight/flight_stream.h"

#include <deque>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "arrow/flight/client.h"
#include "arrow/status.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/flight/flight_message.h"
#include "rill/distributed/transport/reply_window.h"

namespace rill::flight_internal {

// Far longer than the threads take where the other side reads.
constexpr absl::Duration kThreadsEnd = absl::Milliseconds(200);

// Shared by the caller and the two threads.
class FlightStream::Core {
 public:
  explicit Core(Parts parts)
      : parts_(std::move(parts)), replies_(parts_.who, parts_.window) {}
  // Else Flight logs that it was cancelled.
  ~Core() {
    if (exchange_.writer != nullptr) (void)exchange_.writer->Close();
  }

  absl::Status Send(const Message& request, absl::Time deadline);
  absl::StatusOr<Reply> Receive(absl::Time deadline) {
    return replies_.Receive(deadline);
  }

  // The threads.
  void WriteRequests();
  void ReadReplies();

  // Both threads' calls return, and the threads end. True once they have.
  bool Stop() {
    End(absl::CancelledError("the client has ended the stream"));
    absl::MutexLock lock(&mu_);
    if (has_begun_) exchange_.reader->Cancel();
    const auto is_done = [this] {
      mu_.AssertReaderHeld();
      return threads_ == 0;
    };
    return mu_.AwaitWithTimeout(absl::Condition(&is_done), kThreadsEnd);
  }

 private:
  using Exchange = arrow::flight::FlightClient::DoExchangeResult;

  // Sets exchange_. May wait for a connection.
  absl::Status Begin();
  absl::Status ReadAll();
  void End(const absl::Status& why);
  void EndThread() {
    absl::MutexLock lock(&mu_);
    --threads_;
  }

  const Parts parts_;
  ReplyWindow replies_;
  absl::Mutex mu_;
  Exchange exchange_;  // Stays as it is once has_begun_.
  bool has_begun_ ABSL_GUARDED_BY(mu_) = false;
  int threads_ ABSL_GUARDED_BY(mu_) = 2;
  std::deque<FlightMessage> requests_ ABSL_GUARDED_BY(mu_);  // To be written.
  bool has_ended_ ABSL_GUARDED_BY(mu_) = false;
};

absl::Status FlightStream::Core::Send(const Message& request,
                                      absl::Time deadline) {
  RILL_RETURN_IF_ERROR(replies_.AwaitRoom(deadline));
  RILL_ASSIGN_OR_RETURN(
      FlightMessage message,
      EncodeRequest(request, deadline - Clock::System().Now()));
  absl::MutexLock lock(&mu_);
  RILL_RETURN_IF_ERROR(replies_.Sent());
  requests_.push_back(std::move(message));
  return absl::OkStatus();
}

void FlightStream::Core::WriteRequests() {
  std::optional<MessageWriter> writer;
  arrow::Status status;
  while (status.ok()) {
    FlightMessage request;
    {
      absl::MutexLock lock(&mu_);
      const auto is_there = [this] {
        mu_.AssertReaderHeld();
        return has_ended_ || (has_begun_ && !requests_.empty());
      };
      mu_.Await(absl::Condition(&is_there));
      if (has_ended_) break;
      request = std::move(requests_.front());
      requests_.pop_front();
    }
    if (!writer.has_value()) writer.emplace(exchange_.writer.get());
    status = writer->Write(request);
  }
  // The reader ends the stream with the status of the call, which says more.
  // Where the error is not the call's, the call has to be ended.
  if (!status.ok()) exchange_.reader->Cancel();
  EndThread();
}

absl::Status FlightStream::Core::Begin() {
  auto exchange = parts_.client->DoExchange(
      parts_.options, arrow::flight::FlightDescriptor::Path({parts_.method}));
  if (!exchange.ok()) return StatusOfFlight(parts_.who, exchange.status());
  absl::MutexLock lock(&mu_);
  exchange_ = *std::move(exchange);
  has_begun_ = true;
  // Stop came before.
  if (has_ended_) exchange_.reader->Cancel();
  return absl::OkStatus();
}

// The status with which the stream ends.
absl::Status FlightStream::Core::ReadAll() {
  for (;;) {
    const auto chunk = exchange_.reader->Next();
    if (!chunk.ok()) return StatusOfFlight(parts_.who, chunk.status());
    if (chunk->data == nullptr && chunk->app_metadata == nullptr) {
      return Unavailable(parts_.who, ": the server has ended the stream");
    }
    absl::StatusOr<Reply> reply = DecodeReply(*chunk);
    replies_.Push(reply.ok() ? *std::move(reply)
                             : Reply{.status = reply.status()});
  }
}

void FlightStream::Core::ReadReplies() {
  const absl::Status begun = Begin();
  End(begun.ok() ? ReadAll() : begun);
  EndThread();
}

void FlightStream::Core::End(const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  replies_.End(why);
  has_ended_ = true;
  requests_.clear();
}

FlightStream::FlightStream(Parts parts)
    : core_(std::make_shared<Core>(std::move(parts))),
      writes_([core = core_] { core->WriteRequests(); }),
      reads_([core = core_] { core->ReadReplies(); }) {}

FlightStream::~FlightStream() {
  const bool has_stopped = core_->Stop();
  for (std::thread* thread : {&writes_, &reads_}) {
    has_stopped ? thread->join() : thread->detach();
  }
}

absl::Status FlightStream::Send(const Message& request, absl::Time deadline) {
  return core_->Send(request, deadline);
}

absl::StatusOr<Reply> FlightStream::Receive(absl::Time deadline) {
  return core_->Receive(deadline);
}

}  // namespace rill::flight_internal
