// SPDX-License-Identifier: Apache-2.0
#include "rill/onnx/onnx_policy.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace rill {
namespace {

std::string TextOf(const Tensor& tensor) {
  return absl::StrCat(DTypeName(tensor.dtype()), tensor.shape().ToString(),
                      " on ", tensor.device().ToString());
}

absl::StatusOr<const Tensor*> LeafOf(const std::string& key,
                                     const TensorDict& step) {
  const Tensor* const leaf = step.Find(key);
  if (leaf != nullptr) return leaf;
  return absl::NotFoundError(
      absl::StrCat("OnnxPolicy::Act: the step has no leaf \"", key,
                   "\"; it has ", absl::StrJoin(step.LeafKeys(), ", ")));
}

// Copies to the leaf of the step, whose shape may have other sizes of 1.
absl::Status Write(const std::string& key, const Tensor& from,
                   const TensorDict& step) {
  RILL_ASSIGN_OR_RETURN(const Tensor* const leaf, LeafOf(key, step));
  if (leaf->dtype() != from.dtype() ||
      leaf->num_elements() != from.num_elements() || !leaf->is_host()) {
    return InvalidArgument("OnnxPolicy::Act: \"", key, "\": got ", TextOf(from),
                           " of the model, want ", TextOf(*leaf));
  }
  RILL_ASSIGN_OR_RETURN(const Tensor shaped, from.Reshape(leaf->shape()));
  return leaf->CopyFrom(shaped);
}

// The same of what was chosen, an element a row or more.
template <typename T>
absl::Status Write(const std::string& key, const std::vector<T>& chosen,
                   const TensorDict& step) {
  RILL_ASSIGN_OR_RETURN(const Tensor* const leaf, LeafOf(key, step));
  if (leaf->is_host() && leaf->is_contiguous() && leaf->dtype() == DTypeOf<T> &&
      leaf->num_elements() == static_cast<int64_t>(chosen.size())) {
    std::copy(chosen.begin(), chosen.end(), leaf->data<T>());
    return absl::OkStatus();
  }
  RILL_ASSIGN_OR_RETURN(
      const Tensor from,
      Tensor::From<T>(chosen, {static_cast<int64_t>(chosen.size())}));
  return Write(key, from, step);
}

// Whether the model can write there: the shape of what it makes is known to be
// the leaf's but for the number of lanes, and no input shares its bytes.
bool IsInPlace(const Tensor& leaf, const OnnxModel::Value& output,
               absl::Span<const Tensor> inputs) {
  const std::vector<int64_t>& sizes = output.sizes;
  if (leaf.dtype() != output.dtype || !leaf.is_host() ||
      !leaf.is_contiguous() || !leaf.is_writable() || leaf.rank() == 0 ||
      leaf.rank() != static_cast<int>(sizes.size()) ||
      (sizes[0] >= 0 && sizes[0] != leaf.shape()[0])) {
    return false;
  }
  for (int d = 1; d < leaf.rank(); ++d) {
    if (sizes[d] != leaf.shape()[d]) return false;
  }
  // The model reads copies of inputs with gaps.
  return std::none_of(inputs.begin(), inputs.end(), [&](const Tensor& input) {
    return input.raw_data() < leaf.raw_data() + leaf.size_bytes() &&
           leaf.raw_data() < input.raw_data() + input.size_bytes();
  });
}

}  // namespace

OnnxPolicy::OnnxPolicy(Options options, TensorDictSpec outputs)
    : options_(std::move(options)),
      outputs_(std::move(outputs)),
      actions_("OnnxPolicy::Act", options_.actions, options_.mask_key),
      results_(options_.model.outputs().size()) {}

absl::StatusOr<std::unique_ptr<OnnxPolicy>> OnnxPolicy::Create(
    Options options) {
  if (!options.model.is_valid()) {
    return InvalidArgument(
        "OnnxPolicy::Create: model: got none; use OnnxModel::Load");
  }
  const NetworkActions actions("OnnxPolicy::Create", options.actions,
                               options.mask_key);
  const auto text = [](std::string* out, const OnnxModel::Value& value) {
    absl::StrAppend(out, value.ToString());
  };
  const auto& inputs = options.model.inputs();
  if (options.in_keys.size() != inputs.size()) {
    return InvalidArgument("OnnxPolicy::Create: in_keys: got ",
                           options.in_keys.size(),
                           ", want one for each input of the model: ",
                           absl::StrJoin(inputs, ", ", text));
  }
  const auto& outputs = options.model.outputs();
  const size_t wanted =
      actions.num_parameters() + options.outputs.leaves().size();
  if (outputs.size() != wanted) {
    return InvalidArgument(
        "OnnxPolicy::Create: outputs: got ", outputs.size(), " of the model (",
        absl::StrJoin(outputs, ", ", text), "), want ",
        actions.num_parameters(), " for the action and ",
        options.outputs.leaves().size(), " for the leaves of `outputs`");
  }
  for (size_t i = 0; i < actions.num_parameters(); ++i) {
    if (actions.kind() == ActionKind::kDeterministic ||
        outputs[i].dtype == DType::kFloat32) {
      continue;
    }
    return InvalidArgument("OnnxPolicy::Create: actions: got output ",
                           outputs[i].ToString(),
                           " of the model, want float32");
  }
  if (!options.mask_key.empty() && !actions.is_discrete()) {
    return InvalidArgument("OnnxPolicy::Create: mask_key: got \"",
                           options.mask_key,
                           "\", want none: actions are not discrete");
  }
  TensorDictSpec spec = options.outputs;
  if (!options.log_prob_key.empty() && actions.is_stochastic()) {
    RILL_RETURN_IF_ERROR(spec.Set(options.log_prob_key,
                                  LeafSpec::Unbounded(DType::kFloat32, {1})));
  }
  return std::unique_ptr<OnnxPolicy>(
      new OnnxPolicy(std::move(options), std::move(spec)));
}

