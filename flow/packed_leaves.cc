// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/packed_leaves.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill::flow_internal {
namespace {

int64_t RoundUp(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

absl::Status CheckKinds(absl::string_view caller, const TensorDict& dict,
                        const std::string& path) {
  absl::Status status;
  dict.ForEachEntry([&](absl::string_view key, EntryKind kind) {
    if (!status.ok() || kind == EntryKind::kTensor) return;
    const std::string full = absl::StrCat(path, key);
    status = kind == EntryKind::kDict
                 ? CheckKinds(caller, *dict.FindDict(key), full + "/")
                 : InvalidArgument(caller, ": \"", full,
                                   "\": got an entry of another kind, want "
                                   "tensors; Exclude it");
  });
  return status;
}

// Row-major to `to`: at once where the tensor is that already; strides and
// devices go through a tensor over the place.
absl::Status CopyTo(const Tensor& tensor, std::byte* to) {
  const int64_t bytes = tensor.size_bytes();
  if (bytes == 0) return absl::OkStatus();
  if (tensor.is_host() && tensor.is_contiguous()) {
    std::memcpy(to, tensor.raw_data(), bytes);
    return absl::OkStatus();
  }
  RILL_ASSIGN_OR_RETURN(
      const Tensor target,
      Tensor::View(Buffer::Wrap(to, bytes, Device::Cpu(), MemoryKind::kPageable,
                                nullptr),
                   tensor.dtype(), tensor.shape(), 0));
  return target.CopyFrom(tensor);
}

}  // namespace

int64_t PackedBytes(const TensorDictSpec& spec, int64_t rows) {
  int64_t total = 0;
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    int64_t bytes;
    if (__builtin_mul_overflow(leaf.spec.shape.num_elements(),
                               DTypeSize(leaf.spec.dtype), &bytes) ||
        __builtin_mul_overflow(rows, bytes, &bytes) ||
        bytes > INT64_MAX - kAlignment ||
        __builtin_add_overflow(total, RoundUp(bytes), &total)) {
      return -1;
    }
  }
  return total;
}

absl::Status CheckOnlyTensors(absl::string_view caller,
                              const TensorDict& batch) {
  return CheckKinds(caller, batch, "");
}

absl::Status PackLeaves(absl::string_view caller, const TensorDictSpec& spec,
                        const TensorDict& batch, std::byte* to) {
  const std::byte* const begin = to;
  const std::byte* const end =
      begin + PackedBytes(spec, batch.batch_shape().num_elements());
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    const Tensor& tensor = *batch.Find(leaf.key);
    // A leaf from ViewPackedLeaves is in its place. One that lies elsewhere in
    // the same memory, say a slice of such a batch, would be overwritten by a
    // leaf before it is copied.
    const bool lies_here = tensor.size_bytes() > 0 && tensor.is_host() &&
                           tensor.raw_data() >= begin &&
                           tensor.raw_data() < end;
    if (!lies_here) {
      RILL_RETURN_IF_ERROR(CopyTo(tensor, to));
    } else if (tensor.raw_data() != to || !tensor.is_contiguous()) {
      return InvalidArgument(
          caller, ": leaf \"", leaf.key,
          "\": got a part of a batch from Reserve, want all of "
          "it");
    }
    to += RoundUp(tensor.size_bytes());
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> ViewPackedLeaves(
    const TensorDictSpec& spec, const Shape& batch_shape, std::byte* from,
    const std::shared_ptr<const void>& owner, bool is_writable) {
  TensorDict batch(batch_shape);
  const auto buffer =
      Buffer::Wrap(from, PackedBytes(spec, batch_shape.num_elements()),
                   Device::Cpu(), MemoryKind::kPageable, owner, is_writable);
  int64_t at = 0;
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    RILL_ASSIGN_OR_RETURN(
        Tensor tensor, Tensor::View(buffer, leaf.spec.dtype,
                                    batch_shape.Concat(leaf.spec.shape), at));
    at += RoundUp(tensor.size_bytes());
    RILL_RETURN_IF_ERROR(batch.Set(leaf.key, std::move(tensor)));
  }
  return batch;
}

}  // namespace rill::flow_internal
