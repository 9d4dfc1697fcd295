// SPDX-License-Identifier: Apache-2.0
// A join is one loop for both classes. Each leaf of a row is `outer` runs of
// bytes, and a joined row is the first run of each leaf, then the second of
// each. CatTensors and StackTensors differ in which dimension begins a run
// (DimOf) and in the joined shape.
#include "rill/transforms/structure/cat_tensors.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/tensordict/key.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/rows/element_copies.h"
#include "rill/transforms/steps/lane_results.h"
#include "rill/transforms/structure/key_paths.h"

namespace rill {
namespace {

using transforms_internal::AddLeaf;
using transforms_internal::AddWritten;
using transforms_internal::CheckLiesOn;
using transforms_internal::CheckOnHost;
using transforms_internal::DeviceWork;
using transforms_internal::ElementCopies;
using transforms_internal::GetLeaf;
using transforms_internal::GetSpec;
using transforms_internal::Misfit;

// As many are joined without an allocation: lists up to this size are on the
// stack.
constexpr size_t kFewKeys = 8;

// The domain that all joined elements have in common.
LeafSpec WithJoinedDomain(absl::Span<const LeafSpec> leaves,
                          const Shape& shape) {
  const DType dtype = leaves[0].dtype;
  const auto are_all = [&](LeafSpec::Domain domain) {
    return absl::c_all_of(
        leaves, [&](const LeafSpec& leaf) { return leaf.domain == domain; });
  };
  if (are_all(LeafSpec::Domain::kBinary)) return LeafSpec::Binary(shape, dtype);
  if (!are_all(LeafSpec::Domain::kBounded)) {
    return LeafSpec::Unbounded(dtype, shape);
  }
  // The least low and the greatest high: also where elements have bounds of
  // their own, as low and high are then the extremes of these.
  double low = leaves[0].low;
  double high = leaves[0].high;
  for (const LeafSpec& leaf : leaves) {
    low = std::min(low, leaf.low);
    high = std::max(high, leaf.high);
  }
  return LeafSpec::Bounded(dtype, shape, low, high);
}

}  // namespace

absl::Status JoinRows::CheckKeys(absl::string_view caller, const Keys& keys) {
  RILL_RETURN_IF_ERROR(
      transforms_internal::CheckSomeKeys(caller, "in_keys", keys.in_keys));
  RILL_RETURN_IF_ERROR(CheckKey(keys.out_key)) << caller << ": out_key";
  if (keys.dim < 0) return absl::OkStatus();
  return InvalidArgument(
      caller, ": dim: got ", keys.dim,
      ", want < 0: a dimension of a row counts from the back");
}

OptionValues JoinRows::option_values() const {
  return OptionValues()
      .Texts("in_keys", keys_.in_keys)
      .Text("out_key", keys_.out_key)
      .Int("dim", keys_.dim)
      .Bool("del_keys", keys_.del_keys);
}

absl::StatusOr<LeafSpec> JoinRows::JoinedSpec(
    absl::string_view caller, absl::Span<const LeafSpec> leaves) const {
  for (size_t i = 0; i < leaves.size(); ++i) {
    const LeafSpec& leaf = leaves[i];
    if (leaf.dtype != leaves[0].dtype) {
      return Misfit(caller, keys_.in_keys[i], leaf,
                    absl::StrCat(DTypeName(leaves[0].dtype), " as \"",
                                 keys_.in_keys[0], "\"; cast it first"));
    }
    if (DimOf(leaf.shape.rank()) < 0) {
      return Misfit(caller, keys_.in_keys[i], leaf,
                    absl::StrCat("rows with a dimension ", keys_.dim));
    }
  }
  RILL_ASSIGN_OR_RETURN(const Shape shape, JoinedShape(caller, leaves));
  return WithJoinedDomain(leaves, shape);
}

// Does in the plan's spec what Join does in a batch, and adds the leaves that
// Join gets, the joined one last. Leaves are erased before the joined one is
// set: its key may be one of theirs.
absl::Status JoinRows::JoinInSpec(absl::string_view caller,
                                  absl::string_view prefix,
                                  StepPlan* plan) const {
  std::vector<LeafSpec> specs;
  for (const std::string& in_key : keys_.in_keys) {
    const std::string key = absl::StrCat(prefix, in_key);
    RILL_ASSIGN_OR_RETURN(specs.emplace_back(),
                          GetSpec(caller, key, plan->spec));
    AddLeaf(key, specs.back(), LeafUse::kRead, plan);
  }
  RILL_ASSIGN_OR_RETURN(const LeafSpec joined, JoinedSpec(caller, specs));
  for (const std::string& in_key : keys_.in_keys) {
    if (keys_.del_keys) plan->spec.Erase(absl::StrCat(prefix, in_key));
  }
  RILL_RETURN_IF_ERROR(
      AddWritten(absl::StrCat(prefix, keys_.out_key), joined, plan))
      << "in " << caller;
  return absl::OkStatus();
}

// Rows [first, first + rows), each `outer` runs of every leaf.
void JoinRows::Join(Leaves leaves, int64_t first, int64_t rows) const {
  const BoundLeaf& to = leaves.back();
  if (to.width == 0) return;
  const Shape& shape = leaves[0].shape;
  const int64_t outer = shape.Prefix(DimOf(shape.rank())).num_elements();
  std::byte* out = to.data + first * to.width;
  for (int64_t row = first; row < first + rows; ++row) {
    for (int64_t i = 0; i < outer; ++i) {
      for (const BoundLeaf& leaf : leaves.first(leaves.size() - 1)) {
        const int64_t width = leaf.width / outer;
        // A leaf without elements may be among others that have some.
        if (width == 0) continue;
        std::memcpy(out, leaf.data + row * leaf.width + i * width,
                    static_cast<size_t>(width));
        out += width;
      }
    }
  }
}

// --- Batches -----------------------------------------------------------------

absl::StatusOr<Tensor> JoinRows::JoinOnDevice(absl::Span<const Tensor> leaves,
                                              const LeafSpec& joined,
                                              const Shape& shape) const {
  DeviceWork::Call call(&device_work_);
  RILL_RETURN_IF_ERROR(call.Begin(leaves[0].device())) << "in " << name();
  RILL_ASSIGN_OR_RETURN(Tensor out, call.Take(joined.dtype, shape));
  ElementCopies copies(&call.stream());
  RILL_RETURN_IF_ERROR(
      JoinInto(leaves, shape.rank() - joined.shape.rank(), out, &copies));
  for (const Tensor& leaf : leaves) call.Keep(leaf);
  RILL_RETURN_IF_ERROR(copies.Launch()) << "in " << name();
  RILL_RETURN_IF_ERROR(call.End());
  return out;
}

absl::Status JoinRows::JoinInto(absl::Span<const Tensor> leaves, int batch_rank,
                                const Tensor& out,
                                ElementCopies* copies) const {
  const bool is_new_dim = out.rank() > leaves[0].rank();
  const int at = batch_rank + DimOf(leaves[0].rank() - batch_rank);
  int64_t begin = 0;
  for (const Tensor& leaf : leaves) {
    const int64_t end = begin + (is_new_dim ? 1 : leaf.shape()[at]);
    RILL_ASSIGN_OR_RETURN(const Tensor place, is_new_dim
                                                  ? out.Select(at, begin)
                                                  : out.Slice(at, begin, end));
    RILL_RETURN_IF_ERROR(copies->Add(leaf, place));
    begin = end;
  }
  return absl::OkStatus();
}

absl::Status JoinRows::Forward(TensorDict* batch, TensorDict* /*state*/) const {
  const int batch_rank = batch->batch_shape().rank();
  const int64_t rows = batch->batch_shape().num_elements();
  absl::InlinedVector<Tensor, kFewKeys> tensors;
  absl::InlinedVector<LeafSpec, kFewKeys> specs;
  absl::InlinedVector<BoundLeaf, kFewKeys + 1> leaves;
  const auto add = [&](const Tensor& tensor, const Shape& shape) {
    leaves.push_back({.data = tensor.raw_data(),
                      .width = shape.num_elements() * DTypeSize(tensor.dtype()),
                      .dtype = tensor.dtype(),
                      .rows = rows,
                      .shape = shape});
  };
  Device device = Device::Cpu();
  for (const std::string& key : keys_.in_keys) {
    RILL_ASSIGN_OR_RETURN(tensors.emplace_back(), GetLeaf(name(), key, *batch));
    Tensor& leaf = tensors.back();
    if (tensors.size() == 1) device = leaf.device();
    RILL_RETURN_IF_ERROR(CheckLiesOn(name(), key, leaf, device));
    if (leaf.is_host()) {
      RILL_ASSIGN_OR_RETURN(leaf, leaf.Contiguous());
    }
    specs.push_back(LeafSpec::Unbounded(
        tensors.back().dtype(), tensors.back().shape().Suffix(batch_rank)));
    add(tensors.back(), specs.back().shape);
  }
  RILL_ASSIGN_OR_RETURN(const LeafSpec joined, JoinedSpec(name(), specs));
  RILL_ASSIGN_OR_RETURN(const Shape shape,
                        joined.FullShape(batch->batch_shape()));
  Tensor out;
  if (device.is_cpu()) {
    RILL_ASSIGN_OR_RETURN(out, spare_.Take(joined.dtype, shape));
    add(out, joined.shape);
    Join(leaves, 0, rows);
  } else {
    RILL_ASSIGN_OR_RETURN(out, JoinOnDevice(tensors, joined, shape));
  }
  const absl::Span<const std::string> dropped =
      keys_.del_keys ? keys_.in_keys : absl::Span<const std::string>();
  const auto drop_empty = [&]() -> absl::Status {
    for (const std::string& key : dropped) {
      RILL_RETURN_IF_ERROR(transforms_internal::DropEmptyAround(key, batch));
    }
    return absl::OkStatus();
  };
  absl::Status may_set =
      transforms_internal::CheckMaySet(name(), keys_.out_key, *batch);
  if (!may_set.ok() && keys_.del_keys) {
    // The entry of out_key may go with the keys.
    TensorDict rest = *batch;
    for (const std::string& key : dropped) {
      RILL_RETURN_IF_ERROR(transforms_internal::DeleteEntry(key, &rest));
    }
    may_set = transforms_internal::CheckMaySet(name(), keys_.out_key, rest);
  }
  RILL_RETURN_IF_ERROR(may_set);
  for (const std::string& key : dropped) {
    RILL_RETURN_IF_ERROR(batch->Delete(key)) << "in " << name();
  }
  // A dictionary at out_key may have held nothing else. One that holds the
  // joined leaf stays, so the others go afterwards.
  if (batch->FindDict(keys_.out_key) != nullptr) {
    RILL_RETURN_IF_ERROR(drop_empty());
  }
  RILL_RETURN_IF_ERROR(batch->Set(keys_.out_key, std::move(out)))
      << "in " << name();
  return drop_empty();
}

absl::StatusOr<TensorDictSpec> JoinRows::ForwardSpec(
    const TensorDictSpec& spec) const {
  StepPlan plan = {.spec = spec};
  RILL_RETURN_IF_ERROR(
      JoinInSpec(absl::StrCat(name(), "::ForwardSpec"), "", &plan));
  return std::move(plan.spec);
}

// --- Steps: the leaves of the root, then those below next --------------------

absl::StatusOr<StepPlan> JoinRows::PlanSteps(const TensorDictSpec& step) const {
  const std::string caller = absl::StrCat(name(), "::PlanSteps");
  RILL_RETURN_IF_ERROR(CheckOnHost(caller, keys_.in_keys[0], step));
  // "next/" is added by the transform. Flags, rewards and the action may be
  // joined, but steps cannot lose them.
  for (const std::string& key : keys_.in_keys) {
    if (!absl::StartsWith(key, "next/") &&
        !(keys_.del_keys && transforms_internal::IsFixedInSteps(key))) {
      continue;
    }
    return InvalidArgument(caller, ": in_keys: got \"", key,
                           "\", want keys of the root",
                           keys_.del_keys ? " that steps can do without" : "");
  }
  StepPlan plan = {.spec = step};
  for (const absl::string_view prefix : {"", "next/"}) {
    RILL_RETURN_IF_ERROR(JoinInSpec(caller, prefix, &plan));
  }
  return plan;
}

absl::Status JoinRows::OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                               TensorDict* /*state*/) const {
  // The first half of the leaves is the root's, the second half is next's.
  for (size_t lane = 0; lane < mask.size(); ++lane) {
    if (mask[lane] == 0) continue;
    Join(leaves.first(leaves.size() / 2), static_cast<int64_t>(lane), 1);
  }
  return absl::OkStatus();
}

