// SPDX-License-Identifier: Apache-2.0
// Worker processes that are killed at every point of their lives, errors of
// their environments, a disk that is full: nothing of another worker is lost,
// and nothing is left.
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
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
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/multi_async_collector.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/testing/hooked_env.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/collectors/workers/worker_main.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/env.h"
#include "rill/envs/testing/faulty_env.h"
#include "rill/envs/wrappers/env_wrapper.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/slots/slot.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/kill_count.h"
#include "rill/testing/process_traces.h"
#include "rill/testing/small_disk.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kLanes = 2;
constexpr int64_t kSteps = 10;  // Of a batch.

// --- How a worker dies -------------------------------------------------------

// Where in its life a worker is killed.
enum Phase {
  kInAStep,         // Its rows go into the channel's memory.
  kInACommit,       // All rows of a batch are there, and the reader's no more.
  kBetweenBatches,  // By the test, while it waits for a message.
  kBeforeFirstRow,
  kAtExit,  // It has seen the end of its socket.
  kPhases,
};
constexpr const char* kPhaseNames[kPhases] = {"in_a_step", "in_a_commit",
                                              "between_batches",
                                              "before_first_row", "at_exit"};

struct Death {
  Phase phase;
  int64_t steps;  // That it has made, at the least.
};

// How worker 1 dies in its life number `restarts`; the first one gives rows.
Death DeathOf(int64_t restarts) {
  const auto phase = static_cast<Phase>(restarts % kAtExit);
  const Rng rng(1);
  return {phase, phase == kBeforeFirstRow
                     ? 0
                     : rng.UniformInt(restarts, /*draw=*/0, 3 * kSteps)};
}

// A byte more in a file for each worker that dies in a phase.
std::string MarksOf(const std::string& folder, Phase phase) {
  return JoinPath(folder, kPhaseNames[phase]);
}

void DieIn(const std::string& folder, Phase phase) {
  const int fd = open(MarksOf(folder, phase).c_str(),
                      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (write(fd, "x", 1) == 1) raise(SIGKILL);
  _exit(1);
}

// Calls `at_end` in its destructor.
class EndingEnv final : public envs_internal::EnvWrapper {
 public:
  EndingEnv(std::unique_ptr<Env> env, std::function<void()> at_end)
      : EnvWrapper(std::move(env)), at_end_(std::move(at_end)) {}
  ~EndingEnv() override { at_end_(); }

 private:
  const std::function<void()> at_end_;
};

// Worker 1 lives by DeathOf; `context.argument` is the folder of its marks.
absl::StatusOr<WorkerParts> MakeMortal(const WorkerContext& context) {
  WorkerParts parts;
  RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = kLanes}));
  if (context.worker != 1) return parts;
  const std::string folder = context.argument;
  const Death death = DeathOf(context.restarts);
  if (death.phase == kBeforeFirstRow) DieIn(folder, death.phase);
  if (death.phase == kInACommit) {
    static auto* const hook =  // For the rest of its life.
        new ScopedFaultHook(
            [folder, left = death.steps / kSteps](absl::string_view point,
                                                  absl::string_view) mutable {
              if (point == "channel.commit" && left-- == 0) {
                DieIn(folder, kInACommit);
              }
              return absl::OkStatus();
            });
    static_cast<void>(hook);
  }
  parts.env = std::make_unique<HookedEnv>(
      std::move(parts.env), [folder, death](int64_t steps) {
        if (death.phase == kInAStep && steps == death.steps) {
          DieIn(folder, death.phase);
        }
      });
  return parts;
}

// Worker 1 dies when it ends.
absl::StatusOr<WorkerParts> MakeMortalAtExit(const WorkerContext& context) {
  WorkerParts parts;
  RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = kLanes}));
  if (context.worker != 1) return parts;
  parts.env = std::make_unique<EndingEnv>(
      std::move(parts.env),
      [folder = context.argument] { DieIn(folder, kAtExit); });
  return parts;
}

// Worker 1 fails, crashes or stays in its step number 15.
absl::StatusOr<WorkerParts> MakeFaulty(const WorkerContext& context) {
  constexpr int64_t kFaultyStep = 15;
  WorkerParts parts;
  RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = kLanes}));
  if (context.worker != 1 || context.argument.empty()) return parts;
  if (context.argument == "error") {
    parts.env = std::make_unique<FaultyEnv>(
        std::move(parts.env),
        FaultyEnv::Options{
            .fail_step = kFaultyStep,
            .status = absl::NotFoundError("no file \"maps/7.bin\"")});
    return parts;
  }
  const bool is_crash = context.argument == "crash";
  parts.env = std::make_unique<HookedEnv>(
      std::move(parts.env), [is_crash](int64_t steps) {
        if (steps != kFaultyStep) return;
        if (is_crash) {
          signal(SIGSEGV, SIG_DFL);  // A sanitizer has a handler of its own.
          raise(SIGSEGV);
        }
        for (;;) pause();
      });
  return parts;
}

