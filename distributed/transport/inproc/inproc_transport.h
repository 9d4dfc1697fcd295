// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_INPROC_INPROC_TRANSPORT_H_
#define RILL_DISTRIBUTED_TRANSPORT_INPROC_INPROC_TRANSPORT_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/distributed/transport/inproc/inproc_faults.h"
#include "rill/distributed/transport/transport.h"

namespace rill {

// Servers and clients in one process: on threads, as many as calls ran at once,
// and tensors are handed on without a copy. For runs that need no second
// program, and for tests, which have it lose, repeat, delay and reorder calls,
// cut connections and kill servers.
//
// An address is any text, known within this transport alone; an empty one is
// chosen. Servers, connections and streams may outlive the transport.
//
// The destructor of the last of these waits for calls under way. It may come
// out of a service's destructor: a server that is shut down lets go of its
// service, or its last call does, on the thread of that call.
// Thread-safety: thread-safe.
// Cost: two hand-overs between threads a call, whatever its size.
//
// Example (InprocTransportTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto transport, InprocTransport::Create());
//   RILL_ASSIGN_OR_RETURN(auto server, transport->Listen("replay", service));
//   RILL_ASSIGN_OR_RETURN(auto connection,
//                         transport->Connect("replay", deadline));
//   RILL_ASSIGN_OR_RETURN(Message reply,
//                         connection->Call("size", {}, deadline));
class InprocTransport final : public Transport {
 public:
  // INVALID_ARGUMENT names the fault.
  static absl::StatusOr<std::unique_ptr<InprocTransport>> Create(
      const InprocFaults& faults = {});
  ~InprocTransport() override;

  absl::StatusOr<std::unique_ptr<Server>> Listen(
      const std::string& address, std::shared_ptr<Service> service) override;
  absl::StatusOr<std::unique_ptr<Connection>> Connect(
      const std::string& address, absl::Time deadline) override;

  // Those of streams that are opened from here on. INVALID_ARGUMENT as Create.
  absl::Status SetFaults(const InprocFaults& faults);
  // Every stream to this address ends: UNAVAILABLE. The server lives.
  void Cut(absl::string_view address);
  // As if the server's process had been killed: its streams end, its address is
  // free, no call begins. The service may finish those that run, unseen.
  void Kill(absl::string_view address);

 private:
  class Core;
  class CoreConnection;
  class CoreStream;

  explicit InprocTransport(std::shared_ptr<Core> core);

  const std::shared_ptr<Core> core_;
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_INPROC_INPROC_TRANSPORT_H_