const std::string* OnnxPolicy::KeyOf(size_t i) const {
  const size_t parameters = actions_.num_parameters();
  if (i >= parameters) return &options_.outputs.leaves()[i - parameters].key;
  return options_.actions == ActionKind::kDeterministic ? &options_.action_key
                                                        : nullptr;
}

absl::StatusOr<absl::Span<const float>> OnnxPolicy::Parameter(size_t i) const {
  if (results_[i].rank() < 2) {
    return InvalidArgument("OnnxPolicy::Act: output ", i, " of the model: got ",
                           TextOf(results_[i]),
                           ", want float32[lanes, ..., n]");
  }
  return results_[i].Flat<float>();
}

absl::Status OnnxPolicy::ChooseDiscrete(const TensorDict& root,
                                        const NetworkActions::Draws& draws) {
  RILL_ASSIGN_OR_RETURN(const absl::Span<const float> values, Parameter(0));
  const bool* legal = nullptr;
  Tensor mask;  // Keeps what was copied.
  if (!options_.mask_key.empty()) {
    RILL_ASSIGN_OR_RETURN(mask, root.Get(options_.mask_key));
    if (mask.dtype() != DType::kBool || !mask.is_host() ||
        mask.num_elements() != static_cast<int64_t>(values.size())) {
      return InvalidArgument("OnnxPolicy::Act: \"", options_.mask_key,
                             "\": got ", TextOf(mask), ", want bool for ",
                             TextOf(results_[0]));
    }
    RILL_ASSIGN_OR_RETURN(mask, mask.Contiguous());
    legal = mask.data<bool>();
  }
  const Shape& shape = results_[0].shape();
  return actions_.ChooseDiscrete(
      values, static_cast<size_t>(shape[shape.rank() - 1]), legal, draws);
}

absl::Status OnnxPolicy::ChooseTanhNormal(const NetworkActions::Draws& draws) {
  RILL_ASSIGN_OR_RETURN(const absl::Span<const float> loc, Parameter(0));
  RILL_ASSIGN_OR_RETURN(const absl::Span<const float> scale, Parameter(1));
  const Shape& shape = results_[0].shape();
  if (results_[1].shape() != shape) {
    return InvalidArgument(
        "OnnxPolicy::Act: output 1 of the model: got ", TextOf(results_[1]),
        " for the standard deviation, want ", TextOf(results_[0]));
  }
  return actions_.ChooseTanhNormal(loc, scale,
                                   static_cast<size_t>(shape[shape.rank() - 1]),
                                   options_.bounds, draws);
}

absl::Status OnnxPolicy::Choose(const TensorDict& root,
                                const NetworkActions::Draws& draws,
                                TensorDict* step) {
  switch (options_.actions) {
    case ActionKind::kDeterministic:
      return absl::OkStatus();
    case ActionKind::kGreedy:
    case ActionKind::kCategorical:
      RILL_RETURN_IF_ERROR(ChooseDiscrete(root, draws));
      RILL_RETURN_IF_ERROR(
          Write(options_.action_key, actions_.indices(), *step));
      break;
    case ActionKind::kTanhNormal:
      RILL_RETURN_IF_ERROR(ChooseTanhNormal(draws));
      RILL_RETURN_IF_ERROR(
          Write(options_.action_key, actions_.numbers(), *step));
      break;
  }
  if (!actions_.is_stochastic() || options_.log_prob_key.empty()) {
    return absl::OkStatus();
  }
  return Write(options_.log_prob_key, actions_.log_probs(), *step);
}

absl::StatusOr<int64_t> OnnxPolicy::Act(const TensorDict& root,
                                        const ActContext& context,
                                        TensorDict* step) {
  inputs_.clear();
  for (const std::string& key : options_.in_keys) {
    RILL_ASSIGN_OR_RETURN(inputs_.emplace_back(), root.Get(key));
  }
  const auto& outputs = options_.model.outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    results_[i] = Tensor();
    const std::string* const key = KeyOf(i);
    if (key == nullptr) continue;
    RILL_ASSIGN_OR_RETURN(const Tensor* const leaf, LeafOf(*key, *step));
    if (IsInPlace(*leaf, outputs[i], inputs_)) results_[i] = *leaf;
  }
  if (absl::Status status =
          options_.model.Run(inputs_, absl::MakeSpan(results_));
      !status.ok()) {
    return absl::Status(
        status.code(),
        absl::StrCat(status.message(), "; in_keys: \"",
                     absl::StrJoin(options_.in_keys, "\", \""), "\""));
  }
  RILL_RETURN_IF_ERROR(
      Choose(root,
             {.rng = Rng(context.SeedOf(options_.seed), RngStream::kPolicy),
              .step = static_cast<uint64_t>(context.step),
              .explore = context.explore},
             step));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string* const key = KeyOf(i);
    if (key == nullptr) continue;
    if (results_[i].raw_data() == step->Find(*key)->raw_data()) continue;
    RILL_RETURN_IF_ERROR(Write(*key, results_[i], *step));
  }
  // The model's memory is not kept between steps.
  inputs_.clear();
  std::fill(results_.begin(), results_.end(), Tensor());
  return 0;
}

}  // namespace rill
