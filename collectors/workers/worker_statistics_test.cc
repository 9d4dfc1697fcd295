// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/worker_statistics.h"

#include <fcntl.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/collectors/workers/statistics_slots.h"
#include "rill/specs/bound_rows.h"
#include "rill/tensordict/state/state_dict.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/step_transform.h"

namespace rill::workers_internal {
namespace {

using ::testing::HasSubstr;

constexpr char kState[] = "transforms/2/state";
constexpr int64_t kDepth = 2;
constexpr size_t kWorkers = 3;

std::unique_ptr<StepTransform> Norm() {
  return *VecNorm::Create({.shapes = {{1}}, .decay = 1});
}

TensorDict Fresh() {
  TensorDict fresh;
  RILL_EXPECT_OK(fresh.Set("transforms/2/name", NonTensor{"\"VecNorm\""}));
  RILL_EXPECT_OK(fresh.Set(kState, *Norm()->InitialState(1)));
  return fresh;
}

// `statistics` after some rows more.
TensorDict Learned(const TensorDict& statistics, std::vector<double> rows) {
  TensorDict state = *statistics.FindDict(kState)->Clone();
  if (!rows.empty()) {
    const BoundLeaf leaf = {.data = reinterpret_cast<std::byte*>(rows.data()),
                            .width = sizeof(double),
                            .dtype = DType::kFloat64,
                            .rows = static_cast<int64_t>(rows.size()),
                            .shape = {1}};
    RILL_EXPECT_OK(Norm()->OnStep({leaf, leaf}, &state));
  }
  TensorDict learned = statistics;
  RILL_EXPECT_OK(learned.Set(kState, std::move(state)));
  return learned;
}

struct Batch {
  int64_t sequence = 0;
  std::vector<double> rows;
  TensorDict statistics = {};  // Where it waits beside the slots.
};

// Workers that make batches, die and are sent statistics; the oracle is the
// rows that were handed out.
class Simulation {
 public:
  explicit Simulation(std::mt19937_64* random)
      : random_(*random),
        all_(*WorkerStatistics::Create(Fresh(), kWorkers, kDepth)),
        slots_(*StatisticsSlots::Attach(fcntl(all_.fd(), F_DUPFD_CLOEXEC, 0),
                                        Fresh(), kWorkers, kDepth)),
        workers_(kWorkers) {
    for (Worker& worker : workers_) worker.own = Fresh();
  }

  const TensorDict& oracle() const { return oracle_; }
  absl::StatusOr<TensorDict> Merged() const { return all_.Merged(); }

  // Numbers of all sizes, larger ones later on.
  void Make(int64_t w) {
    Worker& worker = workers_[w];
    if (worker.sent.size() == kDepth) return;
    std::vector<double> rows(Below(4));
    for (double& row : rows) {
      row = std::ldexp(1 + static_cast<double>(Below(99)),
                       static_cast<int>(Below(90)) - 60 + made_ / 4);
    }
    ++made_;
    worker.own = Learned(worker.own, rows);
    RILL_ASSERT_OK(slots_->Write(w, ++worker.sequence, worker.own));
    worker.sent.push_back({worker.sequence, rows});
  }

  // And puts some of them back.
  void HandOut(int64_t w) {
    Hold(w);
    Worker& worker = workers_[w];
    if (worker.held.empty()) return;
    Batch& batch = worker.held.front();
    all_.HandOut(w, batch.statistics);
    if (Below(4) == 0) {
      batch.statistics = all_.TakeBack(w);
      return;
    }
    oracle_ = Learned(oracle_, batch.rows);
    worker.held.pop_front();
  }

  void Die(int64_t w) {
    Worker& worker = workers_[w];
    // What it has sent is handed out before it is replaced.
    Hold(w);
    for (; !worker.held.empty(); worker.held.pop_front()) {
      all_.HandOut(w, worker.held.front().statistics);
      oracle_ = Learned(oracle_, worker.held.front().rows);
    }
    all_.Replace(w);
    worker.own = all_.Of(w);
    worker.sequence = 0;
  }

