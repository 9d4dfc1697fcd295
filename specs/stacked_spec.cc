// SPDX-License-Identifier: Apache-2.0
#include "rill/specs/stacked_spec.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

// The error of the spec at `index`.
absl::Status WithPlace(absl::string_view caller, int64_t index,
                       const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(caller, ": spec ", index,
                                                  ": ", status.message()));
}

// Equal keys, dtypes, shapes and values; domains may differ.
bool SameLayout(const TensorDictSpec& a, const TensorDictSpec& b) {
  const auto fits = [&](const TensorDictSpec::Leaf& leaf) {
    const LeafSpec* other = b.Find(leaf.key);
    return other != nullptr && other->dtype == leaf.spec.dtype &&
           other->shape == leaf.spec.shape;
  };
  return a.leaves().size() == b.leaves().size() &&
         a.non_tensors() == b.non_tensors() &&
         std::all_of(a.leaves().begin(), a.leaves().end(), fits);
}

}  // namespace

absl::StatusOr<StackedSpec> StackedSpec::Create(
    absl::Span<const TensorDictSpec> specs, int dim) {
  if (specs.empty()) {
    return InvalidArgument(
        "StackedSpec::Create: number of specs: got 0, want at least 1");
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    for (const TensorDictSpec::Leaf& leaf : specs[i].leaves()) {
      // Every leaf has to have room for the new dimension.
      const absl::Status status = leaf.spec.Unsqueeze(dim).status();
      if (status.ok()) continue;
      return absl::Status(
          status.code(),
          absl::StrCat("StackedSpec::Create: \"", leaf.key, "\" of spec ", i,
                       ": ", status.message()));
    }
  }
  StackedSpec stacked;
  stacked.size_ = static_cast<int64_t>(specs.size());
  stacked.dim_ = dim;
  // Equal specs are kept once.
  const bool same =
      std::all_of(specs.begin(), specs.end(),
                  [&](const TensorDictSpec& spec) { return spec == specs[0]; });
  stacked.specs_.assign(specs.begin(), same ? specs.begin() + 1 : specs.end());
  return stacked;
}

bool StackedSpec::has_one_layout() const {
  return std::all_of(
      specs_.begin(), specs_.end(),
      [&](const TensorDictSpec& spec) { return SameLayout(specs_[0], spec); });
}

absl::Status StackedSpec::CheckOneLayout(absl::string_view caller) const {
  if (has_one_layout()) return absl::OkStatus();
  return FailedPrecondition(
      caller, ": got ", ToString(),
      ", want specs of equal keys, dtypes and shapes; use lists");
}

absl::Status StackedSpec::CheckSize(absl::string_view caller,
                                    size_t size) const {
  if (static_cast<int64_t>(size) == size_) return absl::OkStatus();
  return InvalidArgument(caller, ": number of dictionaries: got ", size,
                         ", want ", size_);
}

absl::StatusOr<TensorDictSpec> StackedSpec::Index(int64_t index) const {
  if (index >= 0 && index < size_) return At(index);
  return OutOfRange("StackedSpec::Index: index: got ", index,
                    ", want one in [0, ", size_, ")");
}

absl::StatusOr<TensorDictSpec> StackedSpec::Uniform() const {
  constexpr absl::string_view kCaller = "StackedSpec::Uniform";
  for (const TensorDictSpec& spec : specs_) {
    if (SameLayout(specs_[0], spec)) continue;
    return InvalidArgument(kCaller, ": got ", spec.ToString(), " beside ",
                           specs_[0].ToString(),
                           ", want equal keys, dtypes and "
                           "shapes");
  }
  TensorDictSpec one = specs_[0];
  if (std::any_of(specs_.begin(), specs_.end(),
                  [&](const TensorDictSpec& spec) {
                    return spec.device() != one.device();
                  })) {
    one.set_device(std::nullopt);
  }
  // Each leaf's specs of all places, stacked.
  return one.MapLeaves([&](absl::string_view key, const LeafSpec&) {
    std::vector<LeafSpec> leaves;
    for (int64_t i = 0; i < size_; ++i) leaves.push_back(*At(i).Find(key));
    return LeafSpec::Stack(leaves, dim_);
  });
}

absl::StatusOr<std::vector<TensorDict>> StackedSpec::RandomList(
    const Shape& batch_shape, const Rng& rng, uint64_t batch) const {
  std::vector<TensorDict> dicts;
  for (int64_t i = 0; i < size_; ++i) {
    // A seed of its own for each place, so that no two see the same numbers.
    const Rng own(rng.Bits64(batch, static_cast<uint32_t>(i)),
                  RngStream::kSpec);
    auto dict = At(i).Random(batch_shape, own, 0);
    if (!dict.ok()) {
      return WithPlace("StackedSpec::Random", i, dict.status());
    }
    dicts.push_back(*std::move(dict));
  }
  return dicts;
}

absl::StatusOr<TensorDict> StackedSpec::Random(const Shape& batch_shape,
                                               const Rng& rng,
                                               uint64_t batch) const {
  RILL_RETURN_IF_ERROR(CheckOneLayout("StackedSpec::Random"));
  RILL_ASSIGN_OR_RETURN(const std::vector<TensorDict> dicts,
                        RandomList(batch_shape, rng, batch));
  return StackValues(dicts);
}

