// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/conformance/fake_sample_reader.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

absl::StatusOr<TensorDict> GatherLeaves(const TensorDict& store,
                                        const std::vector<std::string>& keys,
                                        const std::vector<Slot>& slots) {
  const std::vector<absl::string_view> views(keys.begin(), keys.end());
  RILL_ASSIGN_OR_RETURN(const TensorDict leaves, store.Select(views));
  return leaves.Gather(slots);
}

absl::Status GatherIntoBatch(const TensorDict& store,
                             const std::vector<std::string>& keys,
                             const std::vector<Slot>& slots,
                             TensorDict* batch) {
  RILL_ASSIGN_OR_RETURN(const TensorDict leaves,
                        GatherLeaves(store, keys, slots));
  for (const std::string& key : keys) {
    const Tensor& from = *leaves.Find(key);
    const Tensor* to = batch->Find(key);
    if (to == nullptr || !to->CheckCopyFrom(from).ok()) {
      RILL_ASSIGN_OR_RETURN(Tensor copy, from.Clone());
      RILL_RETURN_IF_ERROR(batch->Set(key, copy));
    } else {
      RILL_RETURN_IF_ERROR(to->CopyFrom(from));
    }
  }
  return absl::OkStatus();
}

}  // namespace

FakeSampleReader::FakeSampleReader(TensorDictSpec spec, TensorDict store)
    : spec_(std::move(spec)), store_(std::move(store)) {}

absl::StatusOr<FakeSampleReader::Gathered> FakeSampleReader::Gather(
    const UnitTransform& unit, const SamplePlan& plan,
    TensorDict* batch) const {
  RILL_ASSIGN_OR_RETURN(const UnitTransform::Reads reads,
                        unit.PlanReads(spec_));
  std::vector<Slot> slots = plan.rows;
  if (slots.empty()) {
    for (const Draw& draw : plan.draws) slots.push_back(draw.slot);
  }
  const Shape shape = {static_cast<int64_t>(slots.size())};
  if (!(batch->batch_shape() == shape)) *batch = TensorDict(shape);
  Gathered gathered;
  RILL_RETURN_IF_ERROR(GatherIntoBatch(store_, reads.rows.batch, slots, batch));
  RILL_ASSIGN_OR_RETURN(gathered.rows,
                        GatherLeaves(store_, reads.rows.apart, slots));
  for (size_t i = 0; i < reads.context.size(); ++i) {
    const std::vector<Slot>& rows = plan.context[i].rows;
    RILL_RETURN_IF_ERROR(
        GatherIntoBatch(store_, reads.context[i].batch, rows, batch));
    RILL_ASSIGN_OR_RETURN(gathered.context.emplace_back(),
                          GatherLeaves(store_, reads.context[i].apart, rows));
  }
  return gathered;
}

absl::Status FakeSampleReader::ReadInto(const UnitTransform& unit,
                                        const SamplePlan& plan,
                                        TensorDict* batch) const {
  RILL_ASSIGN_OR_RETURN(const Gathered gathered, Gather(unit, plan, batch));
  return unit.Apply(plan, gathered.rows, gathered.context, batch);
}

absl::StatusOr<TensorDict> FakeSampleReader::Read(
    const UnitTransform& unit, const SamplePlan& plan) const {
  TensorDict batch;
  RILL_RETURN_IF_ERROR(ReadInto(unit, plan, &batch));
  return batch;
}

}  // namespace rill