  void SendToAll() {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict merged, all_.Merged());
    std::vector<std::vector<TensorDict*>> waiting(kWorkers);
    for (size_t v = 0; v < kWorkers; ++v) {
      Hold(static_cast<int64_t>(v));
      for (Batch& batch : workers_[v].held) {
        waiting[v].push_back(&batch.statistics);
      }
      workers_[v].own = merged;
    }
    RILL_ASSERT_OK(all_.Restart(merged, waiting));
  }

  void SaveAndLoad() {
    StateWriter writer("Test", 1);
    all_.Save(&writer);
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict saved,
                              std::move(writer).Finish());
    RILL_ASSERT_OK_AND_ASSIGN(const StateReader state,
                              StateReader::Open("Test", 1, saved));
    RILL_ASSERT_OK(all_.Load(state, {}));
  }

 private:
  // What a worker has made that was not handed out: `held` comes first.
  struct Worker {
    TensorDict own;
    int64_t sequence = 0;
    std::deque<Batch> held;
    std::deque<Batch> sent;  // In the slots.
  };

  size_t Below(size_t n) { return random_() % n; }

  void Hold(int64_t w) {
    Worker& worker = workers_[w];
    for (; !worker.sent.empty(); worker.sent.pop_front()) {
      worker.held.push_back(worker.sent.front());
      RILL_ASSERT_OK_AND_ASSIGN(worker.held.back().statistics,
                                all_.Read(w, worker.sent.front().sequence));
    }
  }

  std::mt19937_64& random_;
  WorkerStatistics all_;
  const std::unique_ptr<StatisticsSlots> slots_;
  std::vector<Worker> workers_;
  TensorDict oracle_ = Fresh();
  int made_ = 0;
};

TEST(WorkerStatisticsTest, AreThoseOfTheRowsThatWereHandedOut) {
  std::mt19937_64 random(1);
  for (int number = 0; number < 20; ++number) {
    Simulation run(&random);
    for (int i = 0; i < 200; ++i) {
      const auto w = static_cast<int64_t>(random() % kWorkers);
      const size_t what = random() % 7;
      if (what < 2) run.Make(w);
      if (what == 2 || what == 3) run.HandOut(w);
      if (what == 4) run.Die(w);
      if (what == 5) run.SendToAll();
      if (what == 6) run.SaveAndLoad();
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict merged, run.Merged());
      ASSERT_THAT(merged, BitEqualTo(run.oracle())) << number << ", " << i;
    }
  }
}

TEST(WorkerStatisticsTest, WithoutAnyNothingIsKept) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto none, WorkerStatistics::Create(TensorDict(), kWorkers, kDepth));
  EXPECT_EQ(none.fd(), -1);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict read, none.Read(1, 1));
  none.HandOut(1, read);
  EXPECT_TRUE(none.Of(1).empty());
  EXPECT_TRUE(none.Merged()->empty());
  EXPECT_THAT(
      none.Check(Fresh()),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("want none")));
}

TEST(WorkerStatisticsTest, AFormThatCannotBeMergedIsNamed) {
  TensorDict other = Fresh();
  RILL_ASSERT_OK(other.Set("transforms/2/state/counts",
                           *Tensor::Zeros(DType::kInt32, {3})));
  EXPECT_THAT(WorkerStatistics::Create(other, kWorkers, kDepth),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("transforms/2/state/counts")));
}

TEST(WorkerStatisticsTest, SavedOnesOfAnotherFormAreRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto all, WorkerStatistics::Create(Fresh(), kWorkers, kDepth));
  StateWriter writer("Test", 1);
  all.Save(&writer);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict saved, std::move(writer).Finish());
  const std::string key =
      absl::StrCat("statistics/1/now/", kState, "/observation");
  for (const bool is_there : {true, false}) {
    TensorDict other = saved;
    if (is_there) {
      RILL_ASSERT_OK(other.Set(key, *Tensor::Zeros(DType::kInt64, {23})));
    } else {
      RILL_ASSERT_OK(other.Delete(key));
    }
    RILL_ASSERT_OK_AND_ASSIGN(const StateReader state,
                              StateReader::Open("Test", 1, other));
    EXPECT_THAT(all.Load(state, {}),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("observation")));
  }
}

}  // namespace
}  // namespace rill::workers_internal
