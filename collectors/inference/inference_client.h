// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_INFERENCE_INFERENCE_CLIENT_H_
#define RILL_COLLECTORS_INFERENCE_INFERENCE_CLIENT_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/collectors/inference/inference_layout.h"
#include "rill/envs/policies/policy.h"
#include "rill/flow/channel/shared_calls.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::inference_internal {

// The policy of one worker, by the server in this or another process.
// Thread-safety: that of Policy.
class InferenceClient final : public Policy {
 public:
  // Opens a place of `calls`. Errors as SharedCalls::Open.
  static absl::StatusOr<std::unique_ptr<InferenceClient>> Open(
      std::shared_ptr<channel_internal::SharedCalls> calls,
      const InferenceLayout& layout, int64_t client);
  // The same by InferenceServer::fd(), which this process got and now gives
  // away, and by InferenceServer::layout().
  static absl::StatusOr<std::unique_ptr<InferenceClient>> Attach(
      int fd, absl::string_view layout, int64_t client);
  ~InferenceClient() override;

  const TensorDictSpec& output_spec() const override {
    return layout_.outputs();
  }
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override;

 private:
  InferenceClient(std::shared_ptr<channel_internal::SharedCalls> calls,
                  const InferenceLayout& layout, int64_t client)
      : calls_(std::move(calls)), layout_(layout), client_(client) {}

  const std::shared_ptr<channel_internal::SharedCalls> calls_;
  const InferenceLayout layout_;
  const int64_t client_;
  BoundRows asked_;
  BoundRows answered_;
  absl::Status gone_;  // The server has, once this is not OK.
};

}  // namespace rill::inference_internal

#endif  // RILL_COLLECTORS_INFERENCE_INFERENCE_CLIENT_H_
