// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_TRANSPORT_H_
#define RILL_DISTRIBUTED_TRANSPORT_TRANSPORT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/message.h"

namespace rill {

// A call as the service sees it.
struct CallInfo {
  absl::string_view method = {};
  absl::string_view peer = {};  // Who calls, as a person would name it.
  // Nobody waits for the reply any more from here on.
  absl::Time deadline = absl::InfiniteFuture();
};

// The methods that a server has for its clients.
// Thread-safety: Call is thread-safe. Calls of one stream come one after
// another,
//   in order; those of different streams at once.
class Service {
 public:
  virtual ~Service() = default;

  // Returns by the call's deadline, as nobody can interrupt it. An exception is
  // INTERNAL (base/catch_exceptions.h).
  // UNIMPLEMENTED lists the methods there are.
  virtual absl::StatusOr<Message> Call(const CallInfo& info,
                                       const Message& request) = 0;
};

// Calls the service, for engines; unless the deadline has passed, which is
// DEADLINE_EXCEEDED. An exception is an error (base/catch_exceptions.h).
absl::StatusOr<Message> CallByDeadline(Service& service, const CallInfo& info,
                                       const Message& request);

// Every Listen refuses a null service, and every Open a window below 1.
absl::Status CheckService(absl::string_view caller,
                          const std::shared_ptr<Service>& service);
absl::Status CheckWindow(int64_t window);

// The end of a server. The destructor is Shutdown with no time.
// Thread-safety: thread-safe.
class Server {
 public:
  virtual ~Server() = default;

  // Under which clients find it.
  virtual const std::string& address() const = 0;
  // Takes no more calls and waits until `deadline` for those under way, whose
  // replies arrive; those of requests that wait do not. Then all streams have
  // ended. DEADLINE_EXCEEDED where calls still run: the service is used until
  // they end. The second call does nothing.
  virtual absl::Status Shutdown(absl::Time deadline) = 0;
};

// The way to a server.
// Thread-safety: thread-safe.
class Connection {
 public:
  struct StreamOptions {
    int64_t window = 8;  // Requests whose reply was not received; >= 1.
  };

  virtual ~Connection() = default;

  // Streams outlive the connection. UNAVAILABLE where the server is gone.
  virtual absl::StatusOr<std::unique_ptr<CallStream>> Open(
      absl::string_view method, const StreamOptions& options,
      absl::Time deadline) = 0;

  // One request in a stream of its own. Errors as CallStream's, or the
  // service's.
  absl::StatusOr<Message> Call(absl::string_view method, const Message& request,
                               absl::Time deadline);
};

// An engine that carries calls between programs: the seam of distributed/.
// Every engine passes transport_conformance.h.
//
// Every wait has a deadline, and ends earlier where the other side is known to
// be gone. A server that dies ends its own streams and nobody else's.
//
// Thread-safety: thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;

  // Serves at `address` until the server is destroyed. The engine says how
  // addresses look, and whether it chooses one where that is empty.
  // ALREADY_EXISTS where the address is in use.
  virtual absl::StatusOr<std::unique_ptr<Server>> Listen(
      const std::string& address, std::shared_ptr<Service> service) = 0;

  // UNAVAILABLE, naming the address, where nobody listens there.
  virtual absl::StatusOr<std::unique_ptr<Connection>> Connect(
      const std::string& address, absl::Time deadline) = 0;
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_TRANSPORT_H_
