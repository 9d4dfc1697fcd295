// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/values/finite_tensor_dict_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/specs/bound_rows.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/leaves.h"

namespace rill {
namespace {

constexpr absl::string_view kName = "FiniteTensorDictCheck";
// Stands between the root's leaves and those below next. The calls see no keys:
// they know it by its dtype, which no leaf of floating point has.
constexpr absl::string_view kBoundary = "next/done";

bool IsFinite(float x) { return std::isfinite(x); }
bool IsFinite(double x) { return std::isfinite(x); }
// The exponent of 16-bit floats is all ones in NaN and in infinities.
bool IsFinite(Float16 x) { return (x.bits & 0x7c00) != 0x7c00; }
bool IsFinite(BFloat16 x) { return (x.bits & 0x7f80) != 0x7f80; }

// The place of the first value that is not finite; `count` where all are
// finite. A block at a time, without a branch a value: the compiler makes
// vectors of it.
template <typename T>
int64_t FirstNotFinite(const T* values, int64_t count) {
  constexpr int64_t kBlock = 256;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, count);
    bool all_finite = true;
    for (int64_t i = begin; i < end; ++i) {
      all_finite = all_finite & IsFinite(values[i]);
    }
    // Only a block with such a value is searched.
    for (int64_t i = begin; i < end && !all_finite; ++i) {
      if (!IsFinite(values[i])) return i;
    }
  }
  return count;
}

int64_t FirstNotFinite(DType dtype, const std::byte* data, int64_t count) {
  switch (dtype) {
    case DType::kFloat16:
      return FirstNotFinite(reinterpret_cast<const Float16*>(data), count);
    case DType::kBFloat16:
      return FirstNotFinite(reinterpret_cast<const BFloat16*>(data), count);
    case DType::kFloat32:
      return FirstNotFinite(reinterpret_cast<const float*>(data), count);
    case DType::kFloat64:
      return FirstNotFinite(reinterpret_cast<const double*>(data), count);
    case DType::kComplex64:
      return FirstNotFinite(reinterpret_cast<const float*>(data), 2 * count) /
             2;
    case DType::kComplex128:
      return FirstNotFinite(reinterpret_cast<const double*>(data), 2 * count) /
             2;
    default:
      return count;
  }
}

bool IsChecked(DType dtype) {
  return IsFloatingPoint(dtype) || dtype == DType::kComplex64 ||
         dtype == DType::kComplex128;
}

// The error of an element, with its index in the leaf.
absl::Status NotFinite(absl::string_view key, int64_t element,
                       const Shape& shape) {
  // From a row-major number to an index, from the last dimension on.
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()));
  for (size_t d = index.size(); d-- > 0;) {
    const int64_t size = shape[static_cast<int>(d)];
    index[d] = element % size;
    element /= size;
  }
  return InvalidArgument(kName, ": \"", key, "\": got NaN or an infinity at [",
                         absl::StrJoin(index, ", "), "], want finite values");
}

// The dtypes and shapes of leaves, planned or bound, as a text.
template <typename Leaf>
std::string LayoutOf(absl::Span<const Leaf> leaves) {
  std::string layout;
  for (const Leaf& leaf : leaves) {
    absl::StrAppend(&layout, DTypeName(leaf.dtype), leaf.shape.ToString());
  }
  return layout;
}

// The places of the root's leaves: up to the boundary.
size_t CountRoots(absl::Span<const BoundLeaf> leaves) {
  size_t end = 0;
  while (leaves[end].dtype != DType::kBool) ++end;
  return end;
}

absl::Status CheckTensor(absl::string_view key, const Tensor& leaf) {
  const int64_t found =
      FirstNotFinite(leaf.dtype(), leaf.raw_data(), leaf.num_elements());
  if (found == leaf.num_elements()) return absl::OkStatus();
  return NotFinite(key, found, leaf.shape());
}

absl::Status CheckLeaves(const TensorDict& dict) {
  absl::Status status;
  dict.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    if (!status.ok() || !IsChecked(leaf.dtype())) return;
    const auto found = transforms_internal::ReadLeaf(kName, key, dict);
    status = found.ok() ? CheckTensor(key, *found) : found.status();
  });
  return status;
}

// A key, from its dictionary on; a text is made for errors alone.
struct Place {
  const Place* parent = nullptr;
  absl::string_view key;

  std::string ToString() const {
    return parent == nullptr ? std::string(key)
                             : absl::StrCat(parent->ToString(), "/", key);
  }
};

// The tensors that are no leaves: those of LazyStacks and ragged rows.
absl::Status CheckOthers(const Place* parent, const TensorDict& dict);

absl::Status CheckStack(const Place& place, const LazyStack& stack) {
  for (int64_t i = 0; i < stack.size(); ++i) {
    const TensorDict& member = stack.members()[static_cast<size_t>(i)];
    absl::Status status = CheckLeaves(member);
    if (status.ok()) status = CheckOthers(nullptr, member);
    if (status.ok()) continue;
    return absl::Status(status.code(),
                        absl::StrCat(status.message(), "; in member ", i,
                                     " of \"", place.ToString(), "\""));
  }
  return absl::OkStatus();
}

