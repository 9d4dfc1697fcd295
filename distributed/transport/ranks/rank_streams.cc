// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/ranks/rank_streams.h"

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"

namespace rill::ranks_internal {
namespace {

absl::Status StatusOf(const RankPacket& packet) {
  return absl::Status(static_cast<absl::StatusCode>(packet.number),
                      packet.text);
}

// How long a thread asks the carrier before another one has to wake it. Threads
// of calls may be many, and each that asks keeps the others waiting. A client
// knows that something comes: a hand-over to the carrier's thread and back
// costs more than most replies take.
constexpr absl::Duration kPatienceForRequest = absl::Microseconds(100);
constexpr absl::Duration kPatienceForReply = absl::Milliseconds(1);

// The longest text of an error, which fits into every carrier's blocks.
constexpr size_t kMaxErrorBytes = 4 << 10;

RankPacket PacketOf(RankPacket::Kind kind, int64_t stream,
                    const absl::Status& status) {
  return {.kind = kind,
          .stream = stream,
          .number = static_cast<int64_t>(status.code()),
          .text = std::string(status.message().substr(0, kMaxErrorBytes))};
}

}  // namespace

std::string Place::ToString() const {
  return absl::StrCat("rank:", rank, name.empty() ? "" : "/", name);
}

// From a server of this rank to a client of another.
class RankStreams::WayBack final : public ReplyWay {
 public:
  WayBack(RankStreams* streams, int peer, int64_t id)
      : streams_(*streams), peer_(peer), id_(id) {}

  void Reply(absl::StatusOr<Message> reply) override {
    absl::Status status = reply.status();
    if (reply.ok()) {
      absl::StatusOr<FramePieces> frame =
          streams_.Encode({.kind = RankPacket::kReply,
                           .stream = id_,
                           .message = *std::move(reply)});
      if (frame.ok()) {
        streams_.carrier_->Send(peer_, *std::move(frame));
        return;
      }
      status = frame.status();
    }
    streams_.Post(peer_, PacketOf(RankPacket::kReply, id_, status));
  }
  void End(const absl::Status& why) override {
    streams_.PostEnded(peer_, id_, why);
    std::shared_ptr<ServedStream> stream;  // Goes without the mutex.
    absl::MutexLock lock(&streams_.mu_);
    const auto found = streams_.served_.find({peer_, id_});
    if (found == streams_.served_.end()) return;
    stream = std::move(found->second);
    streams_.served_.erase(found);
  }