// --- Collectors --------------------------------------------------------------

MultiCollectorOptions Processes(int64_t workers, const std::string& name,
                                const std::string& argument) {
  MultiCollectorOptions options;
  options.producer = 0;
  options.workers = workers;
  options.worker_name = name;
  options.argument = argument;
  options.frames_per_batch = workers * kLanes * kSteps;
  options.seed = 5;
  return options;
}

// The rows that workers make alone: without a worker that dies beside them.
MultiCollectorOptions Alone(int64_t workers) {
  MultiCollectorOptions options = Processes(workers, "", "");
  options.worker = MakeFaulty;
  return options;
}

std::string FreshFolder(const std::string& name) {
  const std::string folder = JoinPath(::testing::TempDir(), name);
  EXPECT_TRUE(RemoveAll(folder).ok());
  EXPECT_TRUE(CreateDirectories(folder).ok());
  return folder;
}

// Until no worker has anything to do.
absl::Status LetAllWait(MultiSyncCollector&) { return absl::OkStatus(); }
absl::Status LetAllWait(MultiAsyncCollector& collector) {
  return collector.Pause();
}

// Checks that batches of worker 0 are those it makes alone, and counts those of
// each producer, which are numbered without a gap.
class Arrivals {
 public:
  Arrivals() : alone_(*MultiSyncCollector::Create(Alone(1))) {}

  FunctionSink sink{
      [this](const TensorDict& batch, const WriteInfo& info) {
        EXPECT_EQ(info.sequence, ++batches[info.producer]) << info.producer;
        if (info.producer == 0) {
          EXPECT_THAT(batch, BitEqualTo(*alone_->Next())) << info.sequence;
        }
        return absl::OkStatus();
      },
      [this](int64_t producer, LaneRange lanes) {
        ++cuts[producer];
        EXPECT_EQ(lanes, (LaneRange{.first = kLanes, .count = kLanes}));
        return absl::OkStatus();
      }};
  std::map<int64_t, int64_t> batches;  // By producer, as are the cuts.
  std::map<int64_t, int64_t> cuts;

 private:
  const std::unique_ptr<MultiSyncCollector> alone_;
};

template <typename Collector>
class MortalWorkerTest : public ::testing::Test {};
using Collectors = ::testing::Types<MultiSyncCollector, MultiAsyncCollector>;
TYPED_TEST_SUITE(MortalWorkerTest, Collectors);

TYPED_TEST(MortalWorkerTest, KilledInEachPhaseOfItsLifeLosesNoRowOfAnother) {
  const std::string folder = FreshFolder("marks");
  std::vector<int64_t> kills(kPhases, 0);
  // A fifth of the kills, in runs of three batches each.
  const int64_t runs = std::max<int64_t>(KillCount() / kPhases, 1);
  for (int64_t run = 0; run < runs; ++run) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto collector,
        TypeParam::Create(Processes(2, "mortal_at_exit", folder)));
    Arrivals got;
    for (int i = 0; i < 3; ++i)
      RILL_ASSERT_OK(collector->CollectInto(got.sink));
    collector.reset();
    EXPECT_THAT(ChildProcesses(), IsEmpty());
    EXPECT_THAT(got.cuts, IsEmpty());
  }

  MultiCollectorOptions options = Processes(2, "mortal", folder);
  const int64_t lives = KillCount() - runs;
  options.max_restarts = 2 * lives;  // A call may see several deaths.
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector, TypeParam::Create(options));
  const std::vector<pid_t> first = ChildProcesses();
  ASSERT_EQ(first.size(), 2);
  // Worker 0 lives on. It was started first.
  const pid_t lasting = std::min(first[0], first[1]);
  Arrivals got;
  int64_t last_killed = -1;
  Source::Times times = {};
  while (collector->restarts() < lives) {
    RILL_ASSERT_OK(collector->CollectInto(got.sink));
    // A life that follows another counts from 0.
    EXPECT_GE(collector->times().env, times.env);
    times = collector->times();
    const int64_t life = collector->restarts();
    const Death death = DeathOf(life);
    if (death.phase != kBetweenBatches || life == last_killed ||
        got.batches[1 + 2 * life] * kSteps < death.steps) {
      continue;
    }
    RILL_ASSERT_OK(LetAllWait(*collector));
    for (const pid_t child : ChildProcesses()) {
      if (child != lasting) kill(child, SIGKILL);
    }
    last_killed = life;
    ++kills[kBetweenBatches];
  }

  for (int64_t life = 0; life < collector->restarts(); ++life) {
    const int64_t producer = 1 + 2 * life;
    const Death death = DeathOf(life);
    if (death.phase == kBetweenBatches) {
      EXPECT_GE(got.batches[producer] * kSteps, death.steps) << life;
    } else {
      EXPECT_EQ(got.batches[producer], death.steps / kSteps) << life;
    }
    // Trajectories that it had open in the sink were cut, once.
    EXPECT_EQ(got.cuts[producer], got.batches[producer] > 0 ? 1 : 0) << life;
  }
  for (int phase = 0; phase < kPhases; ++phase) {
    if (phase != kBetweenBatches) {
      RILL_ASSERT_OK_AND_ASSIGN(
          kills[phase], FileSize(MarksOf(folder, static_cast<Phase>(phase))));
    }
    EXPECT_GE(kills[phase], KillCount() / kPhases - 1) << kPhaseNames[phase];
    this->RecordProperty(kPhaseNames[phase], absl::StrCat(kills[phase]));
  }
}

