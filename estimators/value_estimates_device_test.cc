// SPDX-License-Identifier: Apache-2.0
// The estimates on a device, beside those on the host.
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/kernels/testing/thread_grid.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/estimators/line_kernels.h"
#include "rill/estimators/value_estimates.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::absl_testing::StatusIs;
using ::testing::HasSubstr;

struct Batch {
  EstimatorSteps steps;
  Tensor log_pi;
  Tensor log_mu;
};

Batch RandomBatch(DType dtype, const Shape& shape, uint64_t seed) {
  const Rng rng(seed);
  uint32_t draw = 0;
  const auto numbers = [&] {
    std::vector<double> values(shape.num_elements());
    for (double& value : values) value = 4 * rng.UniformDouble(0, draw++) - 2;
    return *Cast(*Tensor::From<double>(values, shape), dtype);
  };
  const auto flags = [&] {
    std::vector<bool> values(shape.num_elements());
    for (auto&& value : values) value = rng.UniformInt(1, draw++, 6) == 0;
    return *Tensor::From<bool>(values, shape);
  };
  return {.steps = {.reward = numbers(),
                    .value = numbers(),
                    .next_value = numbers(),
                    .done = flags(),
                    .terminated = flags()},
          .log_pi = numbers(),
          .log_mu = numbers()};
}

Batch OnFake(const Batch& batch) {
  const auto move = [](const Tensor& tensor) {
    return *tensor.To(Device::Fake());
  };
  return {.steps = {.reward = move(batch.steps.reward),
                    .value = move(batch.steps.value),
                    .next_value = move(batch.steps.next_value),
                    .done = move(batch.steps.done),
                    .terminated = move(batch.steps.terminated)},
          .log_pi = move(batch.log_pi),
          .log_mu = move(batch.log_mu)};
}

// Each estimate: its results of a batch, one or two.
using Estimate = std::function<absl::Status(const Batch&, const Stream*,
                                            std::vector<Tensor>* results)>;

Estimate OfReturns(
    std::function<absl::Status(const Batch&, const Stream*, Tensor*)> make) {
  return [make](const Batch& batch, const Stream* stream,
                std::vector<Tensor>* results) {
    results->resize(1);
    return make(batch, stream, &results->front());
  };
}

Estimate OfAdvantages(
    std::function<absl::Status(const Batch&, const Stream*, Advantages*)>
        make) {
  return [make](const Batch& batch, const Stream* stream,
                std::vector<Tensor>* results) {
    Advantages made;
    const absl::Status status = make(batch, stream, &made);
    *results = {made.advantage, made.value_target};
    return status;
  };
}

std::vector<Estimate> Estimates() {
  return {
      OfReturns([](const Batch& b, const Stream* s, Tensor* out) {
        return Td0Return(b.steps, .9, out, s);
      }),
      OfReturns([](const Batch& b, const Stream* s, Tensor* out) {
        return Td1Return(b.steps, .9, out, s);
      }),
      OfReturns([](const Batch& b, const Stream* s, Tensor* out) {
        return TdLambdaReturn(b.steps, .99, .95, out, s);
      }),
      OfReturns([](const Batch& b, const Stream* s, Tensor* out) {
        return RewardToGo(b.steps.reward, b.steps.done, .97, out, s);
      }),
      OfReturns([](const Batch& b, const Stream* s, Tensor* out) {
        return NStepReturn(b.steps, 3, .9, out, s);
      }),
      OfAdvantages([](const Batch& b, const Stream* s, Advantages* out) {
        return GaeAdvantage(b.steps, .99, .95, out, s);
      }),
      OfAdvantages([](const Batch& b, const Stream* s, Advantages* out) {
        return GaeAdvantage(b.steps, .99, 0, out, s);
      }),
      OfAdvantages([](const Batch& b, const Stream* s, Advantages* out) {
        return VTraceAdvantage(b.steps, b.log_pi, b.log_mu,
                               {.rho_thresh = 1.5, .c_thresh = 1.1}, out, s);
      }),
  };
}

void ExpectSameBytes(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(a.shape(), b.shape());
  if (a.size_bytes() == 0) return;
  EXPECT_EQ(std::memcmp(a.raw_data(), b.raw_data(), a.size_bytes()), 0);
}

TEST(ValueEstimatesDeviceTest, AreThoseOfTheHostBitForBit) {
  uint64_t seed = 0;
  for (const Shape& shape :
       {Shape({1, 1}), Shape({5, 1}), Shape({3, 7, 1}), Shape({70, 19, 1}),
        Shape({8, 300}), Shape({0, 1}), Shape({0, 3, 1})}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      const Batch batch = RandomBatch(dtype, shape, ++seed);
      const Batch there = OnFake(batch);
      int number = 0;
      for (const Estimate& estimate : Estimates()) {
        SCOPED_TRACE(testing::Message() << shape << ", " << number++);
        std::vector<Tensor> want, got;
        RILL_ASSERT_OK(estimate(batch, nullptr, &want));
        RILL_ASSERT_OK(estimate(there, nullptr, &got));
        for (size_t i = 0; i < want.size(); ++i) {
          EXPECT_EQ(got[i].device(), Device::Fake());
          ExpectSameBytes(*got[i].To(Device::Cpu()), want[i]);
        }
      }
    }
  }
}

