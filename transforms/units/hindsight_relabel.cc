// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/units/hindsight_relabel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/device.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/row_copy.h"
#include "rill/device/stream.h"
#include "rill/device/uploads/stream_uploads.h"
#include "rill/slots/plan_layout.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/units/hindsight_kernels.h"
#include "rill/transforms/units/unit_input.h"
#include "rill/transforms/units/unit_work.h"

namespace rill {
namespace {

using transforms_internal::CheckLeaf;
using transforms_internal::HindsightDoneKernel;
using transforms_internal::ReadLeaf;
using transforms_internal::UnitWork;
using transforms_internal::UpdateLeaf;

constexpr absl::string_view kPlanReads = "HindsightRelabel::PlanReads";
constexpr absl::string_view kBatchSpec = "HindsightRelabel::BatchSpec";
constexpr absl::string_view kApply = "HindsightRelabel::Apply";
constexpr absl::string_view kEnqueue = "HindsightRelabel::Enqueue";

// Copies rows at[k] of `batch`, each once, and k of `rows`: to `rows`, or back.
absl::Status MoveRows(const Tensor& batch, absl::Span<const int64_t> at,
                      const Tensor& rows, bool back, const Stream& stream) {
  const int64_t width = rows.size_bytes() / static_cast<int64_t>(at.size());
  if (width == 0) return absl::OkStatus();
  const RowColumn column = {.table = batch.raw_data(),
                            .table_stride = width,
                            .batch = rows.raw_data(),
                            .batch_stride = width,
                            .width = width};
  const auto columns = absl::MakeConstSpan(&column, 1);
  const int index = stream.device().index;
  return back ? stream.backend()->ScatterRows(index, columns, at,
                                              stream.handle())
              : stream.backend()->GatherRows(index, columns, at,
                                             stream.handle());
}

// Row k of `rows` becomes row at[k] of `batch`; rows have the same shape.
void PutRows(const Tensor& rows, absl::Span<const int64_t> at,
             const Tensor& batch) {
  const size_t width =
      static_cast<size_t>(rows.size_bytes()) / std::max<size_t>(at.size(), 1);
  if (width == 0) return;
  for (size_t k = 0; k < at.size(); ++k) {
    std::memcpy(batch.raw_data() + static_cast<size_t>(at[k]) * width,
                rows.raw_data() + k * width, width);
  }
}

// The rows at[k] of `batch` as a tensor of their own. `at` is not empty.
absl::StatusOr<Tensor> TakeRows(const Tensor& batch,
                                absl::Span<const int64_t> at) {
  const Shape shape =
      batch.shape().WithSize(0, static_cast<int64_t>(at.size()));
  RILL_ASSIGN_OR_RETURN(const Tensor rows, Tensor::Empty(batch.dtype(), shape));
  const size_t width = static_cast<size_t>(rows.size_bytes()) / at.size();
  if (width == 0) return rows;
  for (size_t k = 0; k < at.size(); ++k) {
    std::memcpy(rows.raw_data() + k * width,
                batch.raw_data() + static_cast<size_t>(at[k]) * width, width);
  }
  return rows;
}

UnitTransform::Traits TraitsOf(const HindsightRelabel::Options& options) {
  return {.name = "HindsightRelabel",
          .options = OptionValues()
                         .Text("achieved_key", options.achieved_key)
                         .Text("desired_key", options.desired_key)
                         .Text("reward_key", options.reward_key)
                         .Function("terminated", options.terminated != nullptr)
                         .Text("terminated_key", options.terminated_key)
                         .Text("truncated_key", options.truncated_key)
                         .Text("done_key", options.done_key)};
}

class HindsightRelabelTransform final : public UnitTransform {
 public:
  explicit HindsightRelabelTransform(const HindsightRelabel::Options& options)
      : UnitTransform(TraitsOf(options)),
        options_(options),
        next_desired_key_(absl::StrCat("next/", options.desired_key)) {}

  absl::Status CheckLayout(const PlanLayout& plans) const override {
    // Single rows, and one list of goals: what the unit of hindsight plans.
    const PlanLayout wanted = {.context = {{PlanLayout::kGoals, 1}}};
    if (plans == wanted) return absl::OkStatus();
    return InvalidArgument(
        "HindsightRelabel: rows beside those of the batch: got a unit that "
        "plans ",
        plans.ContextString(), ", want ", wanted.ContextString());
  }

  absl::StatusOr<Reads> PlanReads(const TensorDictSpec& rows) const override {
    RILL_RETURN_IF_ERROR(CheckRows(kPlanReads, rows));
    Reads reads;
    // All leaves of the batch's rows are read; of the goals' rows only the
    // achieved goal.
    reads.rows.batch = rows.LeafKeys();
    reads.context.resize(1);
    reads.context[0].apart = {options_.achieved_key};
    return reads;
  }

