// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/ranks/rank_transport.h"

#include <algorithm>
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
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/device/buffer.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/conformance/held_server.h"
#include "rill/distributed/transport/conformance/held_service.h"
#include "rill/distributed/transport/conformance/transport_conformance.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/ranks/rank_carrier.h"
#include "rill/distributed/transport/ranks/rank_packet.h"
#include "rill/distributed/transport/transport.h"
#include "rill/distributed/transport/value_limits.h"
#include "rill/flow/frames/frame.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_steps.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ranks_internal::EncodePacket;
using ranks_internal::RankPacket;
using ::testing::HasSubstr;

constexpr int64_t kMaxBytes = 16 << 20;

// Blocks for a rank of a job whose ranks are all in this process.
class Inbox {
 public:
  void Put(int from, std::shared_ptr<Buffer> bytes) {
    absl::MutexLock lock(&mu_);
    if (drops_ > 0) {
      --drops_;
      return;
    }
    blocks_.push_back({from, std::move(bytes)});
  }
  // The next block is lost.
  void Drop() {
    absl::MutexLock lock(&mu_);
    ++drops_;
  }
  // The rank hangs, goes on, breaks, or ends.
  void SetHangs(bool hangs) {
    absl::MutexLock lock(&mu_);
    hangs_ = hangs;
  }
  void Break(const absl::Status& why) {
    absl::MutexLock lock(&mu_);
    broken_ = why;
  }
  void End() {
    absl::MutexLock lock(&mu_);
    has_ended_ = true;
  }

  void Run(const RankCarrier::Events& events) {
    for (;;) {
      std::pair<int, std::shared_ptr<Buffer>> block;
      {
        absl::MutexLock lock(&mu_);
        const auto has_work = [this] {
          mu_.AssertReaderHeld();
          return has_ended_ || !broken_.ok() || (!blocks_.empty() && !hangs_);
        };
        mu_.Await(absl::Condition(&has_work));
        if (!broken_.ok() || has_ended_) break;
        block = std::move(blocks_.front());
        blocks_.pop_front();
      }
      events.receive(block.first, std::move(block.second));
    }
    absl::Status broken;
    {
      absl::MutexLock lock(&mu_);
      broken = broken_;
    }
    if (!broken.ok()) events.fail(broken);
  }

 private:
  absl::Mutex mu_;
  bool hangs_ ABSL_GUARDED_BY(mu_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mu_) = false;
  int drops_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status broken_ ABSL_GUARDED_BY(mu_);
  std::deque<std::pair<int, std::shared_ptr<Buffer>>> blocks_
      ABSL_GUARDED_BY(mu_);
};
using Inboxes = std::vector<std::shared_ptr<Inbox>>;

class LocalCarrier final : public RankCarrier {
 public:
  LocalCarrier(Inboxes inboxes, int rank, int64_t max_bytes = kMaxBytes)
      : inboxes_(std::move(inboxes)), rank_(rank), max_bytes_(max_bytes) {}

  absl::Status Start(Events events) override {
    thread_ = std::thread([inbox = inboxes_[static_cast<size_t>(rank_)],
                           events = std::move(events)] { inbox->Run(events); });
    return absl::OkStatus();
  }
  int rank() const override { return rank_; }
  int num_ranks() const override { return static_cast<int>(inboxes_.size()); }
  int64_t max_bytes() const override { return max_bytes_; }
  void Send(int rank, FramePieces frame) override {
    inboxes_[static_cast<size_t>(rank)]->Put(rank_, *JoinFrame(frame));
  }
  void Finish() override {
    inboxes_[static_cast<size_t>(rank_)]->End();
    thread_.join();
  }

 private:
  const Inboxes inboxes_;
  const int rank_;
  const int64_t max_bytes_;
  std::thread thread_;
};

// A transport for each rank.
struct Job {
  Inboxes inboxes;
  std::vector<std::shared_ptr<RankTransport>> ranks;

  explicit Job(int num_ranks) {
    for (int i = 0; i < num_ranks; ++i) {
      inboxes.push_back(std::make_shared<Inbox>());
    }
    for (int i = 0; i < num_ranks; ++i) {
      auto transport =
          RankTransport::Create(std::make_unique<LocalCarrier>(inboxes, i));
      RILL_EXPECT_OK(transport.status());
      ranks.push_back(*std::move(transport));
    }
  }
  // A block that is no packet.
  void PutNoise(int from, size_t to) const {
    auto noise = *Buffer::Allocate(64);
    std::fill_n(noise->data(), 64, std::byte{7});
    inboxes[to]->Put(from, std::move(noise));
  }
};