TEST(ValueEstimatesDeviceTest, AreOneLaunchBehindTheWorkOfTheirStream) {
  FakeBackend* const fake = FakeBackend::Install({});
  const Batch batch = RandomBatch(DType::kFloat32, {4, 6, 1}, 1);
  for (const Estimate& estimate : Estimates()) {
    Batch there = OnFake(batch);
    const auto stream = *Stream::Create(Device::Fake());
    // The rewards arrive in the same stream.
    const Tensor reward = batch.steps.reward;
    there.steps.reward = *Tensor::Empty(
        DType::kFloat32, reward.shape(),
        {.device = Device::Fake(), .memory_kind = MemoryKind::kDevice});
    RILL_ASSERT_OK(there.steps.reward.CopyFromAsync(reward, stream));
    const int64_t launches = fake->Count(FakeBackend::Operation::kLaunch);
    std::vector<Tensor> want, got;
    RILL_ASSERT_OK(estimate(there, &stream, &got));
    EXPECT_EQ(fake->Count(FakeBackend::Operation::kLaunch), launches + 1);
    EXPECT_EQ(fake->NumPending(0, stream.handle()), 2);
    RILL_ASSERT_OK(stream.Synchronize());
    RILL_ASSERT_OK(estimate(batch, nullptr, &want));
    ExpectSameBytes(*got[0].To(Device::Cpu()), want[0]);
  }
  EXPECT_THAT(fake->TakeMisuse(), testing::IsEmpty());
}

TEST(ValueEstimatesDeviceTest, ResultsThatFitAreWrittenInPlace) {
  const Batch there = OnFake(RandomBatch(DType::kFloat32, {4, 6, 1}, 1));
  Advantages made;
  RILL_ASSERT_OK(GaeAdvantage(there.steps, .9, .9, &made));
  const std::byte* const place = made.advantage.raw_data();
  RILL_ASSERT_OK(GaeAdvantage(there.steps, .8, .9, &made));
  EXPECT_EQ(made.advantage.raw_data(), place);
  RILL_ASSERT_OK(Stream::Default(Device::Fake())->Synchronize());
  // A result on the host does not fit.
  made.advantage = *Tensor::Empty(DType::kFloat32, {4, 6, 1});
  RILL_ASSERT_OK(GaeAdvantage(there.steps, .8, .9, &made));
  EXPECT_EQ(made.advantage.device(), Device::Fake());
  RILL_ASSERT_OK(Stream::Default(Device::Fake())->Synchronize());
}

TEST(ValueEstimatesDeviceTest, TensorsOfDifferentDevicesAreNamed) {
  const Batch batch = RandomBatch(DType::kFloat32, {4, 6, 1}, 1);
  const Batch there = OnFake(batch);
  Tensor made;
  EstimatorSteps mixed = there.steps;
  mixed.next_value = batch.steps.next_value;
  EXPECT_THAT(Td0Return(mixed, 1, &made),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("next_value: lies on cpu, want fake:0")));
  mixed = batch.steps;
  mixed.done = there.steps.done;
  EXPECT_THAT(Td0Return(mixed, 1, &made),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("done: lies on fake:0, want cpu")));
  mixed = there.steps;
  mixed.reward = *OnFake(RandomBatch(DType::kFloat32, {6, 4, 1}, 1))
                      .steps.reward.Permute({1, 0, 2});
  EXPECT_THAT(Td0Return(mixed, 1, &made),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("reward: is strided on fake:0")));
  const auto other = *Stream::Create(Device::Fake(1));
  EXPECT_THAT(Td0Return(there.steps, 1, &made, &other),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("stream: got one of fake:1, want one of "
                                 "fake:0, where the reward lies")));
  EXPECT_FALSE(made.is_valid());
}

TEST(ValueEstimatesDeviceTest, ThreadsShareNoResult) {
  const Batch batch = RandomBatch(DType::kFloat32, {70, 19, 1}, 1);
  Advantages want;
  RILL_ASSERT_OK(GaeAdvantage(batch.steps, .9, .9, &want));
  const Tensor advantage = *Tensor::Empty(DType::kFloat32, {70, 19, 1});
  const Tensor target = *Tensor::Empty(DType::kFloat32, {70, 19, 1});
  const estimators_internal::LineKernel<float, estimators_internal::GaeLine>
      kernel = {
          .arrays = {.lines = 70,
                     .steps = 19,
                     .reward = batch.steps.reward.data<float>(),
                     .value = batch.steps.value.data<float>(),
                     .next_value = batch.steps.next_value.data<float>(),
                     .done = batch.steps.done.data<uint8_t>(),
                     .terminated = batch.steps.terminated.data<uint8_t>()},
          .line = {.9, .9, advantage.data<float>(), target.data<float>()}};
  RunGridOnThreads(kernel, {.blocks = 3, .threads = 16});
  ExpectSameBytes(advantage, want.advantage);
}

}  // namespace
}  // namespace rill
