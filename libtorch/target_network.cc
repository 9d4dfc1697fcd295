// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/target_network.h"

#include <vector>

#include "ATen/Functions.h"
#include "ATen/core/grad_mode.h"
#include "rill/base/status_macros.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/libtorch/tensor_text.h"
#include "rill/libtorch/torch_call.h"
#include "torch/nn/module.h"

namespace rill {
namespace {

struct Pairs {
  std::vector<at::Tensor> from, to;
};

// Weights of the same name.
absl::Status Match(const TorchTensors& from, const TorchTensors& to,
                   Pairs* pairs) {
  for (const auto& item : from) {
    if (to.contains(item.key())) continue;
    return InvalidArgument("UpdateTarget: \"", item.key(), "\": got ",
                           TextOf(item.value()),
                           " of the network, want a target that has it");
  }
  for (const auto& item : to) {
    const at::Tensor* const source = from.find(item.key());
    const at::Tensor& target = item.value();
    if (source == nullptr || source->sizes() != target.sizes() ||
        source->scalar_type() != target.scalar_type() ||
        source->device() != target.device()) {
      return InvalidArgument("UpdateTarget: \"", item.key(), "\": got ",
                             source == nullptr ? "none" : TextOf(*source),
                             " of the network, want ", TextOf(target),
                             ", as the target's");
    }
    pairs->from.push_back(*source);
    pairs->to.push_back(target);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status UpdateTarget(const torch::nn::Module& network,
                          torch::nn::Module& target, double tau) {
  if (!(tau > 0 && tau <= 1)) {
    return InvalidArgument("UpdateTarget: tau: got ", tau, ", want (0, 1]");
  }
  return CallTorch(
      [&]() -> absl::Status {
        Pairs parameters, buffers;
        RILL_RETURN_IF_ERROR(Match(network.named_parameters(),
                                   target.named_parameters(), &parameters));
        RILL_RETURN_IF_ERROR(
            Match(network.named_buffers(), target.named_buffers(), &buffers));
        const at::NoGradGuard no_gradients;
        if (tau < 1) {
          at::_foreach_lerp_(parameters.to, parameters.from, tau);
        } else {
          at::_foreach_copy_(parameters.to, parameters.from);
        }
        if (!buffers.to.empty()) at::_foreach_copy_(buffers.to, buffers.from);
        return absl::OkStatus();
      },
      "UpdateTarget");
}

}  // namespace rill
