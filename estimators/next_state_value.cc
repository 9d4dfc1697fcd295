// SPDX-License-Identifier: Apache-2.0
#include "rill/estimators/next_state_value.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/status_macros.h"
#include "rill/estimators/agent_lines.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/rows/group_ends.h"
#include "rill/transforms/structure/key_paths.h"
#include "rill/transforms/timeline/timeline.h"

namespace rill {
namespace {

constexpr absl::string_view kName = "NextStateValue";

std::string Below(absl::string_view key) { return absl::StrCat("next/", key); }

class NextStateValueTransform final : public BatchTransform {
 public:
  explicit NextStateValueTransform(NextStateValue::Options options)
      : options_(std::move(options)) {}

  absl::string_view name() const override { return kName; }
  OptionValues option_values() const override {
    return OptionValues()
        .Texts("state_keys", options_.state_keys)
        .Text("value_key", options_.value_key)
        .Text("next_value_key", options_.next_value_key)
        .Text("done_key", options_.done_key)
        .Text("terminated_key", options_.terminated_key);
  }

  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& all) const override {
    const LeafSpec* const values = all.Find(options_.value_key);
    const int64_t agents =
        values == nullptr
            ? 0
            : estimators_internal::NumAgents(options_.value_key, values->shape);
    RILL_ASSIGN_OR_RETURN(
        const TensorDictSpec spec,
        estimators_internal::SpecOfAgent(all, LeavesOfAgents(all), agents));
    const std::string caller = absl::StrCat(kName, "::ForwardSpec");
    RILL_ASSIGN_OR_RETURN(
        const LeafSpec value,
        transforms_internal::FindReward(caller, options_.value_key, spec));
    RILL_RETURN_IF_ERROR(
        transforms_internal::CheckHasEnds(caller, options_.done_key, spec));
    RILL_RETURN_IF_ERROR(transforms_internal::CheckStopsAtGroupEnds(
        caller, options_.value_key, options_.done_key, spec));
    RILL_RETURN_IF_ERROR(transforms_internal::CheckIsFlag(
        caller, options_.terminated_key, spec));
    for (const std::string& key : options_.state_keys) {
      RILL_RETURN_IF_ERROR(
          transforms_internal::FindSpec(caller, Below(key), spec).status());
    }
    TensorDictSpec after = all;
    RILL_RETURN_IF_ERROR(
        after.Set(options_.next_value_key,
                  LeafSpec::Unbounded(value.dtype, values->shape)));
    return after;
  }

  absl::Status Forward(TensorDict* batch,
                       TensorDict* /*state*/) const override {
    const Shape& shape = batch->batch_shape();
    RILL_ASSIGN_OR_RETURN(const int64_t time,
                          transforms_internal::NumSteps(kName, shape));
    RILL_ASSIGN_OR_RETURN(
        const Tensor value,
        transforms_internal::ReadLeaf(kName, options_.value_key, *batch));
    if (value.dtype() == DType::kFloat64) {
      return Fill<double>(value, time, batch);
    }
    return Fill<float>(value, time, batch);
  }

 private:
  template <typename T>
  absl::Status Fill(const Tensor& value, int64_t time,
                    TensorDict* batch) const {
    const int64_t agents =
        estimators_internal::NumAgents(options_.value_key, *batch);
    // Behind the batch's shape; a row has `width` numbers.
    const Shape trailing = agents == 0 ? Shape({1}) : Shape({agents, 1});
    const int64_t width = trailing.num_elements();
    const Shape one = batch->batch_shape().Concat(trailing);
    RILL_RETURN_IF_ERROR(transforms_internal::CheckLeaf(
        kName, options_.value_key, value, DTypeOf<T>, one));
    std::vector<int64_t> ends;
    RILL_RETURN_IF_ERROR(FindEnds(time, agents, *batch, &ends));
    RILL_ASSIGN_OR_RETURN(const Tensor terminated,
                          ReadTerminated(trailing, *batch));
    RILL_ASSIGN_OR_RETURN(const Tensor end_values,
                          AskCritic(ends, trailing, value.dtype(), *batch));
    // The batch changes when nothing can fail any more.
    RILL_RETURN_IF_ERROR(transforms_internal::CheckMaySet(
        kName, options_.next_value_key, *batch));
    RILL_ASSIGN_OR_RETURN(
        const Tensor next,
        transforms_internal::WriteLeaf(options_.next_value_key, value.dtype(),
                                       one, {}, batch));
    const int64_t numbers = value.num_elements();
    const T* const from = value.data<T>();
    T* const to = next.data<T>();
    for (int64_t i = 0; i + width < numbers; ++i) to[i] = from[i + width];
    for (size_t i = 0; i < ends.size(); ++i) {
      std::copy_n(end_values.data<T>() + static_cast<int64_t>(i) * width, width,
                  to + ends[i] * width);
    }
    const bool* const is_terminated = terminated.data<bool>();
    for (int64_t i = 0; i < numbers; ++i) {
      if (is_terminated[i]) to[i] = 0;
    }
    return absl::OkStatus();
  }

