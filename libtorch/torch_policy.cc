// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/torch_policy.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/stream.h"
#include "rill/envs/policies/network_actions.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/libtorch/tensor_text.h"
#include "rill/libtorch/torch_call.h"
#include "rill/libtorch/torch_stream.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

std::string TextOf(const Tensor& tensor) {
  return absl::StrCat(DTypeName(tensor.dtype()), tensor.shape().ToString(),
                      " on ", tensor.device().ToString());
}

// Copies a result of the model to the leaf of the step: on a device by torch's
// current stream, which has made it.
absl::Status Write(const std::string& key, const at::Tensor& result,
                   TensorDict* step) {
  const Tensor* const leaf = step->Find(key);
  if (leaf == nullptr) {
    return InvalidArgument("TorchPolicy::Act: the step has no leaf \"", key,
                           "\"; it has ",
                           absl::StrJoin(step->LeafKeys(), ", "));
  }
  const absl::StatusOr<Tensor> from = FromTorch(result);
  if (!from.ok()) {
    return InvalidArgument("TorchPolicy::Act: \"", key,
                           "\": ", from.status().message());
  }
  if (leaf->dtype() != from->dtype() ||
      leaf->num_elements() != from->num_elements()) {
    return InvalidArgument("TorchPolicy::Act: \"", key, "\": got ",
                           TextOf(*from), " of the model, want ",
                           TextOf(*leaf));
  }
  if (leaf->is_host() && from->is_host()) {
    RILL_ASSIGN_OR_RETURN(const Tensor shaped, from->Reshape(leaf->shape()));
    return leaf->CopyFrom(shaped);
  }
  RILL_ASSIGN_OR_RETURN(at::Tensor to, ToTorch(*leaf));
  return CallTorch(
      [&] {
        to.copy_(result.reshape(to.sizes()));
        return absl::OkStatus();
      },
      "TorchPolicy::Act: \"", key, "\"");
}

// Copies what was chosen, an element a row or more, to the leaf of the step.
template <typename T>
absl::Status Write(const std::string& key, const std::vector<T>& chosen,
                   TensorDict* step) {
  const int64_t size = static_cast<int64_t>(chosen.size());
  const Tensor* const leaf = step->Find(key);
  if (leaf != nullptr && leaf->is_host() && leaf->is_contiguous() &&
      leaf->dtype() == DTypeOf<T> && leaf->num_elements() == size) {
    std::copy(chosen.begin(), chosen.end(), leaf->data<T>());
    return absl::OkStatus();
  }
  return Write(key,
               at::from_blob(const_cast<T*>(chosen.data()), {size},
                             c10::CppTypeToScalarType<T>::value),
               step);
}

// In host memory, contiguous: copied by torch's current stream, and waited for.
absl::StatusOr<at::Tensor> ToHost(const at::Tensor& tensor,
                                  absl::string_view what) {
  return CallTorch(
      [&]() -> absl::StatusOr<at::Tensor> { return tensor.cpu().contiguous(); },
      "TorchPolicy::Act: ", what);
}

// Work on `behind` from here on runs behind the work on `ahead` so far.
absl::Status Order(const Stream& ahead, const Stream& behind) {
  RILL_ASSIGN_OR_RETURN(const Event event, Event::Record(ahead));
  return behind.WaitFor(event);
}

}  // namespace

TorchPolicy::TorchPolicy(Options options, TensorDictSpec outputs)
    : options_(std::move(options)),
      outputs_(std::move(outputs)),
      actions_("TorchPolicy::Act", options_.actions, options_.mask_key) {}

absl::StatusOr<std::unique_ptr<TorchPolicy>> TorchPolicy::Create(
    Options options) {
  if (!options.model.is_valid()) {
    return InvalidArgument(
        "TorchPolicy::Create: model: got none; use "
        "TorchModel::Of(module)");
  }
  if (options.in_keys.empty()) {
    return InvalidArgument(
        "TorchPolicy::Create: in_keys: got none, want the "
        "leaves that the model reads");
  }
  const NetworkActions actions("TorchPolicy::Create", options.actions,
                               options.mask_key);
  if (!options.mask_key.empty() && !actions.is_discrete()) {
    return InvalidArgument("TorchPolicy::Create: mask_key: got \"",
                           options.mask_key,
                           "\", want none: actions are not discrete");
  }
  TensorDictSpec outputs = options.outputs;
  if (!options.log_prob_key.empty() && actions.is_stochastic()) {
    RILL_RETURN_IF_ERROR(outputs.Set(
        options.log_prob_key, LeafSpec::Unbounded(DType::kFloat32, {1})));
  }
  return std::unique_ptr<TorchPolicy>(
      new TorchPolicy(std::move(options), std::move(outputs)));
}

absl::StatusOr<absl::Span<const float>> TorchPolicy::HostResult(size_t i) {
  at::Tensor& result = results_[i];
  if (!result.defined() || result.scalar_type() != at::kFloat ||
      result.dim() < 2) {
    return InvalidArgument("TorchPolicy::Act: output ", i,
                           " of the model: got ", TextOf(result),
                           ", want Float[lanes, ..., n]");
  }
  if (!result.is_cpu() || !result.is_contiguous()) {
    RILL_ASSIGN_OR_RETURN(
        result, ToHost(result, absl::StrCat("output ", i, " of the model")));
  }
  return absl::MakeConstSpan(result.const_data_ptr<float>(),
                             static_cast<size_t>(result.numel()));
}

