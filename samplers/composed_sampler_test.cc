// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/composed_sampler.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/changed_options.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/samplers/conformance/storage_simulator.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/slots/live_slots.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kSeed = 5;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

// Items of two rows that follow one another in a lane; an anchor is the first.
class PairUnit final : public Unit, public Anchors {
 public:
  // Events of the unit and of its selector go to `log`.
  explicit PairUnit(std::vector<std::string>* log = nullptr,
                    bool picks_by_rule = false)
      : Unit({.name = "Pair", .picks_by_rule = picks_by_rule}), log_(log) {}

  const Anchors& anchors() const override { return *this; }
  void SetListener(AnchorListener* /*listener*/) override {}
  absl::StatusOr<int64_t> NumAnchors(int64_t batch_size) const override {
    if (batch_size % 2 == 0) return batch_size / 2;
    return absl::InvalidArgumentError(
        absl::StrCat("batch size: got ", batch_size, ", want a multiple of 2"));
  }
  absl::Status CheckAnchors() const override {
    if (size() > 0) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "pairs of rows: got 0, want >= 1; write more rows first");
  }
  void Expand(const Rng& /*rng*/, uint64_t /*batch_number*/,
              SamplePlan* plan) const override {
    for (size_t i = 0; i < plan->draws.size(); ++i) {
      for (const Slot slot : {plan->draws[i].slot, Next(plan->draws[i].slot)}) {
        plan->rows.push_back(slot);
        plan->segments.push_back(static_cast<int64_t>(i));
      }
    }
  }
  void SaveState(SavedState* state) const override {
    state->Set("value", value_);
  }
  absl::Status LoadState(
      const SavedState& state,
      const samplers_internal::ChangedOptions& /*changed*/) override {
    RILL_ASSIGN_OR_RETURN(value_, state.Get<int64_t>("value"));
    return absl::OkStatus();
  }

  int64_t size() const override { return static_cast<int64_t>(All().size()); }
  Slot At(int64_t n) const override { return All()[n]; }
  bool Contains(Slot slot) const override {
    const std::vector<Slot> all = All();
    return std::find(all.begin(), all.end(), slot) != all.end();
  }
  Slot Pick(const Rng::Block& bits) const override {
    return At(BoundedInt(uint64_t{bits[1]} << 32, size()));
  }

  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    Log("unit attach");
    live_.OnAttach(lanes, cursors);
  }
  void OnRetire(const WriteEvent& event) override {
    Log("unit retire");
    live_.OnRetire(event);
  }
  void OnWrite(const WriteEvent& event) override {
    Log("unit write");
    live_.OnWrite(event);
  }
  void OnClear() override {
    Log("unit clear");
    live_.OnClear();
  }

  int64_t value_ = 0;

 private:
  Slot Next(Slot slot) const {
    const Lanes& lanes = live_.lanes();
    return lanes.SlotOf(lanes.LaneOf(slot),
                        (lanes.PositionOf(slot) + 1) % lanes.capacity);
  }
  std::vector<Slot> All() const {
    std::vector<Slot> all;
    for (int64_t n = 0; n + 1 < live_.size(); ++n) {
      const Slot slot = live_.Nth(n);
      if (live_.Nth(n + 1) == Next(slot) && Next(slot) != slot) {
        all.push_back(slot);
      }
    }
    return all;
  }
  void Log(absl::string_view what) {
    if (log_ != nullptr) log_->emplace_back(what);
  }

  LiveSlots live_;
  std::vector<std::string>* log_;
};

// Takes the first anchor for every draw. Saves a number that must be >= 0.
class FirstSelector final : public Selector {
 public:
  explicit FirstSelector(std::vector<std::string>* log = nullptr)
      : Selector({.name = "First"}), log_(log) {}

  absl::Status Prepare(const Request& /*request*/,
                       const Anchors& /*anchors*/) override {
    if (value_ >= 0) return absl::OkStatus();
    return absl::FailedPreconditionError("first: got none, want one");
  }
  void Select(const Request& request, const Anchors& anchors,
              std::vector<Draw>* draws) override {
    draws->assign(request.count, {.slot = anchors.At(0)});
  }
  absl::Status SaveState(SavedState* state) const override {
    state->Set("value", value_);
    return absl::OkStatus();
  }
  absl::Status LoadState(const SavedState& state,
                         const LoadOptions& /*options*/) override {
    RILL_ASSIGN_OR_RETURN(const auto value, state.Get<int64_t>("value"));
    if (value == kBad) return state.Damaged("value");
    value_ = value;
    return absl::OkStatus();
  }

