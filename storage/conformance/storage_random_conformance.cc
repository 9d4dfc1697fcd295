// SPDX-License-Identifier: Apache-2.0
// Random operations against the oracle.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/storage/conformance/conformance_rows.h"
#include "rill/storage/conformance/storage_conformance.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

class RandomRun {
 public:
  RandomRun(StorageSubject* subject, uint64_t seed)
      : subject_(*subject), rng_(seed) {}

  void Step() {
    const int64_t kind = Below(100);
    if (kind < 50) {
      Extend();
    } else if (kind < 65) {
      WriteAt();
    } else if (kind < 90) {
      Read();
    } else if (kind < 98) {
      Refused();
    } else {
      subject_.Clear();
    }
  }

 private:
  int64_t Below(int64_t n) { return rng_.UniformInt(draws_++, 0, n); }

  void Extend() {
    const Lanes& lanes = subject_.oracle().lanes();
    const int64_t first = Below(lanes.count);
    const int64_t count = 1 + Below(lanes.count - first);
    // Mostly short, now and then longer than the ring.
    const int64_t steps =
        Below(8) == 0 ? Below(3 * lanes.capacity + 1) : 1 + Below(3);
    subject_.Extend(first, count, steps);
  }

  std::vector<Slot> SomeLive(int64_t n) {
    const std::vector<Slot> live = subject_.oracle().LiveSlots();
    std::vector<Slot> slots;
    for (int64_t i = 0; i < n && !live.empty(); ++i) {
      slots.push_back(live[Below(static_cast<int64_t>(live.size()))]);
    }
    return slots;
  }

  void WriteAt() {
    std::vector<size_t> leaves;
    for (size_t i = 0; i < ConformanceSpec().leaves().size(); ++i) {
      if (Below(3) == 0) leaves.push_back(i);
    }
    const std::vector<Slot> slots = SomeLive(1 + Below(5));
    if (leaves.empty() || slots.empty()) return;
    subject_.WriteAt(slots, leaves);
  }

  void Read() {
    const std::vector<Slot> slots = SomeLive(1 + Below(6));
    if (slots.empty()) return;
    RILL_ASSERT_OK(subject_.storage().Read(slots, &out_));
    RILL_ASSERT_OK(out_.CheckEqual(subject_.oracle().Rows(slots)));
  }

  void Refused() {
    const Lanes& lanes = subject_.oracle().lanes();
    const std::vector<int64_t> ids(2 * lanes.count, 7);
    TensorDict batch = ConformanceRows({lanes.count, 2}, ids);
    const auto& leaves = ConformanceSpec().leaves();
    RILL_ASSERT_OK(
        batch.Delete(leaves[Below(static_cast<int64_t>(leaves.size()))].key));
    if (subject_.storage().spec().empty()) return;  // It would be the spec.
    EXPECT_THAT(subject_.storage().Extend(batch, {}), IsInvalidArgument());
  }

  StorageSubject& subject_;
  const Rng rng_;
  uint64_t draws_ = 0;
  TensorDict out_;
};

TEST_P(StorageConformanceTest, RandomOperationsAgreeWithTheOracle) {
  uint64_t seed = 100;
  for (const int64_t lanes : {1, 2, 3}) {
    for (const int64_t capacity : {1, 2, 5, 16}) {
      auto subject = Make(lanes * capacity, lanes);
      RandomRun run(subject.get(), ++seed);
      for (int step = 0; step < 300; ++step) {
        run.Step();
        if (step % 20 == 0 || step > 290) {
          subject->Check(absl::StrCat("seed ", seed, " step ", step));
        }
        if (HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace rill
