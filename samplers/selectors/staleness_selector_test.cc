// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/selectors/staleness_selector.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/state/saved_state.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/samplers/conformance/storage_simulator.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/selector.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"

namespace rill {

INSTANTIATE_SAMPLER_CONFORMANCE(Staleness, {.make = [] {
                                  return MakeStalenessAwareSampler();
                                }});

namespace {

constexpr uint64_t kSeed = 41;

// Gives all rows of a write the version that is current then.
class WithVersions final : public WriteObserver {
 public:
  explicit WithVersions(WriteObserver* to) : to_(to) {}
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    to_->OnAttach(lanes, cursors);
  }
  void OnRetire(const WriteEvent& event) override { to_->OnRetire(event); }
  void OnWrite(const WriteEvent& event) override {
    int64_t rows = 0;
    for (const SlotRange& range : event.written) rows += range.count;
    const std::vector<int64_t> versions(rows, version);
    WriteEvent with = event;
    with.policy_versions = versions;
    to_->OnWrite(with);
  }
  void OnClear() override { to_->OnClear(); }

  int64_t version = 0;

 private:
  WriteObserver* to_;
};

// Five versions of two rows each, 0 to 4.
class StalenessSelectorTest : public ::testing::Test {
 protected:
  void Use(const StalenessOptions& options) {
    sampler_ = MakeStalenessAwareSampler(options);
    versions_ = std::make_unique<WithVersions>(sampler_->observer());
    storage_.AddObserver(versions_.get());
    for (versions_->version = 0; versions_->version < 5; ++versions_->version) {
      storage_.Append(2);
    }
  }

  std::vector<int64_t> CountDraws(uint64_t batches = 512) {
    return rill::CountDraws(*sampler_, 10, 64, kSeed, batches);
  }

  // Shares of the rows of each version, in proportion.
  static std::vector<double> Shares(const std::vector<double>& weights) {
    double total = 0;
    for (double weight : weights) total += 2 * weight;
    std::vector<double> shares;
    for (double weight : weights)
      shares.insert(shares.end(), 2, weight / total);
    return shares;
  }

