// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/device/testing/async_policy.h"

#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/stream.h"
#include "rill/tensors/dtype.h"

namespace rill {
namespace {

// The leaf in host memory, with its values once the stream got here.
absl::StatusOr<Tensor> ReadOnHost(const TensorDict& root, absl::string_view key,
                                  const Stream* stream) {
  RILL_ASSIGN_OR_RETURN(Tensor leaf, root.Get(key));
  if (leaf.is_host()) return leaf;
  RILL_ASSIGN_OR_RETURN(const Tensor host,
                        Tensor::Empty(leaf.dtype(), leaf.shape()));
  RILL_RETURN_IF_ERROR(host.CopyFromAsync(leaf, *stream));
  RILL_RETURN_IF_ERROR(stream->Synchronize());
  return host;
}

}  // namespace

AsyncPolicy::AsyncPolicy() {
  outputs_.Set("log_prob", LeafSpec::Unbounded(DType::kFloat32, {1}))
      .IgnoreError();
  outputs_.Set("next/memory", LeafSpec::Unbounded(DType::kInt64, {1}))
      .IgnoreError();
}

absl::StatusOr<int64_t> AsyncPolicy::Act(const TensorDict& root,
                                         const ActContext& context,
                                         TensorDict* step) {
  RILL_ASSIGN_OR_RETURN(const Tensor observation,
                        ReadOnHost(root, "observation", context.stream));
  RILL_ASSIGN_OR_RETURN(const Tensor memory,
                        ReadOnHost(root, "memory", context.stream));
  const int64_t lanes = step->batch_shape()[0];
  const int64_t width = observation.num_elements() / lanes;

  TensorDict written({lanes});
  RILL_ASSIGN_OR_RETURN(const Tensor action,
                        Tensor::Zeros(DType::kInt64, {lanes}));
  RILL_ASSIGN_OR_RETURN(const Tensor log_prob,
                        Tensor::Zeros(DType::kFloat32, {lanes, 1}));
  RILL_ASSIGN_OR_RETURN(const Tensor next_memory,
                        Tensor::Zeros(DType::kInt64, {lanes, 1}));
  for (int64_t lane = 0; lane < lanes; ++lane) {
    const float first = observation.data<float>()[lane * width];
    const int64_t before = memory.data<int64_t>()[lane];
    const int64_t chosen =
        (static_cast<int64_t>(1000 * (first + 10)) + before) % 2;
    action.data<int64_t>()[lane] = chosen;
    log_prob.data<float>()[lane] = -first;
    next_memory.data<int64_t>()[lane] = before + chosen;
  }
  RILL_RETURN_IF_ERROR(written.Set("action", action));
  RILL_RETURN_IF_ERROR(written.Set("log_prob", log_prob));
  RILL_RETURN_IF_ERROR(written.Set("next/memory", next_memory));
  for (const std::string& key : written.LeafKeys()) {
    RILL_ASSIGN_OR_RETURN(const Tensor to, step->Get(key));
    const Tensor& from = *written.Find(key);
    RILL_RETURN_IF_ERROR(to.is_host()
                             ? to.CopyFrom(from)
                             : to.CopyFromAsync(from, *context.stream));
  }
  written_ = std::move(written);
  return 0;
}

}  // namespace rill
