// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_SERVICE_SET_H_
#define RILL_DISTRIBUTED_TRANSPORT_SERVICE_SET_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"

namespace rill {

// Several services behind one address: the method "replay/sample" is for the
// one that is named "replay".
// Thread-safety: thread-safe.
// Cost: a look-up by name.
//
// Example (ServiceSetTest.Example runs it):
//   auto services = std::make_shared<ServiceSet>(
//       ServiceSet::Services{{"replay", replay}, {"weights", weights}});
//   RILL_ASSIGN_OR_RETURN(auto server, transport->Listen("", services));
class ServiceSet final : public Service {
 public:
  using Services = std::map<std::string, std::shared_ptr<Service>, std::less<>>;

  explicit ServiceSet(Services services) : services_(std::move(services)) {}

  // UNIMPLEMENTED lists the names there are.
  absl::StatusOr<Message> Call(const CallInfo& info,
                               const Message& request) override;

 private:
  const Services services_;
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_SERVICE_SET_H_
