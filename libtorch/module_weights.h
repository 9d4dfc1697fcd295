// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_LIBTORCH_MODULE_WEIGHTS_H_
#define RILL_LIBTORCH_MODULE_WEIGHTS_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/tensordict/tensor_dict.h"

namespace torch::jit {
struct Module;
}  // namespace torch::jit
namespace torch::nn {
class Module;
}  // namespace torch::nn

namespace rill {

// The parameters and buffers of a module, by torch's names ("0.weight"), for
// both sides of a WeightStore: a learner publishes them, workers load the
// newest between two steps. They share the module's bytes, so they are always
// those of now. Copies share them too.
//
// A module that is moved (to(device), to(dtype)) has other bytes from then on:
// make this behind it. One that TorchScript has frozen has no weights.
//
// Autograd: what is loaded counts as a write in place. Torch refuses the
//   backward pass of a forward pass from before, and nothing is recorded.
// Thread-safety: thread-compatible, and so is the module that is read or
//   written meanwhile: publish and load in the thread that uses it.
// Device/Stream: a module on a GPU is waited for, its current stream's work
//   too; results are complete on return.
// Cost: one copy a side, by Publish and by Load, none before it. LoadLatest
//   without news: one load. Of: some us a tensor.
//
// Example (ModuleWeightsTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto weights, ModuleWeights::Of(*net));
//   RILL_ASSIGN_OR_RETURN(auto store,
//                         WeightStore::Create({.weights = weights.dict()}));
//   RILL_RETURN_IF_ERROR(weights.Publish(*store).status());
// In a worker, whose context has a reader:
//   RILL_ASSIGN_OR_RETURN(auto mine, ModuleWeights::Of(*copy));
//   RILL_ASSIGN_OR_RETURN(int64_t version, mine.LoadLatest(*context.weights));
class ModuleWeights {
 public:
  // Errors as FromTorch, naming the weight. INVALID_ARGUMENT where there is no
  // weight, and where a TorchScript module is none.
  static absl::StatusOr<ModuleWeights> Of(const torch::nn::Module& module);
  static absl::StatusOr<ModuleWeights> Of(const torch::jit::Module& module);
  // The same for tensors by name, as TorchModel::weights().
  static absl::StatusOr<ModuleWeights> Of(const TorchTensors& weights);

  // The bytes of the module, as WeightStore::Options::weights takes them.
  const TensorDict& dict() const { return dict_; }
  // Until torch's current streams have written the weights: before others read
  // dict() of a module on a GPU. Publish and Load do so. On a CPU: nothing.
  absl::Status WaitForTorch() const;

  // Makes the weights the store's latest. Errors as WeightStore::Publish.
  absl::StatusOr<int64_t> Publish(WeightStore& store) const;

  // Makes the reader's latest snapshot the module's weights, where it is not
  // the one that was loaded last, and returns its version. Always with the same
  // reader. Errors as Load.
  absl::StatusOr<int64_t> LoadLatest(WeightStore::Reader& reader);
  // Makes these the module's weights. INVALID_ARGUMENT, nothing changed, where
  // they are of another module: names the keys that are missing, those that are
  // too many, and the first dtype or shape that differs.
  absl::Status Load(const TensorDict& weights);
  // The error that Load would return.
  absl::Status CheckLoad(const TensorDict& weights) const;

 private:
  ModuleWeights(std::vector<at::Tensor> tensors, TensorDict dict)
      : tensors_(std::move(tensors)), dict_(std::move(dict)) {}

  std::vector<at::Tensor> tensors_;
  TensorDict dict_;  // Of these.
  std::optional<int64_t> version_;
};

}  // namespace rill

#endif  // RILL_LIBTORCH_MODULE_WEIGHTS_H_
