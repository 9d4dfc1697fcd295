// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/torch_model.h"

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "c10/core/InferenceMode.h"
#include "c10/util/Exception.h"
#include "rill/base/status_macros.h"
#include "rill/libtorch/tensor_text.h"
#include "rill/libtorch/torch_call.h"
#include "torch/csrc/inductor/aoti_package/model_package_loader.h"
#include "torch/csrc/jit/api/module.h"
#include "torch/csrc/jit/serialization/import.h"
#include "torch/nn/module.h"

namespace rill {
namespace {

// Tensors in an order: what a script gives is a tensor, or a tuple or list.
std::vector<at::Tensor> ResultsOf(const c10::IValue& value) {
  if (value.isTensor()) return {value.toTensor()};
  if (value.isTensorList()) return value.toTensorVector();
  std::vector<at::Tensor> results;
  for (const c10::IValue& element : value.toTupleRef().elements()) {
    results.push_back(element.toTensor());
  }
  return results;
}

// Detached: they have the bytes, and no gradient.
template <typename Named>
void AddWeights(const Named& named, TorchTensors* weights) {
  for (const auto& item : named) {
    weights->insert(item.name, item.value.detach());
  }
}

// The first of the weights, undefined where another is on another device.
at::Tensor PlacedOf(const std::vector<at::Tensor>& weights) {
  for (const at::Tensor& weight : weights) {
    if (weight.device() != weights.front().device()) return {};
  }
  return weights.empty() ? at::Tensor() : weights.front();
}

}  // namespace

namespace libtorch_internal {

TorchTensors WeightsOfModule(const torch::nn::Module& module) {
  TorchTensors weights;
  for (const auto& tensors :
       {module.named_parameters(), module.named_buffers()}) {
    for (const auto& item : tensors) {
      weights.insert(item.key(), item.value().detach());
    }
  }
  return weights;
}

at::Tensor PlacedWeight(const torch::nn::Module& module) {
  std::vector<at::Tensor> weights = module.parameters();
  for (at::Tensor& buffer : module.buffers()) weights.push_back(buffer);
  return PlacedOf(weights);
}

void CheckNumInputs(size_t got, size_t want) {
  TORCH_CHECK_VALUE(got == want, "forward: got ", got, " inputs, want ", want);
}

}  // namespace libtorch_internal

absl::StatusOr<TorchModel> TorchModel::LoadScript(const std::string& path) {
  return CallTorch(
      [&]() -> absl::StatusOr<TorchModel> {
        auto module = std::make_shared<torch::jit::Module>(
            torch::jit::load(path, at::kCPU));
        module->eval();
        TorchTensors weights;
        AddWeights(module->named_parameters(), &weights);
        AddWeights(module->named_buffers(), &weights);
        std::vector<at::Tensor> own;
        for (const at::Tensor& each : module->parameters()) own.push_back(each);
        for (const at::Tensor& each : module->buffers()) own.push_back(each);
        TorchModel model(
            [module](absl::Span<const at::Tensor> inputs) {
              return ResultsOf(module->forward(
                  std::vector<c10::IValue>(inputs.begin(), inputs.end())));
            },
            std::move(weights));
        model.placed_ = PlacedOf(own);
        return model;
      },
      "TorchModel::LoadScript: ", path);
}

absl::StatusOr<TorchModel> TorchModel::LoadPackage(const std::string& path) {
  return CallTorch(
      [&]() -> absl::StatusOr<TorchModel> {
        [[maybe_unused]] static const int kOnce =
            setenv("AOTI_RUNTIME_CHECK_INPUTS", "1", /*overwrite=*/0);
        auto loader =
            std::make_shared<torch::inductor::AOTIModelPackageLoader>(path);
        return TorchModel([loader](absl::Span<const at::Tensor> inputs) {
          std::vector<at::Tensor> dense;
          dense.reserve(inputs.size());
          for (const at::Tensor& input : inputs) {
            dense.push_back(input.contiguous());
          }
          return loader->boxed_run(std::move(dense));
        });
      },
      "TorchModel::LoadPackage: ", path);
}

absl::StatusOr<std::vector<at::Tensor>> TorchModel::Run(
    absl::Span<const at::Tensor> inputs) const {
  for (size_t i = 0; placed_.defined() && i < inputs.size(); ++i) {
    // Torch takes single numbers of the CPU on each device.
    if (!inputs[i].defined() || inputs[i].dim() == 0) continue;
    if (inputs[i].device() == placed_.device()) continue;
    return InvalidArgument("TorchModel::Run: input ", i, ": got ",
                           TextOf(inputs[i]), ", want it on ",
                           placed_.device().str(),
                           ", where the module's weights are");
  }
  auto results = CallTorch(
      [&]() -> absl::StatusOr<std::vector<at::Tensor>> {
        const c10::InferenceMode no_gradients;
        return forward_(inputs);
      },
      "TorchModel::Run");
  if (results.ok()) return results;
  std::string text(results.status().message());
  const char* separator = "; inputs: ";
  for (const at::Tensor& input : inputs) {
    absl::StrAppend(&text, separator, TextOf(input));
    separator = ", ";
  }
  if (!weights_.is_empty()) {
    absl::StrAppend(&text, "; weights on ",
                    weights_.front().value().device().str());
  }
  return absl::Status(results.status().code(), text);
}

}  // namespace rill
