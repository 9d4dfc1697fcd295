// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_FLIGHT_FLIGHT_SERVER_H_
#define RILL_DISTRIBUTED_TRANSPORT_FLIGHT_FLIGHT_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/distributed/transport/transport.h"

namespace rill::flight_internal {

struct FlightServerConfig {
  std::string host;
  int port = 0;
  std::string token;            // "": none.
  std::string tls_certificate;  // "": no TLS.
  std::string tls_key;
};

absl::StatusOr<std::unique_ptr<Server>> MakeFlightServer(
    const FlightServerConfig& config, std::shared_ptr<Service> service);

}  // namespace rill::flight_internal

#endif  // RILL_DISTRIBUTED_TRANSPORT_FLIGHT_FLIGHT_SERVER_H_