  // The functions may say anything, so rewards lose their bounds. Desired goals
  // become achieved ones and keep their domain only if both have the same.
  absl::StatusOr<TensorDictSpec> BatchSpec(
      const TensorDictSpec& rows) const override {
    RILL_RETURN_IF_ERROR(CheckRows(kBatchSpec, rows));
    TensorDictSpec batch = rows;
    const LeafSpec& achieved = *rows.Find(options_.achieved_key);
    for (const std::string& key : {options_.desired_key, next_desired_key_}) {
      const LeafSpec* desired = rows.Find(key);
      if (desired == nullptr || *desired == achieved) continue;
      RILL_RETURN_IF_ERROR(
          batch.Set(key, LeafSpec::Unbounded(desired->dtype, desired->shape)));
    }
    const LeafSpec& reward = *rows.Find(options_.reward_key);
    RILL_RETURN_IF_ERROR(batch.Set(
        options_.reward_key, LeafSpec::Unbounded(reward.dtype, reward.shape)));
    if (options_.terminated == nullptr) return batch;
    for (const std::string& key :
         {options_.terminated_key, options_.done_key}) {
      if (rows.Find(key) == nullptr) continue;
      RILL_RETURN_IF_ERROR(batch.Set(key, LeafSpec::Binary({1})));
    }
    return batch;
  }

  absl::Status Apply(const SamplePlan& plan, const TensorDict& rows,
                     absl::Span<const TensorDict> context,
                     TensorDict* batch) const override {
    RILL_RETURN_IF_ERROR(transforms_internal::CheckInput(kApply, plan, 1, rows,
                                                         context, *batch));
    RILL_RETURN_IF_ERROR(transforms_internal::CheckOneRowADraw(kApply, plan));
    // Segments name the draws that are relabelled: draw i is row i here.
    const std::vector<int64_t>& relabelled = plan.context[0].segments;
    RILL_RETURN_IF_ERROR(CheckRelabelled(plan));
    if (relabelled.empty()) return absl::OkStatus();
    RILL_ASSIGN_OR_RETURN(const Tensor achieved,
                          ReadLeaf(kApply, options_.achieved_key, *batch));
    RILL_ASSIGN_OR_RETURN(
        Tensor goals,
        ReadLeaf(kApply, options_.achieved_key, achieved.dtype(),
                 context[0].batch_shape().Concat(achieved.shape().Suffix(1)),
                 context[0]));
    // The list may have rows behind those of the plan.
    RILL_ASSIGN_OR_RETURN(
        goals, goals.Slice(0, 0, static_cast<int64_t>(relabelled.size())));
    // The user's functions get the relabelled rows only, as tensors of their
    // own.
    RILL_ASSIGN_OR_RETURN(const Tensor own, TakeRows(achieved, relabelled));
    for (const std::string& key : {options_.desired_key, next_desired_key_}) {
      if (key != options_.desired_key && batch->Find(key) == nullptr) continue;
      RILL_ASSIGN_OR_RETURN(
          const Tensor desired,
          UpdateLeaf(kApply, key, achieved.dtype(), achieved.shape(), batch));
      PutRows(goals, relabelled, desired);
    }
    RILL_RETURN_IF_ERROR(Ask(options_.reward, "reward", options_.reward_key,
                             own, goals, relabelled, batch));
    if (options_.terminated == nullptr) return absl::OkStatus();
    RILL_RETURN_IF_ERROR(Ask(options_.terminated, "terminated",
                             options_.terminated_key, own, goals, relabelled,
                             batch));
    return RaiseDone(relabelled, batch);
  }