 private:
  RankStreams& streams_;
  const int peer_;
  const int64_t id_;
};

RankStreams::RankStreams(std::unique_ptr<RankCarrier> carrier)
    : carrier_(std::move(carrier)),
      threads_(std::make_unique<CallThreads>(
          [this](absl::FunctionRef<bool()> has_work) {
            carrier_->Help(kPatienceForRequest, has_work);
          })) {}

absl::StatusOr<std::shared_ptr<RankStreams>> RankStreams::Create(
    std::unique_ptr<RankCarrier> carrier) {
  std::shared_ptr<RankStreams> streams(new RankStreams(std::move(carrier)));
  RankStreams* const self = streams.get();
  RILL_RETURN_IF_ERROR(self->carrier_->Start({
      .receive =
          [self](int rank, std::shared_ptr<Buffer> bytes) {
            self->Arrive(rank, std::move(bytes));
          },
      .fail =
          [self](const absl::Status& why) { self->LoseRank(kAllRanks, why); },
  }));
  self->has_started_ = true;
  if (self->carrier_->max_bytes() < RankCarrier::kLeastMaxBytes) {
    return InvalidArgument("RankTransport: the carrier's longest block: got ",
                           self->carrier_->max_bytes(),
                           " bytes, want >= ", RankCarrier::kLeastMaxBytes);
  }
  return streams;
}

RankStreams::~RankStreams() {
  threads_ = nullptr;
  if (has_started_) carrier_->Finish();
}

absl::StatusOr<FramePieces> RankStreams::Encode(
    const RankPacket& packet) const {
  RILL_ASSIGN_OR_RETURN(FramePieces frame, EncodePacket(packet));
  const int64_t bytes = FrameBytes(frame);
  if (bytes <= carrier_->max_bytes()) return frame;
  return InvalidArgument("RankTransport: a message: got ", bytes,
                         " bytes, want <= ", carrier_->max_bytes());
}

void RankStreams::Post(int rank, const RankPacket& packet) const {
  absl::StatusOr<FramePieces> frame = Encode(packet);
  if (frame.ok()) carrier_->Send(rank, *std::move(frame));
}

void RankStreams::PostEnded(int rank, int64_t stream,
                            const absl::Status& why) const {
  Post(rank, PacketOf(RankPacket::kEnded, stream,
                      absl::Status(why.code(), absl::StrCat("RankTransport: ",
                                                            why.message()))));
}

void RankStreams::Arrive(int rank, std::shared_ptr<Buffer> bytes) {
  absl::StatusOr<RankPacket> packet = DecodePacket(std::move(bytes));
  if (!packet.ok()) {
    LoseRank(rank, absl::Status(packet.status().code(),
                                absl::StrCat(packet.status().message(),
                                             "; from rank ", rank)));
  } else if (packet->kind == RankPacket::kOpen) {
    OpenServed(rank, *packet);
  } else if (packet->kind < RankPacket::kReply) {
    ArriveAtServer(rank, *std::move(packet));
  } else {
    ArriveAtClient(rank, *std::move(packet));
  }
}

void RankStreams::OpenServed(int rank, const RankPacket& packet) {
  const std::pair<std::string, std::string> names =
      absl::StrSplit(packet.text, absl::MaxSplits('\0', 1));
  absl::Status status =
      Unavailable("\"", Place{carrier_->rank(), names.first}.ToString(),
                  "\": nobody listens there");
  std::shared_ptr<ServedStream> old;  // Where the peer gives an id twice.
  {
    absl::MutexLock lock(&mu_);
    const auto server = servers_.find(names.first);
    if (server != servers_.end()) {
      auto stream = server->second->Open(
          names.second, absl::StrCat("rank ", rank), packet.number,
          std::make_unique<WayBack>(this, rank, packet.stream));
      status = stream.status();
      if (stream.ok()) {
        old = std::exchange(served_[{rank, packet.stream}], *std::move(stream));
      }
    }
  }
  if (old != nullptr) old->Close();
  if (!status.ok()) PostEnded(rank, packet.stream, status);
}

void RankStreams::ArriveAtServer(int rank, RankPacket packet) {
  std::shared_ptr<ServedStream> stream;
  {
    absl::MutexLock lock(&mu_);
    const auto found = served_.find({rank, packet.stream});
    if (found != served_.end()) {
      stream = found->second;
      if (packet.kind == RankPacket::kEnd) served_.erase(found);
    }
  }
  if (packet.kind == RankPacket::kEnd) {
    if (stream != nullptr) stream->Close();
  } else if (stream == nullptr) {
    // It has ended, or the word of it was lost.
    PostEnded(rank, packet.stream,
              Unavailable("rank ", carrier_->rank(), ": no such stream"));
  } else if (packet.kind == RankPacket::kAsk) {
    Post(rank, {.kind = RankPacket::kReply, .stream = packet.stream});
  } else {
    const absl::Status status =
        stream->Push({.message = std::move(packet.message),
                      .deadline = packet.number == RankPacket::kNoDeadline
                                      ? absl::InfiniteFuture()
                                      : Clock::System().Now() +
                                            absl::Nanoseconds(packet.number)});
    if (!status.ok()) stream->Finish(status);
  }
}

void RankStreams::ArriveAtClient(int rank, RankPacket packet) {
  std::shared_ptr<Client> client;
  {
    absl::MutexLock lock(&mu_);
    const auto found = clients_.find(packet.stream);
    if (found == clients_.end() || found->second->place.rank != rank) return;
    client = found->second;
  }
  if (packet.kind == RankPacket::kReply) {
    client->replies.Push({StatusOf(packet), std::move(packet.message)});
  } else {
    client->replies.End(StatusOf(packet));
  }
}

void RankStreams::LoseRank(int rank, const absl::Status& why) {
  const auto is_lost = [rank](int other) {
    return rank == kAllRanks || rank == other;
  };
  std::vector<std::pair<int64_t, std::shared_ptr<ServedStream>>> lost;
  {
    absl::MutexLock lock(&mu_);
    if (rank == kAllRanks) broken_ = why;
    for (auto& [id, client] : clients_) {
      if (is_lost(client->place.rank)) client->replies.End(why);
    }
    for (auto it = served_.begin(); it != served_.end();) {
      if (!is_lost(it->first.first)) {
        ++it;
        continue;
      }
      lost.emplace_back(it->first.second, std::move(it->second));
      it = served_.erase(it);
    }
  }
  for (const auto& [id, stream] : lost) {
    stream->Close();
    // The rank may well be there, and its clients wait.
    if (rank != kAllRanks) PostEnded(rank, id, why);
  }
}

absl::StatusOr<std::shared_ptr<StreamServer>> RankStreams::Add(
    const Place& place, std::shared_ptr<Service> service) {
  absl::MutexLock lock(&mu_);
  auto& server = servers_[place.name];
  if (server != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat(
        "RankTransport::Listen: \"", place.ToString(), "\" is in use"));
  }
  server = std::make_shared<StreamServer>(place.ToString(), std::move(service),
                                          threads_.get());
  return server;
}

