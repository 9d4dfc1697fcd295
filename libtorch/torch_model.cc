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
        return TorchModel(
            [module](absl::Span<const at::Tensor> inputs) {
              return ResultsOf(module->forward(
                  std::vector<c10::IValue>(inputs.begin(), inputs.end())));
            },
            std::move(weights));
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
