// SPDX-License-Identifier: Apache-2.0
// Producers in child processes, some of which are killed (SIGKILL) at any
// moment: what arrives is whole and in order, and nobody waits for the dead.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/rng.h"
#include "rill/flow/channel/record_channel.h"
#include "rill/flow/sink.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/kill_count.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using State = RecordChannel::ProducerState;

constexpr int64_t kWidth = 2000;  // So that a kill is likely to hit a copy.
constexpr int64_t kSteps = 3;

TensorDictSpec Spec() {
  TensorDictSpec spec;
  RILL_EXPECT_OK(
      spec.Set("wide", LeafSpec{.dtype = DType::kInt64, .shape = {kWidth}}));
  return spec;
}

// Every element says which batch it is of.
TensorDict Batch(int64_t number) {
  TensorDict batch({1, kSteps});
  auto wide = Tensor::Empty(DType::kInt64, Shape({1, kSteps, kWidth}));
  for (int64_t i = 0; i < kSteps * kWidth; ++i) {
    wide->data<int64_t>()[i] = number;
  }
  RILL_EXPECT_OK(batch.Set("wide", *wide));
  return batch;
}

RecordChannel::Options Options(int64_t producers) {
  return {.spec = Spec(), .producers = producers, .bytes = 1 << 18};
}

// Writes batches `first`, `first` + 1, ... until it may not; its status says
// why.
[[noreturn]] void Produce(RecordChannel* channel, int64_t producer,
                          int64_t first) {
  auto sink = channel->OpenProducer(producer);
  if (!sink.ok()) _exit(2);
  while (true) {
    const absl::Status status = (*sink)->Write(Batch(first++), {});
    if (!status.ok()) _exit(absl::IsUnavailable(status) ? 7 : 3);
  }
}

pid_t Fork(RecordChannel* channel, int64_t producer, int64_t first) {
  const pid_t pid = fork();
  if (pid == 0) Produce(channel, producer, first);
  return pid;
}

int WaitFor(pid_t pid) {
  int how = 0;
  EXPECT_EQ(waitpid(pid, &how, 0), pid);
  return how;
}

// Checks that batches are whole, and one behind the other from each producer.
class Checker final : public Sink {
 public:
  explicit Checker(int64_t producers) : next(producers), cut(producers) {}
  absl::Status Write(const TensorDict& batch, const WriteInfo& info) override {
    const Tensor& wide = *batch.Find("wide");
    const int64_t* values = wide.data<int64_t>();
    EXPECT_EQ(values[0], next[info.producer]);
    for (int64_t i = 0; i < wide.num_elements(); ++i)
      torn += values[i] != values[0];
    next[info.producer] = values[0] + 1;
    cut[info.producer] = 0;
    return absl::OkStatus();
  }
  absl::Status Cut(int64_t producer, LaneRange lanes) override {
    EXPECT_EQ(lanes, (LaneRange{.first = 0, .count = 1}));
    ++cut[producer];
    ++cuts;
    return absl::OkStatus();
  }
  absl::Status Flush() override { return absl::OkStatus(); }

  std::vector<int64_t> next;
  std::vector<int64_t> cut;  // How often, since its last batch.
  int64_t cuts = 0;
  int64_t torn = 0;
};

