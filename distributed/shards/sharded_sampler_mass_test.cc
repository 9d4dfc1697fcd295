// SPDX-License-Identifier: Apache-2.0
// Shares by sums of priorities: shards are held against one buffer that has the
// rows of all.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/distributed/replay/replay_service.h"
#include "rill/distributed/shards/sharded_sampler.h"
#include "rill/distributed/transport/inproc/inproc_transport.h"
#include "rill/distributed/transport/transport.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/slots/slot.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr double kAlpha = 0.7;
constexpr double kBeta = 0.5;
constexpr int64_t kBatch = 32;
// Shard s has rows 100 s, 100 s + 1, ... The small one has most of the mass.
const std::vector<int64_t> kRows = {10, 5, 20};

float PriorityOf(int64_t row) {
  const auto priority = static_cast<float>(1 + row * 7 % 11);
  return row / 100 == 1 ? 40 * priority : priority;
}

std::string AddressOf(size_t shard) { return absl::StrCat("shard-", shard); }

struct Buffer {
  std::unique_ptr<ReplayBuffer> buffer;
  PrioritizedSelector* selector = nullptr;

  void Write(int64_t first, int64_t count, float factor) const {
    std::vector<Draw> rows;
    std::vector<float> priorities;
    RILL_ASSERT_OK(
        buffer->Extend(NumberedSteps(1, count, first), {}, &rows).status());
    for (int64_t i = 0; i < count; ++i) {
      priorities.push_back(factor * PriorityOf(first + i));
    }
    RILL_ASSERT_OK(buffer->UpdatePriorities(rows, priorities));
  }
};

Buffer MakeBuffer(uint64_t seed) {
  Buffer made;
  auto sampler =
      MakePrioritizedSampler({.alpha = kAlpha, .beta = kBeta}, &made.selector);
  RILL_EXPECT_OK(sampler.status());
  auto buffer = ReplayBuffer::Create({.storage = MakeStorage(100),
                                      .sampler = *std::move(sampler),
                                      .seed = seed});
  RILL_EXPECT_OK(buffer.status());
  made.buffer = *std::move(buffer);
  return made;
}

class ShardedSamplerMassTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RILL_ASSERT_OK_AND_ASSIGN(transport_, InprocTransport::Create());
    for (size_t shard = 0; shard < kRows.size(); ++shard) {
      ASSERT_NO_FATAL_FAILURE(Serve(shard));
      all_.Write(FirstOf(shard), kRows[shard], 1);
    }
  }
  static int64_t FirstOf(size_t shard) {
    return 100 * static_cast<int64_t>(shard);
  }
  // `factor`: of its priorities.
  void Serve(size_t shard, float factor = 1) {
    Buffer buffer = MakeBuffer(7 + shard);
    buffer.Write(FirstOf(shard), kRows[shard], factor);
    selectors_.resize(std::max(selectors_.size(), shard + 1));
    selectors_[shard] = buffer.selector;
    Serve(shard, std::move(buffer.buffer));
  }
  void Serve(size_t shard, std::unique_ptr<ReplayBuffer> buffer) {
    services_.resize(std::max(services_.size(), shard + 1));
    servers_.resize(services_.size());
    ReplayService::Tables tables;
    tables["replay"] = std::move(buffer);
    RILL_ASSERT_OK_AND_ASSIGN(services_[shard],
                              ReplayService::Create(std::move(tables)));
    servers_[shard] = nullptr;
    RILL_ASSERT_OK_AND_ASSIGN(
        servers_[shard],
        transport_->Listen(AddressOf(shard), services_[shard]));
  }
  // All priorities of a shard, times `factor`.
  void Scale(size_t shard, float factor) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch,
                              services_[shard]->table("replay")->Sample(4096));
    RILL_ASSERT_OK_AND_ASSIGN(const auto rows, batch.Flat<int64_t>("action"));
    std::vector<float> priorities;
    for (const int64_t row : rows) {
      priorities.push_back(factor * PriorityOf(row));
    }
    RILL_ASSERT_OK(
        services_[shard]->table("replay")->UpdatePriorities(batch, priorities));
  }
  std::unique_ptr<ShardedSampler> MakeSampler(
      int64_t ahead = 2, std::optional<double> beta = std::nullopt) {
    ShardedSampler::Options options = {.batch_size = kBatch,
                                       .ahead = ahead,
                                       .seed = 3,
                                       .shares = ShardShares::kPriorityMass,
                                       .beta = beta};
    for (size_t i = 0; i < services_.size(); ++i) {
      options.shards.push_back({.transport = transport_,
                                .address = AddressOf(i),
                                .reply_timeout = absl::Milliseconds(100),
                                .timeout = absl::Minutes(1)});
    }
    auto sampler = ShardedSampler::Create(options);
    RILL_EXPECT_OK(sampler.status());
    return *std::move(sampler);
  }
  // The chance of each row of these shards, as one buffer with them has it.
  std::map<int64_t, double> Probabilities(const std::vector<size_t>& shards) {
    std::map<int64_t, double> of;
    double sum = 0;
    for (const size_t shard : shards) {
      for (int64_t i = 0; i < kRows[shard]; ++i) {
        const int64_t row = FirstOf(shard) + i;
        of[row] = std::pow(PriorityOf(row) + 1e-8, kAlpha);
        sum += of[row];
      }
    }
    for (auto& [row, probability] : of) probability /= sum;
    return of;
  }
  // Batches have rows in these shares; about one alarm in 1e9 seeds.
  void ExpectDistributed(ShardedSampler& sampler,
                         const std::vector<size_t>& shards) {
    std::map<int64_t, int64_t> drawn;
    for (int i = 0; i < 400; ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler.Sample());
      RILL_ASSERT_OK_AND_ASSIGN(const auto rows, batch.Flat<int64_t>("action"));
      ASSERT_EQ(rows.size(), kBatch);
      for (const int64_t row : rows) ++drawn[row];
    }
    std::vector<int64_t> counts;
    std::vector<double> probabilities;
    for (const auto& [row, probability] : Probabilities(shards)) {
      counts.push_back(drawn[row]);
      probabilities.push_back(probability);
      drawn.erase(row);
    }
    EXPECT_TRUE(drawn.empty());
    EXPECT_THAT(counts, DistributedAs(probabilities, /*p_value=*/1e-9));
  }
  // Weights of a batch are those of the buffer that has all rows.
  void ExpectWeightsOfOne(const TensorDict& batch) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want,
                              all_.buffer->Sample(16384));
    RILL_ASSERT_OK_AND_ASSIGN(const auto rows, want.Flat<int64_t>("action"));
    RILL_ASSERT_OK_AND_ASSIGN(const auto weights,
                              want.Flat<float>("priority_weight"));
    std::map<int64_t, float> of;
    for (size_t i = 0; i < rows.size(); ++i) of[rows[i]] = weights[i];
    RILL_ASSERT_OK_AND_ASSIGN(const auto got_rows,
                              batch.Flat<int64_t>("action"));
    RILL_ASSERT_OK_AND_ASSIGN(const auto got,
                              batch.Flat<float>("priority_weight"));
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(of.contains(got_rows[i]));
      EXPECT_NEAR(got[i], of[got_rows[i]], 1e-6 * of[got_rows[i]]);
    }
  }
  static int64_t RowsOf(size_t shard, const TensorDict& batch) {
    const auto rows = batch.Flat<int64_t>("action");
    RILL_EXPECT_OK(rows.status());
    return std::count_if(rows->begin(), rows->end(), [&](int64_t row) {
      return row / 100 == static_cast<int64_t>(shard);
    });
  }

  std::shared_ptr<InprocTransport> transport_;
  std::vector<std::shared_ptr<ReplayService>> services_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<PrioritizedSelector*> selectors_;
  Buffer all_ = MakeBuffer(1);
};

