// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/steps/step_carry.h"

#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/stream.h"

namespace rill {
namespace {

bool IsPlain(const Tensor& tensor) {
  return tensor.is_host() && tensor.is_contiguous();
}

bool IsOneCopyOnDevice(const Tensor& from, const Tensor& to) {
  return !to.is_host() && from.device() == to.device() &&
         from.is_contiguous() && to.is_contiguous();
}

absl::Status NoNext() {
  return InvalidArgument("StepMdp: dictionary \"next\" is missing in the step");
}

}  // namespace

absl::Status StepCarry::Connect(const Tensor& from, Pair* pair) {
  const Tensor& to = pair->to;
  if (to.dtype() != from.dtype() || !(to.shape() == from.shape())) {
    return InvalidArgument(
        "StepMdp: leaf \"next/", pair->key, "\": got ", DTypeName(from.dtype()),
        from.shape().ToString(), ", want that of \"", pair->key,
        "\": ", DTypeName(to.dtype()), to.shape().ToString());
  }
  if (!to.is_writable()) {
    return InvalidArgument("StepMdp: leaf \"", pair->key,
                           "\": got read-only memory, want writable; Clone it");
  }
  pair->from = from;
  pair->is_on_stream = IsOneCopyOnDevice(from, to);
  pair->plain_bytes = IsPlain(from) && IsPlain(to) ? to.size_bytes() : -1;
  return absl::OkStatus();
}

absl::StatusOr<StepCarry> StepCarry::Bind(const TensorDict& step,
                                          const TensorDict& root) {
  const TensorDict* next = step.FindDict("next");
  if (next == nullptr) return NoNext();
  StepCarry carry;
  absl::Status status;
  next->ForEachLeaf([&](absl::string_view key, const Tensor& from) {
    // A reward at the root is not that of a state: TorchRL's step_mdp leaves it
    // out as well.
    const Tensor* to = key == "reward" ? nullptr : root.Find(key);
    if (to == nullptr || !status.ok()) return;
    Pair pair = {.key = std::string(key), .from = {}, .to = *to};
    status = Connect(from, &pair);
    carry.pairs_.push_back(std::move(pair));
  });
  if (!status.ok()) return status;
  return carry;
}

absl::Status StepCarry::Run(const Stream* stream) const {
  std::optional<Stream> default_stream;
  absl::Status status;
  for (const Pair& pair : pairs_) {
    if (pair.plain_bytes >= 0) {
      // memmove: both sides may be one tensor.
      std::memmove(pair.to.raw_data(), pair.from.raw_data(), pair.plain_bytes);
    } else if (pair.is_on_stream) {
      if (stream == nullptr) {
        RILL_ASSIGN_OR_RETURN(default_stream,
                              Stream::Default(pair.to.device()));
        stream = &*default_stream;
      }
      status.Update(pair.to.CopyFromAsync(pair.from, *stream));
    } else {
      // CopyFrom has the default stream.
      if (stream != nullptr) status.Update(stream->Synchronize());
      status.Update(pair.to.CopyFrom(pair.from));
    }
  }
  if (default_stream.has_value()) {
    status.Update(default_stream->Synchronize());
  }
  return status;
}

}  // namespace rill