// --- Errors ------------------------------------------------------------------

// No deadline is set, so the error itself ends the wait.
TEST(WorkerFaultsTest, E8_AnErrorOfAWorkersEnvironmentComesBackWithItsText) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto collector,
      MultiSyncCollector::Create(Processes(2, "faulty", "error")));
  Arrivals got;
  RILL_ASSERT_OK(collector->CollectInto(got.sink));
  EXPECT_THAT(collector->CollectInto(got.sink),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("worker 1: "),
                             HasSubstr("no file \"maps/7.bin\""))));
  for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(collector->CollectInto(got.sink));
  EXPECT_EQ(collector->restarts(), 0);
  EXPECT_EQ(got.batches[0], 4);
  EXPECT_EQ(got.batches[1], 4);
}

// Ballast leaves a part of the disk; it goes away when the run has failed.
TEST(WorkerFaultsTest, ARunGoesOnWhenAFullDiskHasSpaceAgain) {
  RunOnSmallDisk(2 << 20, [](const std::string& disk) {
    constexpr int64_t kWorkers = 3;
    constexpr int64_t kBatches = 600;              // Of all workers.
    constexpr int64_t kSlots = kBatches * kSteps;  // A lane.
    const std::string ballast = JoinPath(disk, "ballast");
    RILL_ASSERT_OK(WriteFileAtomically(ballast, std::string(1280 << 10, 'x')));
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto collector,
        MultiAsyncCollector::Create(Processes(kWorkers, "faulty", "")));
    RILL_ASSERT_OK_AND_ASSIGN(
        const std::shared_ptr<Storage> storage,
        MemmapStorage::Create({.directory = JoinPath(disk, "replay"),
                               .capacity = kWorkers * kLanes * kSlots,
                               .lanes = kWorkers * kLanes,
                               .spec = collector->spec()}));
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto buffer,
        ReplayBuffer::Create({.storage = storage,
                              .sampler = MakeUniformSampler(),
                              .batch_size = 32}));
    std::map<int64_t, int64_t> batches;  // By worker.
    FunctionSink sink(
        [&](const TensorDict& batch, const WriteInfo& info) -> absl::Status {
          RILL_RETURN_IF_ERROR(buffer->Write(batch, info));
          EXPECT_EQ(info.sequence, ++batches[info.producer]);
          return absl::OkStatus();
        });
    int64_t collected = 0;
    // Rows of one worker may still find space where those of another do not.
    int errors = 0;
    while (errors < 3 && collected < kBatches) {
      const absl::Status status = collector->CollectInto(sink);
      if (status.ok()) {
        ++collected;
        continue;
      }
      EXPECT_THAT(status,
                  StatusIs(absl::StatusCode::kResourceExhausted,
                           AllOf(HasSubstr("asked "), HasSubstr("free"))));
      ++errors;
    }
    ASSERT_EQ(errors, 3);
    ASSERT_GT(collected, 0);
    RILL_ASSERT_OK(RemoveAll(ballast));
    for (; collected < kBatches; ++collected) {
      RILL_ASSERT_OK(collector->CollectInto(sink));
    }
    EXPECT_EQ(collector->restarts(), 0);
    EXPECT_EQ(storage->size(), kBatches * kLanes * kSteps);

    // The rows of each worker are those that it makes alone.
    RILL_ASSERT_OK_AND_ASSIGN(const auto alone,
                              MultiSyncCollector::Create(Alone(kWorkers)));
    std::map<int64_t, std::vector<TensorDict>> want;
    FunctionSink wanted([&](const TensorDict& batch, const WriteInfo& info) {
      want[info.producer].push_back(*batch.Clone());
      return absl::OkStatus();
    });
    while (std::any_of(batches.begin(), batches.end(), [&](const auto& entry) {
      const auto& [w, count] = entry;
      return static_cast<int64_t>(want[w].size()) < count;
    })) {
      RILL_ASSERT_OK(alone->CollectInto(wanted));
    }
    for (int64_t w = 0; w < kWorkers; ++w) {
      ASSERT_GT(batches[w], 0);
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        const int64_t slot = (w * kLanes + lane) * kSlots;
        EXPECT_EQ(storage->cursors()[w * kLanes + lane].written,
                  batches[w] * kSteps);
        for (int64_t i = 0; i < batches[w]; ++i) {
          std::vector<Slot> slots;
          for (int64_t t = 0; t < kSteps; ++t) {
            slots.push_back(slot + i * kSteps + t);
          }
          TensorDict rows;
          RILL_ASSERT_OK(storage->Read(slots, &rows));
          ASSERT_THAT(rows, BitEqualTo(*want[w][i].Index(lane))) << w;
        }
      }
    }
  });
}

