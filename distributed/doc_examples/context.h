// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_DOC_EXAMPLES_CONTEXT_H_
#define RILL_DISTRIBUTED_DOC_EXAMPLES_CONTEXT_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/log/log.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/distributed/replay/remote_sampler.h"
#include "rill/distributed/replay/remote_sink.h"
#include "rill/distributed/replay/replay_service.h"
#include "rill/distributed/server/replay_server.h"
#include "rill/distributed/server/server_config.h"
#include "rill/distributed/shards/sharded_sampler.h"
#include "rill/distributed/transport/conformance/transport_conformance.h"
#include "rill/distributed/transport/inproc/inproc_transport.h"
#include "rill/distributed/transport/service_set.h"
#include "rill/distributed/transport/transport.h"
#include "rill/distributed/weights/remote_weights.h"
#include "rill/distributed/weights/weight_service.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/replay/replay_buffer.h"
#include "rill/tensordict/tensor_dict.h"

// Names that the examples of this package take for granted.
namespace rill::doc_examples {

extern std::unique_ptr<ReplayBuffer> buffer;
extern std::unique_ptr<SyncCollector> collector;
extern std::unique_ptr<WeightStore> store;
extern const std::shared_ptr<Transport> transport;
extern const std::shared_ptr<Service> service;
extern const std::shared_ptr<Service> replay;
extern const std::shared_ptr<Service> weights;
extern const std::string directory;
extern const absl::string_view json;
extern const std::string address;
extern const absl::Time deadline;
extern const std::vector<float> td_errors;
TransportSubject MakeMyTransport();

}  // namespace rill::doc_examples

#endif  // RILL_DISTRIBUTED_DOC_EXAMPLES_CONTEXT_H_