INSTANTIATE_TEST_SUITE_P(Ranks, TransportConformanceTest,
                         ::testing::Values([]() -> TransportSubject {
                           return {.transport = Job(1).ranks[0],
                                   .address = "",
                                   .free_address = "rank:0/nobody"};
                         }));

// Rank 0 calls a server of rank 1.
class TwoRanksTest : public ::testing::Test {
 protected:
  const Job job_{2};
  const HeldServer held_{*job_.ranks[1], *job_.ranks[0]};
};

TEST(RankTransportTest, RanksReachAllServersOfOneAnother) {
  const Job job(3);
  const std::vector<std::string> addresses = {"rank:1", "rank:2",
                                              "rank:2/more"};
  std::vector<std::shared_ptr<HeldService>> services;
  std::vector<std::unique_ptr<Server>> servers;
  for (const std::string& address : addresses) {
    services.push_back(std::make_shared<HeldService>());
    const auto rank = static_cast<size_t>(address[5] - '0');
    RILL_ASSERT_OK_AND_ASSIGN(
        servers.emplace_back(),
        job.ranks[rank]->Listen(address, services.back()));
    EXPECT_EQ(servers.back()->address(), address);
  }
  for (size_t i = 0; i < addresses.size(); ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const auto connection,
                              job.ranks[0]->Connect(addresses[i], Soon()));
    RILL_ASSERT_OK_AND_ASSIGN(
        const Message reply,
        connection->Call("echo", {.batch = MakeSteps(3)}, Soon()));
    RILL_EXPECT_OK(reply.batch.CheckEqual(MakeSteps(3)));
    EXPECT_EQ(services[i]->begun(), 1);
    EXPECT_EQ(services[i]->last_peer(), "rank 0");
  }
  EXPECT_THAT(job.ranks[0]->Connect("rank:2/none", Soon()),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST(RankTransportTest, AddressesAreChecked) {
  const Job job(2);
  const auto service = std::make_shared<HeldService>();
  for (const std::string wrong : {"", "rank", "rank:", "rank:2", "rank:-1",
                                  "rank:x", "rank:0x/a", "host:0"}) {
    EXPECT_THAT(job.ranks[0]->Connect(wrong, Soon()),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("\"" + wrong + "\", want rank:N")));
    if (wrong.empty()) continue;
    EXPECT_THAT(job.ranks[0]->Listen(wrong, service),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(job.ranks[0]->Listen("rank:1", service),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got \"rank:1\" on rank 0")));
  EXPECT_THAT(job.ranks[0]->Connect("rank:1/a", Soon()),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("\"rank:1/a\": nobody listens there")));
}

TEST_F(TwoRanksTest, CallsToARankThatHangsEndAtTheirDeadlines) {
  const auto stream = held_.Open("echo", /*window=*/1);
  job_.inboxes[1]->SetHangs(true);
  const auto shortly = [] {
    return Clock::System().Now() + absl::Milliseconds(5);
  };
  RILL_ASSERT_OK(stream->Send({.batch = MakeSteps(2)}, Soon()));
  EXPECT_THAT(stream->Receive(shortly()),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("no reply from \"rank:1\"")));
  EXPECT_THAT(stream->Send({}, shortly()),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(job_.ranks[0]->Connect("rank:1", shortly()),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       "RankTransport::Connect: no answer from \"rank:1\""));
  job_.inboxes[1]->SetHangs(false);
  RILL_ASSERT_OK_AND_ASSIGN(const Reply reply, stream->Receive(Soon()));
  RILL_EXPECT_OK(reply.message.batch.CheckEqual(MakeSteps(2)));
}

TEST(RankTransportTest, DamageEndsTheStreamsOfTheRankItCameFrom) {
  const Job job(3);
  const HeldServer damaged(*job.ranks[1], *job.ranks[0]);
  const HeldServer other(*job.ranks[2], *job.ranks[0]);
  const auto ends = damaged.Open("hold"), lives = other.Open("hold");
  RILL_ASSERT_OK(ends->Send({}, Soon()));
  RILL_ASSERT_OK(lives->Send({}, Soon()));
  ASSERT_TRUE(damaged.service->AwaitBegun(1));
  ASSERT_TRUE(other.service->AwaitBegun(1));
  job.PutNoise(/*from=*/1, /*to=*/0);
  EXPECT_THAT(ends->Receive(Soon()),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("from rank 1")));
  damaged.service->Release();
  other.service->Release();
  RILL_EXPECT_OK(lives->Receive(Soon()).status());
  // The next stream is a new beginning.
  RILL_EXPECT_OK(damaged.connection->Call("echo", {}, Soon()).status());
}