absl::Status JoinRows::OnStep(Leaves leaves, TensorDict* /*state*/) const {
  Join(leaves.last(leaves.size() / 2), 0, leaves[0].rows);
  return absl::OkStatus();
}

absl::Status JoinRows::JoinSteps(const Call& call, Tensors leaves) const {
  DeviceWork::Call work(&device_work_);
  RILL_RETURN_IF_ERROR(work.Begin(call.stream.device())) << "in " << name();
  ElementCopies copies(&work.stream());
  transforms_internal::LaneResults results(&call, &work);
  RILL_ASSIGN_OR_RETURN(const Tensor out, results.PlaceOf(leaves.back()));
  RILL_RETURN_IF_ERROR(JoinInto(leaves.first(leaves.size() - 1),
                                /*batch_rank=*/1, out, &copies));
  RILL_RETURN_IF_ERROR(copies.Launch()) << "in " << name();
  RILL_RETURN_IF_ERROR(results.Finish()) << "in " << name();
  return work.End();
}

absl::Status JoinRows::OnDeviceReset(const Call& call, Tensors leaves,
                                     TensorDict* /*state*/) const {
  return JoinSteps(call, leaves.first(leaves.size() / 2));
}

absl::Status JoinRows::OnDeviceStep(const Call& call, Tensors leaves,
                                    TensorDict* /*state*/) const {
  return JoinSteps(call, leaves.last(leaves.size() / 2));
}

