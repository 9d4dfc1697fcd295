// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/replay/remote_sampler.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/replay/replay_service.h"
#include "rill/distributed/transport/inproc/inproc_faults.h"
#include "rill/distributed/transport/inproc/inproc_transport.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr char kAddress[] = "server";

struct Served {
  std::shared_ptr<InprocTransport> transport;
  std::shared_ptr<ReplayService> service = nullptr;
  std::unique_ptr<Server> server = nullptr;

  ReplayBuffer& table() { return *service->table("replay"); }
};

// A server of one prioritized table, of `rows` numbered steps.
void Serve(Served* served, int64_t rows, uint64_t seed = 0) {
  ReplayService::Tables tables;
  RILL_ASSERT_OK_AND_ASSIGN(
      tables["replay"],
      ReplayBuffer::Create(
          {.storage = MakeStorage(100),
           .sampler = *MakePrioritizedSampler({.alpha = 1.0, .beta = 0.5}),
           .batch_size = 8,
           .seed = seed}));
  if (rows > 0) {
    RILL_ASSERT_OK(tables["replay"]->Extend(NumberedSteps(1, rows)));
  }
  RILL_ASSERT_OK_AND_ASSIGN(served->service,
                            ReplayService::Create(std::move(tables)));
  served->server = nullptr;
  RILL_ASSERT_OK_AND_ASSIGN(
      served->server, served->transport->Listen(kAddress, served->service));
}

Served MakeServed(int64_t rows, const InprocFaults& faults = {}) {
  auto transport = InprocTransport::Create(faults);
  RILL_EXPECT_OK(transport.status());
  Served served{.transport = *std::move(transport)};
  Serve(&served, rows);
  return served;
}

std::unique_ptr<RemoteSampler> MakeSampler(
    const Served& served, int64_t ahead = 2, int64_t batch_size = 0,
    absl::Duration reply_timeout = absl::Seconds(5)) {
  auto sampler =
      RemoteSampler::Create({.server = {.transport = served.transport,
                                        .address = kAddress,
                                        .reply_timeout = reply_timeout},
                             .batch_size = batch_size,
                             .ahead = ahead});
  RILL_EXPECT_OK(sampler.status());
  return *std::move(sampler);
}

TEST(RemoteSamplerTest, Example) {
  const Served served = MakeServed(10);
  const auto run = [](std::shared_ptr<Transport> transport,
                      const std::string& address) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(
        auto sampler, RemoteSampler::Create({.server = {.transport = transport,
                                                        .address = address},
                                             .batch_size = 256}));
    RILL_ASSIGN_OR_RETURN(TensorDict batch, sampler->Sample());
    const std::vector<float> td_errors(256, 1.0f);
    return sampler->UpdatePriorities(batch, td_errors);
  };
  RILL_EXPECT_OK(run(served.transport, kAddress));
}

TEST(RemoteSamplerTest, BatchesAreThoseThatTheBufferDraws) {
  // From 2 on, two and more come in one message.
  for (const int64_t ahead : {0, 1, 2, 3, 8, 64}) {
    SCOPED_TRACE(ahead);
    Served fresh = MakeServed(20);
    const auto sampler = MakeSampler(fresh, ahead);
    Served local = MakeServed(20);
    for (int i = 0; i < 100; ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, sampler->Sample());
      RILL_ASSERT_OK(batch.Delete("index_server"));
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, local.table().Sample());
      RILL_EXPECT_OK(batch.CheckEqual(want));
    }
  }
}

TEST(RemoteSamplerTest, ALargeBatchIsAskedForWhenOneWasUsed) {
  const Served served = MakeServed(20);
  // The batches of 8 rows are small, those of so many are not.
  const auto sampler = MakeSampler(served, /*ahead=*/4, /*batch_size=*/20000);
  const absl::Time deadline = Clock::System().Now() + absl::Minutes(1);
  for (uint64_t used = 1; used <= 10; ++used) {
    RILL_ASSERT_OK(sampler->Sample());
    // Nobody else draws, so that it gets there and stays.
    while (served.service->table("replay")->batch_number() < used + 4 &&
           Clock::System().Now() < deadline) {
      std::this_thread::yield();
    }
    EXPECT_EQ(served.service->table("replay")->batch_number(), used + 4);
  }
}

class CountingService final : public Service {
 public:
  explicit CountingService(std::shared_ptr<Service> service)
      : service_(std::move(service)) {}
  absl::StatusOr<Message> Call(const CallInfo& info,
                               const Message& request) override {
    ++calls;
    return service_->Call(info, request);
  }

  std::atomic<int64_t> calls = 0;

 private:
  const std::shared_ptr<Service> service_;
};

TEST(RemoteSamplerTest, SmallBatchesShareMessagesByDefault) {
  Served served = MakeServed(20);
  const auto counted = std::make_shared<CountingService>(served.service);
  served.server = nullptr;
  RILL_ASSERT_OK_AND_ASSIGN(served.server,
                            served.transport->Listen(kAddress, counted));
  const auto sampler = MakeSampler(served);
  for (int i = 0; i < 100; ++i) RILL_ASSERT_OK(sampler->Sample());
  // Three one by one, and then a message for two.
  EXPECT_LT(counted->calls, 75);
}

