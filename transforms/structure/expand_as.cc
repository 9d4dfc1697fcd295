// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/structure/expand_as.h"

#include <cstring>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/rows/device_rows.h"
#include "rill/transforms/rows/element_copies.h"
#include "rill/transforms/steps/lane_results.h"
#include "rill/transforms/steps/lane_work.h"
#include "rill/transforms/structure/key_paths.h"
#include "rill/transforms/structure/strided_rows.h"

namespace rill {
namespace {

using transforms_internal::AddLeaf;
using transforms_internal::AddWritten;
using transforms_internal::CopyStridedRows;
using transforms_internal::DeviceWork;
using transforms_internal::ElementCopies;
using transforms_internal::FindSpec;
using transforms_internal::GetLeaf;
using transforms_internal::GetSpec;
using transforms_internal::StridedRows;

// The rows of `from`, aligned to the left in `to`, repeated along dimensions of
// size 1 and those that `from` lacks: a stride of 0 reads the same element
// again.
StridedRows Repeated(DType dtype, const Shape& from, const Shape& to) {
  StridedRows rows = {
      .dtype = dtype, .shape = to, .from_width = from.num_elements()};
  int64_t run = 1;
  for (int d = from.rank() - 1; d >= 0; --d) {
    rows.strides[static_cast<size_t>(d)] = from[d] == 1 ? 0 : run;
    run *= from[d];
  }
  return rows;
}

void ExpandRows(const BoundLeaf& from, const BoundLeaf& to, int64_t first,
                int64_t rows) {
  CopyStridedRows(Repeated(from.dtype, from.shape, to.shape), rows,
                  from.data + first * from.width, to.data + first * to.width);
}

// Repeats the rows to `row`.
absl::Status ExpandTo(const Shape& row, DeviceRows* rows) {
  Shape aligned = rows->shape();
  while (aligned.rank() < row.rank()) aligned = aligned.Concat({1});
  RILL_RETURN_IF_ERROR(rows->Reshape(aligned));
  return rows->Expand(row);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ExpandAs>> ExpandAs::Create(Options options) {
  if (options.out_key.empty()) options.out_key = options.in_key;
  RILL_RETURN_IF_ERROR(CheckKey(options.in_key)) << "ExpandAs::Create: in_key";
  RILL_RETURN_IF_ERROR(CheckKey(options.ref_key))
      << "ExpandAs::Create: ref_key";
  RILL_RETURN_IF_ERROR(CheckKey(options.out_key))
      << "ExpandAs::Create: out_key";
  return absl::WrapUnique(new ExpandAs(std::move(options)));
}

OptionValues ExpandAs::option_values() const {
  return OptionValues()
      .Text("in_key", options_.in_key)
      .Text("ref_key", options_.ref_key)
      .Text("out_key", options_.out_key);
}

// The spec after expansion to rows of `ref`, with the domain where it can be
// expanded too, else without bounds.
absl::StatusOr<LeafSpec> ExpandAs::Expanded(absl::string_view caller,
                                            const LeafSpec& leaf,
                                            const Shape& ref) const {
  const int rank = leaf.shape.rank();
  // Aligned to the left: a flag [1] is expanded over what follows it.
  // Broadcasting would align to the right.
  bool fits = rank <= ref.rank();
  Shape aligned = ref;
  for (int d = 0; fits && d < ref.rank(); ++d) {
    aligned = aligned.WithSize(d, d < rank ? leaf.shape[d] : 1);
    fits = aligned[d] == 1 || aligned[d] == ref[d];
  }
  if (!fits) {
    return InvalidArgument(caller, ": \"", options_.in_key, "\": got rows ",
                           leaf.ToString(),
                           ", want sizes of 1 or the first ones of \"",
                           options_.ref_key, "\", ", ref.ToString());
  }
  absl::StatusOr<LeafSpec> result = leaf.Reshape(aligned);
  if (result.ok()) result = result->Expand(ref);
  return result.ok() ? *std::move(result)
                     : LeafSpec::Unbounded(leaf.dtype, ref);
}

absl::StatusOr<Tensor> ExpandAs::ExpandOnDevice(const Tensor& leaf,
                                                int batch_rank,
                                                const Shape& row) const {
  DeviceWork::Call call(&device_work_);
  RILL_RETURN_IF_ERROR(call.Begin(leaf.device())) << "in ExpandAs";
  ElementCopies copies(&call.stream());
  DeviceRows rows(leaf, batch_rank, &call, &copies);
  RILL_RETURN_IF_ERROR(ExpandTo(row, &rows));
  RILL_ASSIGN_OR_RETURN(Tensor to, rows.Finish(/*is_in_place=*/false,
                                               /*shares=*/false));
  RILL_RETURN_IF_ERROR(copies.Launch()) << "in ExpandAs";
  RILL_RETURN_IF_ERROR(call.End());
  return to;
}

absl::Status ExpandAs::Forward(TensorDict* batch, TensorDict* /*state*/) const {
  RILL_RETURN_IF_ERROR(
      transforms_internal::CheckMaySet(name(), options_.out_key, *batch));
  RILL_ASSIGN_OR_RETURN(Tensor from, GetLeaf(name(), options_.in_key, *batch));
  // The reference gives its shape alone; it may lie on a device.
  absl::StatusOr<Tensor> ref = batch->Get(options_.ref_key);
  RILL_RETURN_IF_ERROR(ref.status()) << "in ExpandAs";
  const int batch_rank = batch->batch_shape().rank();
  const Shape row = from.shape().Suffix(batch_rank);
  RILL_ASSIGN_OR_RETURN(const LeafSpec after,
                        Expanded(name(), LeafSpec::Unbounded(from.dtype(), row),
                                 ref->shape().Suffix(batch_rank)));
  RILL_ASSIGN_OR_RETURN(const Shape shape,
                        after.FullShape(batch->batch_shape()));
  Tensor to;
  if (from.is_host()) {
    RILL_ASSIGN_OR_RETURN(from, from.Contiguous());
    RILL_ASSIGN_OR_RETURN(to, spare_.Take(after.dtype, shape));
    CopyStridedRows(Repeated(after.dtype, row, after.shape),
                    batch->batch_shape().num_elements(), from.raw_data(),
                    to.raw_data());
  } else {
    RILL_ASSIGN_OR_RETURN(to, ExpandOnDevice(from, batch_rank, after.shape));
  }
  RILL_RETURN_IF_ERROR(batch->Set(options_.out_key, std::move(to)))
      << "in ExpandAs";
  return absl::OkStatus();
}

absl::StatusOr<TensorDictSpec> ExpandAs::ForwardSpec(
    const TensorDictSpec& spec) const {
  constexpr absl::string_view kCaller = "ExpandAs::ForwardSpec";
  RILL_ASSIGN_OR_RETURN(const LeafSpec leaf,
                        GetSpec(kCaller, options_.in_key, spec));
  RILL_ASSIGN_OR_RETURN(const LeafSpec ref,
                        GetSpec(kCaller, options_.ref_key, spec));
  RILL_ASSIGN_OR_RETURN(LeafSpec after, Expanded(kCaller, leaf, ref.shape));
  TensorDictSpec result = spec;
  RILL_RETURN_IF_ERROR(result.Set(options_.out_key, std::move(after)))
      << "in " << kCaller;
  return result;
}

absl::StatusOr<StepPlan> ExpandAs::PlanSteps(const TensorDictSpec& step) const {
  constexpr absl::string_view kCaller = "ExpandAs::PlanSteps";
  for (const std::string& key :
       {options_.in_key, options_.ref_key, options_.out_key}) {
    if (!absl::StartsWith(key, "next/")) continue;
    return InvalidArgument(
        kCaller, ": got \"", key,
        "\", want keys of the root: those below next go with them");
  }
  // A reward lies below next alone.
  const bool is_reward =
      step.Find(options_.in_key) == nullptr &&
      step.Find(absl::StrCat("next/", options_.in_key)) != nullptr;
  if (is_reward && options_.out_key == options_.in_key) {
    return InvalidArgument(kCaller, ": out_key: got \"", options_.out_key,
                           "\", a leaf below next alone, which has to keep its "
                           "shape; want another key");
  }
  StepPlan plan = {.spec = step};
  for (const absl::string_view prefix : {"", "next/"}) {
    const std::string in =
        absl::StrCat(is_reward ? "next/" : prefix, options_.in_key);
    const std::string out = absl::StrCat(prefix, options_.out_key);
    RILL_ASSIGN_OR_RETURN(const LeafSpec leaf, FindSpec(kCaller, in, step));
    RILL_ASSIGN_OR_RETURN(
        const LeafSpec ref,
        FindSpec(kCaller, absl::StrCat(prefix, options_.ref_key), step));
    RILL_ASSIGN_OR_RETURN(LeafSpec after, Expanded(kCaller, leaf, ref.shape));
    if (is_reward && prefix.empty()) {
      // Zeros after a reset, which the reward's domain may lack.
      after = LeafSpec::Unbounded(after.dtype, after.shape);
    } else {
      AddLeaf(in, leaf, LeafUse::kRead, &plan);
    }
    RILL_RETURN_IF_ERROR(AddWritten(out, after, &plan)) << "in " << kCaller;
  }
  return plan;
}

absl::Status ExpandAs::OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                               TensorDict* /*state*/) const {
  // Those of the root: what is read, and what is written; of a reward the
  // latter alone.
  const Leaves root = leaves.first(leaves.size() - 2);
  for (size_t lane = 0; lane < mask.size(); ++lane) {
    if (mask[lane] == 0) continue;
    const auto row = static_cast<int64_t>(lane);
    if (root.size() == 2) {
      ExpandRows(root[0], root[1], row, 1);
    } else if (root[0].width > 0) {
      std::memset(root[0].data + row * root[0].width, 0,
                  static_cast<size_t>(root[0].width));
    }
  }
  return absl::OkStatus();
}

absl::Status ExpandAs::OnStep(Leaves leaves, TensorDict* /*state*/) const {
  // Those below next come last.
  const Leaves next = leaves.last(2);
  ExpandRows(next[0], next[1], 0, next[0].rows);
  return absl::OkStatus();
}

// --- Steps on a device -------------------------------------------------------

absl::Status ExpandAs::ExpandSteps(const Call& call, const Tensor& from,
                                   const Tensor& to) const {
  DeviceWork::Call work(&device_work_);
  RILL_RETURN_IF_ERROR(work.Begin(call.stream.device())) << "in ExpandAs";
  ElementCopies copies(&work.stream());
  transforms_internal::LaneResults results(&call, &work);
  DeviceRows rows(from, /*batch_rank=*/1, &work, &copies);
  RILL_RETURN_IF_ERROR(ExpandTo(to.shape().Suffix(1), &rows));
  RILL_ASSIGN_OR_RETURN(const Tensor place, results.PlaceOf(to));
  RILL_RETURN_IF_ERROR(rows.FinishInto(place)) << "in ExpandAs";
  RILL_RETURN_IF_ERROR(copies.Launch()) << "in ExpandAs";
  RILL_RETURN_IF_ERROR(results.Finish()) << "in ExpandAs";
  return work.End();
}

absl::Status ExpandAs::OnDeviceReset(const Call& call, Tensors leaves,
                                     TensorDict* /*state*/) const {
  // As OnReset. Zero is no bit in all dtypes.
  if (leaves.size() == 4) return ExpandSteps(call, leaves[0], leaves[1]);
  constexpr uint64_t kZero[2] = {};
  return transforms_internal::FillLanesWith(kZero, call.mask, leaves[0],
                                            call.stream);
}

absl::Status ExpandAs::OnDeviceStep(const Call& call, Tensors leaves,
                                    TensorDict* /*state*/) const {
  return ExpandSteps(call, leaves[leaves.size() - 2], leaves.back());
}

}  // namespace rill