  std::vector<std::string> LeavesOfAgents(const TensorDictSpec& rows) const {
    return estimators_internal::WithEnds(
        {options_.value_key, options_.terminated_key}, options_.done_key, rows);
  }

  // Flags of the shape of the values; those of a lane are each agent's.
  absl::StatusOr<Tensor> ReadTerminated(const Shape& trailing,
                                        const TensorDict& batch) const {
    const Shape& rows = batch.batch_shape();
    if (trailing.rank() == 1 ||
        estimators_internal::NumAgents(options_.terminated_key, batch) != 0) {
      return transforms_internal::ReadLeaf(kName, options_.terminated_key,
                                           DType::kBool, rows.Concat(trailing),
                                           batch);
    }
    RILL_ASSIGN_OR_RETURN(
        const Tensor flags,
        transforms_internal::ReadLeaf(kName, options_.terminated_key,
                                      DType::kBool, rows.Concat({1}), batch));
    RILL_ASSIGN_OR_RETURN(const Tensor a_group, flags.Unsqueeze(rows.rank()));
    RILL_ASSIGN_OR_RETURN(const Tensor all,
                          a_group.Expand(rows.Concat(trailing)));
    return all.Contiguous();
  }

  // Rows whose next state is not that of the row behind, terminated ones too.
  // With several agents it is enough that it is so for one of them.
  absl::Status FindEnds(int64_t time, int64_t agents, const TensorDict& batch,
                        std::vector<int64_t>* ends) const {
    std::vector<bool> is_end(
        static_cast<size_t>(batch.batch_shape().num_elements()));
    const std::vector<std::string> keys =
        agents == 0 ? std::vector<std::string>()
                    : LeavesOfAgents(TensorDictSpec::Of(batch));
    TensorDict lines;
    for (int64_t agent = 0; agent < std::max<int64_t>(agents, 1); ++agent) {
      if (agents > 0) {
        RILL_ASSIGN_OR_RETURN(lines, estimators_internal::LinesOfAgent(
                                         batch, keys, agents, agent));
      }
      RILL_ASSIGN_OR_RETURN(
          const Tensor stops,
          transforms_internal::ReadStops(kName, options_.done_key,
                                         agents == 0 ? batch : lines));
      const bool* const stop = stops.data<bool>();
      for (size_t i = 0; i < is_end.size(); ++i) {
        if (stop[i]) is_end[i] = true;
      }
    }
    for (int64_t i = 0; i < std::ssize(is_end); ++i) {
      if (is_end[i] || (i + 1) % time == 0) ends->push_back(i);
    }
    return absl::OkStatus();
  }

  // The values of the states behind these rows.
  absl::StatusOr<Tensor> AskCritic(const std::vector<int64_t>& rows,
                                   const Shape& trailing, DType dtype,
                                   const TensorDict& batch) const {
    const int64_t count = static_cast<int64_t>(rows.size());
    const Shape& shape = batch.batch_shape();
    TensorDict all(Shape{shape.num_elements()});
    for (const std::string& key : options_.state_keys) {
      RILL_ASSIGN_OR_RETURN(const Tensor leaf, transforms_internal::ReadLeaf(
                                                   kName, Below(key), batch));
      RILL_ASSIGN_OR_RETURN(Tensor flat,
                            leaf.Reshape(all.batch_shape().Concat(
                                leaf.shape().Suffix(shape.rank()))));
      RILL_RETURN_IF_ERROR(all.Set(key, std::move(flat)));
    }
    const Shape wanted = Shape({count}).Concat(trailing);
    RILL_ASSIGN_OR_RETURN(Tensor values, Tensor::Zeros(dtype, wanted));
    if (count == 0) return values;
    RILL_ASSIGN_OR_RETURN(const TensorDict states, all.Gather(rows));
    RILL_RETURN_IF_ERROR(CatchExceptions(
        [&] { return options_.critic(states, &values); }, "the critic"))
        << kName << ": the critic";
    RILL_RETURN_IF_ERROR(transforms_internal::CheckLeaf(
        kName, "values of the critic", values, dtype, wanted));
    return values.Contiguous();
  }

  const NextStateValue::Options options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchTransform>> NextStateValue::Create(
    Options options) {
  constexpr absl::string_view kCaller = "NextStateValue::Create";
  if (options.critic == nullptr) {
    return InvalidArgument(kCaller, ": critic: got null, want a function");
  }
  RILL_RETURN_IF_ERROR(transforms_internal::CheckRootKeys(kCaller, "state_keys",
                                                          options.state_keys));
  RILL_RETURN_IF_ERROR(transforms_internal::CheckKeys(
      kCaller, "keys",
      {options.value_key, options.next_value_key, options.done_key}));
  return std::make_unique<NextStateValueTransform>(std::move(options));
}

}  // namespace rill