// --- CatTensors --------------------------------------------------------------

absl::StatusOr<std::unique_ptr<CatTensors>> CatTensors::Create(
    Options options) {
  if (options.sort) absl::c_sort(options.in_keys);
  Keys keys = {.in_keys = std::move(options.in_keys),
               .out_key = std::move(options.out_key),
               .dim = options.dim,
               .del_keys = options.del_keys};
  RILL_RETURN_IF_ERROR(CheckKeys("CatTensors::Create", keys));
  return absl::WrapUnique(new CatTensors(std::move(keys), options.sort));
}

OptionValues CatTensors::option_values() const {
  return JoinRows::option_values().Bool("sort", sort_);
}

absl::StatusOr<Shape> CatTensors::JoinedShape(
    absl::string_view caller, absl::Span<const LeafSpec> leaves) const {
  const Shape& first = leaves[0].shape;
  const int at = DimOf(first.rank());
  int64_t size = 0;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const Shape& shape = leaves[i].shape;
    // Sizes along the dimension may differ; 0 in their place compares the rest.
    if (shape.rank() != first.rank() ||
        shape.WithSize(at, 0) != first.WithSize(at, 0)) {
      return Misfit(
          caller, keys().in_keys[i], leaves[i],
          absl::StrCat("the row shape ", first.ToString(), " of \"",
                       keys().in_keys[0], "\" but for dimension ", keys().dim));
    }
    size += shape[at];
  }
  return first.WithSize(at, size);
}

