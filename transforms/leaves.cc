// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/leaves.h"

#include <algorithm>
#include <cstddef>

#include "absl/base/attributes.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"

namespace rill::transforms_internal {
namespace {

// The error where Find, which allocates nothing, has found no tensor.
ABSL_ATTRIBUTE_COLD absl::Status NoTensor(absl::string_view caller,
                                          absl::string_view key,
                                          const TensorDict& dict) {
  // Get makes the message with the keys that there are.
  const absl::Status status = dict.Get(key).status();
  if (!status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat(caller, ": ", status.message()));
  }
  return InvalidArgument(caller, ": \"", key,
                         "\": got tensors of a LazyStack, want one tensor; "
                         "stack them first (LazyStack::ToDense)");
}

// The leaf under `key`, in host memory, of any layout. The tensor is the
// dictionary's own and is valid until that changes.
absl::StatusOr<const Tensor*> FindOnHost(absl::string_view caller,
                                         absl::string_view key,
                                         const TensorDict& dict) {
  const Tensor* leaf = dict.Find(key);
  if (leaf == nullptr) return NoTensor(caller, key, dict);
  if (leaf->is_host()) return leaf;
  return OnDevice(caller, key, leaf->device());
}

// The same, of this dtype and shape.
absl::StatusOr<const Tensor*> FindOnHost(absl::string_view caller,
                                         absl::string_view key, DType dtype,
                                         const Shape& shape,
                                         const TensorDict& dict) {
  RILL_ASSIGN_OR_RETURN(const Tensor* leaf, FindOnHost(caller, key, dict));
  RILL_RETURN_IF_ERROR(CheckLeaf(caller, key, *leaf, dtype, shape));
  return leaf;
}

// `leaf` where it may be written, else a copy that replaces it in `dict`.
absl::StatusOr<Tensor> Update(absl::string_view key, const Tensor& leaf,
                              TensorDict* dict) {
  // A batch's tensors were passed in to be changed, so other holders of the
  // bytes are no reason for a copy. Strides and memory that is not writable
  // are.
  if (MayReuse(leaf, leaf.dtype(), leaf.shape(), {}, {.is_passed_in = true})) {
    return leaf;
  }
  RILL_ASSIGN_OR_RETURN(Tensor copy, leaf.Clone());
  RILL_RETURN_IF_ERROR(dict->Set(key, copy));
  return copy;
}

}  // namespace

absl::StatusOr<Tensor> ReadLeaf(absl::string_view caller, absl::string_view key,
                                const TensorDict& dict) {
  RILL_ASSIGN_OR_RETURN(const Tensor* leaf, FindOnHost(caller, key, dict));
  // Shares the bytes of a leaf without gaps: no copy.
  return leaf->Contiguous();
}

absl::StatusOr<Tensor> ReadLeaf(absl::string_view caller, absl::string_view key,
                                DType dtype, const Shape& shape,
                                const TensorDict& dict) {
  RILL_ASSIGN_OR_RETURN(const Tensor* leaf,
                        FindOnHost(caller, key, dtype, shape, dict));
  return leaf->Contiguous();
}

absl::StatusOr<Tensor> FetchLeaf(absl::string_view caller,
                                 absl::string_view key, DType dtype,
                                 const Shape& shape, const TensorDict& dict) {
  RILL_ASSIGN_OR_RETURN(const Tensor leaf, GetLeaf(caller, key, dict));
  if (leaf.is_host()) return ReadLeaf(caller, key, dtype, shape, dict);
  RILL_RETURN_IF_ERROR(CheckLeaf(caller, key, leaf, dtype, shape));
  return leaf.To(Device::Cpu());
}

absl::StatusOr<Tensor> GetLeaf(absl::string_view caller, absl::string_view key,
                               const TensorDict& dict) {
  const Tensor* leaf = dict.Find(key);
  if (leaf == nullptr) return NoTensor(caller, key, dict);
  return *leaf;
}

absl::StatusOr<Tensor> UpdateLeaf(absl::string_view caller,
                                  absl::string_view key, TensorDict* dict) {
  RILL_ASSIGN_OR_RETURN(const Tensor* leaf, FindOnHost(caller, key, *dict));
  return Update(key, *leaf, dict);
}

absl::StatusOr<Tensor> UpdateLeaf(absl::string_view caller,
                                  absl::string_view key, DType dtype,
                                  const Shape& shape, TensorDict* dict) {
  RILL_ASSIGN_OR_RETURN(const Tensor* leaf,
                        FindOnHost(caller, key, dtype, shape, *dict));
  return Update(key, *leaf, dict);
}

