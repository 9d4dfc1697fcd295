// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/structure/rename.h"

#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/transforms/rows/device_rows.h"
#include "rill/transforms/structure/key_paths.h"

namespace rill {
namespace {

using transforms_internal::CheckHas;
using transforms_internal::IsAtOrBelow;
using transforms_internal::IsFixedInSteps;
using transforms_internal::KeptPart;

// The row itself, under another key. In place it does nothing; memmove allows
// `to` to be `from`.
class SameRows final : public RowMap {
 public:
  bool is_in_place() const override { return true; }
  bool maps_on_device() const override { return true; }
  absl::Status MapOnDevice(DeviceRows* /*rows*/) const override {
    return absl::OkStatus();
  }
  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& leaf) const override {
    return leaf;
  }
  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    const int64_t bytes = count * shape.num_elements() * DTypeSize(dtype);
    if (bytes > 0) std::memmove(to, from, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
};

// The key below `to` of a key at or below `from`.
std::string Moved(absl::string_view key, absl::string_view from,
                  absl::string_view to) {
  return absl::StrCat(to, key.substr(from.size()));
}

// Does in a spec what RenameOne does in a batch: what was at or below `to`
// goes, and all leaves and values at or below `from` move there.
absl::Status RenameInSpec(absl::string_view caller, const std::string& from,
                          const std::string& to, bool keeps,
                          TensorDictSpec* spec) {
  RILL_RETURN_IF_ERROR(CheckHas(caller, from, *spec));
  // The leaves are read from a copy, as keys below `to` may be keys of `from`.
  const TensorDictSpec before = *spec;
  *spec = KeptPart(before, [&](absl::string_view key) {
    return !IsAtOrBelow(key, to) && (keeps || !IsAtOrBelow(key, from));
  });
  for (const TensorDictSpec::Leaf& leaf : before.leaves()) {
    if (!IsAtOrBelow(leaf.key, from)) continue;
    RILL_RETURN_IF_ERROR(spec->Set(Moved(leaf.key, from, to), leaf.spec))
        << "in " << caller;
  }
  for (const auto& value : before.non_tensors()) {
    if (!IsAtOrBelow(value.key, from)) continue;
    RILL_RETURN_IF_ERROR(
        spec->SetNonTensor(Moved(value.key, from, to), value.example))
        << "in " << caller;
  }
  return absl::OkStatus();
}

// Nothing but leaves and dictionaries of them, with no more labels than a
// dictionary that the key of a leaf makes in `batch`.
bool HasOnlyLeaves(const TensorDict& dict, const TensorDict& batch) {
  bool has_only =
      !dict.empty() && dict.batch_shape() == batch.batch_shape() &&
      (!dict.device().has_value() || dict.device() == batch.device()) &&
      dict.dim_names().empty();
  dict.ForEachEntry([&](absl::string_view key, EntryKind kind) {
    has_only = has_only && (kind == EntryKind::kTensor ||
                            (kind == EntryKind::kDict &&
                             HasOnlyLeaves(*dict.FindDict(key), batch)));
  });
  return has_only;
}

// No entry of one renaming is at, below or above one of another, so that none
// depends on what those before it have done.
bool AreApart(absl::Span<const std::string> from,
              absl::Span<const std::string> to) {
  const size_t count = from.size();
  const auto key = [&](size_t i) -> absl::string_view {
    return i < count ? from[i] : to[i - count];
  };
  for (size_t i = 0; i < 2 * count; ++i) {
    for (size_t j = 0; j < 2 * count; ++j) {
      // Its own key, also where a renaming changes nothing.
      if (i % count == j % count && key(i) == key(j)) continue;
      if (IsAtOrBelow(key(i), key(j))) return false;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Rename>> Rename::Create(const Options& options) {
  constexpr absl::string_view kCaller = "Rename::Create";
  // Checks of the inverse are the same with the sides turned round.
  // out_keys_inv are what writes look for.
  const Rows inverse = {.map = std::make_shared<SameRows>(),
                        .in_keys = options.in_keys_inv,
                        .out_keys = options.out_keys_inv};
  Rows rows = {.map = inverse.map,
               .in_keys = options.in_keys,
               .out_keys = options.out_keys};
  if (!options.in_keys_inv.empty() || !options.out_keys_inv.empty()) {
    RILL_RETURN_IF_ERROR(CheckRows(kCaller, inverse)) << "of the inverse";
  }
  // Inverse keys alone are allowed: then nothing happens after reads.
  if (!options.in_keys.empty() || !options.out_keys.empty() ||
      options.in_keys_inv.empty()) {
    RILL_RETURN_IF_ERROR(CheckRows(kCaller, rows));
  }
  if (options.out_keys.size() != options.in_keys.size()) {
    return InvalidArgument(
        kCaller, ": out_keys: got none, want one for each of in_keys");
  }
  for (const std::string& key : options.out_keys) {
    if (!absl::c_linear_search(options.in_keys, key)) continue;
    return InvalidArgument(kCaller, ": out_keys: got \"", key,
                           "\", one of in_keys: put two transforms in a row");
  }
  return absl::WrapUnique(new Rename(options, std::move(rows)));
}

Rename::Rename(const Options& options, Rows rows)
    : RowwiseTransform(std::move(rows)),
      in_keys_inv_(options.in_keys_inv),
      out_keys_inv_(options.out_keys_inv.empty() ? options.in_keys_inv
                                                 : options.out_keys_inv),
      create_copy_(options.create_copy),
      are_apart_(AreApart(options.in_keys, options.out_keys)),
      are_apart_inv_(AreApart(out_keys_inv_, in_keys_inv_)) {}

OptionValues Rename::option_values() const {
  return OptionValues()
      .Texts("in_keys", rows().in_keys)
      .Texts("out_keys", rows().out_keys)
      .Texts("in_keys_inv", in_keys_inv_)
      .Texts("out_keys_inv", out_keys_inv_)
      .Bool("create_copy", create_copy_);
}

// `is_own`: the copy has bytes of its own.
absl::Status Rename::RenameOne(absl::string_view from, const std::string& to,
                               bool is_own, TensorDict* batch) const {
  if (from == to) return absl::OkStatus();
  // The entry moves with all below it, and no byte is copied.
  if (!create_copy_) {
    RILL_RETURN_IF_ERROR(batch->Rename(from, to));
    return transforms_internal::DropEmptyAround(from, batch);
  }
  if (is_own && batch->Find(from) != nullptr) {
    return MapLeaf(*rows().map, from, to, batch);
  }
  // Leaf by leaf, where no copy replaces what is still to be copied.
  if (const TensorDict* const dict = batch->FindDict(from);
      is_own && dict != nullptr && !IsAtOrBelow(from, to) &&
      !IsAtOrBelow(to, from) && HasOnlyLeaves(*dict, *batch)) {
    if (batch->Contains(to)) {
      RILL_RETURN_IF_ERROR(batch->Delete(to));
    }
    return MapLeaves(
        *rows().map, from, to,
        [from](absl::string_view key, const Tensor&) {
          return IsAtOrBelow(key, from);
        },
        batch);
  }
  // A dictionary with that one entry, which is then renamed by itself.
  RILL_ASSIGN_OR_RETURN(TensorDict copy, batch->Select({from}));
  // After a read the copy has bytes of its own: later transforms change leaves
  // in place. Before a write bytes are only read, so they may be shared.
  if (is_own) {
    RILL_ASSIGN_OR_RETURN(copy, copy.Clone());
  }
  RILL_RETURN_IF_ERROR(copy.Rename(from, to));
  if (batch->Contains(to)) {
    RILL_RETURN_IF_ERROR(batch->Delete(to));
  }
  return batch->Update(copy);
}

absl::Status Rename::RenameAll(absl::Span<const std::string> from,
                               absl::Span<const std::string> to, bool are_apart,
                               bool is_own, TensorDict* batch) const {
  const auto rename = [&](TensorDict* dict) -> absl::Status {
    for (size_t i = 0; i < from.size(); ++i) {
      RILL_RETURN_IF_ERROR(RenameOne(from[i], to[i], is_own, dict))
          << "in Rename";
    }
    return absl::OkStatus();
  };
  if (batch->is_locked()) return rename(batch);
  if (!are_apart) {
    TensorDict renamed = *batch;
    RILL_RETURN_IF_ERROR(rename(&renamed));
    *batch = std::move(renamed);
    return absl::OkStatus();
  }
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == to[i]) continue;
    RILL_RETURN_IF_ERROR(CheckHas("Rename", from[i], *batch));
    RILL_RETURN_IF_ERROR(
        transforms_internal::CheckNoLeafAbove("Rename", to[i], *batch));
  }
  return rename(batch);
}

absl::Status Rename::Forward(TensorDict* batch, TensorDict* /*state*/) const {
  return RenameAll(rows().in_keys, rows().out_keys, are_apart_,
                   /*is_own=*/true, batch);
}

absl::Status Rename::Inverse(TensorDict* batch, TensorDict* /*state*/) const {
  return RenameAll(out_keys_inv_, in_keys_inv_, are_apart_inv_,
                   /*is_own=*/false, batch);
}

absl::StatusOr<TensorDictSpec> Rename::ForwardSpec(
    const TensorDictSpec& spec) const {
  TensorDictSpec result = spec;
  for (size_t i = 0; i < rows().in_keys.size(); ++i) {
    RILL_RETURN_IF_ERROR(RenameInSpec("Rename::ForwardSpec", rows().in_keys[i],
                                      rows().out_keys[i], create_copy_,
                                      &result));
  }
  return result;
}

absl::StatusOr<TensorDictSpec> Rename::InverseSpec(
    const TensorDictSpec& spec) const {
  TensorDictSpec result = spec;
  for (size_t i = 0; i < in_keys_inv_.size(); ++i) {
    if (out_keys_inv_[i] == in_keys_inv_[i]) continue;
    RILL_RETURN_IF_ERROR(RenameInSpec("Rename::InverseSpec", out_keys_inv_[i],
                                      in_keys_inv_[i], create_copy_, &result));
  }
  return result;
}

// The same on a plan: leaves move by their keys. Copies are collected first,
// since what is at `to` is dropped before they are added.
void Rename::Extend(GatherPlan* plan) const {
  for (size_t i = 0; i < rows().in_keys.size(); ++i) {
    const std::string& from = rows().in_keys[i];
    const std::string& to = rows().out_keys[i];
    std::vector<GatherPlan::Leaf> moved;
    for (const GatherPlan::Leaf& leaf : plan->leaves) {
      if (!IsAtOrBelow(leaf.key, from)) continue;
      moved.push_back(leaf);
      moved.back().key = Moved(leaf.key, from, to);
    }
    std::erase_if(plan->leaves, [&](const GatherPlan::Leaf& leaf) {
      return IsAtOrBelow(leaf.key, to) ||
             (!create_copy_ && IsAtOrBelow(leaf.key, from));
    });
    plan->leaves.insert(plan->leaves.end(), moved.begin(), moved.end());
  }
}

absl::StatusOr<StepPlan> Rename::PlanSteps(const TensorDictSpec& step) const {
  constexpr absl::string_view kCaller = "Rename::PlanSteps";
  if (!in_keys_inv_.empty()) {
    return InvalidArgument(
        kCaller, ": in_keys_inv: got \"", in_keys_inv_[0],
        "\", want none beside an environment, whose action keeps its key");
  }
  RILL_ASSIGN_OR_RETURN(StepPlan plan, RowwiseTransform::PlanSteps(step));
  for (size_t i = 0; i < rows().in_keys.size(); ++i) {
    // A fixed key may be the source of a copy, and nothing else.
    for (const std::string& key : {rows().in_keys[i], rows().out_keys[i]}) {
      if (!IsFixedInSteps(key) || (create_copy_ && key != rows().out_keys[i])) {
        continue;
      }
      return InvalidArgument(kCaller, ": got \"", key,
                             "\", which the steps of an environment "
                             "keep; rename it in a buffer, or copy it");
    }
    if (create_copy_) continue;
    plan.spec.Erase(rows().in_keys[i]);
    plan.spec.Erase(absl::StrCat("next/", rows().in_keys[i]));
  }
  return plan;
}

}  // namespace rill
