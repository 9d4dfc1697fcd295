// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_CONFORMANCE_HELD_SERVER_H_
#define RILL_DISTRIBUTED_TRANSPORT_CONFORMANCE_HELD_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/conformance/held_service.h"
#include "rill/distributed/transport/transport.h"

namespace rill {

// A minute from now: the deadline of a call that is not to meet it.
absl::Time Soon();

// A HeldService that is served, and a connection to it. A part that cannot be
// made fails the test and is null.
struct HeldServer {
  // Clients connect with `near`, which may be another rank of the same job.
  HeldServer(Transport& far, Transport& near, const std::string& address = "");
  explicit HeldServer(Transport& transport, const std::string& address = "")
      : HeldServer(transport, transport, address) {}
  // No test waits for a call that it left.
  ~HeldServer() { service->Release(1000); }

  std::unique_ptr<Connection> Connect() const;
  std::unique_ptr<CallStream> Open(absl::string_view method,
                                   int64_t window = 8) const;

  Transport* near;  // Not owned; outlives this where it connects again.
  std::shared_ptr<HeldService> service;
  std::unique_ptr<Server> server;
  std::unique_ptr<Connection> connection;
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_CONFORMANCE_HELD_SERVER_H_
