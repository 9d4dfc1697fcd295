// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_FLIGHT_FLIGHT_TRANSPORT_H_
#define RILL_DISTRIBUTED_TRANSPORT_FLIGHT_FLIGHT_TRANSPORT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/distributed/transport/transport.h"

namespace rill {

struct FlightOptions {
  // Servers refuse calls without it (UNAUTHENTICATED), connections send it.
  // Visible ASCII; "": none. Without TLS anybody on the way can read it.
  std::string token = "";
  // PEM texts. A server at "grpc+tls://..." needs the first two; a connection
  // trusts the roots, or the system's where there are none.
  std::string tls_certificate = "";
  std::string tls_key = "";
  std::string tls_roots = "";
  // A connection ends (UNAVAILABLE) where the other machine or process takes
  // nothing of what is on its way for so long. At least a millisecond.
  absl::Duration silence_timeout = absl::Seconds(20);
};

// Servers and clients that come and go, on one machine or many: Arrow Flight,
// over gRPC. Programs without Rill speak to it with Arrow's own libraries:
// docs/formats/arrow.md has the protocol.
//
// An address is "grpc://HOST:PORT", or "grpc+tls://HOST:PORT" for TLS. HOST may
// be left out: 127.0.0.1. Port 0 is chosen, and Server::address() has it. A
// server listens on the loopback unless HOST says otherwise; an empty address
// is "grpc://127.0.0.1:0".
//
// A message is an Arrow record batch (distributed/arrow) of at most 2 GB. Its
// receiver may write to the tensors: nobody else has them.
// A dead process is known at once; a machine that is gone, or a cut cable, when
// the caller's deadline or `silence_timeout` passes. A stream whose server
// stopped reading in the midst of a request takes 0.2 s to destroy, and its
// threads end with the connection.
//
// Errors besides the seam's: UNAUTHENTICATED, in place of UNAVAILABLE, where
// the server wants another token.
//
// Thread-safety: thread-safe. A stream has two threads here, and one at its
//   server, two where replies are long, beside those of gRPC.
// Memory: glibc's malloc keeps freed blocks of up to 32 MiB in this process, up
//   to 64 MiB an arena, unless the program or its environment sets
//   M_MMAP_THRESHOLD or M_TRIM_THRESHOLD.
//
// Example (FlightTransportTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto transport, FlightTransport::Create());
//   RILL_ASSIGN_OR_RETURN(auto server, transport->Listen("", service));
//   RILL_ASSIGN_OR_RETURN(auto connection,
//                         transport->Connect(server->address(), deadline));
//   RILL_ASSIGN_OR_RETURN(Message reply,
//                         connection->Call("size", {}, deadline));
class FlightTransport final : public Transport {
 public:
  // INVALID_ARGUMENT: a token with other characters, a certificate without its
  // key or a key alone, a timeout below a millisecond.
  static absl::StatusOr<std::unique_ptr<FlightTransport>> Create(
      const FlightOptions& options = {});

  // INVALID_ARGUMENT for an address of another form, one whose scheme does not
  // fit the certificate, a host without an address, or a certificate and key
  // that are no PEM. ALREADY_EXISTS where the port is in use, UNAVAILABLE where
  // the address is none of this machine, PERMISSION_DENIED of a port for
  // others.
  absl::StatusOr<std::unique_ptr<Server>> Listen(
      const std::string& address, std::shared_ptr<Service> service) override;
  absl::StatusOr<std::unique_ptr<Connection>> Connect(
      const std::string& address, absl::Time deadline) override;

 private:
  explicit FlightTransport(const FlightOptions& options) : options_(options) {}

  const FlightOptions options_;
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_FLIGHT_FLIGHT_TRANSPORT_H_
