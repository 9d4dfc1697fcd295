// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/module_weights.h"

#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "c10/core/impl/VirtualGuardImpl.h"
#include "rill/base/status_macros.h"
#include "rill/libtorch/torch_call.h"
#include "rill/specs/spec.h"
#include "rill/tensors/shape.h"
#include "torch/csrc/jit/api/module.h"
#include "torch/nn/module.h"

namespace rill {
namespace {

constexpr absl::string_view kOf = "ModuleWeights::Of";

}  // namespace

absl::StatusOr<ModuleWeights> ModuleWeights::Of(
    const torch::nn::Module& module) {
  return CallTorch(
      [&]() -> absl::StatusOr<ModuleWeights> {
        TorchTensors weights = module.named_parameters();
        weights.update(module.named_buffers());
        return Of(weights);
      },
      kOf);
}

absl::StatusOr<ModuleWeights> ModuleWeights::Of(
    const torch::jit::Module& module) {
  return CallTorch(
      [&]() -> absl::StatusOr<ModuleWeights> {
        TorchTensors weights;
        for (const auto& parameter : module.named_parameters()) {
          weights.insert(parameter.name, parameter.value);
        }
        for (const auto& buffer : module.named_buffers()) {
          weights.insert(buffer.name, buffer.value);
        }
        return Of(weights);
      },
      kOf);
}

absl::StatusOr<ModuleWeights> ModuleWeights::Of(const TorchTensors& weights) {
  return CallTorch(
      [&]() -> absl::StatusOr<ModuleWeights> {
        TorchTensors detached;
        std::vector<at::Tensor> tensors;
        for (const auto& weight : weights) {
          // Shares the count of writes too.
          tensors.push_back(weight.value().detach());
          detached.insert(weight.key(), tensors.back());
        }
        if (tensors.empty()) {
          return InvalidArgument(
              kOf,
              ": got no weights, want one at least; a module that "
              "TorchScript has frozen has none");
        }
        RILL_ASSIGN_OR_RETURN(TensorDict dict, FromTorch(detached, Shape()));
        return ModuleWeights(std::move(tensors), std::move(dict));
      },
      kOf);
}

absl::StatusOr<int64_t> ModuleWeights::Publish(WeightStore& store) const {
  RILL_RETURN_IF_ERROR(WaitForTorch());
  return store.Publish(dict_);
}

absl::StatusOr<int64_t> ModuleWeights::LoadLatest(WeightStore::Reader& reader) {
  const WeightStore::Snapshot latest = reader.Latest();
  if (version_ != latest.version) {
    RILL_RETURN_IF_ERROR(Load(latest.weights));
    version_ = latest.version;
  }
  return latest.version;
}

absl::Status ModuleWeights::Load(const TensorDict& weights) {
  RILL_RETURN_IF_ERROR(CheckLoad(weights));
  RILL_RETURN_IF_ERROR(WaitForTorch());
  version_.reset();
  RILL_RETURN_IF_ERROR(dict_.CopyFrom(weights));
  for (const at::Tensor& tensor : tensors_) {
    if (!tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
  }
  return absl::OkStatus();
}

absl::Status ModuleWeights::CheckLoad(const TensorDict& weights) const {
  return TensorDictSpec::Of(dict_).CheckLayout("ModuleWeights::Load", weights);
}

absl::Status ModuleWeights::WaitForTorch() const {
  return CallTorch(
      [&]() -> absl::Status {
        c10::Device waited_for = at::kCPU;
        for (const at::Tensor& tensor : tensors_) {
          const c10::Device device = tensor.device();
          if (device.is_cpu() || device == waited_for) continue;
          const c10::impl::VirtualGuardImpl backend(device.type());
          backend.synchronizeStream(backend.getStream(device));
          waited_for = device;
        }
        return absl::OkStatus();
      },
      "ModuleWeights");
}

}  // namespace rill
