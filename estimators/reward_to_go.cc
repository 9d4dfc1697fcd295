// SPDX-License-Identifier: Apache-2.0
#include "rill/estimators/reward_to_go.h"

#include <cstddef>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/estimators/value_estimates.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/rows/device_leaves.h"
#include "rill/transforms/rows/group_ends.h"
#include "rill/transforms/structure/key_paths.h"
#include "rill/transforms/timeline/timeline.h"

namespace rill {
namespace {

using transforms_internal::DeviceWork;

// The common form of both.
class RewardsToGo final : public BatchTransform {
 public:
  struct Parts {
    absl::string_view name;
    OptionValues values;
    bool is_inverse = false;
    double gamma = 1;
    std::vector<std::string> in_keys;
    std::vector<std::string> out_keys;
    std::string done_key;
  };

  explicit RewardsToGo(Parts parts) : parts_(std::move(parts)) {}

  absl::string_view name() const override { return parts_.name; }
  OptionValues option_values() const override { return parts_.values; }

  absl::Status Forward(TensorDict* batch,
                       TensorDict* /*state*/) const override {
    // Reward2Go works before writes, DensifyReward after reads; the other way
    // nothing happens.
    return parts_.is_inverse ? absl::OkStatus() : Sum(batch);
  }
  absl::Status Inverse(TensorDict* batch,
                       TensorDict* /*state*/) const override {
    return parts_.is_inverse ? Sum(batch) : absl::OkStatus();
  }
  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override {
    return parts_.is_inverse ? spec : SumSpec("::ForwardSpec", spec);
  }
  absl::StatusOr<TensorDictSpec> InverseSpec(
      const TensorDictSpec& spec) const override {
    return parts_.is_inverse ? SumSpec("::InverseSpec", spec) : spec;
  }

 private:
  const std::string& OutKey(size_t i) const {
    return parts_.out_keys.empty() ? parts_.in_keys[i] : parts_.out_keys[i];
  }

  absl::Status Sum(TensorDict* batch) const {
    RILL_RETURN_IF_ERROR(
        transforms_internal::NumSteps(parts_.name, batch->batch_shape())
            .status());
    // Lines along time: the last dimension of the batch, with one number a
    // step.
    RILL_RETURN_IF_ERROR(
        transforms_internal::CheckTimeIsLast(parts_.name, *batch));
    const Shape shape = batch->batch_shape().Concat({1});
    RILL_ASSIGN_OR_RETURN(
        const Tensor first,
        transforms_internal::GetLeaf(parts_.name, parts_.in_keys[0], *batch));
    // All lie where the first rewards do.
    DeviceWork::Call work(&device_work_);
    DeviceWork::Call* const call = first.is_host() ? nullptr : &work;
    if (call != nullptr) {
      RILL_RETURN_IF_ERROR(call->Begin(first.device())) << parts_.name;
    }
    RILL_ASSIGN_OR_RETURN(const Tensor done,
                          transforms_internal::ReadStops(
                              parts_.name, parts_.done_key, *batch, call));
    // All sums are made before one is set: an out key may be another in key.
    absl::InlinedVector<Tensor, 2> all;
    for (const std::string& key : parts_.in_keys) {
      RILL_ASSIGN_OR_RETURN(
          const Tensor reward,
          call == nullptr
              ? transforms_internal::ReadLeaf(parts_.name, key, *batch)
              : transforms_internal::ReadDeviceLeaf(parts_.name, key, *batch,
                                                    call));
      RILL_RETURN_IF_ERROR(transforms_internal::CheckLeaf(
          parts_.name, key, reward, reward.dtype(), shape));
      RILL_RETURN_IF_ERROR(transforms_internal::CheckStopsAtGroupEnds(
          parts_.name, key, parts_.done_key, *batch));
      // A tensor of its own: the rewards may be read under another key, or by
      // the caller that made the batch.
      Tensor& sums = all.emplace_back();
      if (call != nullptr) {
        RILL_ASSIGN_OR_RETURN(sums, call->Take(reward.dtype(), shape));
      }
      RILL_RETURN_IF_ERROR(
          RewardToGo(reward, done, parts_.gamma, &sums,
                     call == nullptr ? nullptr : &call->stream()))
          << parts_.name << ": \"" << key << "\"";
    }
    for (size_t i = 0; i < all.size(); ++i) {
      RILL_RETURN_IF_ERROR(
          transforms_internal::CheckMaySet(parts_.name, OutKey(i), *batch));
    }
    for (size_t i = 0; i < all.size(); ++i) {
      RILL_RETURN_IF_ERROR(batch->Set(OutKey(i), std::move(all[i])));
    }
    return work.End();
  }

