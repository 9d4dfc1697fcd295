// SPDX-License-Identifier: Apache-2.0
// Three uses of one RowMap: on batches (MapLeaf), on the leaves of steps
// (MapStepLeaves), and as a part of a gather (Extend). Keys and places are
// decided in the constructor and in PlanSteps, so that a call looks nothing up.
#include "rill/transforms/rows/rowwise_transform.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/rows/device_rows.h"
#include "rill/transforms/rows/element_copies.h"
#include "rill/transforms/structure/key_paths.h"

namespace rill {
namespace {

using transforms_internal::AddLeaf;
using transforms_internal::CheckCanBeLeaves;
using transforms_internal::CheckKeys;
using transforms_internal::CheckMaySet;
using transforms_internal::DeviceWork;
using transforms_internal::ElementCopies;
using transforms_internal::FindSpec;
using transforms_internal::GetLeaf;
using transforms_internal::GetSpec;
using transforms_internal::OnDevice;
using transforms_internal::UpdateLeaf;

constexpr absl::string_view kAction = "action";

bool IsNext(absl::string_view key) { return absl::StartsWith(key, "next/"); }

// The error of a map, with the transform and the key that it was for.
absl::Status Named(absl::string_view caller, absl::string_view key,
                   const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(caller, ": \"", key,
                                                  "\": ", status.message()));
}

// Maps the rows of the lanes with mask[lane] != 0, one by one. Rows of other
// lanes stay: they are in the middle of an episode.
absl::Status MapLanes(const RowMap& map, absl::Span<const uint8_t> mask,
                      const BoundLeaf& from, const BoundLeaf& to) {
  for (size_t lane = 0; lane < mask.size(); ++lane) {
    if (mask[lane] == 0) continue;
    const auto i = static_cast<int64_t>(lane);
    RILL_RETURN_IF_ERROR(map.MapRows(from.dtype, from.shape, 1,
                                     from.data + i * from.width,
                                     to.data + i * to.width));
  }
  return absl::OkStatus();
}

OptionValues WithKeys(OptionValues options,
                      const RowwiseTransform::Rows& rows) {
  options.Texts("in_keys", rows.in_keys).Texts("out_keys", rows.out_keys);
  if (rows.inverse != nullptr) options.Texts("in_keys_inv", rows.in_keys_inv);
  return options;
}

}  // namespace

absl::Status RowwiseTransform::CheckRows(absl::string_view caller,
                                         const Rows& rows) {
  RILL_RETURN_IF_ERROR(CheckKeys(caller, "in_keys", rows.in_keys));
  RILL_RETURN_IF_ERROR(CheckKeys(caller, "out_keys", rows.out_keys));
  RILL_RETURN_IF_ERROR(CheckKeys(caller, "in_keys_inv", rows.in_keys_inv));
  RILL_RETURN_IF_ERROR(CheckCanBeLeaves(caller, "out_keys", rows.out_keys));
  if (rows.in_keys.empty() && rows.in_keys_inv.empty()) {
    return InvalidArgument(caller, ": in_keys: got none, want at least one");
  }
  if (!rows.out_keys.empty() && rows.out_keys.size() != rows.in_keys.size()) {
    return InvalidArgument(caller, ": out_keys: got ", rows.out_keys.size(),
                           " keys, want ", rows.in_keys.size(),
                           ", one for each of in_keys, or none");
  }
  for (size_t i = 0; i < rows.out_keys.size(); ++i) {
    const std::string& out = rows.out_keys[i];
    // An out_key may be its own in_key. Another one's would make the result
    // depend on the order of the keys.
    if (out == rows.in_keys[i] || !absl::c_linear_search(rows.in_keys, out)) {
      continue;
    }
    return InvalidArgument(
        caller, ": out_keys: got \"", out, "\" for \"", rows.in_keys[i],
        "\", want no leaf that is one of in_keys itself; use two transforms");
  }
  return absl::OkStatus();
}

// --- Batches -----------------------------------------------------------------

absl::Status RowwiseTransform::Plan(const RowMap& map, absl::string_view in,
                                    const TensorDict& batch,
                                    Mapping* leaf) const {
  RILL_ASSIGN_OR_RETURN(leaf->from, GetLeaf(name(), in, batch));
  if (!leaf->from.is_host() && !map.maps_on_device()) {
    return OnDevice(name(), in, leaf->from.device());
  }
  const absl::StatusOr<LeafSpec> after = map.MapSpec(LeafSpec::Unbounded(
      leaf->from.dtype(),
      leaf->from.shape().Suffix(batch.batch_shape().rank())));
  if (!after.ok()) return Named(name(), in, after.status());
  leaf->dtype = after->dtype;
  absl::StatusOr<Shape> shape = after->FullShape(batch.batch_shape());
  if (!shape.ok()) return Named(name(), in, shape.status());
  leaf->shape = *shape;
  if (!leaf->from.is_host()) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(leaf->from, leaf->from.Contiguous());
  return absl::OkStatus();
}

