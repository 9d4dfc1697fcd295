// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/leafwise_transform.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/transforms/leaves.h"

namespace rill {
namespace {

bool HasArithmetic(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

absl::Status WrongDType(absl::string_view caller, absl::string_view key,
                        absl::string_view got) {
  return absl::InvalidArgumentError(absl::StrCat(
      caller, ": \"", key, "\": got ", got, ", want float32 or float64"));
}

template <typename T>
void ApplyAll(const LeafArithmetic& arithmetic, std::byte* data,
              int64_t bytes) {
  T* const values = reinterpret_cast<T*>(data);
  const int64_t count = bytes / static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < count; ++i) values[i] = arithmetic.Apply(values[i]);
}

// The kernel of the host, over elements without gaps.
void ApplyTo(const LeafArithmetic& arithmetic, DType dtype, std::byte* data,
             int64_t bytes) {
  if (dtype == DType::kFloat32) {
    ApplyAll<float>(arithmetic, data, bytes);
  } else {
    ApplyAll<double>(arithmetic, data, bytes);
  }
}

}  // namespace

absl::Status LeafwiseTransform::Forward(TensorDict* batch,
                                        TensorDict* /*state*/) const {
  for (const std::string& key : keys_) {
    RILL_ASSIGN_OR_RETURN(const Tensor leaf,
                          transforms_internal::UpdateLeaf(name(), key, batch));
    if (!HasArithmetic(leaf.dtype())) {
      return WrongDType(name(), key, DTypeName(leaf.dtype()));
    }
    ApplyTo(arithmetic_, leaf.dtype(), leaf.raw_data(), leaf.size_bytes());
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorDictSpec> LeafwiseTransform::Mapped(
    absl::string_view call, const TensorDictSpec& spec) const {
  const std::string caller = absl::StrCat(name(), "::", call);
  TensorDictSpec after = spec;
  for (const std::string& key : keys_) {
    RILL_ASSIGN_OR_RETURN(LeafSpec leaf,
                          transforms_internal::FindSpec(caller, key, spec));
    if (!HasArithmetic(leaf.dtype)) {
      return WrongDType(caller, key, leaf.ToString());
    }
    if (leaf.domain == LeafSpec::Domain::kBounded) {
      RILL_ASSIGN_OR_RETURN(leaf, leaf.MapBounds([&](double bound) {
        return leaf.dtype == DType::kFloat32
                   ? static_cast<double>(
                         arithmetic_.Apply(static_cast<float>(bound)))
                   : arithmetic_.Apply(bound);
      }));
    } else {
      leaf = LeafSpec::Unbounded(leaf.dtype, leaf.shape);
    }
    RILL_RETURN_IF_ERROR(after.Set(key, leaf));
  }
  return after;
}

absl::StatusOr<TensorDictSpec> LeafwiseTransform::ForwardSpec(
    const TensorDictSpec& spec) const {
  return Mapped("ForwardSpec", spec);
}

absl::StatusOr<StepPlan> LeafwiseTransform::PlanSteps(
    const TensorDictSpec& step) const {
  StepPlan plan;
  RILL_ASSIGN_OR_RETURN(plan.spec, Mapped("PlanSteps", step));
  for (const std::string& key : keys_) {
    const LeafSpec& leaf = *step.Find(key);
    plan.leaves.push_back({.key = key,
                           .dtype = leaf.dtype,
                           .shape = leaf.shape,
                           .use = LeafUse::kUpdate});
  }
  return plan;
}

absl::Status LeafwiseTransform::OnReset(absl::Span<const uint8_t> mask,
                                        Leaves leaves,
                                        TensorDict* /*state*/) const {
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (absl::StartsWith(keys_[i], "next/")) continue;
    for (size_t lane = 0; lane < mask.size(); ++lane) {
      if (mask[lane] == 0) continue;
      ApplyTo(arithmetic_, leaves[i].dtype,
              leaves[i].data + static_cast<int64_t>(lane) * leaves[i].width,
              leaves[i].width);
    }
  }
  return absl::OkStatus();
}

absl::Status LeafwiseTransform::OnStep(Leaves leaves,
                                       TensorDict* /*state*/) const {
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (!absl::StartsWith(keys_[i], "next/")) continue;
    ApplyTo(arithmetic_, leaves[i].dtype, leaves[i].data,
            leaves[i].rows * leaves[i].width);
  }
  return absl::OkStatus();
}

}  // namespace rill
