// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_KILLS_PART_REMOTE_H_
#define RILL_DISTRIBUTED_KILLS_PART_REMOTE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/client/retrying_stream.h"
#include "rill/distributed/transport/transport.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {

inline RemoteServer At(const std::shared_ptr<Transport>& transport,
                       const std::string& address) {
  return {.transport = transport,
          .address = address,
          .reply_timeout = absl::Seconds(1),
          .timeout = absl::Seconds(2)};
}

// The other part is away.
inline bool IsForNow(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

// The result of `make` once it does not fail for now.
template <typename Make>
auto MakeWhenThere(const Make& make) {
  for (;;) {
    auto made = make();
    if (!IsForNow(made.status())) return made;
  }
}

// Weights that say their version everywhere.
inline absl::StatusOr<TensorDict> WeightsOf(int64_t version) {
  TensorDict weights;
  RILL_ASSIGN_OR_RETURN(
      Tensor leaf, Tensor::From(std::vector<int64_t>(256, version), {256}));
  RILL_RETURN_IF_ERROR(weights.Set("version", std::move(leaf)));
  return weights;
}

}  // namespace rill

#endif  // RILL_DISTRIBUTED_KILLS_PART_REMOTE_H_
