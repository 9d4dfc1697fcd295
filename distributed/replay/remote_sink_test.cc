// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/replay/remote_sink.h"

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/replay/batch_memory.h"
#include "rill/distributed/replay/replay_service.h"
#include "rill/distributed/transport/inproc/inproc_faults.h"
#include "rill/distributed/transport/inproc/inproc_transport.h"
#include "rill/distributed/transport/transport.h"
#include "rill/flow/conformance/sink_conformance.h"
#include "rill/flow/sink.h"
#include "rill/replay/rate_limiter.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr char kAddress[] = "server";

ReplayBuffer::Options TableOptions(int64_t lanes = 1) {
  return {.storage = MakeStorage(1000 * lanes, lanes),
          .sampler = MakeUniformSampler(),
          .batch_size = 4};
}

// A server of one table, "replay".
struct Served {
  std::shared_ptr<InprocTransport> transport;
  std::shared_ptr<ReplayService> service = nullptr;
  std::unique_ptr<Server> server = nullptr;

  // A fresh table, in place of the server of before.
  void Serve(ReplayBuffer::Options options) {
    ReplayService::Tables tables;
    RILL_ASSERT_OK_AND_ASSIGN(tables["replay"],
                              ReplayBuffer::Create(std::move(options)));
    RILL_ASSERT_OK_AND_ASSIGN(service,
                              ReplayService::Create(std::move(tables)));
    Listen();
  }
  // The saved tables.
  void Reopen(const std::string& directory, int64_t lanes = 1) {
    ReplayService::TableOptions options;
    options["replay"] = TableOptions(lanes);
    RILL_ASSERT_OK_AND_ASSIGN(
        service, ReplayService::Open(directory, std::move(options)));
    Listen();
  }
  void Listen() {
    server = nullptr;
    RILL_ASSERT_OK_AND_ASSIGN(server, transport->Listen(kAddress, service));
  }
  void Kill() { transport->Kill(kAddress); }
  ReplayBuffer& table() { return *service->table("replay"); }
};

std::shared_ptr<InprocTransport> MakeInproc(const InprocFaults& faults = {}) {
  auto transport = InprocTransport::Create(faults);
  RILL_EXPECT_OK(transport.status());
  return *std::move(transport);
}

Served MakeServed(ReplayBuffer::Options options = TableOptions(),
                  const InprocFaults& faults = {}) {
  Served served{.transport = MakeInproc(faults)};
  served.Serve(std::move(options));
  return served;
}

std::unique_ptr<RemoteSink> MakeSink(
    const Served& served, int64_t max_unacknowledged = 16,
    absl::Duration reply_timeout = absl::Seconds(5)) {
  auto sink = RemoteSink::Create({.server = {.transport = served.transport,
                                             .address = kAddress,
                                             .reply_timeout = reply_timeout},
                                  .max_unacknowledged = max_unacknowledged});
  RILL_EXPECT_OK(sink.status());
  return *std::move(sink);
}

// `action` of each stored row of one lane, oldest first.
std::vector<int64_t> Stored(ReplayBuffer& table) {
  const auto rows = table.ReadAll();
  RILL_EXPECT_OK(rows.status());
  if (!rows.ok()) return {};
  const auto copy = rows->Clone();  // Without gaps.
  RILL_EXPECT_OK(copy.status());
  const auto actions = copy->Flat<int64_t>("action");
  RILL_EXPECT_OK(actions.status());
  return {actions->begin(), actions->end()};
}

std::vector<int64_t> Range(int64_t end) {
  std::vector<int64_t> range(end);
  std::iota(range.begin(), range.end(), 0);
  return range;
}

TEST(RemoteSinkTest, Example) {
  Served served = MakeServed();
  const auto run = [&](std::shared_ptr<Transport> transport,
                       const std::string& address) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(auto sink,
                          RemoteSink::Create({.server = {.transport = transport,
                                                         .address = address}}));
    RILL_RETURN_IF_ERROR(sink->Write(NumberedSteps(1, 10), {}));
    return sink->Flush();
  };
  RILL_EXPECT_OK(run(served.transport, kAddress));
  EXPECT_THAT(Stored(served.table()), ElementsAreArray(Range(10)));
}

