// SPDX-License-Identifier: Apache-2.0
// Windows are runs of positions of a draw (DrawRows): first the draw's rows of
// the batch, then those of the list behind it. All steps work in place on the
// batch's own leaves, in ascending order: what a row reads lies at its own
// position or behind it, and is not changed yet.
#include "rill/transforms/units/n_step_returns.h"

#include <algorithm>
#include <cstddef>

#include "rill/base/status_macros.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/units/draw_rows.h"
#include "rill/transforms/units/draw_walk.h"
#include "rill/transforms/units/n_step_kernels.h"
#include "rill/transforms/units/unit_input.h"
#include "rill/transforms/units/unit_work.h"

namespace rill {
namespace {

using transforms_internal::DrawRows;
using transforms_internal::DrawWalk;
using transforms_internal::NStepKernel;
using transforms_internal::ReadLeaf;
using transforms_internal::UpdateLeaf;
using transforms_internal::WriteLeaf;

constexpr int64_t kMaxSteps = int64_t{1} << 20;

// Rows that pad take the value of the row that they repeat: the first or the
// last real row of the draw.
template <typename T>
void FillPads(const DrawRows& rows, T* values, int64_t width) {
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t from = rows.first + rows.PositionOf(row);
    if (from == row) continue;
    std::copy_n(values + from * width, width, values + row * width);
  }
}

// Goes through rows in ascending order, so that the rewards behind a row are
// still the stored ones. The product of two floats is exact in double. This
// file is compiled without contraction, so that those of doubles are rounded
// everywhere alike.
template <typename T>
void SumRows(const SamplePlan& plan, const SamplePlan::Context& list,
             const std::vector<T>& powers, const T* behind,
             absl::Span<const int64_t> steps, int64_t width, T* rewards) {
  DrawWalk walk(plan, &list);
  for (DrawRows rows; walk.Next(&rows);) {
    for (int64_t row = rows.first; row <= rows.last; ++row) {
      T* const out = rewards + row * width;
      const int64_t position = row - rows.first;
      for (int64_t e = 0; e < width; ++e) {
        // The first reward has power 0, whose factor is 1.
        double sum = out[e];
        for (int64_t k = 1; k < steps[static_cast<size_t>(row)]; ++k) {
          const T* reward = rows.At(position + k, rewards, behind, width);
          sum += static_cast<double>(powers[static_cast<size_t>(k)]) *
                 static_cast<double>(reward[e]);
        }
        out[e] = static_cast<T>(sum);
      }
    }
    FillPads(rows, rewards, width);
  }
}

}  // namespace

NStepReturns::NStepReturns(const Options& options) : options_(options) {
  // By repeated products: the same on every machine, which pow is not.
  double power = 1;
  for (int64_t i = 0; i <= options.num_steps; ++i) {
    powers_.push_back(power);
    float_powers_.push_back(static_cast<float>(power));
    power *= options.gamma;
  }
}

OptionValues NStepReturns::option_values() const {
  return OptionValues()
      .Int("num_steps", options_.num_steps)
      .Double("gamma", options_.gamma)
      .Texts("reward_keys", options_.reward_keys)
      .Text("terminated_key", options_.terminated_key)
      .Text("truncated_key", options_.truncated_key)
      .Text("done_key", options_.done_key)
      .Text("steps_key", options_.steps_key)
      .Text("gamma_key", options_.gamma_key);
}

absl::Status NStepReturns::CheckRows(absl::string_view caller,
                                     const TensorDictSpec& rows) const {
  for (const std::string& key : options_.reward_keys) {
    RILL_RETURN_IF_ERROR(
        transforms_internal::FindFloat(caller, key, rows).status());
  }
  for (const std::string* flag : Flags()) {
    if (rows.Find(*flag) == nullptr) continue;
    RILL_RETURN_IF_ERROR(transforms_internal::CheckIsFlag(caller, *flag, rows));
  }
  for (const std::string& key : {options_.steps_key, options_.gamma_key}) {
    RILL_RETURN_IF_ERROR(transforms_internal::CheckIsNew(caller, key, rows));
  }
  return absl::OkStatus();
}

