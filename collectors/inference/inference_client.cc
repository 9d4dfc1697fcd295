// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/inference/inference_client.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"

namespace rill::inference_internal {
namespace {

using channel_internal::SharedCalls;

constexpr char kCaller[] = "InferenceServer";  // Whom the user knows.

std::vector<BoundRows::Leaf> Bound(
    const std::vector<InferenceLayout::Leaf>& leaves, LeafUse use) {
  std::vector<BoundRows::Leaf> bound;
  for (const InferenceLayout::Leaf& leaf : leaves) {
    bound.push_back({.key = leaf.key,
                     .dtype = leaf.dtype,
                     .shape = leaf.shape,
                     .use = use});
  }
  return bound;
}

}  // namespace

absl::StatusOr<std::unique_ptr<InferenceClient>> InferenceClient::Open(
    std::shared_ptr<SharedCalls> calls, const InferenceLayout& layout,
    int64_t client) {
  RILL_RETURN_IF_ERROR(calls->Open(client));
  auto made =
      absl::WrapUnique(new InferenceClient(std::move(calls), layout, client));
  RILL_ASSIGN_OR_RETURN(
      made->asked_,
      BoundRows::Create(kCaller, Bound(layout.question(), LeafUse::kRead)));
  RILL_ASSIGN_OR_RETURN(
      made->answered_,
      BoundRows::Create(kCaller, Bound(layout.answer(), LeafUse::kUpdate),
                        {.is_passed_in = true}));
  return made;
}

absl::StatusOr<std::unique_ptr<InferenceClient>> InferenceClient::Attach(
    int fd, absl::string_view layout_bytes, int64_t client) {
  const auto layout = InferenceLayout::FromBytes(layout_bytes);
  if (!layout.ok()) {
    close(fd);
    return layout.status();
  }
  RILL_ASSIGN_OR_RETURN(
      auto calls, SharedCalls::Attach(fd, layout->SizesFor(/*clients=*/1)));
  return Open(std::move(calls), *layout, client);
}

InferenceClient::~InferenceClient() { calls_->CloseCaller(client_); }

absl::StatusOr<int64_t> InferenceClient::Act(const TensorDict& root,
                                             const ActContext& context,
                                             TensorDict* step) {
  // A server that has gone does not come back.
  RILL_RETURN_IF_ERROR(gone_);
  // At each call: a caller may alternate between environments.
  RILL_RETURN_IF_ERROR(asked_.Bind(root));
  RILL_RETURN_IF_ERROR(answered_.Bind(step));
  for (const BoundRows* rows : {&asked_, &answered_}) {
    // The place of a client has room for just so many.
    if (rows->rows() == layout_.lanes()) continue;
    return InvalidArgument(kCaller, ": lanes: got ", rows->rows(), ", want ",
                           layout_.lanes());
  }
  std::byte* const question = calls_->question(client_);
  new (question) QuestionHead{.frames = context.frames,
                              .step = context.step,
                              .seed = context.seed,
                              .explore = context.explore};
  for (size_t i = 0; i < layout_.question().size(); ++i) {
    const InferenceLayout::Leaf& leaf = layout_.question()[i];
    CopyBytes(asked_[i].data, leaf.bytes, question + leaf.offset);
  }
  if (const absl::Status called = calls_->Call(client_); !called.ok()) {
    gone_ = absl::Status(called.code(),
                         absl::StrCat(kCaller, ": ", called.message()));
    return gone_;
  }
  const std::byte* const answer = calls_->answer(client_);
  const auto& head = *reinterpret_cast<const AnswerHead*>(answer);
  // The policy's error: the call itself went well, and the next may, too.
  if (head.code != 0) {
    return absl::Status(
        static_cast<absl::StatusCode>(head.code),
        // The memory is another process's too: its length is not believed.
        std::string(head.text, std::min<size_t>(head.text_bytes,
                                                AnswerHead::kMaxTextBytes)));
  }
  for (size_t i = 0; i < layout_.answer().size(); ++i) {
    const InferenceLayout::Leaf& leaf = layout_.answer()[i];
    CopyBytes(answer + leaf.offset, leaf.bytes, answered_[i].data);
  }
  return head.version;
}

}  // namespace rill::inference_internal
