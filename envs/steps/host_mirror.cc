// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/steps/host_mirror.h"

#include <optional>

#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/tensors/dtype.h"

namespace rill {

absl::StatusOr<Tensor> HostMirror::Add(const Tensor& leaf) {
  if (leaf.is_host()) return leaf;
  // One device: all copies are on one stream.
  const Device device =
      copies_.empty() ? leaf.device() : copies_.front().from.device();
  if (leaf.device() != device || !leaf.is_contiguous()) {
    return InvalidArgument("HostMirror::Add: leaf ", DTypeName(leaf.dtype()),
                           leaf.shape().ToString(), ": got one on ",
                           leaf.device().ToString(),
                           leaf.is_contiguous() ? "" : ", not contiguous",
                           "; want a contiguous one on ", device.ToString());
  }
  RILL_ASSIGN_OR_RETURN(
      Tensor host,
      Tensor::Empty(leaf.dtype(), leaf.shape(), {device, MemoryKind::kPinned}));
  copies_.push_back({.from = leaf, .to = host});
  return host;
}

absl::Status HostMirror::Update(const Stream* stream) const {
  if (copies_.empty()) return absl::OkStatus();
  std::optional<Stream> default_stream;
  if (stream == nullptr) {
    RILL_ASSIGN_OR_RETURN(default_stream,
                          Stream::Default(copies_.front().from.device()));
    stream = &*default_stream;
  }
  absl::Status status;
  for (const Copy& copy : copies_) {
    if (status.ok()) status = copy.to.CopyFromAsync(copy.from, *stream);
  }
  // Also after an error: copies that were enqueued still write to `to`.
  const absl::Status done = stream->Synchronize();
  return status.ok() ? done : status;
}

}  // namespace rill
