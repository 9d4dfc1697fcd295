// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/leaves.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"

namespace rill::transforms_internal {
namespace {

absl::StatusOr<const Tensor*> FindOnHost(absl::string_view caller,
                                         absl::string_view key,
                                         const TensorDict& dict) {
  const Tensor* leaf = dict.Find(key);
  if (leaf == nullptr) {
    const absl::Status status = dict.Get(key).status();
    return absl::Status(status.code(),
                        absl::StrCat(caller, ": ", status.message()));
  }
  if (leaf->is_host()) return leaf;
  return absl::FailedPreconditionError(absl::StrCat(
      caller, ": \"", key, "\" lies on ", leaf->device().ToString(),
      ", want host memory; put ToDevice behind this transform"));
}

absl::StatusOr<Tensor> CopyOfLeaf(absl::string_view key, const Tensor& leaf,
                                  TensorDict* dict) {
  RILL_ASSIGN_OR_RETURN(Tensor copy, leaf.Clone());
  RILL_RETURN_IF_ERROR(dict->Set(key, copy));
  return copy;
}

// Nobody but one Tensor object holds the bytes.
bool HasOneHolder(const Tensor& leaf) {
  return leaf.buffer() != nullptr && leaf.buffer().use_count() == 1;
}

}  // namespace

absl::StatusOr<Tensor> ReadLeaf(absl::string_view caller, absl::string_view key,
                                const TensorDict& dict) {
  RILL_ASSIGN_OR_RETURN(const Tensor* leaf, FindOnHost(caller, key, dict));
  return leaf->Contiguous();
}

absl::StatusOr<Tensor> WritableLeaf(absl::string_view caller,
                                    absl::string_view key, TensorDict* dict) {
  RILL_ASSIGN_OR_RETURN(const Tensor* leaf, FindOnHost(caller, key, *dict));
  if (leaf->is_writable() && leaf->is_contiguous()) return *leaf;
  return CopyOfLeaf(key, *leaf, dict);
}

absl::StatusOr<Tensor> OwnLeaf(absl::string_view caller, absl::string_view key,
                               TensorDict* dict) {
  RILL_ASSIGN_OR_RETURN(const Tensor* leaf, FindOnHost(caller, key, *dict));
  const bool is_own =
      HasOneHolder(*leaf) && leaf->is_writable() && leaf->is_contiguous();
  if (is_own) return *leaf;
  return CopyOfLeaf(key, *leaf, dict);
}

absl::StatusOr<Tensor> FreshLeaf(absl::string_view key, DType dtype,
                                 const Shape& shape, TensorDict* dict) {
  const Tensor* leaf = dict->Find(key);
  if (leaf != nullptr && HasOneHolder(*leaf) && leaf->is_writable() &&
      leaf->is_host() && leaf->is_contiguous() && leaf->dtype() == dtype &&
      leaf->shape() == shape) {
    return *leaf;
  }
  RILL_ASSIGN_OR_RETURN(Tensor made, Tensor::Empty(dtype, shape));
  RILL_RETURN_IF_ERROR(dict->Set(key, made));
  return made;
}

absl::Status CheckLeaf(absl::string_view caller, absl::string_view key,
                       const Tensor& leaf, DType dtype, const Shape& shape) {
  if (leaf.dtype() == dtype && leaf.shape() == shape) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      caller, ": \"", key, "\": got ", DTypeName(leaf.dtype()),
      leaf.shape().ToString(), ", want ", DTypeName(dtype), shape.ToString()));
}

absl::Status CheckMask(absl::string_view caller, absl::Span<const uint8_t> mask,
                       const TensorDict& dict) {
  const Shape& shape = dict.batch_shape();
  if (shape.rank() == 1 && shape[0] == static_cast<int64_t>(mask.size())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      caller, ": mask: got ", mask.size(),
      " values, want one for each lane of the batch shape ", shape.ToString()));
}

absl::Status ResetLeaf(absl::string_view caller, absl::string_view key,
                       DType dtype, absl::Span<const uint8_t> mask,
                       TensorDict* root) {
  RILL_RETURN_IF_ERROR(CheckMask(caller, mask, *root));
  const Shape shape = {static_cast<int64_t>(mask.size()), 1};
  const Tensor* leaf = root->Find(key);
  if (leaf == nullptr) {
    RILL_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Zeros(dtype, shape));
    return root->Set(key, zeros);
  }
  RILL_RETURN_IF_ERROR(CheckLeaf(caller, key, *leaf, dtype, shape));
  RILL_ASSIGN_OR_RETURN(Tensor own, OwnLeaf(caller, key, root));
  const int64_t width = DTypeSize(dtype);
  for (size_t lane = 0; lane < mask.size(); ++lane) {
    if (mask[lane] == 0) continue;
    std::memset(own.raw_data() + static_cast<int64_t>(lane) * width, 0,
                static_cast<size_t>(width));
  }
  return absl::OkStatus();
}

absl::StatusOr<LeafSpec> FindSpec(absl::string_view caller,
                                  absl::string_view key,
                                  const TensorDictSpec& spec) {
  const LeafSpec* leaf = spec.Find(key);
  if (leaf != nullptr) return *leaf;
  std::vector<std::string> keys;
  for (const TensorDictSpec::Leaf& other : spec.leaves()) {
    keys.push_back(other.key);
  }
  return absl::NotFoundError(absl::StrCat(caller, ": no leaf \"", key,
                                          "\", there are [",
                                          absl::StrJoin(keys, ", "), "]"));
}

}  // namespace rill::transforms_internal
