// SPDX-License-Identifier: Apache-2.0
// Graphs of fake devices: queue operations that were recorded, all of which are
// one operation of the stream that they are launched on.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/graphs/graph.h"
#include "rill/device/testing/fake_backend.h"

namespace rill {

absl::Status FakeBackend::CheckRuns(const Queue& queue,
                                    absl::string_view call) {
  if (!queue.is_recording()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("FakeBackend::", call,
                   ": stream: got one whose work is captured, want another"));
}

absl::Status FakeBackend::BeginCapture(int index, StreamHandle stream) {
  absl::MutexLock lock(&mutex_);
  RILL_RETURN_IF_ERROR(Enter(index));
  RILL_ASSIGN_OR_RETURN(Queue* const queue, FindQueue(index, stream));
  RILL_RETURN_IF_ERROR(CheckRuns(*queue, "BeginCapture"));
  Note({.kind = Call::Kind::kBeginCapture, .stream = stream.value});
  queue->Record();
  return absl::OkStatus();
}

absl::StatusOr<GraphHandle> FakeBackend::EndCapture(int index,
                                                    StreamHandle stream) {
  absl::MutexLock lock(&mutex_);
  RILL_ASSIGN_OR_RETURN(Queue* const queue, FindQueue(index, stream));
  if (!queue->is_recording()) {
    return absl::FailedPreconditionError(
        "FakeBackend::EndCapture: stream: got one whose work is not captured");
  }
  auto graph = std::make_shared<const CapturedWork>(
      CapturedWork{index, queue->TakeRecorded()});
  RILL_RETURN_IF_ERROR(Enter(index));
  const void* const handle = graph.get();
  graphs_[handle] = std::move(graph);
  return GraphHandle{const_cast<void*>(handle)};
}

absl::Status FakeBackend::LaunchGraph(int index, GraphHandle handle,
                                      StreamHandle stream) {
  absl::MutexLock lock(&mutex_);
  RILL_RETURN_IF_ERROR(Enter(index));
  ++tallies_[static_cast<size_t>(Operation::kLaunchGraph)].asked;
  RILL_ASSIGN_OR_RETURN(Queue* const queue, FindQueue(index, stream));
  const auto found = graphs_.find(handle.value);
  if (found == graphs_.end() || found->second->index != index) {
    return absl::InvalidArgumentError(
        absl::StrCat("FakeBackend: graph: got one that is destroyed or of "
                     "another device, want a live one of fake:",
                     index));
  }
  const std::shared_ptr<const CapturedWork> graph = found->second;
  std::vector<Range> ranges;
  for (const Queue::Recorded& recorded : graph->operations) {
    ranges.insert(ranges.end(), recorded.ranges.begin(), recorded.ranges.end());
  }
  // They were reachable when they were captured; kCopy asks for no more.
  RILL_RETURN_IF_ERROR(CheckRanges(Operation::kCopy, index, ranges));
  // As in Enqueue.
  queue->Push(std::move(ranges),
              [this, graph]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
                absl::Status status = Reach(Operation::kLaunchGraph);
                for (const Queue::Recorded& recorded : graph->operations) {
                  if (status.ok()) status = recorded.run();
                }
                return status;
              });
  Note({.kind = Call::Kind::kCompute, .stream = stream.value});
  RunSome();
  return absl::OkStatus();
}

void FakeBackend::DestroyGraph(int index, GraphHandle handle) {
  absl::MutexLock lock(&mutex_);
  const auto found = graphs_.find(handle.value);
  if (found == graphs_.end() || found->second->index != index) {
    misuse_.push_back("DestroyGraph: no live graph");
    return;
  }
  graphs_.erase(found);
}

int64_t FakeBackend::NumGraphs() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(graphs_.size());
}

namespace {

class FakeGraphs final : public GraphBackend {
 public:
  absl::Status BeginCapture(int index, StreamHandle stream) override {
    RILL_ASSIGN_OR_RETURN(FakeBackend* const fake, Fake(index));
    return fake->BeginCapture(index, stream);
  }
  absl::StatusOr<GraphHandle> EndCapture(int index,
                                         StreamHandle stream) override {
    RILL_ASSIGN_OR_RETURN(FakeBackend* const fake, Fake(index));
    return fake->EndCapture(index, stream);
  }
  absl::Status Launch(int index, GraphHandle graph,
                      StreamHandle stream) override {
    RILL_ASSIGN_OR_RETURN(FakeBackend* const fake, Fake(index));
    return fake->LaunchGraph(index, graph, stream);
  }
  void Destroy(int index, GraphHandle graph) override {
    if (const auto fake = Fake(index); fake.ok()) {
      (*fake)->DestroyGraph(index, graph);
    }
  }

 private:
  static absl::StatusOr<FakeBackend*> Fake(int index) {
    RILL_ASSIGN_OR_RETURN(Backend* const backend,
                          GetBackend(Device::Fake(index)));
    return static_cast<FakeBackend*>(backend);
  }
};

[[maybe_unused]] const bool registered = [] {
  RegisterGraphBackend(Device::Type::kFake, std::make_unique<FakeGraphs>());
  return true;
}();

}  // namespace
}  // namespace rill