absl::Status RowwiseTransform::MapLeaf(const RowMap& map, absl::string_view in,
                                       absl::string_view out,
                                       TensorDict* batch) const {
  Mapping leaf;
  RILL_RETURN_IF_ERROR(Plan(map, in, *batch, &leaf));
  if (leaf.from.is_host()) {
    return MapPlanned(map, in, out, /*is_in_place=*/false, leaf, batch);
  }
  return MapOnDevice(
      map, absl::MakeConstSpan(&leaf, 1), [&](size_t) { return Keys(in, out); },
      /*is_in_place=*/false, batch);
}

absl::Status RowwiseTransform::MapOnDevice(const RowMap& map,
                                           absl::Span<const Mapping> leaves,
                                           absl::FunctionRef<Keys(size_t)> keys,
                                           bool is_in_place,
                                           TensorDict* batch) const {
  const auto first = absl::c_find_if(
      leaves, [](const Mapping& leaf) { return !leaf.from.is_host(); });
  if (first == leaves.end()) return absl::OkStatus();
  const auto device = first->from.device();
  DeviceWork::Call call(&device_work_);
  RILL_RETURN_IF_ERROR(call.Begin(device)) << "in " << name();
  ElementCopies copies(&call.stream());
  absl::InlinedVector<Tensor, 32> results(leaves.size());
  for (size_t i = 0; i < leaves.size(); ++i) {
    const auto [in, out] = keys(i);
    const Tensor& from = leaves[i].from;
    if (from.is_host()) continue;
    if (from.device() != device) {
      return FailedPrecondition(name(), ": \"", in, "\" lies on ",
                                from.device().ToString(), ", want ",
                                device.ToString(), " as the leaves before it");
    }
    DeviceRows rows(from, batch->batch_shape().rank(), &call, &copies);
    absl::Status status = map.MapOnDevice(&rows);
    if (!status.ok()) return Named(name(), in, status);
    absl::StatusOr<Tensor> result =
        rows.Finish(is_in_place && in == out && map.is_in_place(), in == out);
    if (!result.ok()) return Named(name(), in, result.status());
    results[i] = *std::move(result);
  }
  RILL_RETURN_IF_ERROR(copies.Launch()) << "in " << name();
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].from.is_host()) continue;
    RILL_RETURN_IF_ERROR(batch->Set(keys(i).second, std::move(results[i])))
        << "in " << name();
  }
  return call.End();
}

absl::Status RowwiseTransform::MapPlanned(const RowMap& map,
                                          absl::string_view in,
                                          absl::string_view out,
                                          bool is_in_place, const Mapping& leaf,
                                          TensorDict* batch) const {
  const DType dtype = leaf.from.dtype();
  const Shape row = leaf.from.shape().Suffix(batch->batch_shape().rank());
  const int64_t count = batch->batch_shape().num_elements();
  if (is_in_place && in == out && map.is_in_place()) {
    // A copy where the leaf may not be written; that replaces it in the batch.
    RILL_ASSIGN_OR_RETURN(const Tensor own, UpdateLeaf(name(), in, batch));
    const absl::Status status =
        map.MapRows(dtype, row, count, own.raw_data(), own.raw_data());
    return status.ok() ? status : Named(name(), in, status);
  }
  // Not the batch's old tensor of `out`: others may hold it. Two a key are
  // kept, one of the batch at hand and one of the batch before.
  const absl::StatusOr<Tensor> to = spare_.Take(leaf.dtype, leaf.shape);
  if (!to.ok()) return Named(name(), in, to.status());
  const absl::Status status =
      map.MapRows(dtype, row, count, leaf.from.raw_data(), to->raw_data());
  if (!status.ok()) return Named(name(), in, status);
  RILL_RETURN_IF_ERROR(batch->Set(out, *to)) << "in " << name();
  return absl::OkStatus();
}