// --- a sink as others ------------------------------------------------------

SinkFactory Subject(int64_t max_unacknowledged, const InprocFaults& faults) {
  return [=]() -> SinkSubject {
    const auto served = std::make_shared<Served>(
        MakeServed({.storage = *DenseStorage::Create({.capacity = 100}),
                    .sampler = MakeUniformSampler()},
                   faults));
    const std::shared_ptr<RemoteSink> sink = MakeSink(
        *served, max_unacknowledged, /*reply_timeout=*/absl::Milliseconds(200));
    return {.sink = sink, .arrived = [served, sink]() -> std::vector<int64_t> {
              RILL_EXPECT_OK(sink->Flush());
              if (served->table().size() == 0) return {};
              return StepsOf(*served->table().ReadAll());
            }};
  };
}

INSTANTIATE_TEST_SUITE_P(OneByOne, SinkConformanceTest,
                         ::testing::Values(Subject(1, {})));
INSTANTIATE_TEST_SUITE_P(Ahead, SinkConformanceTest,
                         ::testing::Values(Subject(16, {})));
INSTANTIATE_TEST_SUITE_P(OverALineThatLoses, SinkConformanceTest,
                         ::testing::Values(Subject(4, {.seed = 5,
                                                       .lose_request = 0.1,
                                                       .lose_reply = 0.1,
                                                       .repeat = 0.2,
                                                       .late = 0.1})));

// --- memory ------------------------------------------------------------------

const std::byte* BytesOf(const TensorDict& batch) {
  return batch.Find("action")->raw_data();
}

TEST(RemoteSinkTest, MemoryThatIsLentIsSentAndUsedAgain) {
  Served served = MakeServed();
  const auto sink = MakeSink(served);
  EXPECT_THAT(sink->Reserve({1, 5}),
              StatusIs(absl::StatusCode::kUnimplemented));
  RILL_ASSERT_OK(sink->Write(NumberedSteps(1, 5), {}));
  const std::byte* first = nullptr;
  for (int64_t i = 1; i < 4; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict lent, sink->Reserve({1, 5}));
    RILL_ASSERT_OK(lent.CopyFrom(NumberedSteps(1, 5, 5 * i)));
    if (first == nullptr) first = BytesOf(lent);
    EXPECT_EQ(BytesOf(lent), first);
    RILL_ASSERT_OK(sink->Write(lent, {}));
    RILL_ASSERT_OK(sink->Flush());
  }
  EXPECT_THAT(Stored(served.table()), ElementsAreArray(Range(20)));
}

TEST(RemoteSinkTest, ABatchThatIsNotTheLentOneIsCopied) {
  Served served = MakeServed();
  const auto sink = MakeSink(served);
  RILL_ASSERT_OK(sink->Write(NumberedSteps(1, 5), {}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict lent, sink->Reserve({1, 5}));
  RILL_ASSERT_OK(lent.CopyFrom(NumberedSteps(1, 5, 5)));
  // One leaf lies elsewhere.
  TensorDict other = lent;
  RILL_ASSERT_OK(other.Set("action", *lent.Find("action")->Clone()));
  served.server = nullptr;  // The copy waits.
  RILL_ASSERT_OK(sink->Write(other, {}));
  other.Find("action")->data<int64_t>()[0] = 77;
  served.Listen();
  RILL_ASSERT_OK(sink->Flush());
  EXPECT_THAT(Stored(served.table()), ElementsAreArray(Range(10)));
}

TEST(RemoteSinkTest, MemoryOfALargeShapeThatComesAgainIsOneBlock) {
  Served served = MakeServed();
  const auto sink = MakeSink(served);
  RILL_ASSERT_OK(sink->Write(NumberedSteps(1, 5), {}));
  constexpr int64_t kSteps = 20001;
  RILL_ASSERT_OK(sink->Reserve({1, kSteps}).status());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict first, sink->Reserve({1, kSteps}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict next, sink->Reserve({1, kSteps}));
  int64_t bytes = 0;
  first.ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
    bytes += (leaf.size_bytes() + 63) / 64 * 64;
  });
  ASSERT_GE(bytes, kMinBatchMemoryBytes);
  EXPECT_EQ(BytesOf(first) - BytesOf(next), bytes);
}