  absl::StatusOr<TensorDictSpec> SumSpec(absl::string_view call,
                                         const TensorDictSpec& spec) const {
    const std::string caller = absl::StrCat(parts_.name, call);
    RILL_RETURN_IF_ERROR(
        transforms_internal::CheckHasEnds(caller, parts_.done_key, spec));
    TensorDictSpec after = spec;
    for (size_t i = 0; i < parts_.in_keys.size(); ++i) {
      const std::string& key = parts_.in_keys[i];
      RILL_ASSIGN_OR_RETURN(const LeafSpec leaf,
                            transforms_internal::GetReward(caller, key, spec));
      RILL_RETURN_IF_ERROR(
          after.Set(OutKey(i), LeafSpec::Unbounded(leaf.dtype, {1})));
      RILL_RETURN_IF_ERROR(transforms_internal::CheckStopsAtGroupEnds(
          caller, key, parts_.done_key, spec));
    }
    return after;
  }

  const Parts parts_;
  mutable DeviceWork device_work_{8};
};

// NaN is refused too: no comparison with it holds.
absl::Status CheckFactor(absl::string_view option, double got) {
  if (got >= 0 && got <= 1) return absl::OkStatus();
  return InvalidArgument(option, ": got ", got, ", want [0, 1]");
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchTransform>> Reward2Go::Create(
    const Options& options) {
  constexpr absl::string_view kCreate = "Reward2Go::Create";
  RILL_RETURN_IF_ERROR(CheckFactor("Reward2Go::Create: gamma", options.gamma));
  if (options.in_keys.empty() ||
      (!options.out_keys.empty() &&
       options.out_keys.size() != options.in_keys.size())) {
    return InvalidArgument(
        kCreate, ": in_keys, out_keys: got ", options.in_keys.size(), " and ",
        options.out_keys.size(),
        ", want at least one in_key, and none or as many out_keys");
  }
  // An out key may be an in key (in place), but no key may be written twice,
  // nor the flags.
  for (std::vector<std::string> keys : {options.in_keys, options.out_keys}) {
    keys.push_back(options.done_key);
    RILL_RETURN_IF_ERROR(
        transforms_internal::CheckKeys(kCreate, "keys and done_key", keys));
    RILL_RETURN_IF_ERROR(transforms_internal::CheckCanBeLeaves(
        kCreate, "keys and done_key", keys));
  }
  return std::make_unique<RewardsToGo>(
      RewardsToGo::Parts{.name = "Reward2Go",
                         .values = OptionValues()
                                       .Double("gamma", options.gamma)
                                       .Texts("in_keys", options.in_keys)
                                       .Texts("out_keys", options.out_keys)
                                       .Text("done_key", options.done_key),
                         .is_inverse = true,
                         .gamma = options.gamma,
                         .in_keys = options.in_keys,
                         .out_keys = options.out_keys,
                         .done_key = options.done_key});
}

absl::StatusOr<std::unique_ptr<BatchTransform>> DensifyReward::Create(
    const Options& options) {
  constexpr absl::string_view kCreate = "DensifyReward::Create";
  RILL_RETURN_IF_ERROR(
      CheckFactor("DensifyReward::Create: discount", options.discount));
  const std::string& out_key = options.reward_key_out.empty()
                                   ? options.reward_key
                                   : options.reward_key_out;
  for (const std::string& key :
       {options.reward_key, options.done_key, out_key}) {
    RILL_RETURN_IF_ERROR(CheckKey(key)) << kCreate << ": keys";
  }
  if (options.done_key == options.reward_key || options.done_key == out_key) {
    return InvalidArgument(kCreate, ": done_key: got \"", options.done_key,
                           "\", want another key than the rewards'");
  }
  return std::make_unique<RewardsToGo>(RewardsToGo::Parts{
      .name = "DensifyReward",
      .values = OptionValues()
                    .Text("reward_key", options.reward_key)
                    .Text("done_key", options.done_key)
                    .Text("reward_key_out", options.reward_key_out)
                    .Double("discount", options.discount),
      .is_inverse = false,
      .gamma = options.discount,
      .in_keys = {options.reward_key},
      .out_keys = {out_key},
      .done_key = options.done_key});
}

}  // namespace rill
