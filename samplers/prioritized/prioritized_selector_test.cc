// SPDX-License-Identifier: Apache-2.0
// Behaviour that a unit of one row an item does not show; the rest is in
// prioritized_sampler_test.
#include "rill/samplers/prioritized/prioritized_selector.h"

#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/samplers/anchors.h"
#include "rill/samplers/live_rows.h"
#include "rill/samplers/prioritized/priority_mass.h"
#include "rill/samplers/selector.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

// The selector finds its anchors by itself.
class NoAnchors final : public Anchors {
 public:
  int64_t size() const override { return 0; }
  Slot At(int64_t /*n*/) const override { return -1; }
  bool Contains(Slot /*slot*/) const override { return false; }
  Slot Pick(const Rng::Block& /*bits*/) const override { return -1; }
};

// Ten rows with priorities 1, 2, ... 10, none of them an anchor.
class PrioritizedSelectorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Lanes lanes = {.count = 1, .capacity = 10};
    const Cursor cursor = {.written = 10};
    const SlotRange all = {.first = 0, .count = 10};
    std::vector<double> priorities;
    for (int i = 1; i <= 10; ++i) priorities.push_back(i);
    WriteEvent event;
    event.written = {&all, 1};
    event.priorities = priorities;
    rows_.OnAttach(lanes, {&cursor, 1});
    rows_.OnWrite(event);
    selector_->OnAttach(lanes, {&cursor, 1});
    selector_->OnWrite(event);
  }
  std::set<Slot> Drawn() {
    std::vector<Draw> draws;
    RILL_EXPECT_OK(selector_->Prepare({.count = 512}, NoAnchors()));
    selector_->Select({.count = 512}, NoAnchors(), &draws);
    std::set<Slot> slots;
    for (const Draw& draw : draws) slots.insert(draw.slot);
    return slots;
  }
  float WeightOf(Slot slot) {
    std::vector<Draw> draws;
    RILL_EXPECT_OK(selector_->Prepare({.count = 512}, NoAnchors()));
    selector_->Select({.count = 512}, NoAnchors(), &draws);
    for (const Draw& draw : draws) {
      if (draw.slot == slot) return draw.weight;
    }
    return -1;
  }

  samplers_internal::LiveRows rows_;
  std::unique_ptr<PrioritizedSelector> selector_ =
      *PrioritizedSelector::Create({.alpha = 1, .beta = 1, .epsilon = 0});
};

TEST_F(PrioritizedSelectorTest, DrawsOnlyAnchors) {
  EXPECT_THAT(selector_->Prepare({.count = 1}, NoAnchors()),
              IsFailedPrecondition());
  selector_->OnAnchorsAdded(
      {{.first = 2, .count = 3}, {.first = 8, .count = 1}});
  EXPECT_THAT(Drawn(), ElementsAre(2, 3, 4, 8));
  selector_->OnAnchorsRemoved({{.first = 3, .count = 1}});
  selector_->OnAnchorsRemoved({{.first = 3, .count = 1}});
  EXPECT_THAT(Drawn(), ElementsAre(2, 4, 8));
  selector_->OnAnchorsCleared();
  EXPECT_THAT(selector_->Prepare({.count = 1}, NoAnchors()),
              IsFailedPrecondition());
  selector_->OnAnchorsAdded({{.first = 5, .count = 1}});
  EXPECT_THAT(Drawn(), ElementsAre(5));
}

// The smallest weight is that of the anchors, not of all rows.
TEST_F(PrioritizedSelectorTest, RowsThatAreNoAnchorsDoNotCountForWeights) {
  selector_->OnAnchorsAdded(
      {{.first = 1, .count = 1}, {.first = 3, .count = 1}});
  EXPECT_EQ(WeightOf(1), 1.0f);
  EXPECT_EQ(WeightOf(3), 0.5f);
}

TEST_F(PrioritizedSelectorTest, RowKeepsItsPriorityWhileItIsNoAnchor) {
  selector_->OnAnchorsAdded({{.first = 0, .count = 2}});
  selector_->OnAnchorsRemoved({{.first = 1, .count = 1}});
  selector_->UpdatePriorities({{.slot = 1}}, {4.0f}, rows_);
  EXPECT_THAT(Drawn(), ElementsAre(0));
  selector_->OnAnchorsAdded({{.first = 1, .count = 1}});
  EXPECT_EQ(WeightOf(1), 0.25f);
}

TEST_F(PrioritizedSelectorTest, TellsPrioritiesAsTheyWereGiven) {
  selector_->UpdatePriorities({{.slot = 3}}, {0.25f}, rows_);
  const SlotRange gone = {.first = 7, .count = 1};
  WriteEvent event;
  event.retired = {&gone, 1};
  selector_->OnRetire(event);
  EXPECT_THAT(selector_->Priorities(),
              ElementsAre(1, 2, 3, 0.25f, 5, 6, 7, 0, 9, 10));
  EXPECT_EQ(selector_->DefaultPriority(), 10);
  EXPECT_EQ(selector_->epsilon(), 0);
}

TEST_F(PrioritizedSelectorTest, TheMassIsThatOfTheRowsThatMayBeDrawn) {
  const PriorityMassGauge& gauge = *selector_->traits().priority_mass;
  const auto mass = [&] { return std::pair(gauge.Get().sum, gauge.Get().min); };
  EXPECT_EQ(mass(), std::pair(0.0, 0.0));
  selector_->OnAnchorsAdded({{.first = 2, .count = 3}});
  EXPECT_EQ(mass(), std::pair(12.0, 3.0));
  EXPECT_EQ(gauge.Get().beta, 1);
  selector_->UpdatePriorities({{.slot = 2}, {.slot = 9}}, {8.0f, 1.0f}, rows_);
  EXPECT_EQ(mass(), std::pair(17.0, 4.0));
  selector_->OnAnchorsRemoved({{.first = 4, .count = 1}});
  EXPECT_EQ(mass(), std::pair(12.0, 4.0));
  // Exponents show with the next draw.
  RILL_ASSERT_OK(selector_->SetAlpha(2));
  RILL_ASSERT_OK(selector_->SetBeta(0.5));
  std::vector<Draw> draws;
  RILL_ASSERT_OK(selector_->Prepare({.count = 1}, NoAnchors()));
  selector_->Select({.count = 1}, NoAnchors(), &draws);
  EXPECT_EQ(mass(), std::pair(80.0, 16.0));
  EXPECT_EQ(gauge.Get().beta, 0.5);
  selector_->OnAnchorsCleared();
  EXPECT_EQ(mass(), std::pair(0.0, 0.0));
}

TEST_F(PrioritizedSelectorTest, DrawsGoBehindThoseThatAreThere) {
  selector_->OnAnchorsAdded({{.first = 0, .count = 10}});
  std::vector<Draw> all, parts;
  RILL_ASSERT_OK(selector_->Prepare({.count = 20}, NoAnchors()));
  selector_->Select({.count = 20}, NoAnchors(), &all);
  selector_->Select({.count = 15}, NoAnchors(), &parts);
  selector_->Select({.count = 5, .first_draw = 15}, NoAnchors(), &parts);
  EXPECT_EQ(all, parts);
}

}  // namespace
}  // namespace rill