absl::StatusOr<Tensor> WriteLeaf(absl::string_view key, DType dtype,
                                 const Shape& shape, const ReuseRules& rules,
                                 TensorDict* dict) {
  const Tensor* leaf = dict->Find(key);
  if (leaf != nullptr && MayReuse(*leaf, dtype, shape, {}, rules)) return *leaf;
  // In the memory that the rules name: pinned memory stays pinned.
  RILL_ASSIGN_OR_RETURN(Tensor made, Tensor::Empty(dtype, shape, rules.memory));
  RILL_RETURN_IF_ERROR(dict->Set(key, made));
  return made;
}

absl::Status CheckLeaf(absl::string_view caller, absl::string_view key,
                       const Tensor& leaf, DType dtype, const Shape& shape) {
  if (leaf.dtype() == dtype && leaf.shape() == shape) return absl::OkStatus();
  return InvalidArgument(caller, ": \"", key, "\": got ",
                         DTypeName(leaf.dtype()), leaf.shape().ToString(),
                         ", want ", DTypeName(dtype), shape.ToString());
}

absl::Status CheckKeys(absl::string_view caller, absl::string_view option,
                       absl::Span<const std::string> keys) {
  for (size_t i = 0; i < keys.size(); ++i) {
    RILL_RETURN_IF_ERROR(CheckKey(keys[i])) << caller << ": " << option;
    const auto before = keys.first(i);
    if (std::find(before.begin(), before.end(), keys[i]) != before.end()) {
      return InvalidArgument(caller, ": ", option, ": got \"", keys[i],
                             "\" twice, want once");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSomeKeys(absl::string_view caller, absl::string_view option,
                           absl::Span<const std::string> keys) {
  if (keys.empty()) {
    return InvalidArgument(caller, ": ", option,
                           ": got none, want at least one");
  }
  return CheckKeys(caller, option, keys);
}

absl::Status CheckRootKeys(absl::string_view caller, absl::string_view option,
                           absl::Span<const std::string> keys) {
  RILL_RETURN_IF_ERROR(CheckSomeKeys(caller, option, keys));
  for (const std::string& key : keys) {
    if (!absl::StartsWith(key, "next/")) continue;
    return InvalidArgument(caller, ": ", option, ": got \"", key,
                           "\", want keys of the root");
  }
  return absl::OkStatus();
}

Device DeviceOf(const TensorDict& batch) {
  Device device = Device::Cpu();
  batch.ForEachLeaf([&device](absl::string_view, const Tensor& leaf) {
    if (device.is_cpu() && !leaf.is_host()) device = leaf.device();
  });
  return device;
}

absl::Status OnDevice(absl::string_view caller, absl::string_view key,
                      Device device) {
  return FailedPrecondition(caller, ": \"", key, "\" lies on ",
                            device.ToString(),
                            ", want host memory; put ToDevice behind this "
                            "transform, or DeviceCast to "
                            "cpu before it");
}

absl::Status CheckLiesOn(absl::string_view caller, absl::string_view key,
                         const Tensor& leaf, Device device) {
  const Device found = leaf.is_host() ? Device::Cpu() : leaf.device();
  if (found == device) return absl::OkStatus();
  if (device.is_cpu()) return OnDevice(caller, key, found);
  return FailedPrecondition(
      caller, ": \"", key, "\" lies on ", found.ToString(), ", want ",
      device.ToString(), " as the leaves before it; put ToDevice before this");
}

absl::Status CheckOnHost(absl::string_view caller, absl::string_view key,
                         const TensorDictSpec& spec) {
  const Device device = spec.device().value_or(Device::Cpu());
  return device.is_cpu() ? absl::OkStatus() : OnDevice(caller, key, device);
}

absl::StatusOr<LeafSpec> GetSpec(absl::string_view caller,
                                 absl::string_view key,
                                 const TensorDictSpec& spec) {
  const LeafSpec* leaf = spec.Find(key);
  if (leaf != nullptr) return *leaf;
  return NotFound(caller, ": no leaf \"", key, "\", there are [",
                  absl::StrJoin(spec.LeafKeys(), ", "), "]");
}

absl::StatusOr<LeafSpec> FindSpec(absl::string_view caller,
                                  absl::string_view key,
                                  const TensorDictSpec& spec) {
  RILL_RETURN_IF_ERROR(CheckOnHost(caller, key, spec));
  return GetSpec(caller, key, spec);
}

absl::Status Misfit(absl::string_view caller, absl::string_view key,
                    const LeafSpec& got, absl::string_view want) {
  return InvalidArgument(caller, ": \"", key, "\": got ", got.ToString(),
                         ", want ", want);
}

bool IsFloat32Or64(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

absl::StatusOr<LeafSpec> FindFloat(absl::string_view caller,
                                   absl::string_view key,
                                   const TensorDictSpec& spec) {
  RILL_RETURN_IF_ERROR(CheckOnHost(caller, key, spec));
  return GetFloat(caller, key, spec);
}

absl::StatusOr<LeafSpec> GetFloat(absl::string_view caller,
                                  absl::string_view key,
                                  const TensorDictSpec& spec) {
  RILL_ASSIGN_OR_RETURN(LeafSpec leaf, GetSpec(caller, key, spec));
  if (IsFloat32Or64(leaf.dtype)) return leaf;
  return Misfit(caller, key, leaf, "float32 or float64");
}

absl::StatusOr<LeafSpec> FindReward(absl::string_view caller,
                                    absl::string_view key,
                                    const TensorDictSpec& spec) {
  RILL_RETURN_IF_ERROR(CheckOnHost(caller, key, spec));
  return GetReward(caller, key, spec);
}

absl::StatusOr<LeafSpec> GetReward(absl::string_view caller,
                                   absl::string_view key,
                                   const TensorDictSpec& spec) {
  RILL_ASSIGN_OR_RETURN(LeafSpec leaf, GetSpec(caller, key, spec));
  if (IsFloat32Or64(leaf.dtype) && leaf.shape == Shape({1})) return leaf;
  return Misfit(caller, key, leaf, "float32[1] or float64[1]");
}

absl::Status CheckIsFlag(absl::string_view caller, absl::string_view key,
                         const TensorDictSpec& spec) {
  RILL_RETURN_IF_ERROR(CheckOnHost(caller, key, spec));
  return CheckIsFlagAnywhere(caller, key, spec);
}

absl::Status CheckIsFlagAnywhere(absl::string_view caller,
                                 absl::string_view key,
                                 const TensorDictSpec& spec) {
  RILL_ASSIGN_OR_RETURN(const LeafSpec flag, GetSpec(caller, key, spec));
  if (flag.dtype == DType::kBool && flag.shape == Shape({1})) {
    return absl::OkStatus();
  }
  return Misfit(caller, key, flag, "bool[1]");
}

absl::Status CheckIsFlagIfAny(absl::string_view caller, absl::string_view key,
                              const TensorDictSpec& spec) {
  const LeafSpec* flag = key.empty() ? nullptr : spec.Find(key);
  if (flag == nullptr) return absl::OkStatus();
  if (flag->dtype == DType::kBool && flag->shape.num_elements() == 1) {
    return absl::OkStatus();
  }
  return Misfit(caller, key, *flag, "one bool a row");
}

absl::StatusOr<int64_t> NumSteps(absl::string_view caller, const Shape& batch) {
  if (batch.rank() > 0) return batch[batch.rank() - 1];
  return InvalidArgument(
      caller, ": got batch shape [], want [*B, T], in order of time");
}

void AddLeaf(absl::string_view key, const LeafSpec& leaf, LeafUse use,
             StepPlan* plan) {
  plan->leaves.push_back({.key = std::string(key),
                          .dtype = leaf.dtype,
                          .shape = leaf.shape,
                          .use = use});
}

absl::Status AddWritten(absl::string_view key, const LeafSpec& leaf,
                        StepPlan* plan) {
  AddLeaf(key, leaf, LeafUse::kWrite, plan);
  return plan->spec.Set(key, leaf);
}

absl::Status AddNew(absl::string_view caller, absl::string_view key,
                    const LeafSpec& leaf, StepPlan* plan) {
  if (plan->spec.Find(key) == nullptr) return AddWritten(key, leaf, plan);
  return InvalidArgument(caller, ": \"", key,
                         "\": got steps with a leaf of this key, want none; "
                         "set another key");
}

absl::Status AddFlag(absl::string_view caller, absl::string_view key,
                     LeafUse use, StepPlan* plan) {
  AddLeaf(key, LeafSpec::Binary({1}), use, plan);
  return CheckIsFlag(caller, key, plan->spec);
}

}  // namespace rill::transforms_internal