// As of episodes, each of a length of its own.
TEST(RemoteSinkTest, ShapesThatComeOnceLeaveNoMemoryBehind) {
  Served served = MakeServed();
  const auto sink = MakeSink(served);
  RILL_ASSERT_OK(sink->Write(NumberedSteps(1, 5), {}));
  const auto in_use = [] {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const size_t before = in_use();
  for (int64_t steps = 20000; steps < 20020; ++steps) {
    RILL_ASSERT_OK(sink->Reserve({1, steps}).status());
  }
  EXPECT_LT(in_use(), before + (8 << 20));
}

TEST(RemoteSinkTest, MemoryThatIsLentTwiceIsNotShared) {
  Served served = MakeServed();
  const auto sink = MakeSink(served);
  RILL_ASSERT_OK(sink->Write(NumberedSteps(1, 5), {}));
  // As of two collectors.
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict first, sink->Reserve({1, 5}));
  RILL_ASSERT_OK(first.CopyFrom(NumberedSteps(1, 5, 5)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict second, sink->Reserve({1, 5}));
  EXPECT_NE(BytesOf(first), BytesOf(second));
  RILL_ASSERT_OK(second.CopyFrom(NumberedSteps(1, 5, 10)));
  RILL_ASSERT_OK(sink->Write(first, {}));
  RILL_ASSERT_OK(sink->Write(second, {}));
  RILL_ASSERT_OK(sink->Flush());
  EXPECT_THAT(Stored(served.table()), ElementsAreArray(Range(15)));
}

// --- exactly once ----------------------------------------------------------

TEST(RemoteSinkTest, EachRowArrivesOnceWhateverTheLineDoes) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE(seed);
    Served served = MakeServed(TableOptions(), {.seed = seed,
                                                .lose_request = 0.1,
                                                .lose_reply = 0.1,
                                                .stall = 0.01,
                                                .repeat = 0.1,
                                                .late = 0.1});
    const auto sink = MakeSink(served, /*max_unacknowledged=*/4,
                               /*reply_timeout=*/absl::Milliseconds(20));
    for (int64_t i = 0; i < 100; ++i) {
      RILL_ASSERT_OK(sink->Write(NumberedSteps(1, 3, 3 * i),
                                 {.producer = 1, .sequence = i + 1}));
      if (i % 10 == 9) {
        RILL_ASSERT_OK(sink->Cut(1, {.first = 0, .count = 1}));
      }
    }
    RILL_ASSERT_OK(sink->Flush());
    EXPECT_THAT(Stored(served.table()), ElementsAreArray(Range(300)));
    const RemoteSink::Stats stats = sink->GetStats();
    EXPECT_EQ(stats.acknowledged_rows, 300);
    EXPECT_EQ(stats.lost_rows, 0);
    EXPECT_EQ(stats.unacknowledged, 0);
    EXPECT_GT(stats.connects, 1);
  }
}

TEST(RemoteSinkTest, WriteGoesOnWhileTheServerIsAway) {
  Served served = MakeServed();
  const auto sink = MakeSink(served);
  RILL_ASSERT_OK(sink->Write(NumberedSteps(1, 5), {}));
  served.server = nullptr;
  for (int64_t i = 1; i < 5; ++i) {
    RILL_ASSERT_OK(sink->Write(NumberedSteps(1, 5, 5 * i), {}));
  }
  EXPECT_EQ(sink->GetStats().unacknowledged, 4);
  served.Listen();
  RILL_ASSERT_OK(sink->Flush());
  EXPECT_THAT(Stored(served.table()), ElementsAreArray(Range(25)));
}

