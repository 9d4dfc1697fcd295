// SPDX-License-Identifier: Apache-2.0
// Collectors of CartPole: into a replay buffer, with worker threads, with one
// inference thread for all, and what the hand-over from worker processes costs.
// benchmarks/collectors runs it;
// --help tells the flags.
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/base/status_macros.h"
#include "rill/benchmarks/least_ns.h"
#include "rill/benchmarks/quick_main.h"
#include "rill/collectors/inference/inference_server.h"
#include "rill/collectors/multi_async_collector.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/collectors/workers/worker_main.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"
#include "rill/transforms/step_transform.h"

namespace rill {
namespace {

constexpr absl::string_view kUsage =
    R"(Collects CartPole steps, and prints frames a second (the fastest of many slices) and ratios.
  --quick  fewer slices (seconds, not minutes)
)";

constexpr int64_t kLanes = 64;
constexpr int64_t kTime = 64;

absl::StatusOr<std::vector<std::unique_ptr<StepTransform>>> CounterAndSum() {
  std::vector<std::unique_ptr<StepTransform>> transforms(2);
  RILL_ASSIGN_OR_RETURN(transforms[0], StepCounter::Create({}));
  RILL_ASSIGN_OR_RETURN(transforms[1], RewardSum::Create({}));
  return transforms;
}

absl::StatusOr<WorkerParts> MakeWorker(const WorkerContext& /*context*/) {
  WorkerParts parts;
  RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = kLanes}));
  return parts;
}

// Takes batches and leaves them.
FunctionSink& Nowhere() {
  static auto* const sink = new FunctionSink(
      [](const TensorDict&, const WriteInfo&) { return absl::OkStatus(); });
  return *sink;
}

absl::StatusOr<std::shared_ptr<ReplayBuffer>> MakeBuffer(int64_t lanes) {
  RILL_ASSIGN_OR_RETURN(
      auto storage,
      DenseStorage::Create({.capacity = lanes * 4096, .lanes = lanes}));
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<ReplayBuffer> buffer,
                        ReplayBuffer::Create({.storage = std::move(storage),
                                              .sampler = MakeUniformSampler(),
                                              .batch_size = 256}));
  return buffer;
}

// One batch a run, from `source` into `sink`.
template <typename SinkPtr>
FramesCase MakeCase(std::string name, int64_t frames,
                    std::shared_ptr<Source> source, SinkPtr sink) {
  return {.name = std::move(name), .frames = frames, .run = [=] {
            return source->CollectInto(*sink);
          }};
}

absl::StatusOr<std::shared_ptr<Source>> OneThread(bool has_transforms) {
  SyncCollector::Options options;
  RILL_ASSIGN_OR_RETURN(options.env, MakeCartPole({.lanes = kLanes}));
  if (has_transforms) {
    RILL_ASSIGN_OR_RETURN(options.transforms, CounterAndSum());
  }
  options.frames_per_batch = kLanes * kTime;
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<Source> source,
                        SyncCollector::Create(std::move(options)));
  return source;
}

absl::Status Alone(bool is_quick) {
  std::vector<FramesCase> cases;
  // A source and a buffer for each case: no one warms the caches of another.
  RILL_ASSIGN_OR_RETURN(const auto plain, OneThread(false));
  cases.push_back(MakeCase("to nowhere", kLanes * kTime, plain, &Nowhere()));
  RILL_ASSIGN_OR_RETURN(const auto into_buffer, OneThread(false));
  RILL_ASSIGN_OR_RETURN(const auto first_buffer, MakeBuffer(kLanes));
  cases.push_back(MakeCase("into a replay buffer", kLanes * kTime, into_buffer,
                           first_buffer));
  RILL_ASSIGN_OR_RETURN(const auto transformed, OneThread(true));
  RILL_ASSIGN_OR_RETURN(const auto second_buffer, MakeBuffer(kLanes));
  cases.push_back(MakeCase("with StepCounter and RewardSum, into one",
                           kLanes * kTime, transformed, second_buffer));
  return PrintLeast(
      "SyncCollector, CartPole, 64 lanes, random actions, one core", cases,
      is_quick ? 50 : 2000, FramesASecond);
}

absl::Status Threads(bool is_quick) {
  std::vector<FramesCase> cases;
  for (const int64_t workers : {1, 2}) {
    MultiCollectorOptions options;
    options.workers = workers;
    options.worker = MakeWorker;
    // Long enough that a batch is not its messages.
    options.frames_per_batch = workers * kLanes * 1024;
    RILL_ASSIGN_OR_RETURN(std::shared_ptr<Source> source,
                          MultiSyncCollector::Create(std::move(options)));
    cases.push_back(
        MakeCase(workers == 1 ? "one worker thread" : "two worker threads",
                 workers * kLanes * 1024, std::move(source), &Nowhere()));
  }
  return PrintLeast("MultiSyncCollector, CartPole, 64 lanes a worker", cases,
                    is_quick ? 20 : 200, FramesASecondAndRatio);
}

// The CPU time of this process, with all of its threads.
absl::Duration CpuTime() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return absl::DurationFromTimeval(usage.ru_utime) +
         absl::DurationFromTimeval(usage.ru_stime);
}

