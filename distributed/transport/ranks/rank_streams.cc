// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/ranks/rank_streams.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"

namespace rill::ranks_internal {
namespace {

absl::Status StatusOf(const RankPacket& packet) {
  return absl::Status(static_cast<absl::StatusCode>(packet.number),
                      packet.text);
}

}  // namespace

std::string Place::ToString() const {
  return absl::StrCat("rank:", rank, name.empty() ? "" : "/", name);
}

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
  return streams;
}

RankStreams::~RankStreams() {
  std::vector<std::thread> workers;
  {
    absl::MutexLock lock(&mu_);
    is_stopping_ = true;
    workers.swap(workers_);
  }
  for (std::thread& worker : workers) worker.join();
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

void RankStreams::Post(int rank, const RankPacket& packet) {
  absl::StatusOr<FramePieces> frame = Encode(packet);
  if (frame.ok()) carrier_->Send(rank, *std::move(frame));
}

void RankStreams::PostEnded(int rank, int64_t stream, absl::string_view why,
                            const Place& place) {
  Post(rank, {.kind = RankPacket::kEnded,
              .stream = stream,
              .number = static_cast<int64_t>(absl::StatusCode::kUnavailable),
              .text = absl::StrCat("RankTransport: \"", place.ToString(),
                                   "\": ", why)});
}

void RankStreams::Arrive(int rank, std::shared_ptr<Buffer> bytes) {
  absl::StatusOr<RankPacket> packet = DecodePacket(std::move(bytes));
  if (!packet.ok()) {
    LoseRank(rank, absl::Status(packet.status().code(),
                                absl::StrCat(packet.status().message(),
                                             "; from rank ", rank)));
    return;
  }
  absl::MutexLock lock(&mu_);
  if (packet->kind == RankPacket::kOpen) {
    OpenServed(rank, *packet);
  } else if (packet->kind < RankPacket::kReply) {
    ArriveAtServer(rank, *std::move(packet));
  } else {
    ArriveAtClient(rank, *std::move(packet));
  }
}

void RankStreams::OpenServed(int rank, const RankPacket& packet) {
  std::pair<std::string, std::string> names =
      absl::StrSplit(packet.text, absl::MaxSplits('\0', 1));
  const auto server = servers_.find(names.first);
  if (server == servers_.end()) {
    PostEnded(rank, packet.stream, "nobody listens there",
              {carrier_->rank(), names.first});
    return;
  }
  auto served = std::make_shared<Served>();
  served->peer = rank;
  served->id = packet.stream;
  served->server = server->second;
  served->method = std::move(names.second);
  served_[{rank, packet.stream}] = std::move(served);
}

void RankStreams::ArriveAtServer(int rank, RankPacket packet) {
  const auto found = served_.find({rank, packet.stream});
  if (found == served_.end()) return;  // It has ended, and that was said.
  const std::shared_ptr<Served> served = found->second;
  if (packet.kind == RankPacket::kAsk) {
    Post(rank, {.kind = RankPacket::kReply, .stream = packet.stream});
    return;
  }
  if (packet.kind == RankPacket::kEnd) {
    served->has_ended = true;
    served->requests.clear();
    served_.erase(found);
    return;
  }
  if (served->server->is_down) return;
  served->requests.push_back(
      {std::move(packet.message),
       packet.number == RankPacket::kNoDeadline
           ? absl::InfiniteFuture()
           : Clock::System().Now() + absl::Nanoseconds(packet.number)});
  if (served->is_running) return;
  served->is_running = true;
  ready_.push_back(served);
  if (idle_ < ready_.size()) workers_.emplace_back([this] { Work(); });
}

void RankStreams::ArriveAtClient(int rank, RankPacket packet) {
  const auto found = clients_.find(packet.stream);
  if (found == clients_.end() || found->second->place.rank != rank) return;
  Client& client = *found->second;
  if (packet.kind == RankPacket::kReply) {
    client.replies.Push({StatusOf(packet), std::move(packet.message)});
  } else {
    client.replies.End(StatusOf(packet));
  }
}

void RankStreams::LoseRank(int rank, const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  if (rank == kAllRanks) broken_ = why;
  for (auto& [id, client] : clients_) {
    if (rank != kAllRanks && rank != client->place.rank) continue;
    client->replies.End(why);
  }
  for (auto it = served_.begin(); it != served_.end();) {
    const auto one = it++;
    if (rank != kAllRanks && rank != one->second->peer) continue;
    one->second->has_ended = true;
    one->second->requests.clear();
    served_.erase(one);
  }
}

// Streams, and with them services, go without the mutex.
void RankStreams::Work() {
  const auto has_work = [this] {
    mu_.AssertReaderHeld();
    return HasWork();
  };
  for (;;) {
    {
      absl::MutexLock lock(&mu_);
      ++idle_;
    }
    carrier_->Help([this] {
      absl::MutexLock lock(&mu_);
      return HasWork();
    });
    std::shared_ptr<Served> served;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(&has_work));
      --idle_;
      if (ready_.empty()) return;
      served = std::move(ready_.front());
      ready_.pop_front();
    }
    Serve(served.get());
  }
}