// --- What is left ------------------------------------------------------------

void RunUntilItFails(const std::string& fault) {
  MultiCollectorOptions options = Processes(2, "faulty", fault);
  // The run that stays ends by its parent, or by this.
  if (fault == "stay") options.batch_timeout = absl::Milliseconds(100);
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiAsyncCollector::Create(options));
  absl::Status status;
  while (status.ok()) status = collector->Next().status();
}

// LeakSanitizer looks at a process that exits from one beside it. That one is
// left, and is killed or ends with 4, where the process has ended before.
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
constexpr bool kHasTracers = true;
#else
constexpr bool kHasTracers = false;
#endif

// A process with a run of its own kills itself; its workers become ours.
void RunInAParentThatIsKilled(int64_t batches) {
  const pid_t parent = fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    auto collector = MultiAsyncCollector::Create(Processes(2, "faulty", ""));
    for (int64_t i = 0; collector.ok() && i < batches; ++i) {
      (*collector)->Next().IgnoreError();
    }
    kill(getpid(), SIGKILL);
  }
  int how = 0;
  ASSERT_EQ(waitpid(parent, &how, 0), parent);
  EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
  int64_t orphans = 0;
  while (waitpid(-1, &how, 0) > 0) {
    ++orphans;
    if (kHasTracers) continue;
    EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0) << how;
  }
  if (kHasTracers) {
    EXPECT_GE(orphans, 2);
  } else {
    EXPECT_EQ(orphans, 2);
  }
}

// In a mount namespace, whose /dev/shm nobody else uses.
TEST(WorkerFaultsTest, E10_NothingIsLeftOfAHundredRunsThatFailed) {
  RunOnSmallDisk(1 << 20, [](const std::string&) {
    ASSERT_EQ(mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64m"), 0);
    ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    const auto descriptors = NamesIn("/proc/self/fd");
    const size_t mappings = MappingsOf("memfd").size();
    for (int64_t run = 0; run < 25; ++run) {
      RunUntilItFails("error");
      RunUntilItFails("crash");  // By a signal.
      RunUntilItFails("stay");   // By SIGKILL.
      RunInAParentThatIsKilled(run % 4);
    }
    EXPECT_THAT(ChildProcesses(), IsEmpty());
    EXPECT_THAT(NamesIn("/dev/shm"), IsEmpty());
    EXPECT_EQ(NamesIn("/proc/self/fd"), descriptors);
    EXPECT_EQ(MappingsOf("memfd").size(), mappings);
  });
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  const std::optional<int> worker =
      rill::WorkerMain(argc, argv,
                       {{"mortal", rill::MakeMortal},
                        {"mortal_at_exit", rill::MakeMortalAtExit},
                        {"faulty", rill::MakeFaulty}});
  if (worker.has_value()) return *worker;
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