void RankStreams::Remove(const std::string& name, const StreamServer* server) {
  absl::MutexLock lock(&mu_);
  const auto found = servers_.find(name);
  // Another one may have the name by now.
  if (found == servers_.end() || found->second.get() != server) return;
  servers_.erase(found);
}

absl::StatusOr<std::shared_ptr<RankStreams::Client>> RankStreams::Open(
    Place place, std::string method, int64_t window) {
  std::shared_ptr<Client> client;
  {
    absl::MutexLock lock(&mu_);
    RILL_RETURN_IF_ERROR(broken_);
    client = std::make_shared<Client>(opened_++, std::move(place),
                                      std::move(method), window);
    clients_[client->id] = client;
  }
  absl::StatusOr<FramePieces> frame = Encode(
      {.kind = RankPacket::kOpen,
       .stream = client->id,
       .number = window,
       .text = absl::StrCat(client->place.name, absl::string_view("\0", 1),
                            client->method)});
  if (!frame.ok()) {
    absl::MutexLock lock(&mu_);
    clients_.erase(client->id);
    return frame.status();
  }
  carrier_->Send(client->place.rank, *std::move(frame));
  return client;
}

absl::Status RankStreams::Ask(Client* client, absl::Time deadline) {
  RILL_RETURN_IF_ERROR(client->replies.Sent());
  Post(client->place.rank, {.kind = RankPacket::kAsk, .stream = client->id});
  const absl::Status status = Receive(client, deadline).status();
  if (!absl::IsDeadlineExceeded(status)) return status;
  return absl::DeadlineExceededError(
      absl::StrCat("RankTransport::Connect: no answer from \"",
                   client->place.ToString(), "\""));
}

absl::Status RankStreams::Send(Client* client, const Message& request,
                               absl::Time deadline) {
  RILL_RETURN_IF_ERROR(client->replies.AwaitRoom(deadline));
  const absl::Duration left = deadline - Clock::System().Now();
  RILL_ASSIGN_OR_RETURN(FramePieces frame,
                        Encode({.kind = RankPacket::kRequest,
                                .stream = client->id,
                                .number = left == absl::InfiniteDuration()
                                              ? RankPacket::kNoDeadline
                                              : absl::ToInt64Nanoseconds(left),
                                .message = request}));
  RILL_RETURN_IF_ERROR(client->replies.Sent());
  carrier_->Send(client->place.rank, std::move(frame));
  return absl::OkStatus();
}

absl::StatusOr<Reply> RankStreams::Receive(Client* client,
                                           absl::Time deadline) {
  const auto is_done = [&] {
    return client->replies.has_news() || Clock::System().Now() >= deadline;
  };
  carrier_->Help(kPatienceForReply, is_done);
  return client->replies.Receive(deadline);
}

void RankStreams::Close(Client* client) {
  // Also where it has ended: perhaps the server was not told.
  Post(client->place.rank, {.kind = RankPacket::kEnd, .stream = client->id});
  absl::MutexLock lock(&mu_);
  clients_.erase(client->id);
}

}  // namespace rill::ranks_internal
