// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/shards/sharded_sampler.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/client/retrying_stream.h"
#include "rill/distributed/replay/replay_service.h"
#include "rill/distributed/transport/inproc/inproc_faults.h"
#include "rill/distributed/transport/inproc/inproc_transport.h"
#include "rill/distributed/transport/transport.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

std::string AddressOf(size_t shard) { return absl::StrCat("shard-", shard); }

// Servers, shard s with rows 100 s, 100 s + 1, ...
struct Shards {
  std::shared_ptr<InprocTransport> transport;
  std::vector<std::shared_ptr<ReplayService>> services = {};
  std::vector<std::unique_ptr<Server>> servers = {};
  bool is_prioritized = false;

  void Serve(size_t shard, int64_t rows) {
    std::unique_ptr<Sampler> sampler = MakeUniformSampler();
    if (is_prioritized) sampler = *MakePrioritizedSampler({.alpha = 1.0});
    ReplayService::Tables tables;
    RILL_ASSERT_OK_AND_ASSIGN(
        tables["replay"], ReplayBuffer::Create({.storage = MakeStorage(100),
                                                .sampler = std::move(sampler),
                                                .seed = 7 + shard}));
    services.resize(std::max(services.size(), shard + 1));
    servers.resize(services.size());
    RILL_ASSERT_OK_AND_ASSIGN(services[shard],
                              ReplayService::Create(std::move(tables)));
    Write(shard, rows);
    servers[shard] = nullptr;
    RILL_ASSERT_OK_AND_ASSIGN(
        servers[shard], transport->Listen(AddressOf(shard), services[shard]));
  }
  void Write(size_t shard, int64_t rows) {
    if (rows == 0) return;
    RILL_ASSERT_OK(services[shard]->table("replay")->Extend(
        NumberedSteps(1, rows, 100 * static_cast<int64_t>(shard))));
  }
};

Shards MakeShards(const std::vector<int64_t>& rows, bool is_prioritized = false,
                  const InprocFaults& faults = {}) {
  auto transport = InprocTransport::Create(faults);
  RILL_EXPECT_OK(transport.status());
  Shards shards{.transport = *std::move(transport),
                .is_prioritized = is_prioritized};
  for (size_t i = 0; i < rows.size(); ++i) shards.Serve(i, rows[i]);
  return shards;
}

std::unique_ptr<ShardedSampler> MakeSampler(
    const Shards& shards, int64_t batch_size,
    absl::Duration timeout = absl::Minutes(1), int64_t ahead = 2) {
  ShardedSampler::Options options = {
      .batch_size = batch_size, .ahead = ahead, .seed = 3};
  for (size_t i = 0; i < shards.services.size(); ++i) {
    options.shards.push_back({.transport = shards.transport,
                              .address = AddressOf(i),
                              .reply_timeout = absl::Milliseconds(100),
                              .timeout = timeout});
  }
  auto sampler = ShardedSampler::Create(options);
  RILL_EXPECT_OK(sampler.status());
  return *std::move(sampler);
}

// The shard of each row.
std::vector<size_t> ShardsOf(const TensorDict& batch) {
  const auto actions = batch.Flat<int64_t>("action");
  RILL_EXPECT_OK(actions.status());
  std::vector<size_t> shards;
  for (const int64_t action : *actions) {
    shards.push_back(static_cast<size_t>(action / 100));
  }
  return shards;
}

TEST(ShardedSamplerTest, Example) {
  const Shards shards = MakeShards({10, 20});
  const auto run = [](std::shared_ptr<Transport> transport) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(
        auto sampler,
        ShardedSampler::Create(
            {.shards = {{.transport = transport, .address = "shard-0"},
                        {.transport = transport, .address = "shard-1"}},
             .batch_size = 256}));
    RILL_ASSIGN_OR_RETURN(TensorDict batch, sampler->Sample());
    const std::vector<float> td_errors(256, 1.0f);
    return sampler->UpdatePriorities(batch, td_errors);
  };
  RILL_EXPECT_OK(run(shards.transport));
}

TEST(ShardedSamplerTest, SharesAreThoseOfTheSizes) {
  const Shards shards = MakeShards({10, 0, 30, 60});
  const auto sampler = MakeSampler(shards, 7);
  constexpr int kBatches = 400;
  std::vector<double> rows(4, 0);
  for (int i = 0; i < kBatches; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler->Sample());
    const std::vector<size_t> of = ShardsOf(batch);
    ASSERT_EQ(of.size(), 7);
    EXPECT_TRUE(std::is_sorted(of.begin(), of.end()));
    for (size_t shard = 0; shard < 4; ++shard) {
      const auto count = std::count(of.begin(), of.end(), shard);
      const double mean = 7 * std::vector<double>{0.1, 0, 0.3, 0.6}[shard];
      EXPECT_LE(std::abs(static_cast<double>(count) - mean), 1.0);
      rows[shard] += static_cast<double>(count);
    }
  }
  // A share is one of two numbers: its deviation is at most half a row.
  for (size_t shard = 0; shard < 4; ++shard) {
    const double mean = 7 * std::vector<double>{0.1, 0, 0.3, 0.6}[shard];
    EXPECT_NEAR(rows[shard] / kBatches, mean, 4 * 0.5 / 20);
  }
}

TEST(ShardedSamplerTest, TheSameShardsGiveTheSameBatches) {
  for (const int64_t ahead : {0, 3}) {
    const Shards shards = MakeShards({10, 30});
    const Shards twins = MakeShards({10, 30});
    const auto sampler = MakeSampler(shards, 8, absl::Minutes(1), ahead);
    const auto twin = MakeSampler(twins, 8, absl::Minutes(1), ahead);
    for (int i = 0; i < 20; ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, sampler->Sample());
      RILL_ASSERT_OK_AND_ASSIGN(TensorDict want, twin->Sample());
      RILL_ASSERT_OK(batch.Delete("index_server"));
      RILL_ASSERT_OK(want.Delete("index_server"));
      RILL_EXPECT_OK(batch.CheckEqual(want));
    }
  }
}

