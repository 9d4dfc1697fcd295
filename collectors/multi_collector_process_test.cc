// SPDX-License-Identifier: Apache-2.0
// Collectors whose workers are processes: they crash, hang, are killed and
// outgrow their memory, and nothing of another worker is lost.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/config.h"
#include "absl/log/log_entry.h"
#include "absl/log/log_sink.h"
#include "absl/log/log_sink_registry.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/multi_async_collector.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/testing/arrivals.h"
#include "rill/collectors/testing/hooked_env.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/collectors/workers/worker_deaths.h"
#include "rill/collectors/workers/worker_main.h"
#include "rill/envs/cart_pole.h"
#include "rill/flow/conformance/source_conformance.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/recorder/flight_recorder.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/kill_count.h"
#include "rill/testing/process_traces.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kLanes = 2;
constexpr int64_t kFaultyStep = 15;

std::function<void()> FaultOf(const std::string& name) {
  if (name == "crash" || name == "crash both") {
    return [] {
      signal(SIGSEGV, SIG_DFL);  // A sanitizer has a handler of its own.
      raise(SIGSEGV);
    };
  }
  if (name == "exit") return [] { _exit(3); };
  if (name == "hang") {
    return [] {
      for (;;) pause();
    };
  }
  // Twice max_worker_bytes, as addresses: nothing is written there.
  return [] {
    static char* volatile eaten = nullptr;
    eaten = new char[int64_t{2} << 30];
    if (eaten == nullptr) _exit(5);
  };
}

// Waits until another process reads from the named pipe, or writes to it.
void Meet(const std::string& pipe, int flags) {
  const int fd = open(pipe.c_str(), flags);
  char byte = 0;
  const ssize_t n =
      (flags == O_RDONLY) ? read(fd, &byte, 1) : write(fd, &byte, 1);
  if (n != 1) _exit(4);
  close(fd);
}

// Worker 1 waits in steps 4 and 13, and ends in the latter. Worker 0 waits with
// the last step of its first two batches until worker 1 is there. `path` begins
// the names of two pipes.
HookedEnv::Hook SlowWorker(const std::string& path, int64_t worker) {
  return [=](int64_t step) {
    if (worker == 0 && (step == 9 || step == 19)) {
      Meet(path + ".slow", O_RDONLY);
    } else if (worker == 1 && (step == 4 || step == 13)) {
      Meet(path + ".slow", O_WRONLY);
      Meet(path + ".go", O_RDONLY);
      if (step == 13) raise(SIGKILL);
    }
  };
}

// `context.argument` is the fault of worker 1, before it was started anew.
// "crash both": of worker 2 too.
absl::StatusOr<WorkerParts> MakeWorker(const WorkerContext& context) {
  WorkerParts parts;
  RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = kLanes}));
  if (context.argument.empty() || context.restarts > 0) return parts;
  absl::string_view path = context.argument;
  if (absl::ConsumePrefix(&path, "slow ")) {
    parts.env = std::make_unique<HookedEnv>(
        std::move(parts.env), SlowWorker(std::string(path), context.worker));
  }
  if (context.argument == "hang at once") {
    parts.env = std::make_unique<HookedEnv>(std::move(parts.env),
                                            [](int64_t) { FaultOf("hang")(); });
    return parts;
  }
  if (context.worker != 1 &&
      !(context.worker == 2 && context.argument == "crash both")) {
    return parts;
  }
  if (context.argument == "refuse") {
    return absl::NotFoundError("no such map");
  }
  if (path == context.argument) {
    parts.env = std::make_unique<HookedEnv>(
        std::move(parts.env),
        [fault = FaultOf(context.argument)](int64_t step) {
          if (step == kFaultyStep) fault();
        });
  }
  return parts;
}

MultiCollectorOptions Processes(int64_t workers, const std::string& fault) {
  MultiCollectorOptions options;
  options.producer = 0;
  options.workers = workers;
  options.worker_name = "worker";
  options.argument = fault;
  options.frames_per_batch = workers * kLanes * 10;
  options.seed = 5;
  return options;
}

MultiCollectorOptions Threads(int64_t workers) {
  MultiCollectorOptions options = Processes(workers, "");
  options.worker_name.clear();
  options.worker = MakeWorker;
  return options;
}

