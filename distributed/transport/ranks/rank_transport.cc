// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/ranks/rank_transport.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/ranks/rank_streams.h"
#include "rill/distributed/transport/stream_server.h"

namespace rill {
namespace {

using ranks_internal::Place;
using ranks_internal::RankStreams;

absl::StatusOr<Place> ParsePlace(absl::string_view caller,
                                 absl::string_view address, int num_ranks) {
  Place place;
  absl::string_view rest = address;
  const bool has_rank = absl::ConsumePrefix(&rest, "rank:");
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(rest, absl::MaxSplits('/', 1));
  if (!has_rank || !absl::SimpleAtoi(parts.first, &place.rank) ||
      place.rank < 0 || place.rank >= num_ranks ||
      address.find('\0') != absl::string_view::npos) {
    return InvalidArgument(caller, ": address: got \"", address,
                           "\", want rank:N or rank:N/name, N in [0, ",
                           num_ranks, ")");
  }
  place.name = std::string(parts.second);
  return place;
}

class RankStream final : public CallStream {
 public:
  RankStream(std::shared_ptr<RankStreams> streams,
             std::shared_ptr<RankStreams::Client> client)
      : streams_(std::move(streams)), client_(std::move(client)) {}
  ~RankStream() override { streams_->Close(client_.get()); }

  absl::Status Send(const Message& request, absl::Time deadline) override {
    return streams_->Send(client_.get(), request, deadline);
  }
  absl::StatusOr<Reply> Receive(absl::Time deadline) override {
    return streams_->Receive(client_.get(), deadline);
  }
  absl::Status Ask(absl::Time deadline) {
    return streams_->Ask(client_.get(), deadline);
  }

 private:
  const std::shared_ptr<RankStreams> streams_;
  const std::shared_ptr<RankStreams::Client> client_;
};

class RankConnection final : public Connection {
 public:
  RankConnection(std::shared_ptr<RankStreams> streams, Place place)
      : streams_(std::move(streams)), place_(std::move(place)) {}

  absl::StatusOr<std::unique_ptr<CallStream>> Open(
      absl::string_view method, const StreamOptions& options,
      absl::Time /*deadline*/) override {
    RILL_RETURN_IF_ERROR(CheckWindow(options.window));
    RILL_ASSIGN_OR_RETURN(
        auto client,
        streams_->Open(place_, std::string(method), options.window));
    return std::make_unique<RankStream>(streams_, std::move(client));
  }

 private:
  const std::shared_ptr<RankStreams> streams_;
  const Place place_;
};

}  // namespace

RankTransport::RankTransport(std::shared_ptr<RankStreams> streams)
    : streams_(std::move(streams)) {}
RankTransport::~RankTransport() = default;

absl::StatusOr<std::unique_ptr<RankTransport>> RankTransport::Create(
    std::unique_ptr<RankCarrier> carrier) {
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<RankStreams> streams,
                        RankStreams::Create(std::move(carrier)));
  return std::unique_ptr<RankTransport>(new RankTransport(std::move(streams)));
}

int RankTransport::rank() const { return streams_->rank(); }
int RankTransport::num_ranks() const { return streams_->num_ranks(); }

absl::StatusOr<std::unique_ptr<Server>> RankTransport::Listen(
    const std::string& address, std::shared_ptr<Service> service) {
  constexpr absl::string_view kCaller = "RankTransport::Listen";
  RILL_RETURN_IF_ERROR(CheckService(kCaller, service));
  Place place = {.rank = rank()};
  if (!address.empty()) {
    RILL_ASSIGN_OR_RETURN(place, ParsePlace(kCaller, address, num_ranks()));
  }
  if (place.rank != rank()) {
    return InvalidArgument(kCaller, ": address: got \"", address, "\" on rank ",
                           rank(), ", want one of this rank");
  }
  RILL_ASSIGN_OR_RETURN(const auto server,
                        streams_->Add(place, std::move(service)));
  return MakeServer(
      server, [streams = streams_, name = place.name, one = server.get()] {
        streams->Remove(name, one);
      });
}

absl::StatusOr<std::unique_ptr<Connection>> RankTransport::Connect(
    const std::string& address, absl::Time deadline) {
  RILL_ASSIGN_OR_RETURN(
      Place place, ParsePlace("RankTransport::Connect", address, num_ranks()));
  RILL_ASSIGN_OR_RETURN(auto client, streams_->Open(place, "", /*window=*/1));
  RankStream stream(streams_, std::move(client));
  RILL_RETURN_IF_ERROR(stream.Ask(deadline));
  return std::make_unique<RankConnection>(streams_, std::move(place));
}

}  // namespace rill