TEST_F(ShardedSamplerMassTest, RowsAreDrawnAsFromOneBufferWithAll) {
  const auto sampler = MakeSampler();
  ExpectDistributed(*sampler, {0, 1, 2});
  const ShardedSampler::Stats stats = sampler->GetStats();
  double sum = 0;
  for (const auto& shard : stats.shards) sum += shard.priority_sum;
  ASSERT_TRUE(all_.buffer->priority_mass().has_value());
  EXPECT_NEAR(sum, all_.buffer->priority_mass()->sum, 1e-9 * sum);
  // One greeting each, and nothing beside the samples after it.
  for (const auto& shard : stats.shards) EXPECT_EQ(shard.connects, 1);
}

TEST_F(ShardedSamplerMassTest, WeightsAreThoseOfOneBufferWithAll) {
  const auto sampler = MakeSampler();
  for (int i = 0; i < 20; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler->Sample());
    ExpectWeightsOfOne(batch);
  }
}

TEST_F(ShardedSamplerMassTest, WeightsFollowTheBetaOfTheShards) {
  const auto sampler = MakeSampler(/*ahead=*/0);
  for (const double beta : {0.0, 0.7, 1.0}) {
    RILL_ASSERT_OK(all_.selector->SetBeta(beta));
    for (PrioritizedSelector* selector : selectors_) {
      RILL_ASSERT_OK(selector->SetBeta(beta));
    }
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler->Sample());
    ExpectWeightsOfOne(batch);
  }
}

TEST_F(ShardedSamplerMassTest, ALearnerSetsItsOwnBeta) {
  const auto sampler = MakeSampler(/*ahead=*/2, /*beta=*/0.9);
  for (const double beta : {0.9, 1.0, 0.0}) {
    RILL_ASSERT_OK(sampler->SetBeta(beta));
    RILL_ASSERT_OK(all_.selector->SetBeta(beta));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler->Sample());
    ExpectWeightsOfOne(batch);
  }
  // Weights of beta 0 do not say what the priorities were.
  RILL_ASSERT_OK(selectors_[2]->SetBeta(0));
  RILL_ASSERT_OK(sampler->SetBeta(1));
  absl::Status status;
  while (status.ok()) status = sampler->Sample().status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("shard-2")));
}

TEST_F(ShardedSamplerMassTest, SharesFollowTheLastReplies) {
  const auto sampler = MakeSampler(/*ahead=*/0);
  const auto mean = [&](double scaled) {
    double sums[] = {0, 0, 0};
    for (const auto& [row, probability] : Probabilities({0, 1, 2})) {
      sums[row / 100] += probability;
    }
    return kBatch * sums[1] * scaled / (sums[0] + sums[1] * scaled + sums[2]);
  };
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, sampler->Sample());
  EXPECT_NEAR(static_cast<double>(RowsOf(1, batch)), mean(1), 1);
  ASSERT_NO_FATAL_FAILURE(Scale(1, 1.0f / 64));
  RILL_ASSERT_OK_AND_ASSIGN(batch, sampler->Sample());
  EXPECT_NEAR(static_cast<double>(RowsOf(1, batch)), mean(1), 1);
  RILL_ASSERT_OK_AND_ASSIGN(batch, sampler->Sample());
  EXPECT_NEAR(static_cast<double>(RowsOf(1, batch)),
              mean(std::pow(1.0 / 64, kAlpha)), 1);
}

TEST_F(ShardedSamplerMassTest, TheSameShardsGiveTheSameBatches) {
  for (const int64_t ahead : {0, 3}) {
    std::vector<TensorDict> batches;
    for (int run = 0; run < 2; ++run) {
      for (size_t shard = 0; shard < kRows.size(); ++shard) {
        ASSERT_NO_FATAL_FAILURE(Serve(shard));
      }
      const auto sampler = MakeSampler(ahead);
      for (int i = 0; i < 20; ++i) {
        RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, sampler->Sample());
        RILL_ASSERT_OK(batch.Delete("index_server"));
        if (run == 0) {
          batches.push_back(std::move(batch));
        } else {
          RILL_EXPECT_OK(batch.CheckEqual(batches[i]));
        }
      }
    }
  }
}