  StorageSimulator storage_{{.count = 1, .capacity = 10}};
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<WithVersions> versions_;
};

TEST_F(StalenessSelectorTest, Example) {
  std::unique_ptr<Sampler> sampler =
      MakeStalenessAwareSampler({.max_staleness = 10});
  EXPECT_EQ(sampler->name(), "StalenessAwareSampler");
}

TEST_F(StalenessSelectorTest, DrawsFallWithStaleness) {
  Use({});
  EXPECT_THAT(
      CountDraws(),
      DistributedAs(Shares({1.0 / 5, 1.0 / 4, 1.0 / 3, 1.0 / 2, 1}), 1e-9));
}

TEST_F(StalenessSelectorTest, SuccessiveDrawsAreIndependent) {
  Use({.weight = [](int64_t) { return 1.0; }});
  std::vector<int64_t> pairs(100, 0);
  for (uint64_t batch = 0; batch < 512; ++batch) {
    const SamplePlan plan = PlanOf(*sampler_, 64, kSeed, batch);
    for (size_t i = 0; i < 64; i += 2) {
      ++pairs[plan.draws[i].slot * 10 + plan.draws[i + 1].slot];
    }
  }
  EXPECT_THAT(pairs, DistributedAs(UniformProbabilities(100), 1e-9));
}

TEST_F(StalenessSelectorTest, StalerThanTheMostIsNotDrawn) {
  Use({.max_staleness = 1});
  EXPECT_THAT(CountDraws(), DistributedAs(Shares({0, 0, 0, 0.5, 1}), 1e-9));
}

TEST_F(StalenessSelectorTest, UserGivesTheWeight) {
  Use({.weight = [](int64_t staleness) {
    return staleness == 1 ? 0.0 : static_cast<double>(1 + staleness);
  }});
  EXPECT_THAT(CountDraws(), DistributedAs(Shares({5, 4, 3, 0, 1}), 1e-9));
}

TEST_F(StalenessSelectorTest, UserGivesTheCurrentVersion) {
  int64_t current = 2;  // Behind what was written: newer rows are not stale.
  Use({.current_version = [&current] { return current; }});
  EXPECT_THAT(CountDraws(),
              DistributedAs(Shares({1.0 / 3, 0.5, 1, 1, 1}), 1e-9));
  current = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(PlanOf(*sampler_, 64, kSeed, 0).draws.size(), 64u);
}

TEST_F(StalenessSelectorTest, RowsOfOneVersionLeaveAsTheyAreOverwritten) {
  Use({});
  versions_->version = 7;
  storage_.Append(5);
  storage_.Overwrite({9});
  // Slots 0 to 4 and 9 are of version 7; 5 of 2, 6 and 7 of 3, 8 of 4.
  std::vector<double> shares(10, 1);
  shares[5] = 1.0 / 6;
  shares[6] = shares[7] = 1.0 / 5;
  shares[8] = 1.0 / 4;
  double total = 0;
  for (double share : shares) total += share;
  for (double& share : shares) share /= total;
  EXPECT_THAT(CountDraws(), DistributedAs(shares, 1e-9));
}

TEST_F(StalenessSelectorTest, VersionsMayAllBeNegative) {
  sampler_ = MakeStalenessAwareSampler({.max_staleness = 1});
  versions_ = std::make_unique<WithVersions>(sampler_->observer());
  storage_.AddObserver(versions_.get());
  for (versions_->version = -7; versions_->version < -2; ++versions_->version) {
    storage_.Append(2);
  }
  EXPECT_THAT(CountDraws(), DistributedAs(Shares({0, 0, 0, 0.5, 1}), 1e-9));
}

TEST_F(StalenessSelectorTest, AllTooStaleIsAnError) {
  Use({.max_staleness = 3, .current_version = [] { return int64_t{8}; }});
  SamplePlan plan = SentinelPlan();
  EXPECT_THAT(
      sampler_->Plan({.batch_size = 4}, &plan),
      IsFailedPrecondition("10 items of 5 policy versions at version 8: "
                           "got 0, want"));
  ExpectEqualPlans(plan, SentinelPlan());
}

TEST_F(StalenessSelectorTest, WeightsThatCannotBeAreRefused) {
  double weight = -1;
  Use({.weight = [&weight](int64_t) { return weight; }});
  SamplePlan plan = SentinelPlan();
  for (double bad : {-1.0, std::numeric_limits<double>::infinity(),
                     std::numeric_limits<double>::quiet_NaN()}) {
    weight = bad;
    EXPECT_THAT(sampler_->Plan({.batch_size = 4}, &plan),
                IsInvalidArgument("weight of staleness 4: got "));
  }
  ExpectEqualPlans(plan, SentinelPlan());
}

TEST_F(StalenessSelectorTest, VersionsAreSavedState) {
  Use({});
  versions_->version = 6;
  storage_.Append(3);
  RILL_ASSERT_OK_AND_ASSIGN(const std::string state, sampler_->SaveState());
  auto loaded = MakeStalenessAwareSampler();
  storage_.AddObserver(loaded->observer());  // Without versions.
  RILL_ASSERT_OK(loaded->LoadState(state));
  for (uint64_t batch = 0; batch < 8; ++batch) {
    ExpectEqualPlans(PlanOf(*loaded, 32, kSeed, batch),
                     PlanOf(*sampler_, 32, kSeed, batch));
  }
  EXPECT_THAT(loaded->SaveState(), IsOkAndHolds(state));
}

// A checksum that fits around groups that are not those of the versions.
TEST_F(StalenessSelectorTest, AnchorsUnderOtherVersionsAreDamage) {
  const auto load = [](int64_t version, int64_t group) {
    const std::unique_ptr<Selector> selector = MakeStalenessSelector();
    const SlotRange slot = {.first = 0, .count = 1};
    const Cursor cursor = {.written = 1};
    selector->OnAttach({.count = 1, .capacity = 4}, {&cursor, 1});
    selector->OnAnchorsAdded({&slot, 1});
    SavedState versions("SlotArray", 1);
    versions.Set("runs", std::vector<int64_t>{0, 1, 0});
    versions.Set("values", std::vector<int64_t>{version});
    SavedState anchors("SlotGroups", 1);
    anchors.Set("groups", std::vector<int64_t>{group, 1});
    anchors.Set("runs", std::vector<int64_t>{0, 1});
    SavedState state("Staleness", 1);
    state.Set("highest", int64_t{9});
    state.SetPart("versions", versions);
    state.SetPart("anchors", anchors);
    return selector->LoadState(state, {});
  };
  RILL_EXPECT_OK(load(5, 5));
  EXPECT_THAT(load(5, 8), IsDataLoss("slot 0 of version 5: got 8, want"));
}

}  // namespace
}  // namespace rill
