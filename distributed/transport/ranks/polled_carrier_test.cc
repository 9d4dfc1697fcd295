// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/ranks/polled_carrier.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/device/buffer.h"
#include "rill/distributed/transport/conformance/held_server.h"
#include "rill/distributed/transport/conformance/held_service.h"
#include "rill/distributed/transport/conformance/transport_conformance.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/ranks/rank_transport.h"
#include "rill/distributed/transport/transport.h"
#include "rill/flow/frames/frame.h"
#include "rill/tensordict/test_steps.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

// The ranks of a job, all in this process.
struct Job {
  struct Rank {
    std::deque<std::pair<int, std::shared_ptr<Buffer>>> frames;
    int64_t on_their_way = 0;  // Frames that it sent and nobody has taken.
    absl::Status error;
    bool is_finalized = false;
    bool is_abandoned = false;
  };
  explicit Job(size_t num_ranks) : ranks(num_ranks) {}

  absl::Mutex mu;
  std::vector<Rank> ranks ABSL_GUARDED_BY(mu);
  int64_t at_barrier ABSL_GUARDED_BY(mu) = 0;  // All barriers together.
};

// Fails where it is called as PolledFrames is not.
class LocalFrames final : public PolledFrames {
 public:
  LocalFrames(std::shared_ptr<Job> job, int rank)
      : job_(std::move(job)), rank_(rank) {}

  absl::StatusOr<Place> Init(Receive receive) override {
    const Call call(this);
    receive_ = std::move(receive);
    thread_ = std::this_thread::get_id();
    absl::MutexLock lock(&job_->mu);
    if (!own().error.ok()) return own().error;
    return Place{.rank = rank_,
                 .num_ranks = static_cast<int>(job_->ranks.size()),
                 .max_bytes = 16 << 20};
  }
  absl::Status Send(int rank, const FramePieces& frame) override {
    const Call call(this);
    absl::MutexLock lock(&job_->mu);
    ++own().on_their_way;
    job_->ranks[static_cast<size_t>(rank)].frames.emplace_back(
        rank_, *JoinFrame(frame));
    return own().error;
  }
  absl::Status Step(bool* moves) override {
    const Call call(this);
    std::deque<std::pair<int, std::shared_ptr<Buffer>>> frames;
    {
      absl::MutexLock lock(&job_->mu);
      if (!own().error.ok()) return own().error;
      frames.swap(own().frames);
      for (const auto& [from, bytes] : frames) {
        --job_->ranks[static_cast<size_t>(from)].on_their_way;
      }
    }
    *moves = *moves || !frames.empty();
    for (auto& [from, bytes] : frames) receive_(from, std::move(bytes));
    return absl::OkStatus();
  }
  bool has_transfers() const override {
    absl::MutexLock lock(&job_->mu);
    return own().on_their_way > 0 || !own().frames.empty();
  }
  absl::Status BeginBarrier() override {
    const Call call(this, &thread_);
    ++barriers_;
    absl::MutexLock lock(&job_->mu);
    ++job_->at_barrier;
    return absl::OkStatus();
  }
  absl::StatusOr<bool> TestBarrier() override {
    const Call call(this, &thread_);
    absl::MutexLock lock(&job_->mu);
    return job_->at_barrier >=
           barriers_ * static_cast<int64_t>(job_->ranks.size());
  }
  void Finalize() override {
    const Call call(this, &thread_);
    absl::MutexLock lock(&job_->mu);
    own().is_finalized = true;
    EXPECT_TRUE(own().frames.empty());
    EXPECT_EQ(own().on_their_way, 0);
  }
  void Abandon() override {
    const Call call(this, &thread_);
    absl::MutexLock lock(&job_->mu);
    own().is_abandoned = true;
  }

 private:
  // One at a time; `thread`: on this one.
  class Call {
   public:
    explicit Call(LocalFrames* frames, const std::thread::id* thread = nullptr)
        : is_alone_(frames->mu_.TryLock()), frames_(frames) {
      EXPECT_TRUE(is_alone_);
      EXPECT_TRUE(thread == nullptr || *thread == std::this_thread::get_id());
    }
    ~Call() {
      if (is_alone_) frames_->mu_.Unlock();
    }

   private:
    const bool is_alone_;
    LocalFrames* const frames_;
  };

  Job::Rank& own() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(job_->mu) {
    return job_->ranks[static_cast<size_t>(rank_)];
  }

  const std::shared_ptr<Job> job_;
  const int rank_;
  absl::Mutex mu_;
  Receive receive_;
  std::thread::id thread_;
  int64_t barriers_ = 0;
};

