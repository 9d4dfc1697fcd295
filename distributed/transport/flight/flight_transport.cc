// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/flight/flight_transport.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "arrow/flight/client.h"
#include "arrow/flight/types.h"
#include "arrow/status.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/flight/flight_message.h"
#include "rill/distributed/transport/flight/flight_server.h"
#include "rill/distributed/transport/flight/flight_stream.h"

namespace rill {
namespace {

using flight_internal::MakeFlightStream;
using flight_internal::StatusOfFlight;

namespace flight = ::arrow::flight;

struct Address {
  std::string host;
  int port = 0;
  bool has_tls = false;
};

absl::StatusOr<Address> ParseAddress(absl::string_view caller,
                                     absl::string_view text) {
  Address address;
  absl::string_view rest = text;
  address.has_tls = absl::ConsumePrefix(&rest, "grpc+tls://");
  const bool has_scheme =
      address.has_tls || absl::ConsumePrefix(&rest, "grpc://");
  const size_t colon = rest.rfind(':');
  if (has_scheme && colon != absl::string_view::npos &&
      absl::SimpleAtoi(rest.substr(colon + 1), &address.port) &&
      address.port >= 0 && address.port <= 65535) {
    address.host =
        colon == 0 ? "127.0.0.1" : std::string(rest.substr(0, colon));
    return address;
  }
  return InvalidArgument("FlightTransport::", caller, ": address: got \"", text,
                         "\", want grpc://HOST:PORT or grpc+tls://HOST:PORT");
}

// Messages arrive in blocks that gRPC takes from malloc. glibc gives the pages
// of freed blocks back to the system. To take them anew costs a third of what a
// message costs. Where a block was freed before, glibc keeps those of its size
// (mallopt(3), M_MMAP_THRESHOLD): up to 32 MiB, unless the environment says
// otherwise.
void LetMallocKeepBlocks() {
  static const bool is_done = [] {
    void* const volatile block = std::malloc(31 << 20);
    std::free(block);
    return true;
  }();
  static_cast<void>(is_done);
}

class FlightConnection final : public Connection {
 public:
  FlightConnection(std::string address, const std::string& token,
                   std::unique_ptr<flight::FlightClient> client)
      : address_(std::move(address)), client_(std::move(client)) {
    if (!token.empty()) {
      options_.headers.emplace_back("authorization",
                                    absl::StrCat("Bearer ", token));
    }
  }

  // Whether the server answers, by a call that has a deadline. To begin a
  // stream has none.
  absl::Status Check(absl::Time deadline) const {
    flight::FlightCallOptions options = options_;
    if (deadline < absl::InfiniteFuture()) {
      options.timeout = flight::TimeoutDuration(std::max(
          0.0, absl::ToDoubleSeconds(deadline - Clock::System().Now())));
    }
    return StatusOfFlight(address_, client_->ListActions(options).status());
  }

  absl::StatusOr<std::unique_ptr<CallStream>> Open(
      absl::string_view method, const StreamOptions& options,
      absl::Time deadline) override {
    RILL_RETURN_IF_ERROR(CheckWindow(options.window));
    RILL_RETURN_IF_ERROR(Check(deadline));
    return MakeFlightStream({.who = absl::StrCat(address_, ": ", method),
                             .window = options.window,
                             .method = std::string(method),
                             .client = client_,
                             .options = options_});
  }

 private:
  const std::string address_;
  const std::shared_ptr<flight::FlightClient> client_;
  flight::FlightCallOptions options_;  // Of every call.
};

}  // namespace

absl::StatusOr<std::unique_ptr<FlightTransport>> FlightTransport::Create(
    const FlightOptions& options) {
  for (const char c : options.token) {
    if (c > ' ' && c <= '~') continue;
    return InvalidArgument(
        "FlightTransport::Create: token: got another character than visible "
        "ASCII");
  }
  if (options.tls_certificate.empty() != options.tls_key.empty()) {
    return InvalidArgument("FlightTransport::Create: got only one of ",
                           "tls_certificate and tls_key, want both or none");
  }
  if (options.silence_timeout < absl::Milliseconds(1)) {
    return InvalidArgument("FlightTransport::Create: silence_timeout: got ",
                           absl::FormatDuration(options.silence_timeout),
                           ", want >= 1ms");
  }
  LetMallocKeepBlocks();
  return std::unique_ptr<FlightTransport>(new FlightTransport(options));
}

absl::StatusOr<std::unique_ptr<Server>> FlightTransport::Listen(
    const std::string& address, std::shared_ptr<Service> service) {
  RILL_RETURN_IF_ERROR(CheckService("FlightTransport::Listen", service));
  RILL_ASSIGN_OR_RETURN(
      const Address parsed,
      ParseAddress("Listen", address.empty() ? "grpc://:0" : address));
  if (parsed.has_tls == options_.tls_certificate.empty()) {
    return InvalidArgument(
        "FlightTransport::Listen: \"", address, "\": want grpc+tls:// with a ",
        "certificate in the options, and grpc:// without one");
  }
  return flight_internal::MakeFlightServer(
      {.host = parsed.host,
       .port = parsed.port,
       .token = options_.token,
       .tls_certificate = options_.tls_certificate,
       .tls_key = options_.tls_key},
      std::move(service));
}

absl::StatusOr<std::unique_ptr<Connection>> FlightTransport::Connect(
    const std::string& address, absl::Time deadline) {
  RILL_ASSIGN_OR_RETURN(const Address parsed, ParseAddress("Connect", address));
  auto location = parsed.has_tls
                      ? flight::Location::ForGrpcTls(parsed.host, parsed.port)
                      : flight::Location::ForGrpcTcp(parsed.host, parsed.port);
  if (!location.ok()) return StatusOfFlight(address, location.status());
  flight::FlightClientOptions options = flight::FlightClientOptions::Defaults();
  options.tls_root_certs = options_.tls_roots;
  // A server that comes back is found within a second. Proxies are for others.
  options.generic_options.emplace_back("grpc.max_reconnect_backoff_ms", 1000);
  options.generic_options.emplace_back("grpc.enable_http_proxy", 0);
  // The second has the system end a connection whose bytes nobody takes. The
  // first turns that on; servers of gRPC take no more pings than these.
  options.generic_options.emplace_back("grpc.keepalive_time_ms", 360000);
  options.generic_options.emplace_back(
      "grpc.keepalive_timeout_ms",
      static_cast<int>(
          std::min<int64_t>(absl::ToInt64Milliseconds(options_.silence_timeout),
                            std::numeric_limits<int>::max())));
  auto client = flight::FlightClient::Connect(*location, options);
  if (!client.ok()) return StatusOfFlight(address, client.status());
  auto connection = std::make_unique<FlightConnection>(address, options_.token,
                                                       *std::move(client));
  RILL_RETURN_IF_ERROR(connection->Check(deadline));
  return connection;
}

}  // namespace rill
