// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/conformance/sink_conformance.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

// Steps first, first + 1, ... of one lane, [1, steps].
TensorDict Steps(int64_t first, int64_t steps) {
  auto batch = SinkConformanceSpec().Empty({1, steps}, {});
  RILL_EXPECT_OK(batch);
  int64_t* const step = batch->Find("step")->data<int64_t>();
  float* const wide = batch->Find("wide")->data<float>();
  for (int64_t i = 0; i < steps; ++i) {
    step[i] = first + i;
    std::fill_n(wide + 3 * i, 3, static_cast<float>(first + i));
  }
  return *std::move(batch);
}

std::vector<int64_t> Range(int64_t end) {
  std::vector<int64_t> range(end);
  std::iota(range.begin(), range.end(), 0);
  return range;
}

TEST_P(SinkConformanceTest, BatchesOfAnyLengthArriveInOrder) {
  const SinkSubject subject = GetParam()();
  EXPECT_THAT(subject.arrived(), IsEmpty());
  int64_t steps = 0;
  for (const int64_t count : {3, 1, 10, 2}) {
    RILL_ASSERT_OK(subject.sink->Write(Steps(steps, count), {}));
    steps += count;
    EXPECT_THAT(subject.arrived(), ElementsAreArray(Range(steps)));
  }
}

TEST_P(SinkConformanceTest, TheCallerReusesTheBytes) {
  const SinkSubject subject = GetParam()();
  TensorDict batch = Steps(0, 4);
  RILL_ASSERT_OK(subject.sink->Write(batch, {}));
  std::fill_n(batch.Find("step")->data<int64_t>(), 4, 77);
  std::fill_n(batch.Find("wide")->data<float>(), 12, 77.0f);
  EXPECT_THAT(subject.arrived(), ElementsAreArray(Range(4)));
}

TEST_P(SinkConformanceTest, StridedBatchesArrive) {
  const SinkSubject subject = GetParam()();
  // Every other row of one batch of 10.
  const Tensor step = *Tensor::Zeros(DType::kInt64, {10});
  const Tensor wide = *Tensor::Zeros(DType::kFloat32, {10, 3});
  for (int64_t i = 0; i < 10; ++i) {
    const int64_t value = i % 2 == 0 ? i / 2 : -5;
    step.data<int64_t>()[i] = value;
    std::fill_n(wide.data<float>() + 3 * i, 3, static_cast<float>(value));
  }
  TensorDict batch({1, 5});
  RILL_ASSERT_OK(batch.Set("step", *Tensor::View(step.buffer(), DType::kInt64,
                                                 {1, 5}, 0, {80, 16})));
  RILL_ASSERT_OK(batch.Set("wide", *Tensor::View(wide.buffer(), DType::kFloat32,
                                                 {1, 5, 3}, 0, {120, 24, 4})));
  RILL_ASSERT_OK(subject.sink->Write(batch, {}));
  EXPECT_THAT(subject.arrived(), ElementsAreArray(Range(5)));
}

TEST_P(SinkConformanceTest, ARefusedBatchLeavesNothing) {
  const SinkSubject subject = GetParam()();
  if (!subject.checks_leaves) GTEST_SKIP() << "takes any leaves";
  RILL_ASSERT_OK(subject.sink->Write(Steps(0, 2), {}));
  TensorDict wrong = Steps(2, 3);
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor other,
                            Tensor::Zeros(DType::kFloat64, {1, 3}));
  RILL_ASSERT_OK(wrong.Set("step", other));
  EXPECT_FALSE(subject.sink->Write(wrong, {}).ok());
  EXPECT_THAT(subject.arrived(), ElementsAreArray(Range(2)));
  RILL_ASSERT_OK(subject.sink->Write(Steps(2, 3), {}));
  EXPECT_THAT(subject.arrived(), ElementsAreArray(Range(5)));
}

TEST_P(SinkConformanceTest, FlushAddsAndLosesNothing) {
  const SinkSubject subject = GetParam()();
  RILL_EXPECT_OK(subject.sink->Flush());
  RILL_ASSERT_OK(subject.sink->Write(Steps(0, 3), {}));
  EXPECT_THAT(subject.arrived(), ElementsAreArray(Range(3)));
  for (int i = 0; i < 2; ++i) RILL_EXPECT_OK(subject.sink->Flush());
  EXPECT_THAT(subject.arrived(), ElementsAreArray(Range(3)));
}