absl::Status RowwiseTransform::MapEach(const RowMap& map, size_t count,
                                       absl::FunctionRef<Keys(size_t)> keys,
                                       bool is_in_place,
                                       TensorDict* batch) const {
  absl::InlinedVector<Mapping, 32> leaves;
  for (size_t i = 0; i < count; ++i) {
    const auto [in, out] = keys(i);
    RILL_RETURN_IF_ERROR(Plan(map, in, *batch, &leaves.emplace_back()));
    if (in == out) continue;
    RILL_RETURN_IF_ERROR(CheckMaySet(name(), out, *batch));
  }
  for (size_t i = 0; i < count; ++i) {
    const auto [in, out] = keys(i);
    if (!leaves[i].from.is_host()) continue;
    RILL_RETURN_IF_ERROR(
        MapPlanned(map, in, out, is_in_place, leaves[i], batch));
  }
  return MapOnDevice(map, leaves, keys, is_in_place, batch);
}

absl::Status RowwiseTransform::MapLeaves(
    const RowMap& map, absl::string_view in, absl::string_view out,
    absl::FunctionRef<bool(absl::string_view key, const Tensor& leaf)> takes,
    TensorDict* batch) const {
  // Keys come first, one behind the other, since the batch changes below.
  absl::InlinedVector<char, 2048> text;
  absl::InlinedVector<size_t, 65> ends = {0};
  const auto add = [&](absl::string_view part) {
    text.insert(text.end(), part.begin(), part.end());
  };
  batch->ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    if (!takes(key, leaf)) return;
    add(key);
    ends.push_back(text.size());
    add(out);
    add(key.substr(in.size()));
    ends.push_back(text.size());
  });
  const size_t count = ends.size() / 2;
  // Two a leaf, as of keys that are listed.
  const size_t most = 2 * std::max<size_t>(1, rows_.in_keys.size()) * count;
  spare_.KeepUpTo(most);
  device_work_.KeepUpTo(most);
  const auto part = [&](size_t i) {
    return absl::string_view(text.data() + ends[i], ends[i + 1] - ends[i]);
  };
  return MapEach(
      map, count, [&](size_t i) { return Keys(part(2 * i), part(2 * i + 1)); },
      /*is_in_place=*/false, batch);
}

absl::Status RowwiseTransform::Forward(TensorDict* batch,
                                       TensorDict* /*state*/) const {
  return MapEach(
      *rows_.map, rows_.in_keys.size(),
      [this](size_t i) { return Keys(rows_.in_keys[i], OutKey(i)); },
      /*is_in_place=*/true, batch);
}

absl::Status RowwiseTransform::Inverse(TensorDict* batch,
                                       TensorDict* /*state*/) const {
  if (rows_.inverse == nullptr) return absl::OkStatus();
  const std::vector<std::string>& keys = rows_.in_keys_inv;
  // Never in place: bytes before a write are the writer's.
  return MapEach(
      *rows_.inverse, keys.size(),
      [&](size_t i) { return Keys(keys[i], keys[i]); },
      /*is_in_place=*/false, batch);
}

absl::StatusOr<TensorDictSpec> RowwiseTransform::MapKeys(
    absl::string_view call, const RowMap& map,
    absl::Span<const std::string> in_keys,
    absl::Span<const std::string> out_keys, const TensorDictSpec& spec) const {
  const std::string caller = absl::StrCat(name(), "::", call);
  TensorDictSpec result = spec;
  // Result by result into one spec. CheckRows has excluded that an out_key is a
  // later in_key, so the order does not show.
  for (size_t i = 0; i < in_keys.size(); ++i) {
    RILL_ASSIGN_OR_RETURN(const LeafSpec leaf,
                          map.maps_on_device()
                              ? GetSpec(caller, in_keys[i], result)
                              : FindSpec(caller, in_keys[i], result));
    absl::StatusOr<LeafSpec> after = map.MapSpec(leaf);
    if (!after.ok()) return Named(caller, in_keys[i], after.status());
    RILL_RETURN_IF_ERROR(
        result.Set(out_keys.empty() ? in_keys[i] : out_keys[i], *after))
        << "in " << caller;
  }
  return result;
}

absl::StatusOr<TensorDictSpec> RowwiseTransform::ForwardSpec(
    const TensorDictSpec& spec) const {
  return MapKeys("ForwardSpec", *rows_.map, rows_.in_keys, rows_.out_keys,
                 spec);
}

absl::StatusOr<TensorDictSpec> RowwiseTransform::InverseSpec(
    const TensorDictSpec& spec) const {
  if (rows_.inverse == nullptr) return spec;
  return MapKeys("InverseSpec", *rows_.inverse, rows_.in_keys_inv, {}, spec);
}

