// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_FLIGHT_FLIGHT_STREAM_H_
#define RILL_DISTRIBUTED_TRANSPORT_FLIGHT_FLIGHT_STREAM_H_

#include <cstdint>
#include <memory>
#include <string>

#include "arrow/flight/client.h"
#include "rill/distributed/transport/call_stream.h"

namespace rill::flight_internal {

struct FlightStreamParts {
  std::string who;  // Begins messages.
  int64_t window;
  std::string method;
  std::shared_ptr<arrow::flight::FlightClient> client;
  arrow::flight::FlightCallOptions options;
};

// A client's end of a stream (blocking_stream.h); its threads begin it. A write
// to a peer that has stopped reading ends no sooner than the connection.
std::unique_ptr<CallStream> MakeFlightStream(FlightStreamParts parts);

}  // namespace rill::flight_internal

#endif  // RILL_DISTRIBUTED_TRANSPORT_FLIGHT_FLIGHT_STREAM_H_