  // As Apply. The functions are called when the rows are enqueued.
  absl::Status Enqueue(const SamplePlan& plan, const TensorDict& rows,
                       absl::Span<const TensorDict> context,
                       StreamUploads* uploads,
                       TensorDict* batch) const override {
    RILL_RETURN_IF_ERROR(transforms_internal::CheckInput(
        kEnqueue, plan, 1, rows, context, *batch, /*may_have_more_rows=*/true));
    RILL_RETURN_IF_ERROR(transforms_internal::CheckOneRowADraw(kEnqueue, plan));
    RILL_RETURN_IF_ERROR(CheckRelabelled(plan));
    const std::vector<int64_t>& relabelled = plan.context[0].segments;
    if (relabelled.empty()) return absl::OkStatus();
    const auto count = static_cast<int64_t>(relabelled.size());
    const Stream& stream = uploads->stream();
    UnitWork work(kEnqueue, uploads);
    RILL_ASSIGN_OR_RETURN(const Tensor achieved,
                          work.Read(options_.achieved_key, *batch));
    RILL_ASSIGN_OR_RETURN(
        Tensor goals,
        work.Read(options_.achieved_key, achieved.dtype(),
                  context[0].batch_shape().Concat(achieved.shape().Suffix(1)),
                  context[0]));
    RILL_ASSIGN_OR_RETURN(goals, goals.Slice(0, 0, count));
    RILL_ASSIGN_OR_RETURN(
        const Tensor own,
        Tensor::Empty(achieved.dtype(), achieved.shape().WithSize(0, count),
                      {stream.device(), MemoryKind::kDevice}));
    uploads->Keep(own.buffer());
    RILL_RETURN_IF_ERROR(
        MoveRows(achieved, relabelled, own, /*back=*/false, stream));
    for (const std::string& key : {options_.desired_key, next_desired_key_}) {
      if (key != options_.desired_key && batch->Find(key) == nullptr) continue;
      RILL_ASSIGN_OR_RETURN(
          const Tensor desired,
          work.Read(key, achieved.dtype(), achieved.shape(), *batch));
      RILL_RETURN_IF_ERROR(
          MoveRows(desired, relabelled, goals, /*back=*/true, stream));
    }
    const auto ask = [&](const Function& function, absl::string_view what,
                         const std::string& key) -> absl::Status {
      RILL_ASSIGN_OR_RETURN(const Tensor leaf, work.Read(key, *batch));
      RILL_ASSIGN_OR_RETURN(const Tensor made,
                            Answer(function, absl::StrCat(kEnqueue, ": ", what),
                                   key, own, goals, leaf));
      uploads->Keep(made.buffer());
      return MoveRows(leaf, relabelled, made, /*back=*/true, stream);
    };
    RILL_RETURN_IF_ERROR(ask(options_.reward, "reward", options_.reward_key));
    if (options_.terminated == nullptr) return absl::OkStatus();
    RILL_RETURN_IF_ERROR(
        ask(options_.terminated, "terminated", options_.terminated_key));
    if (batch->Find(options_.done_key) == nullptr) return absl::OkStatus();
    return EnqueueDone(relabelled, &work, *batch);
  }

 private:
  using Function = HindsightRelabel::Function;

  absl::Status EnqueueDone(absl::Span<const int64_t> relabelled, UnitWork* work,
                           const TensorDict& batch) const {
    const auto count = static_cast<int64_t>(relabelled.size());
    const Shape shape = batch.batch_shape().Concat({1});
    RILL_ASSIGN_OR_RETURN(const auto places,
                          work->uploads().Mirror<int64_t>(count));
    std::copy(relabelled.begin(), relabelled.end(), places.host);
    HindsightDoneKernel kernel = {.relabelled = places.device,
                                  .count = count,
                                  .num_rows = batch.batch_shape()[0]};
    RILL_ASSIGN_OR_RETURN(
        const Tensor done,
        work->Read(options_.done_key, DType::kBool, shape, batch));
    kernel.done = done.data<uint8_t>();
    RILL_ASSIGN_OR_RETURN(
        const Tensor terminated,
        work->Read(options_.terminated_key, DType::kBool, shape, batch));
    kernel.terminated = terminated.data<uint8_t>();
    if (batch.Find(options_.truncated_key) != nullptr) {
      RILL_ASSIGN_OR_RETURN(
          const Tensor truncated,
          work->Read(options_.truncated_key, DType::kBool, shape, batch));
      kernel.truncated = truncated.data<uint8_t>();
    }
    work->Launch(kernel, GridFor(count));
    return work->Run();
  }

  absl::Status CheckRows(absl::string_view caller,
                         const TensorDictSpec& rows) const {
    RILL_ASSIGN_OR_RETURN(
        const LeafSpec achieved,
        transforms_internal::FindSpec(caller, options_.achieved_key, rows));
    for (const std::string& key : {options_.desired_key, options_.reward_key}) {
      RILL_RETURN_IF_ERROR(
          transforms_internal::FindSpec(caller, key, rows).status());
    }
    for (const std::string& key : {options_.desired_key, next_desired_key_}) {
      const LeafSpec* desired = rows.Find(key);
      if (desired == nullptr || (desired->dtype == achieved.dtype &&
                                 desired->shape == achieved.shape)) {
        continue;
      }
      return transforms_internal::Misfit(
          caller, key, *desired,
          absl::StrCat("\"", options_.achieved_key, "\"'s ",
                       achieved.ToString()));
    }
    if (options_.terminated == nullptr) return absl::OkStatus();
    RILL_RETURN_IF_ERROR(transforms_internal::CheckIsFlag(
        caller, options_.terminated_key, rows));
    for (const std::string& key : {options_.truncated_key, options_.done_key}) {
      if (rows.Find(key) == nullptr) continue;
      RILL_RETURN_IF_ERROR(transforms_internal::CheckIsFlag(caller, key, rows));
    }
    return absl::OkStatus();
  }