TEST(RemoteSamplerTest, PrioritiesReachTheRows) {
  Served served = MakeServed(20);
  const auto sampler = MakeSampler(served, /*ahead=*/0, /*batch_size=*/64);
  // All weight on step 7.
  for (int round = 0; round < 20; ++round) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler->Sample());
    RILL_ASSERT_OK_AND_ASSIGN(const auto actions,
                              batch.Flat<int64_t>("action"));
    std::vector<float> priorities;
    for (const int64_t action : actions) {
      priorities.push_back(action == 7 ? 1e6f : 0.0f);
    }
    RILL_ASSERT_OK(sampler->UpdatePriorities(batch, priorities));
  }
  RILL_ASSERT_OK(sampler->Flush());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler->Sample());
  RILL_ASSERT_OK_AND_ASSIGN(const auto actions, batch.Flat<int64_t>("action"));
  EXPECT_THAT(std::vector<int64_t>(actions.begin(), actions.end()), Each(7));
  EXPECT_EQ(sampler->GetStats().stale_rows, 0);
}

TEST(RemoteSamplerTest, OnePriorityIsForAllRows) {
  Served served = MakeServed(20);
  const auto sampler = MakeSampler(served);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler->Sample());
  RILL_ASSERT_OK(sampler->UpdatePriorities(batch, {2.0f}));
  RILL_EXPECT_OK(sampler->Flush());
  RILL_ASSERT_OK(sampler->UpdatePriorities(batch, {2.0f, 3.0f}));
  EXPECT_THAT(sampler->Flush(), StatusIs(absl::StatusCode::kInvalidArgument));
  RILL_EXPECT_OK(sampler->Flush());
}

TEST(RemoteSamplerTest, PrioritiesOfAnEarlierStartAreStale) {
  Served served = MakeServed(20);
  const auto sampler = MakeSampler(served);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler->Sample());
  served.transport->Kill(kAddress);
  Serve(&served, 20, /*seed=*/1);
  RILL_ASSERT_OK(
      sampler->UpdatePriorities(batch, std::vector<float>(8, 100.0f)));
  RILL_ASSERT_OK(sampler->Flush());
  EXPECT_EQ(sampler->GetStats().stale_rows, 8);
  RILL_ASSERT_OK(sampler->Sample());
  EXPECT_EQ(sampler->GetStats().connects, 2);
}

TEST(RemoteSamplerTest, BatchesAreWholeWhateverTheLineDoes) {
  Served served = MakeServed(50, {.seed = 2,
                                  .lose_request = 0.1,
                                  .lose_reply = 0.1,
                                  .stall = 0.01,
                                  .repeat = 0.1,
                                  .late = 0.1});
  const auto sampler = MakeSampler(served, /*ahead=*/3, /*batch_size=*/16,
                                   /*reply_timeout=*/absl::Milliseconds(20));
  for (int i = 0; i < 200; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler->Sample());
    EXPECT_EQ(batch.batch_shape().num_elements(), 16);
    ExpectWholeSteps(batch, 100);
    RILL_ASSERT_OK(
        sampler->UpdatePriorities(batch, std::vector<float>(16, 1.0f)));
  }
  RILL_EXPECT_OK(sampler->Flush());
  EXPECT_EQ(sampler->GetStats().batches, 200);
  EXPECT_GT(sampler->GetStats().connects, 1);
}

TEST(RemoteSamplerTest, TooFewRowsAreAnErrorAtOnceAndNoneWithTheRows) {
  Served served = MakeServed(0);
  const auto sampler = MakeSampler(served);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(sampler->Sample(),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  RILL_ASSERT_OK(served.table().Extend(NumberedSteps(1, 10)));
  RILL_EXPECT_OK(sampler->Sample());
}

TEST(RemoteSamplerTest, AServerThatIsAwayIsAnErrorAtTheTimeout) {
  Served served = MakeServed(10);
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto sampler,
      RemoteSampler::Create({.server = {.transport = served.transport,
                                        .address = kAddress,
                                        .timeout = absl::Milliseconds(20)}}));
  const auto sample = [&] {
    absl::Status status = sampler->Sample().status();
    while (absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status)) {
      status = sampler->Sample().status();
    }
    return status;
  };
  RILL_ASSERT_OK(sample());
  served.server = nullptr;
  // Batches that came before are given still: `ahead` at most.
  absl::Status status;
  for (int given = 0; given <= 2 && status.ok(); ++given) {
    status = sampler->Sample().status();
  }
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("server")));
  Serve(&served, 10);
  RILL_EXPECT_OK(sample());
}

TEST(RemoteSamplerTest, ASampleWaitsForAServerThatComesBack) {
  Served served = MakeServed(10);
  const auto sampler = MakeSampler(served);
  served.server = nullptr;
  std::thread restart([&] { Serve(&served, 10); });
  RILL_EXPECT_OK(sampler->Sample());
  restart.join();
}

TEST(RemoteSamplerTest, BadOptionsAreNamed) {
  const Served served = MakeServed(1);
  const RemoteServer server = {.transport = served.transport,
                               .address = kAddress};
  const auto refuses = [](const RemoteSampler::Options& options,
                          const char* says) {
    EXPECT_THAT(RemoteSampler::Create(options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(says)));
  };
  refuses({}, "transport: got null");
  refuses({.server = server, .batch_size = -1}, "batch_size: got -1");
  refuses({.server = server, .ahead = 65}, "ahead: got 65");
  refuses({.server = server, .max_updates = 0}, "max_updates: got 0");
}

}  // namespace
}  // namespace rill
