// SPDX-License-Identifier: Apache-2.0
// Serves the conformance suite's service until it is killed, or the other end
// of its descriptor 4 is closed. Its address goes to descriptor 3.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "rill/distributed/transport/conformance/held_service.h"
#include "rill/distributed/transport/flight/flight_transport.h"

int main() {
  const auto transport = rill::FlightTransport::Create();
  if (!transport.ok()) return 1;
  const auto server =
      (*transport)->Listen("", std::make_shared<rill::HeldService>());
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.status().ToString().c_str());
    return 1;
  }
  const std::string line = (*server)->address() + "\n";
  if (write(3, line.data(), line.size()) < 0) return 1;
  char byte;
  return read(4, &byte, 1) == 0 ? 0 : 1;
}