void RowwiseTransform::Extend(GatherPlan* plan) const {
  for (size_t i = 0; i < rows_.in_keys.size(); ++i) {
    // A copy: out may be a new leaf beside the one that stays. Pointers into
    // the list are not kept over the push_back.
    GatherPlan::Leaf mapped = *plan->Find(rows_.in_keys[i]);
    mapped.key = OutKey(i);
    mapped.maps.push_back(rows_.map);
    GatherPlan::Leaf* const to = plan->Find(mapped.key);
    if (to != nullptr) {
      *to = std::move(mapped);
    } else {
      plan->leaves.push_back(std::move(mapped));
    }
  }
}

// --- Steps -------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<RowwiseTransform>> RowwiseTransform::Make(
    absl::string_view name, Rows rows, const OptionValues& options) {
  RILL_RETURN_IF_ERROR(CheckRows(absl::StrCat(name, "::Create"), rows));
  return absl::WrapUnique(new RowwiseTransform(std::move(rows), name, options));
}

RowwiseTransform::RowwiseTransform(Rows rows, absl::string_view name,
                                   const OptionValues& options)
    : rows_(std::move(rows)),
      name_(name),
      options_(WithKeys(options, rows_)),
      spare_(2 * (rows_.in_keys.size() + rows_.in_keys_inv.size())),
      device_work_(2 * (rows_.in_keys.size() + rows_.in_keys_inv.size())) {
  for (size_t i = 0; i < rows_.in_keys.size(); ++i) {
    const std::string& in = rows_.in_keys[i];
    // The action is no leaf to map before or after a step: OnAction maps it, by
    // the inverse.
    if (in == kAction) continue;
    AddStepLeaf(in, OutKey(i));
    const std::string next = absl::StrCat("next/", in);
    // "observation" stands for "next/observation" too, unless that is listed as
    // well: it would be mapped twice.
    if (IsNext(in) || absl::c_linear_search(rows_.in_keys, next)) continue;
    AddStepLeaf(next, absl::StrCat("next/", OutKey(i)));
  }
  maps_action_ = absl::c_linear_search(rows_.in_keys_inv, kAction);
}

void RowwiseTransform::AddStepLeaf(const std::string& in,
                                   const std::string& out) {
  step_leaves_.push_back(
      {.in = in,
       .out = out,
       .is_next = IsNext(in),
       .is_in_place = in == out && rows_.map->is_in_place()});
}

// Adds what becomes of one leaf to the plan: one place where it is mapped in
// place, else two (read, write).
absl::Status RowwiseTransform::PlanLeaf(const StepLeaf& leaf,
                                        const TensorDictSpec& step,
                                        StepPlan* plan) const {
  const std::string caller = absl::StrCat(name(), "::PlanSteps");
  RILL_ASSIGN_OR_RETURN(const LeafSpec before, FindSpec(caller, leaf.in, step));
  const absl::StatusOr<LeafSpec> after = rows_.map->MapSpec(before);
  if (!after.ok()) return Named(caller, leaf.in, after.status());
  AddLeaf(leaf.in, before, leaf.is_in_place ? LeafUse::kUpdate : LeafUse::kRead,
          plan);
  if (leaf.is_in_place) return plan->spec.Set(leaf.out, *after);
  return transforms_internal::AddWritten(leaf.out, *after, plan);
}

// The environment's action is `inner`. The policy acts on `outer`, what `map`
// makes of it, and `inverse` has to lead back to the same layout.
absl::Status RowwiseTransform::PlanAction(const TensorDictSpec& step,
                                          StepPlan* plan) const {
  const std::string caller = absl::StrCat(name(), "::PlanSteps");
  RILL_ASSIGN_OR_RETURN(const LeafSpec inner, FindSpec(caller, kAction, step));
  const absl::StatusOr<LeafSpec> outer = rows_.map->MapSpec(inner);
  if (!outer.ok()) return Named(caller, kAction, outer.status());
  const absl::StatusOr<LeafSpec> back = rows_.inverse->MapSpec(*outer);
  if (!back.ok()) return Named(caller, kAction, back.status());
  if (back->dtype != inner.dtype || !(back->shape == inner.shape)) {
    return InvalidArgument(caller, ": \"action\": got an inverse that makes ",
                           back->ToString(), " of ", outer->ToString(),
                           ", want the environment's ", inner.ToString());
  }
  // The last two places of the plan, where OnAction looks for them.
  RILL_RETURN_IF_ERROR(plan->spec.Set(kAction, *outer));
  AddLeaf(kAction, *outer, LeafUse::kRead, plan);
  AddLeaf(kAction, inner, LeafUse::kWrite, plan);
  return absl::OkStatus();
}