TEST_F(TwoRanksTest, TheRankThatDamageCameFromIsToldOfItsStreams) {
  const auto stream = held_.Open("hold");
  RILL_ASSERT_OK(stream->Send({}, Soon()));
  ASSERT_TRUE(held_.service->AwaitBegun(1));
  job_.PutNoise(/*from=*/0, /*to=*/1);
  EXPECT_THAT(stream->Receive(Soon()),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("from rank 0")));
  held_.service->Release();
  RILL_EXPECT_OK(held_.connection->Call("echo", {}, Soon()).status());
}

TEST_F(TwoRanksTest, ARequestOfAStreamThatNobodyKnowsHasAnAnswer) {
  job_.inboxes[1]->Drop();
  const auto stream = held_.Open("echo");
  RILL_ASSERT_OK(stream->Send({}, Soon()));
  EXPECT_THAT(stream->Receive(Soon()),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("rank 1: no such stream")));
}

TEST_F(TwoRanksTest, AClientThatDoesNotKeepToItsWindowLosesItsStream) {
  const auto stream = held_.Open("hold", /*window=*/1);
  RILL_ASSERT_OK(stream->Send({}, Soon()));
  ASSERT_TRUE(held_.service->AwaitBegun(1));
  // Connect had the number 0.
  RILL_ASSERT_OK_AND_ASSIGN(const FramePieces request,
                            EncodePacket({.kind = RankPacket::kRequest,
                                          .stream = 1,
                                          .number = RankPacket::kNoDeadline}));
  for (int i = 0; i < 2; ++i) job_.inboxes[1]->Put(0, *JoinFrame(request));
  // Behind this one's answer they have arrived.
  RILL_EXPECT_OK(job_.ranks[0]->Connect("rank:1", Soon()).status());
  held_.service->Release(3);
  RILL_EXPECT_OK(stream->Receive(Soon()).status());
  stream->Send({}, Soon()).IgnoreError();
  EXPECT_THAT(stream->Receive(Soon()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("want a window of 1")));
  EXPECT_EQ(held_.service->begun(), 1);
}

// Delivers within Send.
class DirectCarrier final : public RankCarrier {
 public:
  absl::Status Start(Events events) override {
    events_ = std::move(events);
    return absl::OkStatus();
  }
  int rank() const override { return 0; }
  int num_ranks() const override { return 1; }
  int64_t max_bytes() const override { return kMaxBytes; }
  void Send(int, FramePieces frame) override {
    events_.receive(0, *JoinFrame(frame));
  }
  void Finish() override {}

 private:
  Events events_;
};

TEST(RankTransportTest, ACarrierMayDeliverWithinSend) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto transport,
      RankTransport::Create(std::make_unique<DirectCarrier>()));
  EXPECT_THAT(transport->Connect("rank:0", Soon()),
              StatusIs(absl::StatusCode::kUnavailable));
  const HeldServer held(*transport);
  RILL_EXPECT_OK(held.connection->Call("echo", {}, Soon()).status());
}