absl::StatusOr<std::vector<TensorDict>> StackedSpec::ZeroList(
    const Shape& batch_shape) const {
  std::vector<TensorDict> dicts;
  for (int64_t i = 0; i < size_; ++i) {
    RILL_ASSIGN_OR_RETURN(dicts.emplace_back(), At(i).Zero(batch_shape));
  }
  return dicts;
}

absl::Status StackedSpec::CheckList(absl::string_view caller,
                                    absl::Span<const TensorDict> dicts) const {
  RILL_RETURN_IF_ERROR(CheckSize(caller, dicts.size()));
  for (int64_t i = 0; i < size_; ++i) {
    RILL_RETURN_IF_ERROR(
        At(i).CheckValues(absl::StrCat(caller, ": spec ", i), dicts[i]));
  }
  return absl::OkStatus();
}

absl::Status StackedSpec::CheckValues(absl::string_view caller,
                                      const TensorDict& dict) const {
  RILL_RETURN_IF_ERROR(CheckOneLayout(caller));
  absl::StatusOr<std::vector<TensorDict>> dicts = Unstack(dict);
  if (!dicts.ok()) {
    return absl::Status(dicts.status().code(),
                        absl::StrCat(caller, ": ", dicts.status().message()));
  }
  return CheckList(caller, *dicts);
}

absl::StatusOr<std::vector<TensorDict>> StackedSpec::ProjectList(
    absl::Span<const TensorDict> dicts) const {
  RILL_RETURN_IF_ERROR(CheckSize("StackedSpec::ProjectList", dicts.size()));
  std::vector<TensorDict> projected;
  for (int64_t i = 0; i < size_; ++i) {
    auto dict = At(i).Project(dicts[i]);
    if (!dict.ok()) {
      return WithPlace("StackedSpec::Project", i, dict.status());
    }
    projected.push_back(*std::move(dict));
  }
  return projected;
}

absl::StatusOr<TensorDict> StackedSpec::Project(const TensorDict& dict) const {
  RILL_RETURN_IF_ERROR(CheckOneLayout("StackedSpec::Project"));
  RILL_ASSIGN_OR_RETURN(const std::vector<TensorDict> dicts, Unstack(dict));
  RILL_ASSIGN_OR_RETURN(const std::vector<TensorDict> projected,
                        ProjectList(dicts));
  return StackValues(projected);
}

absl::StatusOr<std::vector<TensorDict>> StackedSpec::Unstack(
    const TensorDict& dict) const {
  // The dimension is one of the leaves, behind the batch's.
  const int at = dict.batch_shape().rank() + dim_;
  absl::Status status;
  dict.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    if (at < leaf.rank() && leaf.shape()[at] == size_) return;
    status.Update(InvalidArgument("StackedSpec::Unstack: \"", key,
                                  "\": got shape ", leaf.shape().ToString(),
                                  ", want ", size_, " at dimension ", at));
  });
  RILL_RETURN_IF_ERROR(status);
  std::vector<TensorDict> dicts;
  for (int64_t i = 0; i < size_; ++i) {
    RILL_ASSIGN_OR_RETURN(
        dicts.emplace_back(),
        dict.Apply([&](absl::string_view, const Tensor& leaf) {
          return leaf.Select(at, i);
        }));
  }
  return dicts;
}

absl::StatusOr<TensorDict> StackedSpec::StackValues(
    absl::Span<const TensorDict> dicts) const {
  constexpr absl::string_view kCaller = "StackedSpec::StackValues";
  RILL_RETURN_IF_ERROR(CheckSize(kCaller, dicts.size()));
  const int batch_rank = dicts[0].batch_shape().rank();
  RILL_ASSIGN_OR_RETURN(const TensorDict stacked, Stack(dicts, batch_rank));
  // Stack puts the new dimension behind the batch's; here it moves to its place
  // among the leaf's own. The batch shape is that of the members.
  return stacked.MapShape(
      dicts[0].batch_shape(),
      [&](const Tensor& leaf) -> absl::StatusOr<Tensor> {
        if (batch_rank + dim_ >= leaf.rank()) {
          return InvalidArgument(
              kCaller, ": got shape ", leaf.shape().ToString(),
              ", want room for dimension ", batch_rank + dim_);
        }
        std::vector<int> order;
        for (int d = 0; d < leaf.rank(); ++d) order.push_back(d);
        std::rotate(order.begin() + batch_rank, order.begin() + batch_rank + 1,
                    order.begin() + batch_rank + dim_ + 1);
        RILL_ASSIGN_OR_RETURN(const Tensor turned, leaf.Permute(order));
        return turned.Contiguous();
      });
}

std::string StackedSpec::ToString() const {
  if (is_uniform()) return absl::StrCat(size_, " x ", specs_[0].ToString());
  return absl::StrCat(
      "[",
      absl::StrJoin(specs_, ", ",
                    [](std::string* out, const TensorDictSpec& spec) {
                      absl::StrAppend(out, spec.ToString());
                    }),
      "]");
}

}  // namespace rill