  void OnAttach(const Lanes& /*lanes*/,
                absl::Span<const Cursor> /*cursors*/) override {
    Log("selector attach");
  }
  void OnRetire(const WriteEvent& /*event*/) override {
    Log("selector retire");
  }
  void OnWrite(const WriteEvent& /*event*/) override { Log("selector write"); }
  void OnClear() override { Log("selector clear"); }
  void OnAnchorsAdded(absl::Span<const SlotRange> slots) override {
    for (const SlotRange& range : slots) {
      Log(absl::StrCat("added ", range.first, "+", range.count));
    }
  }
  void OnAnchorsRemoved(absl::Span<const SlotRange> slots) override {
    for (const SlotRange& range : slots) {
      Log(absl::StrCat("removed ", range.first, "+", range.count));
    }
  }
  void OnAnchorsCleared() override { Log("cleared"); }

  static constexpr int64_t kBad = 99;
  int64_t value_ = 0;

 private:
  void Log(absl::string_view what) {
    if (log_ != nullptr) log_->emplace_back(what);
  }

  std::vector<std::string>* log_;
};

std::unique_ptr<Sampler> MakePairs() {
  return *MakeSampler(MakeUniformSelector(), std::make_unique<PairUnit>(),
                      "Pairs");
}

}  // namespace

// The suite over items of more than one row.
INSTANTIATE_SAMPLER_CONFORMANCE(Pairs, {.make = MakePairs,
                                        .plans = {.rows_per_item = 2,
                                                  .may_find_nothing = true}});

namespace {

TEST(ComposedSamplerTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      std::unique_ptr<Sampler> sampler,
      MakeSampler(MakeUniformSelector(), MakeTransitionUnit(), "Mine"));
  EXPECT_EQ(sampler->name(), "Mine");
}

TEST(ComposedSamplerTest, WantsAllThree) {
  EXPECT_THAT(MakeSampler(nullptr, MakeTransitionUnit(), "Mine"),
              IsInvalidArgument("selector: got null"));
  EXPECT_THAT(
      MakeSampler(MakeUniformSelector(), std::unique_ptr<Unit>(), "Mine"),
      IsInvalidArgument("unit: got null"));
  EXPECT_THAT(MakeSampler(MakeUniformSelector(), MakeTransitionUnit(), ""),
              IsInvalidArgument("name: "));
}

// A unit that was given a rule by which to pick.
std::unique_ptr<Unit> MakeRuledUnit() {
  return std::make_unique<PairUnit>(/*log=*/nullptr, /*picks_by_rule=*/true);
}

TEST(ComposedSamplerTest, RuleThatTheSelectorNeverAsksForIsRefused) {
  EXPECT_THAT(
      MakeSampler(std::make_unique<FirstSelector>(), MakeRuledUnit(), "Mine"),
      IsInvalidArgument("MakeSampler: selector: got First, which picks "
                        "anchors itself, want one that leaves it to "
                        "the unit, as uniform does, where Pair has a "
                        "rule of its own"));
  RILL_EXPECT_OK(
      MakeSampler(MakeUniformSelector(), MakeRuledUnit(), "Mine").status());
}

TEST(ComposedSamplerTest, PartsAreNotifiedInThePromisedOrder) {
  std::vector<std::string> log;
  RILL_ASSERT_OK_AND_ASSIGN(
      std::unique_ptr<Sampler> sampler,
      MakeSampler(std::make_unique<FirstSelector>(&log),
                  std::make_unique<PairUnit>(&log), "Logged"));
  StorageSimulator storage({.count = 1, .capacity = 4});
  storage.AddObserver(sampler->observer());
  EXPECT_THAT(log, ElementsAre("selector attach", "unit attach"));
  log.clear();
  storage.Append(4);
  EXPECT_THAT(log, ElementsAre("selector retire", "unit retire",
                               "selector write", "unit write"));
  log.clear();
  storage.Clear();
  EXPECT_THAT(log, ElementsAre("unit clear", "selector clear"));
}