TEST_F(TwoRanksTest, ACarrierThatBreaksEndsAll) {
  const auto stream = held_.Open("hold");
  RILL_ASSERT_OK(stream->Send({}, Soon()));
  job_.inboxes[0]->Break(absl::UnavailableError("the cable"));
  EXPECT_THAT(stream->Receive(Soon()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the cable")));
  EXPECT_THAT(held_.connection->Open("echo", {}, Soon()),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(job_.ranks[0]->Connect("rank:1", Soon()),
              StatusIs(absl::StatusCode::kUnavailable));
  held_.service->Release();
}

TEST_F(TwoRanksTest, AShutdownEndsStreamsThatAreIdle) {
  const auto stream = held_.Open("echo");
  RILL_ASSERT_OK(stream->Send({}, Soon()));
  RILL_ASSERT_OK(stream->Receive(Soon()).status());
  RILL_ASSERT_OK(held_.server->Shutdown(Soon()));
  // The word of it may still be on its way.
  stream->Send({}, Soon()).IgnoreError();
  EXPECT_THAT(stream->Receive(Soon()),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("\"rank:1\": the server was shut down")));
}

TEST_F(TwoRanksTest, NothingBeginsBehindAShutdown) {
  const auto stream = held_.Open("hold");
  RILL_ASSERT_OK(stream->Send({}, Soon()));
  ASSERT_TRUE(held_.service->AwaitBegun(1));
  EXPECT_THAT(held_.server->Shutdown(absl::InfinitePast()),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  RILL_ASSERT_OK(stream->Send({}, Soon()));
  // Behind this one's answer that request has arrived.
  EXPECT_THAT(job_.ranks[0]->Connect("rank:1", Soon()),
              StatusIs(absl::StatusCode::kUnavailable));
  held_.service->Release(2);
  RILL_ASSERT_OK_AND_ASSIGN(const Reply reply, stream->Receive(Soon()));
  RILL_EXPECT_OK(reply.status);
  EXPECT_THAT(stream->Receive(Soon()),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(held_.service->begun(), 1);
}

// Gives back more than a carrier takes, as a message or as an error.
class LargeService final : public Service {
 public:
  absl::StatusOr<Message> Call(const CallInfo& info, const Message&) override {
    if (info.method == "fail") {
      return absl::NotFoundError(std::string(kMaxBytes, 'x'));
    }
    return Large();
  }
  static Message Large() {
    TensorDict batch;
    RILL_EXPECT_OK(batch.Set("x", *Tensor::Zeros(DType::kUInt8, {kMaxBytes})));
    return {.batch = std::move(batch)};
  }
};

TEST(RankTransportTest, MessagesThatAreTooLargeAreRefusedAndTheStreamGoesOn) {
  const Job job(1);
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto server,
      job.ranks[0]->Listen("", std::make_shared<LargeService>()));
  RILL_ASSERT_OK_AND_ASSIGN(const auto connection,
                            job.ranks[0]->Connect("rank:0", Soon()));
  RILL_ASSERT_OK_AND_ASSIGN(const auto stream,
                            connection->Open("x", {}, Soon()));
  EXPECT_THAT(stream->Send(LargeService::Large(), Soon()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("want <= 16777216")));
  RILL_ASSERT_OK(stream->Send({}, Soon()));
  RILL_ASSERT_OK_AND_ASSIGN(const Reply reply, stream->Receive(Soon()));
  EXPECT_THAT(reply.status, StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("want <= 16777216")));
  EXPECT_THAT(connection->Call("fail", {}, Soon()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("xxx")));
  EXPECT_THAT(connection->Open(std::string(kMaxBytes, 'x'), {}, Soon()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("want <= 16777216")));
}

TEST(RankTransportTest, BlocksThatAreTooShortForErrorsAreRefused) {
  const Inboxes inboxes = {std::make_shared<Inbox>()};
  EXPECT_THAT(
      RankTransport::Create(std::make_unique<LocalCarrier>(inboxes, 0, 4096)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want >= 8192")));
}

// Gives back values that no receiver takes.
class WideService final : public Service {
 public:
  absl::StatusOr<Message> Call(const CallInfo&, const Message&) override {
    return Wide();
  }
  static Message Wide() {
    Message message;
    for (int64_t i = 0; i <= kMaxValues; ++i) {
      message.values.Set(absl::StrCat(i), i);
    }
    return message;
  }
};

TEST_F(TwoRanksTest, ValuesThatNoReceiverTakesAreRefusedAndStreamsGoOn) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto wide,
      job_.ranks[1]->Listen("rank:1/wide", std::make_shared<WideService>()));
  const auto other = held_.Open("hold");
  RILL_ASSERT_OK(other->Send({}, Soon()));
  const auto stream = held_.Open("echo");
  EXPECT_THAT(stream->Send(WideService::Wide(), Soon()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got 4097 in one state")));
  RILL_ASSERT_OK_AND_ASSIGN(const auto to_wide,
                            job_.ranks[0]->Connect("rank:1/wide", Soon()));
  EXPECT_THAT(to_wide->Call("x", {}, Soon()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got 4097 in one state")));
  RILL_ASSERT_OK(stream->Send({}, Soon()));
  RILL_EXPECT_OK(stream->Receive(Soon()).status());
  held_.service->Release();
  RILL_EXPECT_OK(other->Receive(Soon()).status());
}

TEST(RankTransportTest, StreamsKeepTheEngine) {
  std::unique_ptr<Server> server;
  std::unique_ptr<CallStream> stream;
  {
    const Job job(1);
    RILL_ASSERT_OK_AND_ASSIGN(
        server, job.ranks[0]->Listen("", std::make_shared<HeldService>()));
    RILL_ASSERT_OK_AND_ASSIGN(const auto connection,
                              job.ranks[0]->Connect("rank:0", Soon()));
    RILL_ASSERT_OK_AND_ASSIGN(stream, connection->Open("echo", {}, Soon()));
  }
  RILL_ASSERT_OK(stream->Send({}, Soon()));
  RILL_EXPECT_OK(stream->Receive(Soon()).status());
}

}  // namespace
}  // namespace rill
