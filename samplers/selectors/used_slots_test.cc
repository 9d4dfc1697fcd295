// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/selectors/used_slots.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/storage_simulator.h"

namespace rill::samplers_internal {
namespace {

class Watcher final : public WriteObserver {
 public:
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    used.OnAttach(lanes, cursors);
  }
  void OnRetire(const WriteEvent& /*event*/) override {}
  void OnWrite(const WriteEvent& event) override { grew = used.OnWrite(event); }
  void OnClear() override { used.OnClear(); }

  UsedSlots used;
  bool grew = false;
};

TEST(UsedSlotsTest, AreThoseThatHaveHeldARow) {
  const Rng rng(7, RngStream::kUser);
  for (uint64_t history = 0; history < 20; ++history) {
    const Lanes lanes = {.count = rng.UniformInt(history, 0, 4) + 1,
                         .capacity = rng.UniformInt(history, 1, 9) + 1};
    StorageSimulator storage(lanes);
    Watcher watcher;
    storage.AddObserver(&watcher);
    std::set<Slot> want;
    for (uint32_t operation = 1; operation <= 60; ++operation) {
      ApplyRandomWrite(rng, history, operation, &storage);
      const std::vector<Slot> live = storage.Live();
      const size_t before = want.size();
      if (live.empty()) want.clear();
      want.insert(live.begin(), live.end());
      EXPECT_EQ(watcher.grew && !live.empty(), want.size() > before);
      ASSERT_EQ(watcher.used.size(), static_cast<int64_t>(want.size()));
      int64_t n = 0;
      for (const Slot slot : want) EXPECT_EQ(watcher.used.At(n++), slot);
      for (Slot slot = 0; slot <= lanes.num_slots(); ++slot) {
        const auto next = want.lower_bound(slot);
        EXPECT_EQ(watcher.used.Next(slot),
                  next == want.end() ? lanes.num_slots() : *next);
      }
      for (Slot first = 0; first < lanes.num_slots(); ++first) {
        bool all = true;
        for (int64_t count = 1; first + count <= lanes.num_slots(); ++count) {
          all = all && want.count(first + count - 1) == 1;
          EXPECT_EQ(watcher.used.Contains({.first = first, .count = count}),
                    all);
        }
      }
      if (HasFailure()) return;
    }
  }
}

TEST(UsedSlotsTest, ThereAreNoneBeforeTheLanesAreKnown) {
  UsedSlots used;
  EXPECT_EQ(used.size(), 0);
  used.OnAttach({.count = 1, .capacity = 4}, {});
  EXPECT_FALSE(used.Contains({.first = 0, .count = 1}));
  EXPECT_EQ(used.Next(0), 4);
}

}  // namespace
}  // namespace rill::samplers_internal
