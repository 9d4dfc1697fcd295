// SPDX-License-Identifier: Apache-2.0
// Sinks, and the suites that every sink and every source passes.
#include "rill/flow/sink.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/flow/conformance/sink_conformance.h"
#include "rill/flow/conformance/source_conformance.h"
#include "rill/flow/source.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_steps.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/wrong_parts.h"

namespace rill {
namespace {

TEST(FunctionSinkTest, HandsBatchesAndErrorsThrough) {
  int64_t rows = 0;
  WriteInfo seen;
  FunctionSink function([&](const TensorDict& batch, const WriteInfo& info) {
    rows += batch.batch_shape()[0];
    seen = info;
    return rows > 4 ? absl::ResourceExhaustedError("full") : absl::OkStatus();
  });
  Sink& sink = function;
  RILL_EXPECT_OK(sink.Write(
      MakeSteps(3), {.producer = 1, .first_lane = 2, .policy_version = 3}));
  EXPECT_EQ(seen.producer, 1);
  EXPECT_EQ(seen.first_lane, 2);
  EXPECT_EQ(seen.policy_version, 3);
  EXPECT_THAT(sink.Write(MakeSteps(3), {}), IsResourceExhausted());
  RILL_EXPECT_OK(sink.Cut(1, {.first = 2, .count = 1}));
  RILL_EXPECT_OK(sink.Flush());
}

TEST(FunctionSinkTest, HandsCutsThroughWhereItIsGivenAFunction) {
  int64_t producer = 0;
  LaneRange lanes;
  FunctionSink sink(
      [](const TensorDict&, const WriteInfo&) { return absl::OkStatus(); },
      [&](int64_t who, LaneRange which) {
        producer = who;
        lanes = which;
        return absl::UnavailableError("busy");
      });
  EXPECT_THAT(sink.Cut(7, {.first = 2, .count = 3}), IsUnavailable());
  EXPECT_EQ(producer, 7);
  EXPECT_EQ(lanes, (LaneRange{.first = 2, .count = 3}));
}

SinkSubject Function() {
  const auto recorder = std::make_shared<StepRecorder>();
  return {.sink = {recorder, &recorder->sink()},
          .arrived = [recorder] { return recorder->steps(); },
          .checks_leaves = false};
}
INSTANTIATE_TEST_SUITE_P(FunctionSink, SinkConformanceTest,
                         ::testing::Values(Function));

// --- Sinks that break a promise ----------------------------------------------

// Keeps the steps, and does otherwise where a field says so.
class KeepingSink final : public Sink {
 public:
  struct Fault {
    bool keeps_the_tensors = false;
    bool reads_past_strides = false;
    bool loses_the_tenth_row = false;
    bool checks_after_it_has_written = false;
    bool flush_writes_again = false;
    bool cut_takes_a_row_back = false;
    bool knows_numbers_without_producers = false;
    bool lent_batches_arrive_at_once = false;
    bool lent_batches_never_arrive = false;
  };
  explicit KeepingSink(const Fault& fault) : fault_(fault) {}

  absl::Status Write(const TensorDict& batch, const WriteInfo& info) override {
    if (fault_.knows_numbers_without_producers && info.sequence > 0 &&
        !numbers_.insert(info.sequence).second) {
      return absl::OkStatus();
    }
    const bool is_lent =
        lent_.has_value() &&
        batch.Find("step")->raw_data() == lent_->Find("step")->raw_data();
    const absl::Status fits = SinkConformanceSpec().CheckLayout("Sink", batch);
    if (!fits.ok() && !fault_.checks_after_it_has_written) return fits;
    if (!(is_lent && fault_.lent_batches_never_arrive)) Keep(batch);
    lent_.reset();
    return fits;
  }
  absl::Status Cut(int64_t, LaneRange) override {
    if (fault_.cut_takes_a_row_back && !kept_.empty()) kept_.pop_back();
    return absl::OkStatus();
  }
  absl::Status Flush() override {
    if (fault_.flush_writes_again && !kept_.empty()) kept_.push_back(kept_[0]);
    return absl::OkStatus();
  }
  absl::StatusOr<TensorDict> Reserve(const Shape& shape) override {
    lent_ = *SinkConformanceSpec().Zero(shape);
    if (fault_.lent_batches_arrive_at_once) kept_.push_back(*lent_);
    return *lent_;
  }

  std::vector<int64_t> steps() const {
    std::vector<int64_t> all;
    for (const TensorDict& batch : kept_) {
      for (const int64_t step : StepsOf(batch)) all.push_back(step);
    }
    return all;
  }