// The cost in the collector's process of a row that a worker process made.
absl::Status Processes(bool is_quick) {
  absl::PrintF("MultiAsyncCollector, eight processes, batches of 64 x 64\n");
  // CPU time of this process: wall time would be that of eight workers on the
  // cores that there are. RUSAGE_SELF leaves out child processes.
  for (const bool is_stored : {false, true}) {
    MultiCollectorOptions options;
    options.workers = 8;
    options.worker_name = "cart_pole";
    options.frames_per_batch = options.workers * kLanes * kTime;
    RILL_ASSIGN_OR_RETURN(const auto collector,
                          MultiAsyncCollector::Create(options));
    RILL_ASSIGN_OR_RETURN(const auto buffer, MakeBuffer(8 * kLanes));
    Sink& sink = is_stored ? static_cast<Sink&>(*buffer) : Nowhere();
    // The first batch makes memory that the others reuse.
    RILL_RETURN_IF_ERROR(collector->CollectInto(sink));
    double least = 1e9;
    for (int turn = 0; turn < (is_quick ? 5 : 50); ++turn) {
      const absl::Duration begin = CpuTime();
      for (int batch = 0; batch < 64; ++batch) {
        RILL_RETURN_IF_ERROR(collector->CollectInto(sink));
      }
      least = std::min(least, absl::ToDoubleNanoseconds(CpuTime() - begin) /
                                  (64 * kLanes * kTime));
    }
    absl::PrintF("  %-44s %10.2f ns a row\n",
                 is_stored ? "hand-over, and into a replay buffer"
                           : "hand-over (CPU time of this process)",
                 least);
  }
  return absl::OkStatus();
}

// The time that this thread has had on a core.
absl::Duration ThreadTime() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

// One whose call costs the same however many rows it has, as that of a small
// network on a GPU does.
class CostlyPolicy final : public Policy {
 public:
  static constexpr absl::Duration kCost = absl::Microseconds(50);

  absl::StatusOr<int64_t> Act(const TensorDict& /*root*/,
                              const ActContext& context,
                              TensorDict* step) override {
    // Time on a core and not wall time: policies that share a core would else
    // do their work at the same time.
    const absl::Duration end = ThreadTime() + kCost;
    while (ThreadTime() < end) {
    }
    RILL_ASSIGN_OR_RETURN(const auto actions, step->Flat<int64_t>("action"));
    std::fill(actions.begin(), actions.end(), context.step % 2);
    return 0;
  }
};

constexpr int64_t kFewLanes = 16;  // Of a worker whose policy is costly.

absl::StatusOr<WorkerParts> MakeServedWorker(const WorkerContext& context) {
  WorkerParts parts;
  RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = kFewLanes}));
  if (context.inference == nullptr) {
    parts.policy = std::make_unique<CostlyPolicy>();
  }
  return parts;
}

// Policies of the workers beside one that acts for all.
absl::Status Inference(bool is_quick) {
  constexpr int64_t kWorkers = 8;
  CostlyPolicy policy;
  RILL_ASSIGN_OR_RETURN(const auto env, MakeCartPole({.lanes = kFewLanes}));
  // Before the cases, whose collectors must not outlive the servers.
  std::vector<std::unique_ptr<InferenceServer>> servers;
  std::vector<FramesCase> cases;
  struct Case {
    const char* name;
    int64_t min_clients;  // 0: no server.
    bool are_processes;
  };
  for (const Case& of : {Case{"threads, a policy each", 0, false},
                         Case{"threads, an InferenceServer", 1, false},
                         Case{"the same, min_clients = 8", kWorkers, false},
                         Case{"processes, the same", kWorkers, true}}) {
    MultiCollectorOptions options;
    options.workers = kWorkers;
    if (of.are_processes) {
      options.worker_name = "served";
    } else {
      options.worker = MakeServedWorker;
    }
    options.frames_per_batch = kWorkers * kFewLanes * kTime;
    if (of.min_clients > 0) {
      RILL_ASSIGN_OR_RETURN(
          servers.emplace_back(),
          InferenceServer::Create({.policy = &policy,
                                   .root = env->spec().observation,
                                   .action = env->spec().action,
                                   .lanes = kFewLanes,
                                   .clients = kWorkers,
                                   .min_clients = of.min_clients}));
      options.inference = servers.back().get();
    }
    RILL_ASSIGN_OR_RETURN(std::shared_ptr<Source> source,
                          MultiSyncCollector::Create(std::move(options)));
    cases.push_back(MakeCase(of.name, kWorkers * kFewLanes * kTime,
                             std::move(source), &Nowhere()));
  }
  return PrintLeast(
      "MultiSyncCollector, eight workers of 16 lanes, a policy of 50 us a "
      "call",
      cases, is_quick ? 20 : 200, FramesASecondAndRatio);
}

absl::Status RunAll(bool is_quick) {
  RILL_RETURN_IF_ERROR(Alone(is_quick));
  RILL_RETURN_IF_ERROR(Threads(is_quick));
  RILL_RETURN_IF_ERROR(Inference(is_quick));
  return Processes(is_quick);
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  const std::optional<int> worker = rill::WorkerMain(
      argc, argv,
      {{"cart_pole", rill::MakeWorker}, {"served", rill::MakeServedWorker}});
  if (worker.has_value()) return *worker;
  return rill::QuickMain("collectors", rill::kUsage, argc, argv, rill::RunAll);
}