absl::Status TorchPolicy::ChooseDiscrete(const TensorDict& root,
                                         const NetworkActions::Draws& draws) {
  RILL_ASSIGN_OR_RETURN(const absl::Span<const float> logits, HostResult(0));
  const size_t n = static_cast<size_t>(results_[0].size(-1));
  const bool* legal = nullptr;
  Tensor mask;  // These keep the bytes.
  at::Tensor copied;
  if (!options_.mask_key.empty()) {
    RILL_ASSIGN_OR_RETURN(mask, root.Get(options_.mask_key));
    if (mask.dtype() != DType::kBool ||
        mask.num_elements() != static_cast<int64_t>(logits.size())) {
      return InvalidArgument("TorchPolicy::Act: \"", options_.mask_key,
                             "\": got ", TextOf(mask), ", want bool for ",
                             TextOf(results_[0]));
    }
    if (mask.is_host()) {
      RILL_ASSIGN_OR_RETURN(mask, mask.Contiguous());
      legal = mask.data<bool>();
    } else {
      RILL_ASSIGN_OR_RETURN(const at::Tensor there, ToTorch(mask));
      RILL_ASSIGN_OR_RETURN(
          copied, ToHost(there, absl::StrCat("\"", options_.mask_key, "\"")));
      legal = copied.const_data_ptr<bool>();
    }
  }
  return actions_.ChooseDiscrete(logits, n, legal, draws);
}

absl::Status TorchPolicy::ChooseTanhNormal(const NetworkActions::Draws& draws) {
  RILL_ASSIGN_OR_RETURN(const absl::Span<const float> loc, HostResult(0));
  RILL_ASSIGN_OR_RETURN(const absl::Span<const float> scale, HostResult(1));
  if (results_[1].sizes() != results_[0].sizes()) {
    return InvalidArgument(
        "TorchPolicy::Act: output 1 of the model: got ", TextOf(results_[1]),
        " for the standard deviation, want ", TextOf(results_[0]));
  }
  return actions_.ChooseTanhNormal(loc, scale,
                                   static_cast<size_t>(results_[0].size(-1)),
                                   options_.bounds, draws);
}

absl::Status TorchPolicy::Choose(const TensorDict& root,
                                 const NetworkActions::Draws& draws,
                                 TensorDict* step) {
  switch (options_.actions) {
    case Actions::kDeterministic:
      return Write(options_.action_key, results_[0], step);
    case Actions::kGreedy:
    case Actions::kCategorical:
      RILL_RETURN_IF_ERROR(ChooseDiscrete(root, draws));
      RILL_RETURN_IF_ERROR(
          Write(options_.action_key, actions_.indices(), step));
      break;
    case Actions::kTanhNormal:
      RILL_RETURN_IF_ERROR(ChooseTanhNormal(draws));
      RILL_RETURN_IF_ERROR(
          Write(options_.action_key, actions_.numbers(), step));
      break;
  }
  if (!actions_.is_stochastic() || options_.log_prob_key.empty()) {
    return absl::OkStatus();
  }
  return Write(options_.log_prob_key, actions_.log_probs(), step);
}

absl::Status TorchPolicy::ReadInputs(const TensorDict& root) {
  const std::optional<c10::Device> device = options_.model.device();
  inputs_.clear();
  for (const std::string& key : options_.in_keys) {
    RILL_ASSIGN_OR_RETURN(const Tensor leaf, root.Get(key));
    RILL_ASSIGN_OR_RETURN(at::Tensor input, ToTorch(leaf));
    if (device.has_value() && input.device() != *device) {
      return InvalidArgument("TorchPolicy::Act: \"", key, "\": got ",
                             TextOf(input), ", want it on ", device->str(),
                             ", where the model's weights are; move the "
                             "module, or act through a MovedPolicy");
    }
    inputs_.push_back(std::move(input));
  }
  return absl::OkStatus();
}

absl::Status TorchPolicy::RunModel(const TensorDict& root,
                                   const NetworkActions::Draws& draws,
                                   TensorDict* step) {
  RILL_ASSIGN_OR_RETURN(results_, options_.model.Run(inputs_));
  const auto& further = options_.outputs.leaves();
  if (results_.size() != actions_.num_parameters() + further.size()) {
    return InvalidArgument("TorchPolicy::Act: got ", results_.size(),
                           " outputs of the model, want ",
                           actions_.num_parameters(), " for the action and ",
                           further.size(), " for the leaves of `outputs`");
  }
  RILL_RETURN_IF_ERROR(Choose(root, draws, step));
  for (size_t i = 0; i < further.size(); ++i) {
    RILL_RETURN_IF_ERROR(
        Write(further[i].key, results_[actions_.num_parameters() + i], step));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TorchPolicy::Act(const TensorDict& root,
                                         const ActContext& context,
                                         TensorDict* step) {
  int64_t version = 0;
  if (options_.load_weights) {
    RILL_ASSIGN_OR_RETURN(version, options_.load_weights());
  }
  RILL_RETURN_IF_ERROR(ReadInputs(root));
  std::optional<Stream> torchs;
  if (context.stream != nullptr) {
    RILL_ASSIGN_OR_RETURN(torchs, CurrentTorchStream(context.stream->device()));
    RILL_RETURN_IF_ERROR(Order(*context.stream, *torchs));
  }
  const absl::Status done =
      RunModel(root,
               {.rng = Rng(context.SeedOf(options_.seed), RngStream::kPolicy),
                .step = static_cast<uint64_t>(context.step),
                .explore = context.explore},
               step);
  // The model's memory is not kept between steps.
  inputs_.clear();
  results_.clear();
  // With an error too: the caller may change leaves that torch still reads.
  if (torchs.has_value()) {
    const absl::Status ordered = Order(*torchs, *context.stream);
    RILL_RETURN_IF_ERROR(done);
    RILL_RETURN_IF_ERROR(ordered);
  }
  RILL_RETURN_IF_ERROR(done);
  return version;
}

}  // namespace rill
