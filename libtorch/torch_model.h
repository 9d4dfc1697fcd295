// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_LIBTORCH_TORCH_MODEL_H_
#define RILL_LIBTORCH_TORCH_MODEL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/libtorch/tensor_exchange.h"

namespace torch::nn {
class Module;
}  // namespace torch::nn

namespace rill {

// A network as a function of tensors: a torch::nn::Module, a TorchScript file,
// an AOTInductor package, or any function. A TorchPolicy acts by one.
//
// A module's inputs lie where its weights do; a Function may move them.
//
// Copies share the network. Thread-safety: that of the network; torch's own
// modules may be called by several threads that do not change weights.
//
// Example (TorchModelTest.Example runs it):
//   torch::nn::Linear net(4, 2);
//   const TorchModel model = TorchModel::Of(net.ptr());
//   RILL_ASSIGN_OR_RETURN(const auto outputs, model.Run({observation}));
class TorchModel {
 public:
  // May throw.
  using Function =
      std::function<std::vector<at::Tensor>(absl::Span<const at::Tensor>)>;

  TorchModel() = default;  // is_valid() is false.
  // `weights` are those that a learner changes, if any: they share the bytes.
  explicit TorchModel(Function forward, TorchTensors weights = TorchTensors())
      : forward_(std::move(forward)), weights_(std::move(weights)) {}

  // By `forward` of one to four tensors, which gives a tensor, several as a
  // std::tuple, or a std::vector. A module whose forward takes something else
  // is a Function.
  template <typename M>
  static TorchModel Of(std::shared_ptr<M> module);

  // A file of torch.jit.save, put on the CPU. INVALID_ARGUMENT where there is
  // none, or another file.
  static absl::StatusOr<TorchModel> LoadScript(const std::string& path);
  // A package of torch._inductor.aoti_compile_and_package, in which forward is
  // machine code: of the torch version that this program links, for processors
  // such as the one that made it. Errors as LoadScript. Its constants are no
  // weights(). Inputs that are not contiguous are copied.
  //
  // Packages check shapes and dtypes, in place of reading beyond their inputs,
  // only where the environment has AOTI_RUNTIME_CHECK_INPUTS=1. The first call
  // sets it unless it is set; no other thread may use the environment then.
  static absl::StatusOr<TorchModel> LoadPackage(const std::string& path);

  bool is_valid() const { return forward_ != nullptr; }

  // Calls forward, without gradients. INVALID_ARGUMENT, with both devices,
  // where an input does not lie on device(). Other errors have torch's text,
  // and end with the dtypes, shapes and devices of the inputs.
  absl::StatusOr<std::vector<at::Tensor>> Run(
      absl::Span<const at::Tensor> inputs) const;

  // Parameters and buffers by torch's names ("0.weight"), without gradients.
  const TorchTensors& weights() const { return weights_; }

  // Where the weights of a module or script are now. None of a Function or a
  // package, without weights, and where they began on several devices.
  std::optional<c10::Device> device() const {
    if (!placed_.defined()) return std::nullopt;
    return placed_.device();
  }

 private:
  Function forward_;
  TorchTensors weights_;
  at::Tensor placed_;  // One of the module's own: moves with it.
};

namespace libtorch_internal {

TorchTensors WeightsOfModule(const torch::nn::Module& module);
// One of the weights, undefined where they are on several devices.
at::Tensor PlacedWeight(const torch::nn::Module& module);
// Throws where it is false.
void CheckNumInputs(size_t got, size_t want);

inline std::vector<at::Tensor> Results(at::Tensor result) {
  return {std::move(result)};
}
inline std::vector<at::Tensor> Results(std::vector<at::Tensor> results) {
  return results;
}
template <typename... T>
std::vector<at::Tensor> Results(std::tuple<T...> results) {
  return std::apply(
      [](auto&... result) {
        return std::vector<at::Tensor>{std::move(result)...};
      },
      results);
}

// Calls forward with as many tensors as it takes, the fewest if it has a
// choice.
template <typename M>
std::vector<at::Tensor> Forward(M& module, absl::Span<const at::Tensor> in) {
  constexpr auto is_unary = requires(at::Tensor t) { module.forward(t); };
  constexpr auto is_binary = requires(at::Tensor t) { module.forward(t, t); };
  constexpr auto is_ternary = requires(at::Tensor t) {
    module.forward(t, t, t);
  };
  if constexpr (is_unary) {
    CheckNumInputs(in.size(), 1);
    return Results(module.forward(in[0]));
  } else if constexpr (is_binary) {
    CheckNumInputs(in.size(), 2);
    return Results(module.forward(in[0], in[1]));
  } else if constexpr (is_ternary) {
    CheckNumInputs(in.size(), 3);
    return Results(module.forward(in[0], in[1], in[2]));
  } else {
    CheckNumInputs(in.size(), 4);
    return Results(module.forward(in[0], in[1], in[2], in[3]));
  }
}

}  // namespace libtorch_internal

template <typename M>
TorchModel TorchModel::Of(std::shared_ptr<M> module) {
  TorchTensors weights = libtorch_internal::WeightsOfModule(*module);
  at::Tensor placed = libtorch_internal::PlacedWeight(*module);
  TorchModel model(
      [module = std::move(module)](absl::Span<const at::Tensor> inputs) {
        return libtorch_internal::Forward(*module, inputs);
      },
      std::move(weights));
  model.placed_ = std::move(placed);
  return model;
}

}  // namespace rill

#endif  // RILL_LIBTORCH_TORCH_MODEL_H_
