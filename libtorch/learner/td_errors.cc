// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/learner/td_errors.h"

#include "ATen/Functions.h"
#include "rill/base/status_macros.h"
#include "rill/device/current_stream.h"
#include "rill/device/stream.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/libtorch/torch_call.h"
#include "rill/libtorch/torch_stream.h"
#include "rill/tensors/tensor.h"

namespace rill {

absl::Status UpdatePriorities(ReplayBuffer& buffer, const TensorDict& batch,
                              const at::Tensor& td_errors) {
  return CallTorch(
      [&]() -> absl::Status {
        const at::Tensor errors =
            td_errors.detach().to(at::kFloat).flatten().contiguous();
        at::Tensor values = at::empty_like(errors);
        at::abs_out(values, errors);
        RILL_ASSIGN_OR_RETURN(const Tensor priorities, FromTorch(values));
        RILL_ASSIGN_OR_RETURN(const Stream stream,
                              CurrentTorchStream(priorities.device()));
        const StreamScope scope(stream);
        return buffer.UpdatePriorities(batch, priorities);
      },
      "UpdatePriorities");
}

}  // namespace rill