 private:
  void Keep(const TensorDict& batch) {
    if (fault_.keeps_the_tensors) return kept_.push_back(batch);
    TensorDict copy = *batch.Clone();
    const int64_t rows = batch.batch_shape()[1];
    if (fault_.reads_past_strides) {
      std::memcpy(copy.Find("step")->raw_data(), batch.Find("step")->raw_data(),
                  8 * rows);
    }
    if (copy.Find("step")->dtype() != DType::kInt64) {
      // The leaves that do fit are there by now.
      RILL_EXPECT_OK(
          copy.Set("step", *Tensor::Zeros(DType::kInt64, {1, rows})));
    }
    if (fault_.loses_the_tenth_row && rows >= 10) copy = *copy.Slice(1, 0, 9);
    kept_.push_back(std::move(copy));
  }

  const Fault fault_;
  std::vector<TensorDict> kept_;
  std::set<int64_t> numbers_;
  std::optional<TensorDict> lent_;
};

WrongPart<SinkConformanceTest> Keeping(std::string name, std::string test,
                                       const KeepingSink::Fault& fault) {
  return {std::move(name), std::move(test), "subject.arrived()", [fault] {
            const auto sink = std::make_shared<KeepingSink>(fault);
            return SinkSubject{.sink = sink,
                               .arrived = [sink] { return sink->steps(); }};
          }};
}

INSTANTIATE_TEST_SUITE_P(KeepingSink, SinkConformanceTest,
                         ::testing::Values(Keeping("Right", "", {}).part));

std::vector<WrongPart<SinkConformanceTest>> WrongSinks() {
  const std::string lent = "LentBatchesArriveWhenTheyAreWritten";
  return {
      Keeping("LosesTheTenthRow", "BatchesOfAnyLengthArriveInOrder",
              {.loses_the_tenth_row = true}),
      Keeping("KeepsTheTensors", "TheCallerReusesTheBytes",
              {.keeps_the_tensors = true}),
      Keeping("ReadsPastStrides", "StridedBatchesArrive",
              {.reads_past_strides = true}),
      Keeping("ChecksAfterItHasWritten", "ARefusedBatchLeavesNothing",
              {.checks_after_it_has_written = true}),
      Keeping("FlushWritesAgain", "FlushAddsAndLosesNothing",
              {.flush_writes_again = true}),
      Keeping("CutTakesARowBack", "CutsComeBetweenBatchesAndLoseNothing",
              {.cut_takes_a_row_back = true}),
      Keeping("KnowsNumbersWithoutProducers",
              "NumberedBatchesOfAProducerArriveOnceEach",
              {.knows_numbers_without_producers = true}),
      Keeping("LentBatchesArriveAtOnce", lent,
              {.lent_batches_arrive_at_once = true}),
      Keeping("LentBatchesNeverArrive", lent,
              {.lent_batches_never_arrive = true}),
  };
}
RILL_REFUSES_WRONG_PARTS(SinkConformanceTest, WrongSinks);

// --- Sources -----------------------------------------------------------------

// Batches [1, 2] of one leaf that counts, and does otherwise where a field says
// so.
class CountingSource final : public Source {
 public:
  struct Fault {
    bool counts_batches_for_steps = false;
    bool leaves_its_spec = false;
    bool loses_a_refused_batch = false;
    bool numbers_each_offer = false;
    bool stop_loses_a_batch = false;
    bool stop_is_for_ever = false;
    bool stop_is_forgotten = false;
    bool lends_its_state = false;
    bool saves_no_refused_batch = false;
    bool saves_no_number = false;
    bool loads_before_it_looks = false;
  };
  explicit CountingSource(const Fault& fault) : fault_(fault) {
    RILL_EXPECT_OK(
        spec_.Set("count", LeafSpec::Bounded(DType::kInt64, {}, 0, 1000)));
    state_ = *Tensor::Zeros(DType::kInt64, {3});
  }

  const TensorDictSpec& spec() const override { return spec_; }
  int64_t frames() const override {
    return fault_.counts_batches_for_steps ? made() / 2 : made();
  }
  const Times& times() const override { return times_; }