absl::StatusOr<StepPlan> RowwiseTransform::PlanSteps(
    const TensorDictSpec& step) const {
  StepPlan plan = {.spec = step};
  for (const StepLeaf& leaf : step_leaves_) {
    RILL_RETURN_IF_ERROR(PlanLeaf(leaf, step, &plan));
  }
  if (maps_action_) {
    RILL_RETURN_IF_ERROR(PlanAction(step, &plan));
  }
  return plan;
}

absl::Status RowwiseTransform::MapStepLeaves(
    bool is_next, Leaves leaves,
    absl::FunctionRef<absl::Status(const BoundLeaf&, const BoundLeaf&)> map)
    const {
  // Walks the places that PlanLeaf gave out, in the same order: also the leaves
  // of the other side have to be counted.
  size_t at = 0;
  for (const StepLeaf& leaf : step_leaves_) {
    const BoundLeaf& from = leaves[at++];
    const BoundLeaf& to = leaf.is_in_place ? from : leaves[at++];
    if (leaf.is_next != is_next) continue;
    const absl::Status status = map(from, to);
    if (!status.ok()) return Named(name(), leaf.in, status);
  }
  return absl::OkStatus();
}

absl::Status RowwiseTransform::OnReset(absl::Span<const uint8_t> mask,
                                       Leaves leaves,
                                       TensorDict* /*state*/) const {
  return MapStepLeaves(
      /*is_next=*/false, leaves,
      [&](const BoundLeaf& from, const BoundLeaf& to) {
        return MapLanes(*rows_.map, mask, from, to);
      });
}

absl::Status RowwiseTransform::OnStep(Leaves leaves,
                                      TensorDict* /*state*/) const {
  return MapStepLeaves(/*is_next=*/true, leaves,
                       [&](const BoundLeaf& from, const BoundLeaf& to) {
                         return rows_.map->MapRows(from.dtype, from.shape,
                                                   from.rows, from.data,
                                                   to.data);
                       });
}

absl::Status RowwiseTransform::OnAction(Leaves leaves,
                                        TensorDict* /*state*/) const {
  if (!maps_action_) return absl::OkStatus();
  // PlanAction added them last.
  const BoundLeaf& from = leaves[leaves.size() - 2];
  const BoundLeaf& to = leaves[leaves.size() - 1];
  const absl::Status status = rows_.inverse->MapRows(
      from.dtype, from.shape, from.rows, from.data, to.data);
  return status.ok() ? status : Named(name(), kAction, status);
}

// --- Steps on a device -------------------------------------------------------

bool RowwiseTransform::works_on_device() const {
  return rows_.map->maps_on_device() &&
         (rows_.inverse == nullptr || rows_.inverse->maps_on_device());
}

RowwiseTransform::StepPairs RowwiseTransform::PairsOf(bool is_next,
                                                      Tensors leaves) const {
  StepPairs pairs;
  size_t at = 0;
  for (const StepLeaf& leaf : step_leaves_) {
    const Tensor& from = leaves[at++];
    const Tensor& to = leaf.is_in_place ? from : leaves[at++];
    if (leaf.is_next == is_next) pairs.emplace_back(from, to);
  }
  return pairs;
}

absl::Status RowwiseTransform::MapStepPairs(const RowMap& map, const Call& call,
                                            const StepPairs& pairs) const {
  RILL_RETURN_IF_ERROR(
      transforms_internal::MapStepPairs(map, call, pairs, &device_work_))
      << "in " << name();
  return absl::OkStatus();
}

absl::Status RowwiseTransform::OnDeviceReset(const Call& call, Tensors leaves,
                                             TensorDict* /*state*/) const {
  return MapStepPairs(*rows_.map, call, PairsOf(/*is_next=*/false, leaves));
}

absl::Status RowwiseTransform::OnDeviceStep(const Call& call, Tensors leaves,
                                            TensorDict* /*state*/) const {
  return MapStepPairs(*rows_.map, call, PairsOf(/*is_next=*/true, leaves));
}

absl::Status RowwiseTransform::OnDeviceAction(const Call& call, Tensors leaves,
                                              TensorDict* /*state*/) const {
  if (!maps_action_) return absl::OkStatus();
  // PlanAction added them last.
  return MapStepPairs(*rows_.inverse, call,
                      {{leaves[leaves.size() - 2], leaves.back()}});
}

}  // namespace rill