absl::Status CheckRagged(const Place& place, const Tensor& values) {
  if (!IsChecked(values.dtype())) return absl::OkStatus();
  const std::string key = place.ToString();
  if (!values.is_host()) {
    return transforms_internal::OnDevice(kName, key, values.device());
  }
  RILL_ASSIGN_OR_RETURN(const Tensor dense, values.Contiguous());
  return CheckTensor(key, dense);
}

absl::Status CheckOthers(const Place* parent, const TensorDict& dict) {
  absl::Status status;
  dict.ForEachEntry([&](absl::string_view key, EntryKind kind) {
    if (!status.ok()) return;
    const Place place = {parent, key};
    if (kind == EntryKind::kDict) {
      status = CheckOthers(&place, *dict.FindDict(key));
    } else if (kind == EntryKind::kRagged) {
      status = CheckRagged(place, dict.GetRagged(key)->values());
    } else if (kind == EntryKind::kLazyStack) {
      status = CheckStack(place, *dict.GetLazyStack(key));
    }
  });
  return status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FiniteTensorDictCheck>>
FiniteTensorDictCheck::Create() {
  return std::make_unique<FiniteTensorDictCheck>();
}

absl::Status FiniteTensorDictCheck::Forward(TensorDict* batch,
                                            TensorDict* /*state*/) const {
  RILL_RETURN_IF_ERROR(CheckLeaves(*batch));
  return CheckOthers(nullptr, *batch);
}

absl::StatusOr<TensorDictSpec> FiniteTensorDictCheck::ForwardSpec(
    const TensorDictSpec& spec) const {
  for (const auto& [key, leaf] : spec.leaves()) {
    if (!IsChecked(leaf.dtype)) continue;
    RILL_RETURN_IF_ERROR(transforms_internal::CheckOnHost(
        "FiniteTensorDictCheck::ForwardSpec", key, spec));
  }
  return spec;
}

absl::StatusOr<StepPlan> FiniteTensorDictCheck::PlanSteps(
    const TensorDictSpec& step) const {
  // The flag marks the boundary, so steps have to have it.
  StepPlan plan = {.spec = step};
  const auto add = [&](bool is_next) {
    for (const auto& [key, leaf] : step.leaves()) {
      if (!IsChecked(leaf.dtype) || key == "action" ||
          absl::StartsWith(key, "next/") != is_next) {
        continue;
      }
      transforms_internal::AddLeaf(key, leaf, LeafUse::kRead, &plan);
    }
  };
  add(/*is_next=*/false);
  RILL_RETURN_IF_ERROR(transforms_internal::AddFlag(
      "FiniteTensorDictCheck::PlanSteps", kBoundary, LeafUse::kRead, &plan));
  add(/*is_next=*/true);
  absl::MutexLock lock(&mutex_);
  std::vector<std::set<std::string>>& keys =
      keys_[LayoutOf(absl::MakeConstSpan(plan.leaves))];
  keys.resize(plan.leaves.size());
  for (size_t i = 0; i < keys.size(); ++i) keys[i].insert(plan.leaves[i].key);
  return plan;
}

absl::Status FiniteTensorDictCheck::CheckRows(Leaves leaves, size_t place,
                                              int64_t first,
                                              int64_t rows) const {
  const BoundLeaf& leaf = leaves[place];
  const int64_t width = leaf.shape.num_elements();
  const int64_t found =
      FirstNotFinite(leaf.dtype, leaf.data + first * leaf.width, rows * width);
  if (found == rows * width) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  std::vector<std::set<std::string>>& keys = keys_[LayoutOf(leaves)];
  keys.resize(leaves.size());
  // An equal transform may have made the plan.
  if (keys[place].empty()) keys[place] = {absl::StrCat("leaf ", place)};
  return NotFinite(absl::StrJoin(keys[place], "\" or \""),
                   first * width + found,
                   Shape({leaf.rows}).Concat(leaf.shape));
}

absl::Status FiniteTensorDictCheck::OnReset(absl::Span<const uint8_t> mask,
                                            Leaves leaves,
                                            TensorDict* /*state*/) const {
  for (size_t i = 0; i < CountRoots(leaves); ++i) {
    // Lanes that were not reset were checked by their step.
    for (size_t lane = 0; lane < mask.size(); ++lane) {
      if (mask[lane] == 0) continue;
      RILL_RETURN_IF_ERROR(CheckRows(leaves, i, static_cast<int64_t>(lane), 1));
    }
  }
  return absl::OkStatus();
}

absl::Status FiniteTensorDictCheck::OnStep(Leaves leaves,
                                           TensorDict* /*state*/) const {
  for (size_t i = CountRoots(leaves) + 1; i < leaves.size(); ++i) {
    RILL_RETURN_IF_ERROR(CheckRows(leaves, i, 0, leaves[i].rows));
  }
  return absl::OkStatus();
}

}  // namespace rill