// --- StackTensors ------------------------------------------------------------

absl::StatusOr<std::unique_ptr<StackTensors>> StackTensors::Create(
    Options options) {
  Keys keys = {.in_keys = std::move(options.in_keys),
               .out_key = std::move(options.out_key),
               .dim = options.dim,
               .del_keys = options.del_keys};
  RILL_RETURN_IF_ERROR(CheckKeys("StackTensors::Create", keys));
  if (absl::c_linear_search(keys.in_keys, keys.out_key)) {
    return InvalidArgument("StackTensors::Create: out_key: got \"",
                           keys.out_key,
                           "\", want a key that is none of in_keys");
  }
  return absl::WrapUnique(new StackTensors(std::move(keys)));
}

absl::StatusOr<Shape> StackTensors::JoinedShape(
    absl::string_view caller, absl::Span<const LeafSpec> leaves) const {
  const Shape& first = leaves[0].shape;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].shape == first) continue;
    return Misfit(caller, keys().in_keys[i], leaves[i],
                  absl::StrCat("the row shape ", first.ToString(), " of \"",
                               keys().in_keys[0], "\""));
  }
  const int at = DimOf(first.rank());
  if (first.rank() == Shape::kMaxRank) {
    return Misfit(caller, keys().in_keys[0], leaves[0],
                  "rows with room for a new dimension");
  }
  return first.Prefix(at)
      .Concat({static_cast<int64_t>(leaves.size())})
      .Concat(first.Suffix(at));
}

}  // namespace rill