TEST(RecordChannelKillTest, KilledProducersLoseTheirLastBatchAtMost) {
  RILL_ASSERT_OK_AND_ASSIGN(auto channel, RecordChannel::Create(Options(2)));
  Checker checker(2);
  const Rng rng(1);
  const pid_t lasting = Fork(channel.get(), 0, 0);
  const int64_t kills = KillCount();
  for (int64_t kill_number = 0; kill_number < kills; ++kill_number) {
    const int64_t first = checker.next[1];
    const pid_t killed = Fork(channel.get(), 1, first);
    const int64_t last = first + rng.UniformInt(kill_number, 0, 12);
    const int64_t spins = rng.UniformInt(kill_number, 1, 20000);
    while (checker.next[1] <= last) {
      RILL_ASSERT_OK(channel->Wait(absl::InfiniteDuration()));
      RILL_ASSERT_OK(channel->Drain(&checker).status());
    }
    volatile int64_t spun = 0;
    while (spun < spins) spun = spun + 1;
    ASSERT_EQ(kill(killed, SIGKILL), 0);
    EXPECT_TRUE(WIFSIGNALED(WaitFor(killed)));
    EXPECT_EQ(channel->producer_state(1), State::kDied);
    // Its committed batches are there still, and the next one goes on behind
    // them.
    RILL_ASSERT_OK(channel->Drain(&checker).status());
    // Every other time the next one writes before its end is seen.
    if (kill_number % 2 == 0) continue;
    while (checker.cut[1] == 0) {
      RILL_ASSERT_OK(channel->Drain(&checker).status());
    }
  }
  EXPECT_EQ(channel->producer_state(0), State::kAlive);
  EXPECT_EQ(checker.cut[0], 0);
  // Once a kill, but for the last one, which may not have been looked at.
  EXPECT_GE(checker.cuts, kills - 1);
  EXPECT_LE(checker.cuts, kills);
  EXPECT_EQ(checker.torn, 0);
  EXPECT_GT(checker.next[0], 0);
  // The one that was never killed gets an error: the channel has gone.
  channel.reset();
  const int how = WaitFor(lasting);
  EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 7) << how;
}

TEST(RecordChannelKillTest, ABatchThatWasNotCommittedIsNeverSeen) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto channel,
                            RecordChannel::Create(Options(1)));
  const pid_t pid = fork();
  if (pid == 0) {
    auto sink = channel->OpenProducer(0);
    if (!sink.ok() || !(*sink)->Write(Batch(0), {}).ok()) _exit(2);
    ScopedFaultHook hook([](absl::string_view point, absl::string_view) {
      if (point == "channel.commit") raise(SIGKILL);
      return absl::OkStatus();
    });
    (*sink)->Write(Batch(1), {}).IgnoreError();
    _exit(3);
  }
  EXPECT_TRUE(WIFSIGNALED(WaitFor(pid)));
  Checker checker(1);
  EXPECT_THAT(channel->Drain(&checker), IsOkAndHolds(1));
  EXPECT_EQ(checker.cut[0], 0);
  // Its trajectory is open.
  RILL_EXPECT_OK(channel->Wait(absl::InfiniteDuration()));
  EXPECT_THAT(channel->Drain(&checker), IsOkAndHolds(0));
  EXPECT_EQ(checker.cut[0], 1);
  // Nothing is left and nobody writes: no wait without an end.
  EXPECT_THAT(channel->Wait(absl::InfiniteDuration()), IsUnavailable());
  RILL_ASSERT_OK_AND_ASSIGN(const auto next, channel->OpenProducer(0));
  RILL_ASSERT_OK(next->Write(Batch(1), {}));
  EXPECT_THAT(channel->Drain(&checker), IsOkAndHolds(1));
  EXPECT_EQ(checker.torn, 0);
}

// A child writes a batch, and a cut with `cuts`, and ends without closing.
void RunAndDie(RecordChannel* channel, bool cuts) {
  const pid_t pid = fork();
  if (pid == 0) {
    auto sink = channel->OpenProducer(0);
    if (!sink.ok() || !(*sink)->Write(Batch(0), {}).ok()) _exit(2);
    if (cuts && !(*sink)->Cut(0, {.first = 0, .count = 1}).ok()) _exit(3);
    _exit(0);
  }
  EXPECT_EQ(WaitFor(pid), 0);
}

TEST(RecordChannelKillTest, WhatAProducerHasCutIsNotCutAgain) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto channel,
                            RecordChannel::Create(Options(1)));
  RunAndDie(channel.get(), /*cuts=*/true);
  Checker checker(1);
  EXPECT_THAT(channel->Drain(&checker), IsOkAndHolds(1));
  EXPECT_THAT(channel->Wait(absl::InfiniteDuration()), IsUnavailable());
  EXPECT_EQ(checker.cuts, 1);
}