TEST_P(SinkConformanceTest, CutsComeBetweenBatchesAndLoseNothing) {
  const SinkSubject subject = GetParam()();
  const LaneRange lanes = {.first = 0, .count = 1};
  RILL_ASSERT_OK(subject.sink->Cut(0, lanes));
  RILL_ASSERT_OK(subject.sink->Write(Steps(0, 3), {}));
  for (int i = 0; i < 2; ++i) RILL_ASSERT_OK(subject.sink->Cut(0, lanes));
  RILL_ASSERT_OK(subject.sink->Write(Steps(3, 2), {}));
  EXPECT_THAT(subject.arrived(), ElementsAreArray(Range(5)));
}

TEST_P(SinkConformanceTest, NumberedBatchesOfAProducerArriveOnceEach) {
  const SinkSubject subject = GetParam()();
  for (int64_t i = 0; i < 4; ++i) {
    RILL_ASSERT_OK(subject.sink->Write(Steps(2 * i, 2), {.sequence = i + 1}));
  }
  EXPECT_THAT(subject.arrived(), ElementsAreArray(Range(8)));
  // Another producer has numbers of its own.
  RILL_ASSERT_OK(subject.sink->Cut(0, {.first = 0, .count = 1}));
  for (int64_t i = 0; i < 2; ++i) {
    RILL_ASSERT_OK(subject.sink->Write(Steps(8 + 2 * i, 2),
                                       {.producer = 1, .sequence = i + 1}));
  }
  EXPECT_THAT(subject.arrived(), ElementsAreArray(Range(12)));
}

TEST_P(SinkConformanceTest, LentBatchesArriveWhenTheyAreWritten) {
  const SinkSubject subject = GetParam()();
  RILL_ASSERT_OK(subject.sink->Write(Steps(0, 2), {}));
  for (int64_t steps = 2; steps < 8; steps += 3) {
    auto unused = subject.sink->Reserve({1, 2});
    if (absl::IsUnimplemented(unused.status())) {
      GTEST_SKIP() << "lends no memory";
    }
    RILL_ASSERT_OK(unused.status());
    RILL_ASSERT_OK(unused->CopyFrom(Steps(50, 2)));
    EXPECT_THAT(subject.arrived(), ElementsAreArray(Range(steps)));
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict lent, subject.sink->Reserve({1, 3}));
    RILL_ASSERT_OK(lent.CopyFrom(Steps(steps, 3)));
    EXPECT_THAT(subject.arrived(), ElementsAreArray(Range(steps)));
    RILL_ASSERT_OK(subject.sink->Write(lent, {}));
    EXPECT_THAT(subject.arrived(), ElementsAreArray(Range(steps + 3)));
  }
  // A loan that was given back by another write.
  RILL_ASSERT_OK(subject.sink->Reserve({1, 2}).status());
  RILL_ASSERT_OK(subject.sink->Write(Steps(8, 2), {}));
  EXPECT_THAT(subject.arrived(), ElementsAreArray(Range(10)));
}

}  // namespace

TensorDictSpec SinkConformanceSpec() {
  TensorDictSpec spec;
  RILL_EXPECT_OK(spec.Set("step", LeafSpec::Unbounded(DType::kInt64, {})));
  RILL_EXPECT_OK(spec.Set("wide", LeafSpec::Unbounded(DType::kFloat32, {3})));
  return spec;
}

std::vector<int64_t> StepsOf(const TensorDict& rows) {
  auto copy = rows.Clone();  // Without strides.
  RILL_EXPECT_OK(copy);
  if (!copy.ok()) return {};
  const Tensor* const step = copy->Find("step");
  const Tensor* const wide = copy->Find("wide");
  if (step == nullptr || wide == nullptr) return {-1};
  std::vector<int64_t> steps(step->data<int64_t>(),
                             step->data<int64_t>() + step->num_elements());
  for (size_t i = 0; i < 3 * steps.size(); ++i) {
    if (wide->data<float>()[i] != static_cast<float>(steps[i / 3])) {
      steps[i / 3] = -1;
    }
  }
  return steps;
}

absl::Status StepRecorder::Add(const TensorDict& batch) {
  const std::vector<int64_t> steps = StepsOf(batch);
  steps_.insert(steps_.end(), steps.begin(), steps.end());
  return absl::OkStatus();
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SinkConformanceTest);

}  // namespace rill