void RankStreams::Serve(Served* served) {
  bool has_called = false;
  FramePieces reply;
  for (;;) {
    Request request;
    {
      absl::MutexLock lock(&mu_);
      if (!reply.empty() && !served->has_ended) {
        carrier_->Send(served->peer, std::move(reply));
      }
      served->is_running = !served->requests.empty();
      if (!served->is_running && served->server->is_down) EndServed(*served);
      if (has_called) served->server->calls.End();
      if (!served->is_running) return;
      request = std::move(served->requests.front());
      served->requests.pop_front();
      served->server->calls.Begin();
    }
    reply = CarryOut(*served, request);
    has_called = true;
  }
}

FramePieces RankStreams::CarryOut(const Served& served,
                                  const Request& request) const {
  RankPacket packet = {.kind = RankPacket::kReply, .stream = served.id};
  const std::string peer = absl::StrCat("rank ", served.peer);
  absl::StatusOr<Message> message = CallByDeadline(
      *served.server->service,
      {.method = served.method, .peer = peer, .deadline = request.deadline},
      request.message);
  absl::Status status = message.status();
  if (message.ok()) {
    packet.message = *std::move(message);
    absl::StatusOr<FramePieces> frame = Encode(packet);
    if (frame.ok()) return *std::move(frame);
    status = frame.status();
    packet.message = {};
  }
  packet.number = static_cast<int64_t>(status.code());
  packet.text = std::string(status.message());
  return Encode(packet).value_or(FramePieces());
}

void RankStreams::EndServed(const Served& served) {
  if (served.has_ended) return;
  PostEnded(served.peer, served.id, "the server was shut down",
            served.server->place);
  served_.erase({served.peer, served.id});
}

absl::StatusOr<std::shared_ptr<RankStreams::ServerState>> RankStreams::Add(
    Place place, std::shared_ptr<Service> service) {
  absl::MutexLock lock(&mu_);
  auto& server = servers_[place.name];
  if (server != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat(
        "RankTransport::Listen: \"", place.ToString(), "\" is in use"));
  }
  server = std::make_shared<ServerState>();
  server->place = std::move(place);
  server->service = std::move(service);
  return server;
}

absl::Status RankStreams::Shutdown(ServerState* server, absl::Time deadline) {
  {
    absl::MutexLock lock(&mu_);
    if (!server->is_down) servers_.erase(server->place.name);
    server->is_down = true;
    server->calls.Close();
    for (auto it = served_.begin(); it != served_.end();) {
      Served& served = *(it++)->second;
      if (served.server.get() != server) continue;
      served.requests.clear();
      // Else the worker does, behind the reply.
      if (!served.is_running) EndServed(served);
    }
  }
  return server->calls.Await(server->place.ToString(), deadline);
}

absl::StatusOr<std::shared_ptr<RankStreams::Client>> RankStreams::Open(
    Place place, std::string method, int64_t window) {
  absl::MutexLock lock(&mu_);
  RILL_RETURN_IF_ERROR(broken_);
  auto client = std::make_shared<Client>(opened_++, std::move(place),
                                         std::move(method), window);
  clients_[client->id] = client;
  Post(client->place.rank,
       {.kind = RankPacket::kOpen,
        .stream = client->id,
        .text = absl::StrCat(client->place.name, absl::string_view("\0", 1),
                             client->method)});
  return client;
}

absl::Status RankStreams::Ask(Client* client, absl::Time deadline) {
  {
    absl::MutexLock lock(&mu_);
    RILL_RETURN_IF_ERROR(client->replies.Sent());
    Post(client->place.rank, {.kind = RankPacket::kAsk, .stream = client->id});
  }
  return Receive(client, deadline).status();
}

absl::Status RankStreams::Send(Client* client, const Message& request,
                               absl::Time deadline) {
  RILL_RETURN_IF_ERROR(client->replies.AwaitRoom(deadline));
  // Without the mutex: nobody else sends in this stream.
  const absl::Duration left = deadline - Clock::System().Now();
  RILL_ASSIGN_OR_RETURN(FramePieces frame,
                        Encode({.kind = RankPacket::kRequest,
                                .stream = client->id,
                                .number = left == absl::InfiniteDuration()
                                              ? RankPacket::kNoDeadline
                                              : absl::ToInt64Nanoseconds(left),
                                .message = request}));
  absl::MutexLock lock(&mu_);
  RILL_RETURN_IF_ERROR(client->replies.Sent());
  carrier_->Send(client->place.rank, std::move(frame));
  return absl::OkStatus();
}

absl::StatusOr<Reply> RankStreams::Receive(Client* client,
                                           absl::Time deadline) {
  const auto is_done = [&] {
    return client->replies.has_news() || Clock::System().Now() >= deadline;
  };
  carrier_->Help(is_done);
  return client->replies.Receive(deadline);
}

void RankStreams::Close(Client* client) {
  absl::MutexLock lock(&mu_);
  if (client->replies.ended().ok()) {
    Post(client->place.rank, {.kind = RankPacket::kEnd, .stream = client->id});
  }
  clients_.erase(client->id);
}

}  // namespace rill::ranks_internal