  absl::StatusOr<TensorDict> Next() override {
    RILL_RETURN_IF_ERROR(TakeStop());
    TensorDict batch = Batch();
    is_held() = 0;
    return batch;
  }
  absl::Status CollectInto(Sink& sink) override {
    RILL_RETURN_IF_ERROR(TakeStop());
    const TensorDict batch = Batch();
    if (!is_held() || fault_.numbers_each_offer) ++number();
    is_held() = 1;
    const absl::Status status = sink.Write(batch, {.sequence = number()});
    if (status.ok() || fault_.loses_a_refused_batch) is_held() = 0;
    return status;
  }
  void Stop() override { is_stopped_ = !fault_.stop_is_forgotten; }

  absl::StatusOr<TensorDict> SaveState() const override {
    TensorDict state;
    Tensor saved = fault_.lends_its_state ? state_ : *state_.Clone();
    if (fault_.saves_no_refused_batch) saved.data<int64_t>()[1] = 0;
    if (fault_.saves_no_number) saved.data<int64_t>()[2] = 0;
    RILL_RETURN_IF_ERROR(state.Set("state", saved));
    return state;
  }
  absl::Status LoadState(const TensorDict& state) override {
    if (fault_.loads_before_it_looks) made() = 0;
    const Tensor* const saved = state.Find("state");
    if (saved == nullptr) return absl::FailedPreconditionError("no state");
    return state_.CopyFrom(*saved);
  }

 private:
  int64_t& made() const { return state_.data<int64_t>()[0]; }
  int64_t& is_held() const { return state_.data<int64_t>()[1]; }
  int64_t& number() const { return state_.data<int64_t>()[2]; }

  // A new batch, or the one that was refused.
  TensorDict Batch() {
    if (is_held() == 0) made() += 2;
    const int64_t first = fault_.leaves_its_spec ? -1 : made() - 2;
    TensorDict batch({1, 2});
    RILL_EXPECT_OK(
        batch.Set("count", *Tensor::From<int64_t>({first, first + 1}, {1, 2})));
    return batch;
  }
  absl::Status TakeStop() {
    if (!is_stopped_) return absl::OkStatus();
    is_stopped_ = fault_.stop_is_for_ever;
    if (fault_.stop_loses_a_batch) made() += 2;
    return absl::CancelledError("stopped");
  }

  const Fault fault_;
  TensorDictSpec spec_;
  Times times_;
  bool is_stopped_ = false;
  Tensor state_;  // made, is_held, number.
};

WrongPart<SourceConformanceTest> Counting(std::string name, std::string test,
                                          std::string says,
                                          const CountingSource::Fault& fault) {
  return {std::move(name), std::move(test), std::move(says),
          [fault]() -> absl::StatusOr<std::unique_ptr<Source>> {
            return std::make_unique<CountingSource>(fault);
          }};
}

INSTANTIATE_TEST_SUITE_P(CountingSource, SourceConformanceTest,
                         ::testing::Values(Counting("Right", "", "", {}).part));

std::vector<WrongPart<SourceConformanceTest>> WrongSources() {
  const std::string spec = "BatchesAreOfItsSpecAndAreCounted";
  const std::string refused = "ARefusedBatchArrivesOnceUnderItsNumber";
  const std::string stop = "StopCancelsOneCallAndLosesNothing";
  const std::string load = "ALoadedStateGoesOnWithARefusedBatch";
  return {
      Counting("CountsBatchesForSteps", spec, "source->frames()",
               {.counts_batches_for_steps = true}),
      Counting("LeavesItsSpec", spec, "got -1", {.leaves_its_spec = true}),
      Counting("LosesARefusedBatch", refused, "got.batches",
               {.loses_a_refused_batch = true}),
      Counting("NumbersEachOffer", refused, "got.numbers",
               {.numbers_each_offer = true}),
      Counting("StopLosesABatch", stop, "Value of: got",
               {.stop_loses_a_batch = true}),
      Counting("StopIsForEver", stop, "CANCELLED", {.stop_is_for_ever = true}),
      Counting("StopIsForgotten", stop, "stopped->Next()",
               {.stop_is_forgotten = true}),
      Counting("LendsItsState", load, "a saved state is a copy",
               {.lends_its_state = true}),
      Counting("SavesNoRefusedBatch", load, "got.batches",
               {.saves_no_refused_batch = true}),
      Counting("SavesNoNumber", load, "got.numbers", {.saves_no_number = true}),
      Counting("LoadsBeforeItLooks", "AnotherStateIsRefusedAndNothingChanges",
               "\"state\"", {.loads_before_it_looks = true}),
  };
}
RILL_REFUSES_WRONG_PARTS(SourceConformanceTest, WrongSources);

}  // namespace
}  // namespace rill