TEST(RecordChannelKillTest, TheCutOutlivesASuccessorThatWritesNothing) {
  for (const bool has_third : {false, true}) {
    RILL_ASSERT_OK_AND_ASSIGN(const auto channel,
                              RecordChannel::Create(Options(1)));
    RunAndDie(channel.get(), /*cuts=*/false);
    Checker checker(1);
    EXPECT_THAT(channel->DrainOne(0, &checker), IsOkAndHolds(true));
    RILL_ASSERT_OK(channel->OpenProducer(0).status());
    std::unique_ptr<Sink> third;
    if (has_third) {
      RILL_ASSERT_OK_AND_ASSIGN(third, channel->OpenProducer(0));
      RILL_ASSERT_OK(third->Write(Batch(1), {}));
    }
    RILL_EXPECT_OK(channel->Wait(absl::InfiniteDuration()));
    EXPECT_THAT(channel->Drain(&checker), IsOkAndHolds(has_third ? 1 : 0));
    EXPECT_EQ(checker.cuts, 1);
    // The third one leaves rows of its own.
    third.reset();
    EXPECT_THAT(channel->Drain(&checker), IsOkAndHolds(0));
    EXPECT_EQ(checker.cuts, 1);
  }
}

TEST(RecordChannelKillTest, ACutThatTheSinkRefusesComesAgain) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto channel,
                            RecordChannel::Create(Options(2)));
  RunAndDie(channel.get(), /*cuts=*/false);
  RILL_ASSERT_OK_AND_ASSIGN(const auto other, channel->OpenProducer(1));
  int64_t batches = 0;
  int64_t cuts = 0;
  FunctionSink sink(
      [&](const TensorDict&, const WriteInfo&) {
        ++batches;
        return absl::OkStatus();
      },
      [&](int64_t, LaneRange) {
        return ++cuts < 3 ? absl::FailedPreconditionError("flags")
                          : absl::OkStatus();
      });
  RILL_ASSERT_OK(channel->Drain(&sink).status());
  RILL_ASSERT_OK(other->Write(Batch(0), {}));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(channel->Drain(&sink), IsFailedPrecondition());
  }
  EXPECT_THAT(channel->Drain(&sink), IsOkAndHolds(1));
  EXPECT_EQ(batches, 2);
  EXPECT_EQ(cuts, 3);
}

// The reader is a child here, killed while its producer waits for space.
TEST(RecordChannelKillTest, ProducersOfAReaderThatWasKilledAreTold) {
  int pipe_ends[2];
  ASSERT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
  const pid_t reader = fork();
  if (reader == 0) {
    auto channel = RecordChannel::Create(Options(1));
    if (!channel.ok()) _exit(2);
    const pid_t producer = Fork(channel->get(), 0, 0);
    if (!(*channel)->Wait(absl::InfiniteDuration()).ok()) _exit(3);
    if (write(pipe_ends[1], &producer, sizeof(producer)) < 0) _exit(4);
    pause();
    _exit(5);
  }
  close(pipe_ends[1]);
  pid_t producer = 0;
  ASSERT_EQ(read(pipe_ends[0], &producer, sizeof(producer)),
            static_cast<ssize_t>(sizeof(producer)));
  ASSERT_EQ(kill(reader, SIGKILL), 0);
  EXPECT_TRUE(WIFSIGNALED(WaitFor(reader)));
  // The producer holds the pipe's other end until it ends.
  char byte;
  EXPECT_EQ(read(pipe_ends[0], &byte, 1), 0);
  close(pipe_ends[0]);
}

// As after exec: nothing but the descriptor and the spec.
TEST(RecordChannelKillTest, AProducerMayAttachByTheDescriptorAlone) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto channel,
                            RecordChannel::Create(Options(1)));
  const pid_t pid = fork();
  if (pid == 0) {
    auto sink =
        RecordChannel::AttachProducer(dup(channel->fd()), 0, Options(1));
    if (!sink.ok()) _exit(2);
    auto second =
        RecordChannel::AttachProducer(dup(channel->fd()), 0, Options(1));
    if (!absl::IsFailedPrecondition(second.status())) _exit(3);
    for (int64_t i = 0; i < 20; ++i) {
      if (!(*sink)->Write(Batch(i), {}).ok()) _exit(4);
    }
    _exit((*sink)->Flush().ok() ? 0 : 5);
  }
  Checker checker(1);
  while (channel->Wait(absl::InfiniteDuration()).ok()) {
    RILL_ASSERT_OK(channel->Drain(&checker).status());
  }
  EXPECT_EQ(WaitFor(pid), 0);
  EXPECT_EQ(checker.next[0], 20);
  EXPECT_EQ(checker.torn, 0);
}

}  // namespace
}  // namespace rill