TEST(MultiCollectorProcessTest, ProcessesGiveWhatThreadsGive) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto processes,
                            MultiSyncCollector::Create(Processes(3, "")));
  RILL_ASSERT_OK_AND_ASSIGN(const auto threads,
                            MultiSyncCollector::Create(Threads(3)));
  EXPECT_EQ(ChildProcesses().size(), 3);
  for (int i = 0; i < 5; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, processes->Next());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, threads->Next());
    EXPECT_THAT(got, BitEqualTo(want));
  }
}

// Whether an address is in memory that processes share.
bool IsShared(const void* address) {
  for (const std::string& line : MappingsOf("memfd")) {
    const size_t dash = line.find('-');
    const size_t space = line.find(' ');
    const auto at = reinterpret_cast<uintptr_t>(address);
    if (at >= std::stoull(line.substr(0, dash), nullptr, 16) &&
        at < std::stoull(line.substr(dash + 1, space), nullptr, 16)) {
      return true;
    }
  }
  return false;
}

// A worker steps into shared memory (SyncCollectorTest has that), so the one
// copy of a row is the sink's own.
TEST(MultiCollectorProcessTest, TheSinkGetsRowsWhereTheWorkerWroteThem) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(Processes(2, "")));
  int64_t batches = 0;
  FunctionSink sink([&](const TensorDict& batch, const WriteInfo&) {
    batch.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
      EXPECT_TRUE(IsShared(leaf.raw_data())) << key;
    });
    ++batches;
    return absl::OkStatus();
  });
  for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(collector->CollectInto(sink));
  EXPECT_EQ(batches, 6);
}

// The lines of the log while it lives.
class Log final : public absl::LogSink {
 public:
  Log() { absl::AddLogSink(this); }
  ~Log() override { absl::RemoveLogSink(this); }
  void Send(const absl::LogEntry& entry) override {
    lines_.emplace_back(entry.text_message());
  }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

// The log says this of each fault.
std::string WordsOf(const std::string& fault) {
  if (fault == "crash") return "ended by signal 11";
  if (fault == "exit") return "ended with exit status 3";
  if (fault == "hang") return "took longer than step_timeout = 5s";
  return "after it had found no memory";
}

// It is worker 1's, and has no other cause.
void ExpectOneDeath(const std::string& fault, const WorkerDeaths& deaths) {
  using Counts = std::map<int, int64_t>;
  EXPECT_EQ(deaths.total(), 1);
  EXPECT_THAT(deaths.by_worker, ElementsAre(0, 1));
  EXPECT_EQ(deaths.by_signal, fault == "crash" ? Counts({{11, 1}}) : Counts());
  EXPECT_EQ(deaths.by_exit_status,
            fault == "exit" ? Counts({{3, 1}}) : Counts());
  EXPECT_EQ(deaths.timeouts, fault == "hang");
  EXPECT_EQ(deaths.memory, fault == "eat");
  EXPECT_EQ(deaths.others, 0);
}

class FaultTest : public ::testing::TestWithParam<std::string> {};

TEST_P(FaultTest, E8_AWorkerThatEndsIsReplacedAndNothingOfAnotherIsLost) {
  MultiCollectorOptions options = Processes(3, GetParam());
  options.max_restarts = 1;
  // A batch may take as long as it likes.
  options.step_timeout = absl::Seconds(5);
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  if (GetParam() == "eat") GTEST_SKIP() << "its shadow memory has no limit";
#else
  options.max_worker_bytes = int64_t{1} << 30;
#endif
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(options));
  RILL_ASSERT_OK_AND_ASSIGN(const auto whole,
                            MultiSyncCollector::Create(Threads(3)));
  const Log log;
  Arrivals got(3);
  Arrivals want(3);
  for (int i = 0; i < 4; ++i) {
    RILL_ASSERT_OK(collector->CollectInto(got.sink));
    RILL_ASSERT_OK(whole->CollectInto(want.sink));
  }
  EXPECT_EQ(collector->restarts(), 1);
  ExpectOneDeath(GetParam(), collector->deaths());
  EXPECT_THAT(log.lines(),
              ElementsAre(AllOf(HasSubstr("MultiSyncCollector: worker 1: "),
                                HasSubstr(WordsOf(GetParam())),
                                HasSubstr("0 of 1 restarts are used"))));
  for (const int64_t w : {0, 2}) {
    for (int i = 0; i < 4; ++i) {
      EXPECT_THAT(got.batches[w][i], BitEqualTo(want.batches[w][i]));
    }
  }
  // It ended in its second batch; another producer goes on.
  EXPECT_THAT(got.numbers[1], ElementsAre(1));
  EXPECT_THAT(got.numbers[1 + 3], ElementsAre(1, 2, 3));
  EXPECT_THAT(got.cuts, ElementsAre(std::make_pair(
                            int64_t{1}, LaneRange{.first = 2, .count = 2})));
}