bool NStepReturns::IsSummed(absl::string_view key) const {
  for (const std::string* flag : Flags()) {
    if (*flag == key) return true;
  }
  return std::find(options_.reward_keys.begin(), options_.reward_keys.end(),
                   key) != options_.reward_keys.end();
}

absl::Status NStepReturns::ExtendSpec(const TensorDictSpec& rows,
                                      TensorDictSpec* batch) const {
  for (const std::string& key : options_.reward_keys) {
    LeafSpec sum = *rows.Find(key);
    // Sums of more than one reward leave the bounds of one.
    if (options_.num_steps > 1) {
      sum = LeafSpec::Unbounded(sum.dtype, sum.shape);
    }
    RILL_RETURN_IF_ERROR(batch->Set(key, sum));
  }
  RILL_RETURN_IF_ERROR(
      batch->Set(options_.steps_key,
                 LeafSpec::Bounded(DType::kInt64, {1}, 1,
                                   static_cast<double>(options_.num_steps))));
  return batch->Set(options_.gamma_key,
                    LeafSpec::Bounded(DType::kFloat32, {1}, 0, 1));
}

absl::Status NStepReturns::Apply(absl::string_view caller,
                                 const SamplePlan& plan,
                                 const SamplePlan::Context& list,
                                 const TensorDict& behind,
                                 TensorDict* batch) const {
  // Counts are needed by all, and read the flags before TakeFlags changes them.
  RILL_ASSIGN_OR_RETURN(const absl::Span<const int64_t> steps,
                        CountSteps(caller, plan, list, behind, batch));
  for (const std::string& key : options_.reward_keys) {
    RILL_RETURN_IF_ERROR(Sum(caller, key, plan, list, behind, steps, batch));
  }
  for (const std::string* key : Flags()) {
    RILL_RETURN_IF_ERROR(
        TakeFlags(caller, *key, plan, list, behind, steps, batch));
  }
  return absl::OkStatus();
}

// A truncation alone does not end the sum: the unit has cut windows at the ends
// of trajectories.
const std::string* NStepReturns::StopKey(const TensorDict& behind) const {
  for (const std::string* key :
       {&options_.terminated_key, &options_.done_key}) {
    if (behind.Find(*key) != nullptr) return key;
  }
  return nullptr;
}

// How many steps each window has, up to the first that is terminated; with the
// discounts. Whether a flag is stored is read off `behind`, which has stored
// leaves only: a batch that is used again holds those that marks have added
// too.
absl::StatusOr<absl::Span<const int64_t>> NStepReturns::CountSteps(
    absl::string_view caller, const SamplePlan& plan,
    const SamplePlan::Context& list, const TensorDict& behind,
    TensorDict* batch) const {
  const int64_t n = batch->batch_shape()[0];
  const std::string* const stop_key = StopKey(behind);
  Tensor own;
  Tensor others;
  const bool can_stop = stop_key != nullptr;
  if (can_stop) {
    RILL_ASSIGN_OR_RETURN(
        own, ReadLeaf(caller, *stop_key, DType::kBool, {n, 1}, *batch));
    RILL_ASSIGN_OR_RETURN(others,
                          ReadLeaf(caller, *stop_key, DType::kBool,
                                   behind.batch_shape().Concat({1}), behind));
  }
  RILL_ASSIGN_OR_RETURN(const Tensor steps,
                        WriteLeaf(options_.steps_key, DType::kInt64, {n, 1},
                                  {.is_passed_in = true}, batch));
  RILL_ASSIGN_OR_RETURN(const Tensor gammas,
                        WriteLeaf(options_.gamma_key, DType::kFloat32, {n, 1},
                                  {.is_passed_in = true}, batch));
  int64_t* const counts = steps.data<int64_t>();
  const uint8_t* const own_flags = can_stop ? own.data<uint8_t>() : nullptr;
  const uint8_t* const other_flags =
      can_stop ? others.data<uint8_t>() : nullptr;
  DrawWalk walk(plan, &list);
  for (DrawRows rows; walk.Next(&rows);) {
    for (int64_t row = rows.first; row <= rows.last; ++row) {
      const int64_t position = row - rows.first;
      // A window ends with its draw's run, which the unit has cut at the
      // trajectory's end.
      const int64_t most =
          std::min(options_.num_steps, rows.num_positions() - position);
      int64_t count = 1;
      // The step before is the last one if it stops: its own reward still
      // counts.
      while (count < most &&
             !(can_stop && *rows.At(position + count - 1, own_flags,
                                    other_flags, 1) != 0)) {
        ++count;
      }
      counts[row] = count;
    }
    FillPads(rows, counts, 1);
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      gammas.data<float>()[row] =
          float_powers_[static_cast<size_t>(counts[row])];
    }
  }
  return steps.Flat<int64_t>();
}