TEST(ShardedSamplerTest, ALostShardIsLeftOutUntilItAnswersAgain) {
  Shards shards = MakeShards({20, 20, 20});
  const auto sampler = MakeSampler(shards, 12);
  RILL_ASSERT_OK(sampler->Sample().status());
  shards.transport->Kill("shard-1");
  // Those that were asked for lack its rows, and get others.
  for (int i = 0; i < 10; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler->Sample());
    EXPECT_EQ(ShardsOf(batch).size(), 12);
    EXPECT_THAT(ShardsOf(batch), Each(::testing::AnyOf(0, 2)));
  }
  ShardedSampler::Stats stats = sampler->GetStats();
  EXPECT_THAT(stats.shards[1].status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("shard-1")));
  RILL_EXPECT_OK(stats.shards[0].status);
  shards.Serve(1, 20);
  std::vector<size_t> of;
  while (std::count(of.begin(), of.end(), 1) == 0) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler->Sample());
    of = ShardsOf(batch);
    ASSERT_EQ(of.size(), 12);
  }
  RILL_EXPECT_OK(sampler->GetStats().shards[1].status);
}

TEST(ShardedSamplerTest, WithoutAnyShardItIsUnavailableAndNamesAll) {
  Shards shards = MakeShards({20, 20});
  const auto sampler = MakeSampler(shards, 4, absl::Milliseconds(20));
  for (auto& server : shards.servers) server = nullptr;
  EXPECT_THAT(sampler->Sample(),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("shard-0"), HasSubstr("shard-1"))));
}

TEST(ShardedSamplerTest, EmptyShardsAreAnErrorUntilTheyHaveRows) {
  Shards shards = MakeShards({0, 0});
  const auto sampler = MakeSampler(shards, 4);
  EXPECT_THAT(sampler->Sample(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("shard-1: has no rows")));
  shards.Write(1, 10);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler->Sample());
  EXPECT_THAT(ShardsOf(batch), Each(1));
}

TEST(ShardedSamplerTest, PrioritiesGoToTheShardThatDrewTheRow) {
  Shards shards = MakeShards({20, 20}, /*is_prioritized=*/true);
  const auto sampler = MakeSampler(shards, 64, absl::Minutes(1), /*ahead=*/0);
  // All weight on one row of each shard.
  for (int round = 0; round < 20; ++round) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler->Sample());
    RILL_ASSERT_OK_AND_ASSIGN(const auto actions,
                              batch.Flat<int64_t>("action"));
    std::vector<float> priorities;
    for (const int64_t action : actions) {
      priorities.push_back(action == 3 || action == 105 ? 1e6f : 0.0f);
    }
    RILL_ASSERT_OK(sampler->UpdatePriorities(batch, priorities));
    RILL_ASSERT_OK(sampler->Flush());
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler->Sample());
  RILL_ASSERT_OK_AND_ASSIGN(const auto actions, batch.Flat<int64_t>("action"));
  EXPECT_THAT(std::vector<int64_t>(actions.begin(), actions.end()),
              Each(::testing::AnyOf(3, 105)));
  EXPECT_EQ(sampler->GetStats().stale_rows, 0);
}

TEST(ShardedSamplerTest, PrioritiesOfAShardThatBeganAnewAreStale) {
  Shards shards = MakeShards({20, 20}, /*is_prioritized=*/true);
  const auto sampler = MakeSampler(shards, 10);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler->Sample());
  shards.transport->Kill("shard-0");
  shards.Serve(0, 20);
  RILL_ASSERT_OK(sampler->UpdatePriorities(batch, {1.0f}));
  RILL_ASSERT_OK(sampler->Flush());
  EXPECT_EQ(sampler->GetStats().stale_rows, 5);
  EXPECT_THAT(sampler->UpdatePriorities(batch, {1.0f, 2.0f}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got 2 priorities, want 10")));
}

TEST(ShardedSamplerTest, BatchesAreWholeWhateverTheLinesDo) {
  const Shards shards = MakeShards({30, 50}, /*is_prioritized=*/false,
                                   {.seed = 8,
                                    .lose_request = 0.05,
                                    .lose_reply = 0.05,
                                    .stall = 0.005,
                                    .repeat = 0.1,
                                    .late = 0.05});
  const auto sampler = MakeSampler(shards, 16);
  for (int i = 0; i < 200; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler->Sample());
    ASSERT_EQ(ShardsOf(batch).size(), 16);
  }
  const ShardedSampler::Stats stats = sampler->GetStats();
  EXPECT_EQ(stats.batches, 200);
  EXPECT_GE(stats.shards[0].rows + stats.shards[1].rows, 200 * 16);
}

TEST(ShardedSamplerTest, BadOptionsAreNamed) {
  const Shards shards = MakeShards({1});
  const RemoteServer shard = {.transport = shards.transport,
                              .address = "shard-0"};
  const auto refuses = [](const ShardedSampler::Options& options,
                          const char* says) {
    EXPECT_THAT(ShardedSampler::Create(options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(says)));
  };
  refuses({.batch_size = 1}, "shards: got 0");
  refuses({.shards = {shard}}, "batch_size: got 0");
  refuses({.shards = {shard}, .batch_size = 1, .ahead = -1}, "ahead: got -1");
  refuses({.shards = {{}}, .batch_size = 1}, "transport: got null");
}

}  // namespace
}  // namespace rill
