// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/uniform_sampler.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/samplers/conformance/storage_simulator.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/sampler.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/wrong_parts.h"

namespace rill {

INSTANTIATE_SAMPLER_CONFORMANCE(Uniform, {.make = MakeUniformSampler});

namespace {

constexpr uint64_t kSeed = 3;

TEST(UniformSamplerTest, Example) {
  StorageSimulator storage({.count = 1, .capacity = 100});
  std::unique_ptr<Sampler> sampler = storage.Attach(MakeUniformSampler());
  storage.Append(50);
  SamplePlan plan;
  RILL_ASSERT_OK(sampler->Plan({.batch_size = 32, .seed = 1}, &plan));
  EXPECT_EQ(plan.draws.size(), 32u);
}

TEST(UniformSamplerTest, DrawsEveryLiveRowEquallyOften) {
  StorageSimulator storage({.count = 3, .capacity = 8});
  auto sampler = storage.Attach(MakeUniformSampler());
  storage.Append(/*first_lane=*/0, /*num_lanes=*/1, /*steps=*/11);
  storage.Append(2, 1, 5);
  std::vector<double> shares(storage.lanes().num_slots(), 0);
  for (Slot slot : storage.Live()) shares[slot] = 1.0 / 13;
  EXPECT_THAT(CountDraws(*sampler, 24, 64, kSeed, /*batches=*/512),
              DistributedAs(shares, /*p_value=*/1e-9));
}

TEST(UniformSamplerTest, U1_DrawsAreUniformOverTheRowsThatAreThere) {
  StorageSimulator storage({.count = 1, .capacity = 1000});
  auto sampler = storage.Attach(MakeUniformSampler());
  storage.Append(7);
  const std::vector<int64_t> counts =
      CountDraws(*sampler, 7, 10'000, kSeed, /*batches=*/100);
  EXPECT_THAT(counts, DistributedAs(UniformProbabilities(7), 1e-9));
}

TEST(UniformSamplerTest, U2_SeedsAndBatchNumbersAreAllThereIsToRandomness) {
  StorageSimulator storage({.count = 1, .capacity = 1000});
  auto sampler = storage.Attach(MakeUniformSampler());
  storage.Append(1000);
  const SamplePlan first = PlanOf(*sampler, 64, kSeed, 5);
  ExpectEqualPlans(PlanOf(*sampler, 64, kSeed, 5), first);
  EXPECT_NE(PlanOf(*sampler, 64, kSeed + 1, 5).draws, first.draws);
  EXPECT_NE(PlanOf(*sampler, 64, kSeed, 6).draws, first.draws);
  RILL_ASSERT_OK_AND_ASSIGN(const std::string state, sampler->SaveState());
  auto restored = storage.Attach(MakeUniformSampler());
  RILL_ASSERT_OK(restored->LoadState(state));
  ExpectEqualPlans(PlanOf(*restored, 64, kSeed, 5), first);
}

TEST(UniformSamplerTest, SuccessiveDrawsAreIndependent) {
  StorageSimulator storage({.count = 1, .capacity = 6});
  auto sampler = storage.Attach(MakeUniformSampler());
  storage.Append(6);
  std::vector<int64_t> pairs(36, 0);
  for (uint64_t batch = 0; batch < 512; ++batch) {
    const SamplePlan plan = PlanOf(*sampler, 64, kSeed, batch);
    for (size_t i = 0; i < plan.draws.size(); i += 2) {
      ++pairs[plan.draws[i].slot * 6 + plan.draws[i + 1].slot];
    }
  }
  EXPECT_THAT(pairs, DistributedAs(UniformProbabilities(36), 1e-9));
}

// The draws are part of the reproducibility contract: draw i of batch b is
// UniformInt(b, i, live rows) of the sampler's stream, lane after lane, oldest
// row first.
TEST(UniformSamplerTest, DrawsAreThoseOfTheSamplersStream) {
  StorageSimulator storage({.count = 1, .capacity = 10});
  auto sampler = storage.Attach(MakeUniformSampler());
  storage.Append(13);
  const Rng rng(kSeed, RngStream::kSampler);
  const SamplePlan plan = PlanOf(*sampler, 20, kSeed, 7);
  for (uint32_t i = 0; i < 20; ++i) {
    EXPECT_EQ(plan.draws[i].slot, (3 + rng.UniformInt(7, i, 10)) % 10);
  }
}

TEST(UniformSamplerTest, DrawsWithReplacement) {
  StorageSimulator storage({.count = 1, .capacity = 10});
  auto sampler = storage.Attach(MakeUniformSampler());
  storage.Append(2);
  const SamplePlan plan = PlanOf(*sampler, 64, kSeed, 0);
  std::set<Slot> slots;
  for (const Draw& draw : plan.draws) slots.insert(draw.slot);
  EXPECT_THAT(slots, ::testing::ElementsAre(0, 1));
}

// docs/formats/replay_buffer.md has the bytes; old_states_test.cc has those of
// the other samplers.
TEST(UniformSamplerTest, DocumentedBytesOfVersion1Load) {
  StorageSimulator storage({.count = 1, .capacity = 4});
  auto sampler = storage.Attach(MakeUniformSampler());
  storage.Append(3);
  std::string bytes;
  ASSERT_TRUE(
      absl::HexStringToBytes("52494c4c534d504c010000000e000000"
                             "556e69666f726d53616d706c65720100"
                             "00000000000004000000000000000200"
                             "00000000000003000000000000000000"
                             "0000000000000100000000000000ffff"
                             "ffffffffffffe3e14006",
                             &bytes));
  RILL_EXPECT_OK(sampler->LoadState(bytes));
  bytes.back() ^= 1;
  EXPECT_THAT(sampler->LoadState(bytes), IsDataLoss("checksum"));
}

TEST(UniformSamplerTest, StateIsSmallWhereRowsWereWrittenInOrder) {
  StorageSimulator storage({.count = 1, .capacity = 100000});
  auto sampler = storage.Attach(MakeUniformSampler());
  storage.Append(150000);
  RILL_ASSERT_OK_AND_ASSIGN(const std::string state, sampler->SaveState());
  EXPECT_LE(state.size(), 256u);
}

// --- Samplers that break a promise -------------------------------------------

// Another sampler, changed.
class WrongSampler : public Sampler {
 public:
  explicit WrongSampler(std::unique_ptr<Sampler> right = MakeUniformSampler())
      : Sampler({.name = "WrongSampler"}), right_(std::move(right)) {}

  absl::Status Plan(const Request& request, SamplePlan* plan) override {
    return right_->Plan(request, plan);
  }
  absl::Status UpdatePriorities(absl::Span<const Draw> draws,
                                absl::Span<const float> priorities) override {
    return right_->UpdatePriorities(draws, priorities);
  }
  void FindCurrent(absl::Span<const Draw> draws,
                   absl::Span<uint8_t> is_current) const override {
    right_->FindCurrent(draws, is_current);
  }
  void GetGenerations(absl::Span<const Slot> slots,
                      absl::Span<int64_t> generations) const override {
    right_->GetGenerations(slots, generations);
  }
  absl::StatusOr<EpochRest> RestOfEpoch(const Request& request) const override {
    return right_->RestOfEpoch(request);
  }
  absl::StatusOr<std::string> SaveState() const override {
    return right_->SaveState();
  }
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    right_->OnAttach(lanes, cursors);
  }
  void OnRetire(const WriteEvent& event) override { right_->OnRetire(event); }
  void OnWrite(const WriteEvent& event) override { right_->OnWrite(event); }
  void OnClear() override { right_->OnClear(); }

 protected:
  Sampler& right() const { return *right_; }

 private:
  absl::Status DoLoadState(absl::string_view state,
                           const LoadOptions& options) override {
    return right_->LoadState(state, options);
  }

  const std::unique_ptr<Sampler> right_;
};

// Changes a plan that was made.
struct ChangesPlans : WrongSampler {
  absl::Status Plan(const Request& request, SamplePlan* plan) override {
    const absl::Status status = right().Plan(request, plan);
    if (status.ok()) Change(plan);
    return status;
  }
  virtual void Change(SamplePlan* plan) = 0;
};
struct DrawsSlotZeroThoughItIsDead final : ChangesPlans {
  void Change(SamplePlan* plan) override { plan->draws[0].slot = 0; }
};
struct KnowsFirstGenerationsOnly final : ChangesPlans {
  void Change(SamplePlan* plan) override {
    for (Draw& draw : plan->draws) draw.generation = 0;
  }
};
struct WeighsDrawsByTwo final : ChangesPlans {
  void Change(SamplePlan* plan) override { plan->draws[0].weight = 2; }
};
struct GivesOneDrawTooFew final : ChangesPlans {
  void Change(SamplePlan* plan) override { plan->draws.pop_back(); }
};
// All of its draws are right, and half of the rows never come.
struct DrawsOneLaneOnly final : ChangesPlans {
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    lane_slots = lanes.capacity;
    WrongSampler::OnAttach(lanes, cursors);
  }
  void Change(SamplePlan* plan) override {
    const auto is_first_lane = [&](const Draw& draw) {
      return draw.slot < lane_slots;
    };
    const auto found =
        std::find_if(plan->draws.begin(), plan->draws.end(), is_first_lane);
    if (found == plan->draws.end()) return;
    const Draw first = *found;
    for (Draw& draw : plan->draws) {
      if (!is_first_lane(draw)) draw = first;
    }
  }
  int64_t lane_slots = 0;
};

struct DrawsBeforeARetireIsKnown final : WrongSampler {
  void OnRetire(const WriteEvent&) override {}
  void OnWrite(const WriteEvent& event) override {
    right().OnRetire(event);
    right().OnWrite(event);
  }
};
struct CountsItsPlans final : WrongSampler {
  absl::Status Plan(const Request& request, SamplePlan* plan) override {
    Request other = request;
    other.seed += ++plans;
    return right().Plan(other, plan);
  }
  uint64_t plans = 0;
};
struct PlansWithoutTheBatchNumber final : WrongSampler {
  absl::Status Plan(const Request& request, SamplePlan* plan) override {
    return right().Plan({request.batch_size, request.seed}, plan);
  }
};
struct AddsToThePlan final : WrongSampler {
  absl::Status Plan(const Request& request, SamplePlan* plan) override {
    const std::vector<Draw> before = plan->draws;
    const absl::Status status = right().Plan(request, plan);
    plan->draws.insert(plan->draws.begin(), before.begin(), before.end());
    return status;
  }
};
struct ClearsThePlanBeforeItFails final : WrongSampler {
  absl::Status Plan(const Request& request, SamplePlan* plan) override {
    plan->Clear();
    return right().Plan(request, plan);
  }
};
struct TakesAnyPriority final : WrongSampler {
  absl::Status UpdatePriorities(absl::Span<const Draw>,
                                absl::Span<const float>) override {
    return absl::OkStatus();
  }
};
struct FindsAllCurrent final : WrongSampler {
  void FindCurrent(absl::Span<const Draw>,
                   absl::Span<uint8_t> is_current) const override {
    std::fill(is_current.begin(), is_current.end(), 1);
  }
};
struct HasGenerationsOfDeadRows final : WrongSampler {
  void GetGenerations(absl::Span<const Slot> slots,
                      absl::Span<int64_t> generations) const override {
    right().GetGenerations(slots, generations);
    for (int64_t& generation : generations) {
      generation = std::max<int64_t>(generation, 0);
    }
  }
};
struct NamesNoPriorities final : WrongSampler {
  NamesNoPriorities() : WrongSampler(*MakePrioritizedSampler({})) {}
  ValuesRead values_read() const override { return ValuesRead::None(); }
};
struct HasARestWithoutEpochs final : WrongSampler {
  absl::StatusOr<EpochRest> RestOfEpoch(const Request&) const override {
    return EpochRest{};
  }
};
// What it has counted is in no state.
struct SavesNoCount final : WrongSampler {
  absl::Status Plan(const Request& request, SamplePlan* plan) override {
    Request other = request;
    other.seed += updates;
    return right().Plan(other, plan);
  }
  absl::Status UpdatePriorities(absl::Span<const Draw> draws,
                                absl::Span<const float> priorities) override {
    ++updates;
    return right().UpdatePriorities(draws, priorities);
  }
  uint64_t updates = 0;
};
struct SavesAnotherStateEachTime final : WrongSampler {
  absl::StatusOr<std::string> SaveState() const override {
    auto state = right().SaveState();
    if (state.ok()) state->append(++saves % 2, 'x');
    return state;
  }
  mutable int64_t saves = 0;
};

template <typename T>
WrongPart<SamplerConformanceTest> Wrong(std::string name, std::string test,
                                        std::string says) {
  return {std::move(name),
          std::move(test),
          std::move(says),
          {.make = []() -> std::unique_ptr<Sampler> {
             return std::make_unique<T>();
           },
           .refuses_moved_rows = true}};
}

std::vector<WrongPart<SamplerConformanceTest>> WrongSamplers() {
#define RILL_WRONG(name, test, says) Wrong<name>(#name, test, says)
  return {
      RILL_WRONG(DrawsSlotZeroThoughItIsDead,
                 "DrawsOnlyLiveRowsOfLanesOfUnequalLength", "slot 0"),
      RILL_WRONG(KnowsFirstGenerationsOnly,
                 "WriteInPlaceGivesTheRowsANewGeneration", "draw.generation"),
      RILL_WRONG(WeighsDrawsByTwo, "SeesRowsThatWereThereBeforeIt",
                 "draw.weight"),
      RILL_WRONG(GivesOneDrawTooFew, "DrawsOnlyLiveRowsAtEveryCursorPosition",
                 "picks"),
      RILL_WRONG(DrawsOneLaneOnly, "LeavesNoLiveRowOut",
                 "the rows in 64 plans"),
      RILL_WRONG(DrawsBeforeARetireIsKnown,
                 "DrawsNothingThatAWriteInFlightHasRetired", "IsLive"),
      RILL_WRONG(CountsItsPlans, "EqualHistoriesGiveEqualPlans", "draws"),
      RILL_WRONG(PlansWithoutTheBatchNumber,
                 "OtherSeedOrBatchNumberGivesAnotherPlan", "draws"),
      RILL_WRONG(AddsToThePlan, "PlanReplacesWhatThePlanHeld", "draws"),
      RILL_WRONG(ClearsThePlanBeforeItFails,
                 "PlanOverNoRowsFailsAndLeavesThePlan", "draws"),
      RILL_WRONG(TakesAnyPriority, "BadPrioritiesAreRefusedAndChangeNothing",
                 "Actual: OK"),
      RILL_WRONG(FindsAllCurrent, "FindsWhichDrawsAreStillThere",
                 "is_current[i]"),
      RILL_WRONG(HasGenerationsOfDeadRows, "FindsWhichDrawsAreStillThere",
                 "generation of slot"),
      RILL_WRONG(HasARestWithoutEpochs, "RestOfEpochCountsThePlansUpToTheNext",
                 "RestOfEpoch"),
      RILL_WRONG(NamesNoPriorities, "ReadsNoValueThatItDoesNotName",
                 "without the values"),
      RILL_WRONG(SavesNoCount, "LoadedStateGoesOnAsTheSavedOne", "draws"),
      RILL_WRONG(SavesAnotherStateEachTime, "LoadedStateGoesOnAsTheSavedOne",
                 "SaveState()"),
  };
#undef RILL_WRONG
}
RILL_REFUSES_WRONG_PARTS(SamplerConformanceTest, WrongSamplers);

}  // namespace
}  // namespace rill
