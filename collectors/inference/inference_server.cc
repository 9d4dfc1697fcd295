// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/inference/inference_server.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/inference/inference_client.h"
#include "rill/tensors/tensor.h"

// How it works. Questions and answers lie in anonymous memory, each client's in
// a place of its own (flow/channel/shared_calls.h), so threads and processes
// ask in the same way. The server's thread waits for questions and copies the
// roots of those that wait, in the order of their numbers, to the first rows of
// one table. The policy acts on these rows, and each client's rows of the
// result go to its place.
//
// The clients of a call are any subset. A client that dies while it writes its
// question has not asked, so it holds no call up.

namespace rill {
namespace {

using channel_internal::SharedCalls;
using inference_internal::AnswerHead;
using inference_internal::CopyBytes;
using inference_internal::InferenceClient;
using inference_internal::InferenceLayout;
using inference_internal::QuestionHead;

constexpr uint16_t kSeedSubstream = 0xFFFF;  // Far from those of explorers.
constexpr char kCreate[] = "InferenceServer::Create";

absl::Status Refuse(absl::string_view option, int64_t got,
                    absl::string_view want) {
  return InvalidArgument(kCreate, ": ", option, ": got ", got, ", want ", want);
}

absl::Status CheckOptions(const InferenceServer::Options& options) {
  if (options.policy == nullptr) {
    return InvalidArgument(kCreate, ": policy: got null, want a policy");
  }
  if (options.clients < 1 || options.clients > SharedCalls::kMaxCallers) {
    return Refuse("clients", options.clients, "[1, 4096]");
  }
  if (options.min_clients < 1) {
    return Refuse("min_clients", options.min_clients, ">= 1");
  }
  if (options.max_wait < absl::ZeroDuration()) {
    return InvalidArgument(kCreate, ": max_wait: got ",
                           absl::FormatDuration(options.max_wait),
                           ", want >= 0");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<InferenceServer>> InferenceServer::Create(
    Options options) {
  RILL_RETURN_IF_ERROR(CheckOptions(options));
  auto layout =
      InferenceLayout::Create(options.lanes, options.root, options.action,
                              options.policy->output_spec());
  if (!layout.ok()) {
    return absl::Status(layout.status().code(),
                        absl::StrCat(kCreate, ": ", layout.status().message()));
  }
  auto server = absl::WrapUnique(
      new InferenceServer(std::move(options), *std::move(layout)));
  RILL_RETURN_IF_ERROR(server->Start());
  return server;
}

absl::Status InferenceServer::Start() {
  RILL_ASSIGN_OR_RETURN(layout_bytes_, layout_.ToBytes());
  RILL_ASSIGN_OR_RETURN(
      calls_, SharedCalls::Create(layout_.SizesFor(options_.clients)));
  const Shape rows = {options_.clients * options_.lanes};
  RILL_ASSIGN_OR_RETURN(root_, layout_.asked().Zero(rows));
  RILL_ASSIGN_OR_RETURN(step_, layout_.answered().Zero(rows));
  batches_.resize(options_.clients + 1);
  // The constructor throws where the system starts no more threads.
  return CatchExceptions(
      [this]() -> absl::Status {
        thread_ = std::thread([this] { Run(); });
        return absl::OkStatus();
      },
      kCreate, ": its thread");
}

InferenceServer::~InferenceServer() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

void InferenceServer::Stop() {
  if (calls_ != nullptr) calls_->Close();
}

absl::StatusOr<std::unique_ptr<Policy>> InferenceServer::OpenClient(
    int64_t client) const {
  return InferenceClient::Open(calls_, layout_, client);
}

void InferenceServer::Run() {
  std::vector<int64_t> waiting;
  const auto explores = [this](int64_t client) {
    return QuestionOf(client).explore != 0;
  };
  while (
      calls_->AwaitQuestions(options_.min_clients, options_.max_wait, &waiting)
          .ok()) {
    // An ActContext has one `explore` for all of its rows.
    const auto others =
        std::stable_partition(waiting.begin(), waiting.end(), explores);
    Serve({waiting.begin(), others}, /*explore=*/true);
    Serve({others, waiting.end()}, /*explore=*/false);
  }
}

void InferenceServer::Serve(const std::vector<int64_t>& clients, bool explore) {
  if (clients.empty()) return;
  const absl::StatusOr<int64_t> version = Act(clients, explore);
  for (size_t i = 0; i < clients.size(); ++i) {
    std::byte* const answer = calls_->answer(clients[i]);
    auto& head = *reinterpret_cast<AnswerHead*>(answer);
    // Answer publishes what is written to the place before it.
    head.code = static_cast<int32_t>(version.status().code());
    if (version.ok()) {
      head.version = *version;
      for (const InferenceLayout::Leaf& leaf : layout_.answer()) {
        CopyBytes(step_.Find(leaf.key)->raw_data() +
                      static_cast<int64_t>(i) * leaf.bytes,
                  leaf.bytes, answer + leaf.offset);
      }
    } else {
      const absl::string_view text =
          version.status().message().substr(0, AnswerHead::kMaxTextBytes);
      head.text_bytes = static_cast<uint32_t>(text.size());
      text.copy(head.text, text.size());
    }
    calls_->Answer(clients[i]);
  }
}

const QuestionHead& InferenceServer::QuestionOf(int64_t client) const {
  return *reinterpret_cast<const QuestionHead*>(calls_->question(client));
}

ActContext InferenceServer::ContextOf(const std::vector<int64_t>& clients,
                                      bool explore) const {
  ActContext context = {
      .frames = frames_, .step = calls_made_, .explore = explore};
  for (const int64_t client : clients) {
    context.frames = std::max(context.frames, QuestionOf(client).frames);
  }
  // A worker asks once for a step of its own. The calls of this server begin
  // anew with it, also where the run goes on from a checkpoint.
  const QuestionHead& first = QuestionOf(clients.front());
  context.seed = Rng(first.seed, RngStream::kPolicy, kSeedSubstream)
                     .Bits64(static_cast<uint64_t>(first.step), /*draw=*/0);
  return context;
}

absl::StatusOr<int64_t> InferenceServer::Act(
    const std::vector<int64_t>& clients, bool explore) {
  const auto count = static_cast<int64_t>(clients.size());
  for (const InferenceLayout::Leaf& leaf : layout_.question()) {
    std::byte* to = root_.Find(leaf.key)->raw_data();
    for (const int64_t client : clients) {
      CopyBytes(calls_->question(client) + leaf.offset, leaf.bytes, to);
      to += leaf.bytes;
    }
  }
  // Views of the first rows, made once for each number of clients: a call
  // allocates nothing then.
  std::optional<Batch>& batch = batches_[count];
  if (!batch.has_value()) {
    RILL_ASSIGN_OR_RETURN(batch, MakeBatch(count));
  }
  const absl::StatusOr<int64_t> version = CatchExceptions(
      [&] {
        return options_.policy->Act(batch->root, ContextOf(clients, explore),
                                    &batch->step);
      },
      "Policy::Act");
  // Also after an error: the numbers that a policy draws by do not repeat.
  if (explore) frames_ += count * options_.lanes;
  ++calls_made_;
  const absl::Status in_place =
      batch->in_place.Check("Policy::Act", batch->step);
  if (!in_place.ok()) batch.reset();  // The next call finds it as it was.
  RILL_RETURN_IF_ERROR(version.status());
  RILL_RETURN_IF_ERROR(in_place);
  return version;
}

absl::StatusOr<InferenceServer::Batch> InferenceServer::MakeBatch(
    int64_t clients) const {
  Batch batch;
  const int64_t rows = clients * options_.lanes;
  RILL_ASSIGN_OR_RETURN(batch.root, root_.Slice(0, 0, rows));
  RILL_ASSIGN_OR_RETURN(batch.step, step_.Slice(0, 0, rows));
  RILL_RETURN_IF_ERROR(batch.step.Update(batch.root));
  batch.in_place = InPlaceCheck(batch.step);
  return batch;
}

}  // namespace rill