TEST(RemoteSinkTest, AKilledServerLosesWhatItsCheckpointHasNot) {
  const std::string directory =
      absl::StrCat(::testing::TempDir(), "/remote_sink_killed");
  Served served = MakeServed();
  const auto sink = MakeSink(served);
  RILL_ASSERT_OK(sink->Write(NumberedSteps(1, 10), {}));
  RILL_ASSERT_OK(sink->Flush());
  RILL_ASSERT_OK(served.service->Save(directory));
  RILL_ASSERT_OK(sink->Write(NumberedSteps(1, 7, 10), {}));
  RILL_ASSERT_OK(sink->Flush());
  served.Kill();
  served.Reopen(directory);
  RILL_ASSERT_OK(sink->Write(NumberedSteps(1, 3, 17), {}));
  RILL_ASSERT_OK(sink->Flush());
  std::vector<int64_t> want = Range(10);
  for (int64_t number = 17; number < 20; ++number) want.push_back(number);
  EXPECT_THAT(Stored(served.table()), ElementsAreArray(want));
  EXPECT_EQ(sink->GetStats().lost_rows, 7);
  EXPECT_EQ(sink->GetStats().acknowledged_rows, 20);
}

TEST(RemoteSinkTest, WhatACheckpointLacksIsCountedOnceAtEachReturnToIt) {
  const std::string directory =
      absl::StrCat(::testing::TempDir(), "/remote_sink_twice");
  Served served = MakeServed();
  const auto sink = MakeSink(served);
  RILL_ASSERT_OK(sink->Write(NumberedSteps(1, 10), {}));
  RILL_ASSERT_OK(sink->Flush());
  RILL_ASSERT_OK(served.service->Save(directory));
  for (int64_t i = 1; i <= 3; ++i) {
    RILL_ASSERT_OK(sink->Write(NumberedSteps(1, 4, 10 * i), {}));
    RILL_ASSERT_OK(sink->Flush());
    served.Kill();
    served.Reopen(directory);
    RILL_ASSERT_OK(sink->Flush());
    EXPECT_EQ(sink->GetStats().lost_rows, 4 * i);
    EXPECT_THAT(Stored(served.table()), ElementsAreArray(Range(10)));
  }
}

// Several clients, a line that loses, and a server that is killed again and
// again. Each row is there once, but those that a killed server had after its
// last checkpoint, and the clients know how many these are.
TEST(RemoteSinkTest, NoRowIsThereTwiceAndLostOnesAreCounted) {
  constexpr int64_t kLanes = 3;
  constexpr int64_t kBatches = 120;
  const std::string directory =
      absl::StrCat(::testing::TempDir(), "/remote_sink_kills");
  Served served = MakeServed(TableOptions(kLanes), {.seed = 11,
                                                    .lose_request = 0.02,
                                                    .lose_reply = 0.02,
                                                    .repeat = 0.05,
                                                    .late = 0.02});
  RILL_ASSERT_OK(served.service->Save(directory));
  std::vector<std::unique_ptr<RemoteSink>> sinks;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    sinks.push_back(MakeSink(served, 4, absl::Milliseconds(100)));
  }
  std::vector<std::thread> writers;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    writers.emplace_back([&, lane] {
      for (int64_t i = 0; i < kBatches; ++i) {
        RILL_EXPECT_OK(sinks[lane]->Write(
            NumberedSteps(1, 2, 2 * i),
            {.producer = lane, .first_lane = lane, .sequence = i + 1}));
      }
      RILL_EXPECT_OK(sinks[lane]->Flush());
    });
  }
  for (int64_t kill = 0; kill < 10; ++kill) {
    // Some rows come, some of these are saved, and some come behind.
    const int64_t size = served.table().size();
    while (served.table().size() < size + 20 &&
           served.table().size() < kLanes * kBatches) {
      std::this_thread::yield();
    }
    if (kill % 2 == 0) {
      RILL_ASSERT_OK(served.service->Save(directory));
    }
    served.Kill();
    served.Reopen(directory, kLanes);
  }
  for (std::thread& writer : writers) writer.join();
  int64_t lost = 0;
  for (const auto& sink : sinks) {
    RILL_EXPECT_OK(sink->Flush());  // Learns of a kill behind its last write.
    EXPECT_EQ(sink->GetStats().acknowledged_rows, 2 * kBatches);
    lost += sink->GetStats().lost_rows;
  }
  EXPECT_EQ(served.table().size(), kLanes * 2 * kBatches - lost);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict rows,
                            served.table().ReadAll(LiveRowsShape::kFlat));
  RILL_ASSERT_OK_AND_ASSIGN(const auto steps, rows.Flat<int64_t>("action"));
  // Lane after lane, each in its order and without repeats.
  int64_t falls = 0;
  for (size_t i = 1; i < steps.size(); ++i) {
    EXPECT_NE(steps[i], steps[i - 1]);
    falls += steps[i] < steps[i - 1];
  }
  EXPECT_EQ(falls, kLanes - 1);
}