INSTANTIATE_TEST_SUITE_P(Faults, FaultTest,
                         ::testing::Values("crash", "exit", "hang", "eat"),
                         [](const auto& info) { return info.param; });

// The collector waits before the step begins, of which no message tells.
TEST(MultiCollectorProcessTest, AHangInAFirstStepIsFoundToo) {
  MultiCollectorOptions options = Processes(1, "hang at once");
  options.max_restarts = 1;
  options.step_timeout = absl::Seconds(2);
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(options));
  RILL_ASSERT_OK(collector->Next().status());
  EXPECT_EQ(collector->deaths().timeouts, 1);
}

void ExpectThatPastTheBudgetTheErrorSaysHowItEnded(DecisionLog* recorder) {
  MultiCollectorOptions options = Processes(3, "crash");
  options.recorder = recorder;
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(options));
  Arrivals got(3);
  RILL_ASSERT_OK(collector->CollectInto(got.sink));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(collector->CollectInto(got.sink),
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr("worker 1: ended by signal 11"),
                               HasSubstr("max_restarts = 0"))));
  }
  EXPECT_EQ(collector->deaths().total(), 1);
  if (recorder != nullptr) return;
  EXPECT_THAT(collector->SaveState(),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("worker 1: ended by signal 11"),
                             HasSubstr("raise it to go on"))));
  EXPECT_EQ(collector->deaths().total(), 1);
}

TEST(MultiCollectorProcessTest, PastTheBudgetTheErrorSaysHowItEnded) {
  ExpectThatPastTheBudgetTheErrorSaysHowItEnded(nullptr);
}

TEST(MultiCollectorProcessTest, ADeathCountsOnceBesideARecorder) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto recorder,
      FlightRecorder::Record({.path = ::testing::TempDir() + "/deaths"}));
  ExpectThatPastTheBudgetTheErrorSaysHowItEnded(recorder.get());
}

TEST(MultiCollectorProcessTest, E8_WhatAWorkersFunctionSaysComesBack) {
  EXPECT_THAT(MultiSyncCollector::Create(Processes(2, "refuse")),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("worker 1: no such map")));
  MultiCollectorOptions options = Processes(2, "");
  options.worker_name = "other";
  EXPECT_THAT(MultiSyncCollector::Create(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"other\", want one that WorkerMain was "
                                 "given: worker")));
}

// Worker 1 fails in every call from the second on.
TEST(MultiCollectorProcessTest, WhatNextHadOfOthersComesAfterAnError) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(Processes(3, "crash")));
  RILL_ASSERT_OK_AND_ASSIGN(const auto whole,
                            MultiSyncCollector::Create(Threads(3)));
  RILL_ASSERT_OK(collector->Next().status());
  EXPECT_THAT(collector->Next(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(collector->frames(), 3 * kLanes * 10);
  Arrivals got(3);
  Arrivals want(3);
  EXPECT_FALSE(collector->CollectInto(got.sink).ok());
  for (int i = 0; i < 2; ++i) RILL_ASSERT_OK(whole->CollectInto(want.sink));
  EXPECT_THAT(got.batches[0], ElementsAre(BitEqualTo(want.batches[0][1])));
  EXPECT_THAT(got.numbers[0], ElementsAre(2));
}

// Next replaces worker 1, whose trajectories are cut, and fails with worker 2.
TEST(MultiCollectorProcessTest, WhatNextHadComesWithItsCutsAfterAnError) {
  MultiCollectorOptions options = Processes(3, "crash both");
  options.max_restarts = 1;
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(options));
  Arrivals got(3);
  RILL_ASSERT_OK(collector->CollectInto(got.sink));
  EXPECT_THAT(collector->Next(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_FALSE(collector->CollectInto(got.sink).ok());
  EXPECT_THAT(got.numbers[0], ElementsAre(1, 2));
  EXPECT_THAT(got.numbers[1], ElementsAre(1));
  EXPECT_THAT(got.numbers[1 + 3], ElementsAre(1));
  EXPECT_THAT(
      got.cuts,
      ElementsAre(
          std::make_pair(int64_t{1}, LaneRange{.first = 2, .count = 2}),
          std::make_pair(int64_t{2}, LaneRange{.first = 4, .count = 2})));
}

// Worker 1 begins anew, as another producer.
TEST(MultiCollectorProcessTest, ALoadedStateCutsNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(Processes(2, "")));
  Arrivals before(2);
  RILL_ASSERT_OK(collector->CollectInto(before.sink));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, collector->SaveState());
  state.Find("restarts")->data<int64_t>()[1] = 1;
  RILL_ASSERT_OK(collector->LoadState(state));
  Arrivals after(2);
  RILL_ASSERT_OK(collector->CollectInto(after.sink));
  EXPECT_THAT(after.numbers[1 + 2], ElementsAre(2));
  EXPECT_THAT(after.cuts, ElementsAre());
  EXPECT_EQ(collector->deaths().total(), 0);
}