  // One goal a draw, and a real one: segments go up strictly, so no draw has
  // two.
  static absl::Status CheckRelabelled(const SamplePlan& plan) {
    const SamplePlan::Context& goals = plan.context[0];
    bool is_right = goals.mask.empty();
    for (size_t i = 1; is_right && i < goals.segments.size(); ++i) {
      is_right = goals.segments[i - 1] < goals.segments[i];
    }
    if (is_right) return absl::OkStatus();
    return Internal(kApply, ": plan: got ", goals.rows.size(), " goals for ",
                    plan.draws.size(),
                    " draws, want at most one a draw, and no mask");
  }

  // What a function says of all relabelled rows, checked: it comes from the
  // user. `leaf` is the batch's.
  static absl::StatusOr<Tensor> Answer(const Function& function,
                                       absl::string_view caller,
                                       const std::string& key,
                                       const Tensor& achieved,
                                       const Tensor& goals,
                                       const Tensor& leaf) {
    absl::StatusOr<Tensor> answer = function(achieved, goals);
    RILL_RETURN_IF_ERROR(answer.status()) << caller;
    RILL_RETURN_IF_ERROR(
        CheckLeaf(caller, key, *answer, leaf.dtype(),
                  leaf.shape().WithSize(0, achieved.shape()[0])));
    if (answer->device() == leaf.device() && answer->is_contiguous()) {
      return answer;
    }
    return InvalidArgument(
        caller, ": got ", answer->DebugString(),
        ", want a contiguous tensor in ",
        leaf.is_host() ? "host memory" : leaf.device().ToString());
  }

  // Asks one function and puts its answer into the leaf.
  static absl::Status Ask(const HindsightRelabel::Function& function,
                          absl::string_view what, const std::string& key,
                          const Tensor& achieved, const Tensor& goals,
                          absl::Span<const int64_t> relabelled,
                          TensorDict* batch) {
    RILL_ASSIGN_OR_RETURN(const Tensor leaf, UpdateLeaf(kApply, key, batch));
    RILL_ASSIGN_OR_RETURN(const Tensor made,
                          Answer(function, absl::StrCat(kApply, ": ", what),
                                 key, achieved, goals, leaf));
    PutRows(made, relabelled, leaf);
    return absl::OkStatus();
  }

  // done = terminated or truncated in the relabelled rows; other rows keep what
  // is stored.
  absl::Status RaiseDone(absl::Span<const int64_t> relabelled,
                         TensorDict* batch) const {
    if (batch->Find(options_.done_key) == nullptr) return absl::OkStatus();
    const Shape shape = batch->batch_shape().Concat({1});
    RILL_ASSIGN_OR_RETURN(
        const Tensor done,
        UpdateLeaf(kApply, options_.done_key, DType::kBool, shape, batch));
    RILL_ASSIGN_OR_RETURN(
        const Tensor terminated,
        ReadLeaf(kApply, options_.terminated_key, DType::kBool, shape, *batch));
    Tensor truncated;
    if (batch->Find(options_.truncated_key) != nullptr) {
      RILL_ASSIGN_OR_RETURN(truncated, ReadLeaf(kApply, options_.truncated_key,
                                                DType::kBool, shape, *batch));
    }
    for (const int64_t row : relabelled) {
      done.data<uint8_t>()[row] =
          terminated.data<uint8_t>()[row] != 0 ||
          (truncated.is_valid() && truncated.data<uint8_t>()[row] != 0);
    }
    return absl::OkStatus();
  }

  const HindsightRelabel::Options options_;
  const std::string next_desired_key_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<UnitTransform>> HindsightRelabel::Create(
    const Options& options) {
  if (options.reward == nullptr) {
    return InvalidArgument(
        "HindsightRelabel::Create: reward: got none, want a function");
  }
  RILL_RETURN_IF_ERROR(transforms_internal::CheckKeys(
      "HindsightRelabel::Create", "keys",
      {options.achieved_key, options.desired_key, options.reward_key,
       options.terminated_key, options.truncated_key, options.done_key}));
  return std::make_unique<HindsightRelabelTransform>(options);
}

}  // namespace rill