absl::Status NStepReturns::Sum(absl::string_view caller, absl::string_view key,
                               const SamplePlan& plan,
                               const SamplePlan::Context& list,
                               const TensorDict& behind,
                               absl::Span<const int64_t> steps,
                               TensorDict* batch) const {
  RILL_ASSIGN_OR_RETURN(const Tensor own, UpdateLeaf(caller, key, batch));
  const Shape reward = own.shape().Suffix(1);
  // The list may have more rows than the plan; DrawRows indexes the plan's.
  RILL_ASSIGN_OR_RETURN(const Tensor others,
                        ReadLeaf(caller, key, own.dtype(),
                                 behind.batch_shape().Concat(reward), behind));
  const int64_t width = reward.num_elements();
  if (own.dtype() == DType::kFloat32) {
    SumRows<float>(plan, list, float_powers_, others.data<float>(), steps,
                   width, own.data<float>());
  } else if (own.dtype() == DType::kFloat64) {
    SumRows<double>(plan, list, powers_, others.data<double>(), steps, width,
                    own.data<double>());
  } else {
    return InvalidArgument(caller, ": \"", key, "\": got ",
                           DTypeName(own.dtype()), ", want float32 or float64");
  }
  return absl::OkStatus();
}

// The flags of the last step that a window counts. Ascending and in place: that
// step is at the row or behind it, so its flag is still the stored one.
absl::Status NStepReturns::TakeFlags(
    absl::string_view caller, absl::string_view key, const SamplePlan& plan,
    const SamplePlan::Context& list, const TensorDict& behind,
    absl::Span<const int64_t> steps, TensorDict* batch) {
  if (behind.Find(key) == nullptr) return absl::OkStatus();
  const int64_t n = batch->batch_shape()[0];
  RILL_ASSIGN_OR_RETURN(const Tensor own,
                        UpdateLeaf(caller, key, DType::kBool, {n, 1}, batch));
  RILL_ASSIGN_OR_RETURN(const Tensor others,
                        ReadLeaf(caller, key, DType::kBool,
                                 behind.batch_shape().Concat({1}), behind));
  uint8_t* const flags = own.data<uint8_t>();
  DrawWalk walk(plan, &list);
  for (DrawRows rows; walk.Next(&rows);) {
    for (int64_t row = rows.first; row <= rows.last; ++row) {
      const int64_t position = row - rows.first;
      flags[row] =
          *rows.At<uint8_t>(position + steps[static_cast<size_t>(row)] - 1,
                            flags, others.data<uint8_t>(), 1);
    }
    FillPads(rows, flags, 1);
  }
  return absl::OkStatus();
}