// Lets SlowWorker go on once the collector has interrupted the workers.
class SlowRun {
 public:
  SlowRun() {
    for (const char* end : {".slow", ".go"}) {
      EXPECT_EQ(mkfifo((path_ + end).c_str(), 0600), 0);
    }
  }
  ~SlowRun() {
    for (const char* end : {".slow", ".go"}) unlink((path_ + end).c_str());
  }

  // Two workers; worker 1 makes 5 steps in the first round.
  MultiCollectorOptions options() const {
    MultiCollectorOptions options = Processes(2, absl::StrCat("slow ", path_));
    options.preemptive_threshold = 0.5;
    return options;
  }

 private:
  const std::string path_ =
      absl::StrCat(::testing::TempDir(), "/slow_run_", getpid());
  const ScopedFaultHook go_{[this](absl::string_view point, absl::string_view) {
    if (point == "interruptor.interrupted") Meet(path_ + ".go", O_WRONLY);
    return absl::OkStatus();
  }};
};

TEST(MultiCollectorProcessTest, E6_MissingFramesAreMaskedOrDropped) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto whole,
                            MultiSyncCollector::Create(Threads(2)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, whole->Next());
  const TensorDict first = *want.Slice(0, 0, kLanes);
  const TensorDict short_one =
      *want.Slice(0, kLanes, 2 * kLanes)->Slice(1, 0, 5);
  for (const CatResults cat : {CatResults::kStack, CatResults::kTime}) {
    const SlowRun run;
    MultiCollectorOptions options = run.options();
    options.cat_results = cat;
    RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                              MultiSyncCollector::Create(options));
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
    EXPECT_EQ(collector->frames(), kLanes * 15);
    if (cat == CatResults::kTime) {
      EXPECT_EQ(batch.batch_shape(), Shape({kLanes, 15}));
      EXPECT_THAT(*batch.Slice(1, 0, 10), BitEqualTo(first));
      EXPECT_THAT(*batch.Slice(1, 10, 15), BitEqualTo(short_one));
      continue;
    }
    EXPECT_EQ(batch.batch_shape(), Shape({2, kLanes, 10}));
    const auto mask = *batch.Flat<bool>("collector/mask");
    const auto ids = *batch.Flat<int64_t>("collector/traj_ids");
    for (int64_t row = 0; row < 2 * kLanes * 10; ++row) {
      const bool is_missing = row >= kLanes * 10 && row % 10 >= 5;
      EXPECT_EQ(mask[row], !is_missing) << row;
      EXPECT_EQ(ids[row] == -1, is_missing) << row;
    }
    RILL_ASSERT_OK(batch.Delete("collector/mask"));
    EXPECT_THAT(*batch.Index(0), BitEqualTo(first));
    EXPECT_THAT(*batch.Index(1)->Slice(1, 0, 5), BitEqualTo(short_one));
  }
}

// Worker 1 dies in the second round, after that was interrupted: the worker
// that replaces it makes one step.
TEST(MultiCollectorProcessTest, APreemptedWorkerMayBeKilled) {
  const SlowRun run;
  MultiCollectorOptions options = run.options();
  options.max_restarts = 1;
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(options));
  RILL_ASSERT_OK_AND_ASSIGN(const auto whole,
                            MultiSyncCollector::Create(Threads(2)));
  Arrivals got(2);
  Arrivals want(2);
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK(collector->CollectInto(got.sink));
    RILL_ASSERT_OK(whole->CollectInto(want.sink));
    EXPECT_THAT(got.batches[0][i], BitEqualTo(want.batches[0][i]));
  }
  EXPECT_EQ(collector->restarts(), 1);
  ASSERT_EQ(got.batches[1].size(), 2);
  EXPECT_THAT(got.batches[1][0],
              BitEqualTo(*want.batches[1][0].Slice(1, 0, 5)));
  EXPECT_EQ(got.batches[1][1].batch_shape(), Shape({kLanes, 1}));
  EXPECT_THAT(got.numbers[1], ElementsAre(1));
  EXPECT_THAT(got.numbers[1 + 2], ElementsAre(1));
  EXPECT_THAT(got.cuts, ElementsAre(std::make_pair(
                            int64_t{1}, LaneRange{.first = 2, .count = 2})));
  EXPECT_EQ(collector->frames(), kLanes * (20 + 5 + 1));
}

