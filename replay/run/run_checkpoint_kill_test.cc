// SPDX-License-Identifier: Apache-2.0
// A process that saves a run over the one that it opened is killed (SIGKILL) at
// operations on files. The run that opens then is the old or the new one,
// whole: both buffers, their next batches and the learner's state.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/run/run_checkpoint.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/kill_count.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr int64_t kLanes = 2;
constexpr int64_t kCapacity = 40;
constexpr int64_t kSteps = 7;
constexpr int64_t kFirst = 5;  // Rounds of the run that is opened: a full ring.

std::map<std::string, ReplayBuffer::Options> OptionsOf() {
  std::map<std::string, ReplayBuffer::Options> options;
  const auto storage = MakeStorage(kCapacity, kLanes);
  for (const std::string name : {"actor", "critic"}) {
    ReplayBuffer::Options& each = options[name];
    each.storage = storage;
    each.batch_size = 8;
    each.prefetch = 2;
    each.sampler = name == "actor" ? *MakePrioritizedSampler()
                                   : *MakeSliceSampler({.length = 2});
  }
  return options;
}

TensorDict Learner(int64_t round) {
  TensorDict state;
  RILL_EXPECT_OK(
      state.Set("round", *Tensor::From<int64_t>({round}, Shape({1}))));
  return state;
}

using Buffers = std::map<std::string, std::unique_ptr<ReplayBuffer>>;

std::vector<TensorDict> Work(Buffers& buffers, int64_t round) {
  RILL_EXPECT_OK(
      buffers["actor"]->Extend(NumberedSteps(kLanes, kSteps, kSteps * round)));
  std::vector<TensorDict> batches;
  for (const auto& [name, buffer] : buffers) {
    batches.push_back(*buffer->Sample());
  }
  RILL_EXPECT_OK(buffers["actor"]->UpdatePriorities(
      batches[0], std::vector<float>{static_cast<float>(round % 4 + 1)}));
  return batches;
}

absl::Status SaveTo(const std::string& path, const Buffers& buffers,
                    int64_t round) {
  RunCheckpoint::Contents contents = {.states = {{"learner", Learner(round)}}};
  for (const auto& [name, buffer] : buffers) {
    contents.buffers[name] = buffer.get();
  }
  return RunCheckpoint::Save(path, contents);
}

TEST(RunCheckpointKillTest, AtEveryOperationTheOldOrTheNewRunOpens) {
  // All of them in a long run; else every seventh.
  const int64_t stride = KillCount() >= 200 ? 1 : 7;
  const std::string root = JoinPath(::testing::TempDir(), "run_kill");
  RILL_ASSERT_OK(RemoveAll(root));
  RILL_ASSERT_OK(CreateDirectories(root));
  const std::string path = JoinPath(root, "saved");
  std::vector<std::vector<TensorDict>> batches;
  // Nobody forks while its threads are there.
  {
    Buffers buffers;
    auto options = OptionsOf();
    for (auto& [name, each] : options) {
      buffers[name] = *ReplayBuffer::Create(std::move(each));
    }
    for (int64_t round = 0; round < kFirst + 3; ++round) {
      if (round == kFirst) {
        RILL_ASSERT_OK(SaveTo(path, buffers, kFirst));
      }
      batches.push_back(Work(buffers, round));
    }
  }
  int64_t old_stood = 0;
  int64_t new_stood = 0;
  int64_t kill_at = 1;
  for (bool is_done = false; !is_done; kill_at += stride) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      {
        auto run = RunCheckpoint::Open(
            path, {.buffers = OptionsOf(), .states = {"learner"}});
        if (!run.ok()) _exit(2);
        const int64_t round =
            *run->states["learner"].Flat<int64_t>("round")->data();
        Work(run->buffers, round);
        // Counts the save alone: prefetch threads allocate beside it.
        const std::thread::id saver = std::this_thread::get_id();
        int64_t operations = 0;
        ScopedFaultHook hook([&](absl::string_view, absl::string_view) {
          if (std::this_thread::get_id() != saver) return absl::OkStatus();
          if (++operations == kill_at) kill(getpid(), SIGKILL);
          return absl::OkStatus();
        });
        if (!SaveTo(path, run->buffers, round + 1).ok()) _exit(3);
      }
      _exit(0);
    }
    int how = 0;
    ASSERT_EQ(waitpid(child, &how, 0), child);
    is_done = WIFEXITED(how) && WEXITSTATUS(how) == 0;  // Past its last one.
    ASSERT_TRUE(is_done || WIFSIGNALED(how))
        << "exited with " << WEXITSTATUS(how);
    auto run = RunCheckpoint::Open(
        path, {.buffers = OptionsOf(), .states = {"learner"}});
    RILL_ASSERT_OK(run.status()) << "killed at operation " << kill_at;
    const int64_t round =
        *run->states["learner"].Flat<int64_t>("round")->data();
    ASSERT_TRUE(round == kFirst || round == kFirst + 1);
    ++(round == kFirst ? old_stood : new_stood);
    ASSERT_TRUE(!is_done || round == kFirst + 1);
    // Both go on from there as the one that was never killed.
    for (int64_t i = round; i < kFirst + 3; ++i) {
      const auto got = Work(run->buffers, i);
      for (size_t j = 0; j < got.size(); ++j) {
        RILL_ASSERT_OK(got[j].CheckEqual(batches[i][j]))
            << "killed at operation " << kill_at << ", round " << i;
      }
    }
    if (round == kFirst + 1 && !is_done) break;  // The next would save beyond.
  }
  EXPECT_GT(kill_at, 40);
  EXPECT_GT(old_stood, 40 / stride);
  EXPECT_EQ(new_stood, 1);
  RILL_EXPECT_OK(RemoveAll(root));
}

}  // namespace
}  // namespace rill
