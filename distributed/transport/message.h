// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_MESSAGE_H_
#define RILL_DISTRIBUTED_TRANSPORT_MESSAGE_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "rill/base/state/saved_state.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// A request or what answers it: rows as columns, and values by name beside
// them.
//
// A receiver only reads it: an engine within one process hands the sender's
// tensors on. A sender leaves the tensors as they are until the reply is there
// (a request), or for good (a reply).
// Thread-safety: thread-compatible.
// Cost: a copy shares the tensors.
struct Message {
  SavedState values = {};
  TensorDict batch = {};  // Host tensors.
};

// A message to a service, which is not called for it behind `deadline`.
struct Request {
  Message message = {};
  absl::Time deadline = absl::InfiniteFuture();
};

// The result of Service::Call.
struct Reply {
  absl::Status status = absl::OkStatus();
  Message message = {};  // Empty with an error.
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_MESSAGE_H_