// At any moment of its life: at the start, in a batch, between batches.
TEST(MultiCollectorProcessTest, KilledWorkersLoseNoRowOfAnother) {
  const int64_t kills = KillCount();
  MultiCollectorOptions options = Processes(2, "");
  options.max_restarts = kills;
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiAsyncCollector::Create(options));
  const std::vector<pid_t> first = ChildProcesses();
  ASSERT_EQ(first.size(), 2);
  // Worker 0 lives on. It was started first.
  const pid_t lasting = std::min(first[0], first[1]);
  Arrivals got(2);
  const Rng rng(1);
  for (int64_t kill_number = 0; kill_number < kills; ++kill_number) {
    const int64_t batches = rng.UniformInt(kill_number, 0, 5);
    for (int64_t i = 0; i < batches; ++i) {
      RILL_ASSERT_OK(collector->CollectInto(got.sink));
    }
    for (const pid_t child : ChildProcesses()) {
      if (child != lasting) kill(child, SIGKILL);
    }
    while (collector->restarts() == kill_number) {
      RILL_ASSERT_OK(collector->CollectInto(got.sink));
    }
  }
  // Rows of worker 0 are those that it makes alone.
  RILL_ASSERT_OK_AND_ASSIGN(const auto whole,
                            MultiSyncCollector::Create(Threads(2)));
  Arrivals want(2);
  for (size_t i = 0; i < got.batches[0].size(); ++i) {
    RILL_ASSERT_OK(whole->CollectInto(want.sink));
    ASSERT_THAT(got.batches[0][i], BitEqualTo(want.batches[0][i])) << i;
  }
  // Each producer's batches are numbered without a gap.
  for (const auto& [producer, numbers] : got.numbers) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      ASSERT_EQ(numbers[i], static_cast<int64_t>(i) + 1) << producer;
    }
  }
  // Whatever a killed one had open in the sink was cut, once.
  std::map<int64_t, int64_t> cuts;
  for (const auto& [producer, lanes] : got.cuts) ++cuts[producer];
  for (const auto& [producer, count] : cuts) {
    EXPECT_EQ(count, 1);
    EXPECT_EQ(producer % 2, 1);
    EXPECT_FALSE(got.numbers[producer].empty());
  }
}

// The pipe's other end stays open as long as any worker lives.
TEST(MultiCollectorProcessTest, WorkersEndWithAParentThatIsKilled) {
  int life[2];
  ASSERT_EQ(pipe(life), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    close(life[0]);
    auto collector = MultiAsyncCollector::Create(Processes(2, "hang"));
    if (!collector.ok()) _exit(1);
    for (int i = 0; i < 3; ++i) (*collector)->Next().IgnoreError();
    kill(getpid(), SIGKILL);
  }
  close(life[1]);
  char byte;
  EXPECT_EQ(read(life[0], &byte, 1), 0);
  close(life[0]);
  int how = 0;
  ASSERT_EQ(waitpid(parent, &how, 0), parent);
  EXPECT_TRUE(WIFSIGNALED(how));
}

absl::StatusOr<std::unique_ptr<Source>> MakeSyncSource() {
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Source> source,
                        MultiSyncCollector::Create(Processes(2, "")));
  return source;
}
absl::StatusOr<std::unique_ptr<Source>> MakeAsyncSource() {
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Source> source,
                        MultiAsyncCollector::Create(Processes(1, "")));
  return source;
}

INSTANTIATE_TEST_SUITE_P(Processes, SourceConformanceTest,
                         ::testing::Values(MakeSyncSource, MakeAsyncSource));

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  const std::optional<int> worker =
      rill::WorkerMain(argc, argv, {{"worker", rill::MakeWorker}});
  if (worker.has_value()) return *worker;
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
