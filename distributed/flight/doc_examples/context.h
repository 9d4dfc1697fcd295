// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_FLIGHT_DOC_EXAMPLES_CONTEXT_H_
#define RILL_DISTRIBUTED_FLIGHT_DOC_EXAMPLES_CONTEXT_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "arrow/c/abi.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/arrow/arrow_batch.h"
#include "rill/distributed/arrow/arrow_c_data.h"
#include "rill/distributed/transport/flight/flight_transport.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/tensordict/tensor_dict.h"

// Names that the examples of these headers take for granted.
namespace rill::doc_examples {

extern const TensorDict steps;
extern const std::shared_ptr<Service> service;
extern const absl::Time deadline;

}  // namespace rill::doc_examples

#endif  // RILL_DISTRIBUTED_FLIGHT_DOC_EXAMPLES_CONTEXT_H_