absl::StatusOr<std::unique_ptr<RankTransport>> Start(
    const std::shared_ptr<Job>& job, int rank) {
  return RankTransport::Create(
      MakePolledCarrier(std::make_unique<LocalFrames>(job, rank)));
}

INSTANTIATE_TEST_SUITE_P(Polled, TransportConformanceTest,
                         ::testing::Values([]() -> TransportSubject {
                           return {
                               .transport = *Start(std::make_shared<Job>(1), 0),
                               .address = "",
                               .free_address = "rank:0/nobody"};
                         }));

TEST(PolledCarrierTest, TheEndWaitsForAllRanksAndStillAnswers) {
  const auto job = std::make_shared<Job>(2);
  RILL_ASSERT_OK_AND_ASSIGN(auto first, Start(job, 0));
  RILL_ASSERT_OK_AND_ASSIGN(auto second, Start(job, 1));
  std::thread ends([&] { first = nullptr; });
  // It is at its first barrier, or was never.
  const auto is_there = [&] {
    job->mu.AssertReaderHeld();
    return job->at_barrier > 0;
  };
  {
    absl::MutexLock lock(&job->mu);
    ASSERT_TRUE(
        job->mu.AwaitWithTimeout(absl::Condition(&is_there), absl::Minutes(1)));
    EXPECT_FALSE(job->ranks[0].is_finalized);
  }
  EXPECT_THAT(second->Connect("rank:0", Soon()),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("nobody listens there")));
  second = nullptr;
  ends.join();
  absl::MutexLock lock(&job->mu);
  for (const Job::Rank& rank : job->ranks) {
    EXPECT_TRUE(rank.is_finalized);
    EXPECT_FALSE(rank.is_abandoned);
  }
}

TEST(PolledCarrierTest, AnErrorAtTheBeginningIsThatOfCreate) {
  const auto job = std::make_shared<Job>(1);
  {
    absl::MutexLock lock(&job->mu);
    job->ranks[0].error = absl::FailedPreconditionError("begun before");
  }
  EXPECT_THAT(Start(job, 0), StatusIs(absl::StatusCode::kFailedPrecondition,
                                      HasSubstr("begun before")));
  absl::MutexLock lock(&job->mu);
  EXPECT_TRUE(job->ranks[0].is_abandoned);
}

TEST(PolledCarrierTest, AnErrorEndsAllAndNothingIsFinalized) {
  const auto job = std::make_shared<Job>(1);
  {
    RILL_ASSERT_OK_AND_ASSIGN(const auto transport, Start(job, 0));
    const HeldServer held(*transport);
    const auto stream = held.Open("hold");
    RILL_ASSERT_OK(stream->Send({}, Soon()));
    ASSERT_TRUE(held.service->AwaitBegun(1));
    {
      absl::MutexLock lock(&job->mu);
      job->ranks[0].error = absl::UnavailableError("the cable");
    }
    EXPECT_THAT(
        stream->Receive(Soon()),
        StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the cable")));
    EXPECT_THAT(held.connection->Open("echo", {}, Soon()),
                StatusIs(absl::StatusCode::kUnavailable));
    held.service->Release();
  }
  absl::MutexLock lock(&job->mu);
  EXPECT_TRUE(job->ranks[0].is_abandoned);
  EXPECT_FALSE(job->ranks[0].is_finalized);
}

TEST(PolledCarrierTest, ThreadsOfAllRanksAskAtOnce) {
  const auto job = std::make_shared<Job>(3);
  std::vector<std::shared_ptr<RankTransport>> ranks;
  std::vector<std::unique_ptr<Server>> servers;
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(ranks.emplace_back(), Start(job, i));
    RILL_ASSERT_OK_AND_ASSIGN(
        servers.emplace_back(),
        ranks.back()->Listen("", std::make_shared<HeldService>()));
  }
  std::vector<std::thread> clients;
  for (size_t i = 0; i < 6; ++i) {
    clients.emplace_back([&, i] {
      RILL_ASSERT_OK_AND_ASSIGN(
          const auto connection,
          ranks[i % 3]->Connect(servers[(i + 1) % 3]->address(), Soon()));
      for (int64_t call = 0; call < 30; ++call) {
        RILL_ASSERT_OK_AND_ASSIGN(
            const Message reply,
            connection->Call("echo", {.batch = MakeSteps(3, call)}, Soon()));
        RILL_EXPECT_OK(reply.batch.CheckEqual(MakeSteps(3, call)));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  servers.clear();
  // Each waits for the others.
  for (auto& rank : ranks) {
    clients.emplace_back(
        [mine = std::exchange(rank, nullptr)]() mutable { mine = nullptr; });
  }
  for (size_t i = 6; i < clients.size(); ++i) clients[i].join();
}

}  // namespace
}  // namespace rill