absl::Status NStepReturns::Enqueue(absl::string_view caller,
                                   const SamplePlan& plan,
                                   const SamplePlan::Context& list,
                                   const TensorDict& behind,
                                   transforms_internal::UnitWork* work,
                                   TensorDict* batch) const {
  const int64_t n = batch->batch_shape()[0];
  RILL_ASSIGN_OR_RETURN(const auto draws,
                        work->uploads().Mirror<DrawRows>(
                            static_cast<int64_t>(plan.draws.size())));
  NStepKernel kernel = {.draws = draws.device,
                        .num_draws = static_cast<int64_t>(plan.draws.size()),
                        .num_rows = n,
                        .num_behind = behind.batch_shape()[0],
                        .one_thread_a_draw = plan.rows.empty(),
                        .num_steps = options_.num_steps,
                        .gamma = options_.gamma};
  DrawWalk walk(plan, &list);
  for (DrawRows rows; walk.Next(&rows);) {
    draws.host[rows.draw] = rows;
    kernel.max_rows = std::max(kernel.max_rows, rows.end - rows.begin);
  }
  const auto read_behind = [&](absl::string_view key, const Tensor& own) {
    return work->Read(key, own.dtype(),
                      behind.batch_shape().Concat(own.shape().Suffix(1)),
                      behind);
  };
  const auto read_flags = [&](absl::string_view key) {
    return work->Read(key, DType::kBool, {n, 1}, *batch);
  };
  if (const std::string* const key = StopKey(behind); key != nullptr) {
    RILL_ASSIGN_OR_RETURN(const Tensor own, read_flags(*key));
    RILL_ASSIGN_OR_RETURN(const Tensor others, read_behind(*key, own));
    kernel.stops = own.data<uint8_t>();
    kernel.behind_stops = others.data<uint8_t>();
  }
  RILL_ASSIGN_OR_RETURN(
      const Tensor steps,
      work->Write(options_.steps_key, DType::kInt64, {n, 1}, batch));
  RILL_ASSIGN_OR_RETURN(
      const Tensor gammas,
      work->Write(options_.gamma_key, DType::kFloat32, {n, 1}, batch));
  kernel.counts = steps.data<int64_t>();
  kernel.gammas = gammas.data<float>();
  // Counts are needed by all, and read the flags before those change.
  std::vector<NStepKernel::Leaf> leaves(1);
  for (const std::string& key : options_.reward_keys) {
    RILL_ASSIGN_OR_RETURN(const Tensor own, work->Read(key, *batch));
    RILL_ASSIGN_OR_RETURN(const Tensor others, read_behind(key, own));
    if (!transforms_internal::IsFloat32Or64(own.dtype())) {
      return InvalidArgument(caller, ": \"", key, "\": got ",
                             DTypeName(own.dtype()),
                             ", want float32 or float64");
    }
    leaves.push_back({.kind = own.dtype() == DType::kFloat32
                                  ? NStepKernel::Kind::kSumFloat
                                  : NStepKernel::Kind::kSumDouble,
                      .width = own.shape().Suffix(1).num_elements(),
                      .own = own.raw_data(),
                      .behind = others.raw_data()});
  }
  for (const std::string* key : Flags()) {
    if (behind.Find(*key) == nullptr) continue;
    RILL_ASSIGN_OR_RETURN(const Tensor own, read_flags(*key));
    RILL_ASSIGN_OR_RETURN(const Tensor others, read_behind(*key, own));
    leaves.push_back({.kind = NStepKernel::Kind::kFlags,
                      .own = own.raw_data(),
                      .behind = others.raw_data()});
  }
  for (size_t first = 0; n > 0 && first < leaves.size();
       first += NStepKernel::kMaxLeaves) {
    kernel.num_leaves = 0;
    for (size_t i = first;
         i < std::min(leaves.size(), first + NStepKernel::kMaxLeaves); ++i) {
      kernel.leaves[kernel.num_leaves++] = leaves[i];
    }
    work->Launch(kernel, kernel.grid());
  }
  return absl::OkStatus();
}

absl::StatusOr<NStepReturns> NStepReturns::Create(const Options& options) {
  if (options.num_steps < 1 || options.num_steps > kMaxSteps) {
    return InvalidArgument("NStepReturns::Create: num_steps: got ",
                           options.num_steps, ", want 1 .. ", kMaxSteps);
  }
  if (!(options.gamma > 0 && options.gamma <= 1)) {
    return InvalidArgument("NStepReturns::Create: gamma: got ", options.gamma,
                           ", want (0, 1]");
  }
  RILL_RETURN_IF_ERROR(transforms_internal::CheckSomeKeys(
      "NStepReturns::Create", "reward_keys", options.reward_keys));
  std::vector<std::string> keys = options.reward_keys;
  for (const std::string* key :
       {&options.terminated_key, &options.truncated_key, &options.done_key,
        &options.steps_key, &options.gamma_key}) {
    keys.push_back(*key);
  }
  RILL_RETURN_IF_ERROR(
      transforms_internal::CheckKeys("NStepReturns::Create", "keys", keys));
  return NStepReturns(options);
}

}  // namespace rill