TEST_F(ShardedSamplerMassTest, ALostShardCountsNeitherInSumNorMinimum) {
  // Its rows have the smallest priorities of all.
  ASSERT_NO_FATAL_FAILURE(Serve(1, 1e-6f));
  const auto sampler = MakeSampler();
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, sampler->Sample());
  RILL_ASSERT_OK_AND_ASSIGN(auto weights, batch.Flat<float>("priority_weight"));
  EXPECT_LT(*std::max_element(weights.begin(), weights.end()), 0.1f);
  transport_->Kill("shard-1");
  // Those that were on their way.
  for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(sampler->Sample().status());
  ExpectDistributed(*sampler, {0, 2});
  float largest = 0;
  while (largest < 1) {
    RILL_ASSERT_OK_AND_ASSIGN(batch, sampler->Sample());
    RILL_ASSERT_OK_AND_ASSIGN(weights, batch.Flat<float>("priority_weight"));
    largest =
        std::max(largest, *std::max_element(weights.begin(), weights.end()));
  }
  // It comes back with what it has then.
  ASSERT_NO_FATAL_FAILURE(Serve(1));
  while (RowsOf(1, batch) == 0) {
    RILL_ASSERT_OK_AND_ASSIGN(batch, sampler->Sample());
  }
  for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(sampler->Sample().status());
  ExpectDistributed(*sampler, {0, 1, 2});
}

TEST_F(ShardedSamplerMassTest, AShardWithoutAShareIsAskedAnew) {
  ASSERT_NO_FATAL_FAILURE(Serve(1, 1e-30f));
  const auto sampler = MakeSampler();
  for (int i = 0; i < 10; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler->Sample());
    ASSERT_EQ(RowsOf(1, batch), 0);
  }
  ASSERT_NO_FATAL_FAILURE(Scale(1, 1));
  int64_t rows = 0;
  for (int i = 0; i < 70; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler->Sample());
    rows += RowsOf(1, batch);
  }
  EXPECT_GT(rows, 0);
}

TEST_F(ShardedSamplerMassTest, TablesThatDoNotFitAreNamed) {
  // One alone is left out.
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer, ReplayBuffer::Create({.storage = MakeStorage(100),
                                         .sampler = MakeUniformSampler()}));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10, 0)).status());
  ASSERT_NO_FATAL_FAILURE(Serve(0, std::move(buffer)));
  const auto sampler = MakeSampler();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler->Sample());
  EXPECT_EQ(RowsOf(0, batch), 0);
  EXPECT_THAT(sampler->GetStats().shards[0].status,
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("without priorities on the host")));
  // Nothing to draw in the others either.
  for (const size_t shard : {1, 2}) {
    ASSERT_NO_FATAL_FAILURE(Serve(shard, MakeBuffer(shard).buffer));
  }
  const auto another = MakeSampler();
  EXPECT_THAT(another->Sample(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("shard-0: table: got one without"),
                             HasSubstr("shard-2: has no rows to draw"))));
}

TEST_F(ShardedSamplerMassTest, BadBetasAreNamed) {
  const ShardedSampler::Options good = {
      .shards = {{.transport = transport_, .address = "shard-0"}},
      .batch_size = 1};
  ShardedSampler::Options bad = good;
  bad.beta = 0.5;
  EXPECT_THAT(ShardedSampler::Create(bad),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("beta: got 0.5, want none")));
  bad.shares = ShardShares::kPriorityMass;
  bad.beta = -1;
  EXPECT_THAT(
      ShardedSampler::Create(bad),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("beta: got -1")));
  RILL_ASSERT_OK_AND_ASSIGN(const auto sampler, ShardedSampler::Create(good));
  EXPECT_THAT(sampler->SetBeta(0.5),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace rill
