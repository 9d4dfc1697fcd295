// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/episodes/policy_age_filter.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/ops/masked_select.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/leaves.h"

namespace rill {
namespace {

constexpr absl::string_view kNewest = "newest";
// Below every version: the state before the first batch.
constexpr int64_t kOldest = std::numeric_limits<int64_t>::min();

// The integers that Cast takes.
bool IsVersion(DType dtype) {
  return dtype == DType::kUInt8 || dtype == DType::kInt8 ||
         dtype == DType::kInt16 || dtype == DType::kInt32 ||
         dtype == DType::kInt64;
}

absl::StatusOr<TensorDict> StateOf(int64_t newest) {
  RILL_ASSIGN_OR_RETURN(Tensor number,
                        Tensor::From<int64_t>({newest}, Shape()));
  return TensorDict::Create({}, {{kNewest, std::move(number)}});
}

class PolicyAgeFilterTransform final : public BatchTransform {
 public:
  explicit PolicyAgeFilterTransform(const PolicyAgeFilter::Options& options)
      : options_(options) {}

  absl::string_view name() const override { return "PolicyAgeFilter"; }
  OptionValues option_values() const override {
    return OptionValues()
        .Int("max_policy_lag", options_.max_policy_lag)
        .Function("current_version", options_.current_version != nullptr)
        .Text("policy_version_key", options_.policy_version_key)
        .Bool("strict", options_.strict);
  }

  bool is_stateful() const override { return true; }
  absl::StatusOr<TensorDict> InitialState() const override {
    return StateOf(kOldest);
  }

  absl::Status Forward(TensorDict* batch, TensorDict* state) const override {
    const std::string& key = options_.policy_version_key;
    // Nothing to drop; the state stays, as no version was seen.
    const bool has_rows = batch->batch_shape().rank() > 0 &&
                          batch->batch_shape().num_elements() > 0;
    if (!has_rows || (!options_.strict && batch->Find(key) == nullptr)) {
      return absl::OkStatus();
    }
    RILL_ASSIGN_OR_RETURN(
        const Tensor leaf,
        transforms_internal::ReadLeaf("PolicyAgeFilter::Forward", key, *batch));
    if (!IsVersion(leaf.dtype()) || leaf.num_elements() == 0) {
      return InvalidArgument(
          "PolicyAgeFilter::Forward: \"", key, "\": got ",
          DTypeName(leaf.dtype()), leaf.shape().ToString(),
          ", want uint8, int8, int16, int32 or int64, at least "
          "one a row");
    }
    RILL_ASSIGN_OR_RETURN(const Tensor versions, Cast(leaf, DType::kInt64));
    TensorDict after = *state;
    RILL_ASSIGN_OR_RETURN(const int64_t current, Current(versions, &after));
    RILL_RETURN_IF_ERROR(Filter(current, versions, batch));
    *state = std::move(after);
    return absl::OkStatus();
  }

  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override {
    const std::string& key = options_.policy_version_key;
    if (!options_.strict && spec.Find(key) == nullptr) return spec;
    constexpr absl::string_view kSpec = "PolicyAgeFilter::ForwardSpec";
    RILL_ASSIGN_OR_RETURN(const LeafSpec leaf,
                          transforms_internal::FindSpec(kSpec, key, spec));
    if (IsVersion(leaf.dtype)) return spec;
    return InvalidArgument(kSpec, ": \"", key, "\": got ", leaf.ToString(),
                           ", want uint8, int8, int16, int32 or int64");
  }

 private:
  // The state's newest version grows by what this batch shows, before it is
  // filtered: a batch's own newest row is never too old.
  absl::StatusOr<int64_t> Current(const Tensor& versions,
                                  TensorDict* state) const {
    if (options_.current_version != nullptr) return options_.current_version();
    RILL_ASSIGN_OR_RETURN(const Tensor number, state->Get(kNewest));
    RILL_ASSIGN_OR_RETURN(const int64_t before, number.Item<int64_t>());
    const int64_t* const begin = versions.data<int64_t>();
    const int64_t newest =
        *std::max_element(begin, begin + versions.num_elements());
    if (newest <= before) return before;
    RILL_ASSIGN_OR_RETURN(*state, StateOf(newest));
    return newest;
  }

  absl::Status Filter(int64_t current, const Tensor& versions,
                      TensorDict* batch) const {
    // The oldest version that stays. kOldest + lag does not overflow, as the
    // lag is >= 0; current - lag might.
    const int64_t oldest = current < kOldest + options_.max_policy_lag
                               ? kOldest
                               : current - options_.max_policy_lag;
    const int64_t rows = batch->batch_shape()[0];
    const int64_t width = versions.num_elements() / rows;
    RILL_ASSIGN_OR_RETURN(const Tensor stays,
                          Tensor::Empty(DType::kBool, {rows}));
    bool all_stay = true;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t* const begin = versions.data<int64_t>() + row * width;
      // The oldest version of a row counts: a sequence is as old as its first
      // step.
      stays.data<bool>()[row] =
          *std::min_element(begin, begin + width) >= oldest;
      all_stay = all_stay && stays.data<bool>()[row];
    }
    if (all_stay) return absl::OkStatus();
    RILL_ASSIGN_OR_RETURN(*batch, ops::MaskedSelect(*batch, stays));
    return absl::OkStatus();
  }

  const PolicyAgeFilter::Options options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchTransform>> PolicyAgeFilter::Create(
    const Options& options) {
  if (options.max_policy_lag < 0) {
    return InvalidArgument("PolicyAgeFilter::Create: max_policy_lag: got ",
                           options.max_policy_lag, ", want >= 0");
  }
  RILL_RETURN_IF_ERROR(CheckKey(options.policy_version_key))
      << "PolicyAgeFilter::Create: policy_version_key";
  return std::make_unique<PolicyAgeFilterTransform>(options);
}

}  // namespace rill