TEST(ComposedSamplerTest, TransitionUnitTellsWhichRowsAreAnchors) {
  std::vector<std::string> log;
  RILL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Sampler> sampler,
                            MakeSampler(std::make_unique<FirstSelector>(&log),
                                        MakeTransitionUnit(), "Logged"));
  StorageSimulator storage({.count = 1, .capacity = 4});
  storage.AddObserver(sampler->observer());
  EXPECT_THAT(log, ElementsAre("selector attach", "cleared"));
  log.clear();
  storage.Append(3);
  EXPECT_THAT(log,
              ElementsAre("selector retire", "selector write", "added 0+3"));
  log.clear();
  storage.Append(2);
  EXPECT_THAT(log, ElementsAre("selector retire", "removed 0+1",
                               "selector write", "added 3+1", "added 0+1"));
  log.clear();
  storage.Overwrite({2});
  EXPECT_THAT(log, ElementsAre("selector retire", "selector write",
                               "removed 2+1", "added 2+1"));
  log.clear();
  storage.Clear();
  EXPECT_THAT(log, ElementsAre("cleared", "selector clear"));
}

TEST(ComposedSamplerTest, ErrorsOfThePartsNameTheSamplerAndLeaveThePlan) {
  auto selector = std::make_unique<FirstSelector>();
  FirstSelector* first = selector.get();
  RILL_ASSERT_OK_AND_ASSIGN(
      std::unique_ptr<Sampler> sampler,
      MakeSampler(std::move(selector), std::make_unique<PairUnit>(), "Firsts"));
  StorageSimulator storage({.count = 1, .capacity = 4});
  storage.AddObserver(sampler->observer());
  SamplePlan plan = SentinelPlan();
  storage.Append(1);
  EXPECT_THAT(sampler->Plan({.batch_size = 2, .seed = kSeed}, &plan),
              StatusIs(kFailedPrecondition,
                       "Firsts::Plan: pairs of rows: got 0, want >= 1; write "
                       "more rows first"));
  storage.Append(2);
  EXPECT_THAT(sampler->Plan({.batch_size = 3, .seed = kSeed}, &plan),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Firsts::Plan: batch size: got 3, want a multiple of "
                       "2"));
  first->value_ = -1;
  EXPECT_THAT(
      sampler->Plan({.batch_size = 2, .seed = kSeed}, &plan),
      StatusIs(kFailedPrecondition, "Firsts::Plan: first: got none, want one"));
  ExpectEqualPlans(plan, SentinelPlan());
}

TEST(ComposedSamplerTest, StateThatOnePartRefusesChangesNoPart) {
  const auto make = [](FirstSelector** selector, PairUnit** unit) {
    auto first = std::make_unique<FirstSelector>();
    auto pairs = std::make_unique<PairUnit>();
    *selector = first.get();
    *unit = pairs.get();
    return *MakeSampler(std::move(first), std::move(pairs), "Firsts");
  };
  FirstSelector *selector, *other_selector;
  PairUnit *unit, *other_unit;
  const std::unique_ptr<Sampler> saved = make(&selector, &unit);
  const std::unique_ptr<Sampler> other = make(&other_selector, &other_unit);
  StorageSimulator storage({.count = 1, .capacity = 4});
  storage.AddObserver(saved->observer());
  storage.Append(5);
  storage.AddObserver(other->observer());
  unit->value_ = 7;
  selector->value_ = 8;
  RILL_ASSERT_OK_AND_ASSIGN(const std::string good, saved->SaveState());
  selector->value_ = FirstSelector::kBad;
  RILL_ASSERT_OK_AND_ASSIGN(const std::string bad, saved->SaveState());

  other_unit->value_ = 1;
  other_selector->value_ = 2;
  RILL_ASSERT_OK_AND_ASSIGN(const std::string before, other->SaveState());
  EXPECT_THAT(other->LoadState(bad), IsDataLoss());
  EXPECT_THAT(other->SaveState(), IsOkAndHolds(before));
  RILL_ASSERT_OK(other->LoadState(good));
  EXPECT_EQ(other_unit->value_, 7);
  EXPECT_EQ(other_selector->value_, 8);
  EXPECT_THAT(other->SaveState(), IsOkAndHolds(good));
}

}  // namespace
}  // namespace rill