// --- errors ----------------------------------------------------------------

TEST(RemoteSinkTest, AServerThatIsAwayIsAnErrorAtTheTimeout) {
  RemoteSink::Options options = {.server = {.transport = MakeInproc(),
                                            .address = "nobody",
                                            .timeout = absl::Milliseconds(20)}};
  EXPECT_THAT(RemoteSink::Create(options),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("nobody")));
}

TEST(RemoteSinkTest, AWrongTableIsAnErrorAtOnce) {
  Served served = MakeServed();
  EXPECT_THAT(
      RemoteSink::Create({.server = {.transport = served.transport,
                                     .address = kAddress,
                                     .timeout = absl::Hours(1)},
                          .table = "other"}),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("want one of replay")));
}

TEST(RemoteSinkTest, WhatTheTableRefusesComesBackOnce) {
  Served served = MakeServed();
  const auto sink = MakeSink(served);
  EXPECT_THAT(
      sink->Write(NumberedSteps(2, 3), {}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("lanes: got 2")));
  RILL_ASSERT_OK(sink->Write(NumberedSteps(1, 3), {}));
  // Later ones are on their way when they are refused.
  RILL_ASSERT_OK(sink->Write(NumberedSteps(1, 3), {.first_lane = 5}));
  EXPECT_THAT(sink->Flush(), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("refused operation 4")));
  RILL_EXPECT_OK(sink->Flush());
  RILL_ASSERT_OK(sink->Write(NumberedSteps(1, 3, 3), {}));
  RILL_ASSERT_OK(sink->Flush());
  EXPECT_THAT(Stored(served.table()), ElementsAreArray(Range(6)));
  EXPECT_EQ(sink->GetStats().acknowledged_rows, 6);
}

TEST(RemoteSinkTest, ARateLimiterHoldsTheWriterAndLosesNothing) {
  ReplayBuffer::Options options = TableOptions();
  options.rate_limiter = *RateLimiter::Create(RateLimiter::Queue(6));
  options.rate_limit_timeout = absl::Milliseconds(5);
  Served served = MakeServed(std::move(options));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto sink,
      RemoteSink::Create({.server = {.transport = served.transport,
                                     .address = kAddress,
                                     .timeout = absl::Milliseconds(50)},
                          .max_unacknowledged = 1}));
  for (const int64_t first : {0, 3, 6}) {  // The last one is on its way.
    absl::Status written = sink->Write(NumberedSteps(1, 3, first), {});
    while (!written.ok()) written = sink->Write(NumberedSteps(1, 3, first), {});
  }
  EXPECT_THAT(sink->Write(NumberedSteps(1, 3, 9), {}),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  RILL_ASSERT_OK(served.table().Sample(4));
  absl::Status flushed = sink->Flush();
  while (absl::IsDeadlineExceeded(flushed)) flushed = sink->Flush();
  RILL_ASSERT_OK(flushed);
  EXPECT_THAT(Stored(served.table()), ElementsAreArray(Range(9)));
}

TEST(RemoteSinkTest, BadOptionsAreNamed) {
  const auto refuses = [](const RemoteSink::Options& options,
                          const char* says) {
    EXPECT_THAT(RemoteSink::Create(options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(says)));
  };
  refuses({}, "transport: got null");
  RemoteServer server = {.transport = MakeInproc(), .address = kAddress};
  refuses({.server = server, .max_unacknowledged = 0},
          "max_unacknowledged: got 0");
  refuses({.server = server, .max_unacknowledged = 65},
          "max_unacknowledged: got 65");
  server.reply_timeout = absl::ZeroDuration();
  refuses({.server = server}, "reply_timeout: got 0");
}

}  // namespace
}  // namespace rill
