// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/learner/mlp.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"

namespace rill::dqn_cartpole {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::Eq;
using ::testing::FloatEq;
using ::testing::Pointwise;

constexpr int64_t kParameters = Mlp<float>::kParameters;
constexpr int kHidden = Mlp<float>::kHidden;

std::vector<double> Uniforms(uint64_t seed, int64_t count) {
  const Rng rng(seed);
  std::vector<double> uniforms(count);
  for (int64_t i = 0; i < count; ++i) uniforms[i] = rng.UniformDouble(i, 0);
  return uniforms;
}

template <typename Scalar>
std::vector<Scalar> Centred(uint64_t seed, int64_t count) {
  std::vector<Scalar> values;
  for (double u : Uniforms(seed, count)) {
    values.push_back(static_cast<Scalar>(2 * u - 1));
  }
  return values;
}

// The formulas of mlp.h, one scalar at a time.
template <typename Scalar>
std::vector<double> SlowForward(const Mlp<Scalar>& net,
                                absl::Span<const Scalar> input) {
  const Scalar* p = net.parameters().data();
  const Scalar* w1 = p;
  const Scalar* b1 = w1 + 4 * kHidden;
  const Scalar* w2 = b1 + kHidden;
  const Scalar* b2 = w2 + kHidden * kHidden;
  const Scalar* w3 = b2 + kHidden;
  const Scalar* b3 = w3 + 2 * kHidden;
  std::vector<double> output;
  for (size_t x = 0; x < input.size(); x += 4) {
    std::vector<double> h1(kHidden), h2(kHidden);
    for (int i = 0; i < kHidden; ++i) {
      h1[i] = b1[i];
      for (int k = 0; k < 4; ++k) h1[i] += w1[k * kHidden + i] * input[x + k];
      h1[i] = std::max(h1[i], 0.0);
    }
    for (int i = 0; i < kHidden; ++i) {
      h2[i] = b2[i];
      for (int k = 0; k < kHidden; ++k) h2[i] += w2[k * kHidden + i] * h1[k];
      h2[i] = std::max(h2[i], 0.0);
    }
    for (int j = 0; j < 2; ++j) {
      double q = b3[j];
      for (int k = 0; k < kHidden; ++k) q += w3[j * kHidden + k] * h2[k];
      output.push_back(q);
    }
  }
  return output;
}

// Initialised, and with biases that are not zero.
template <typename Scalar>
void Randomise(Mlp<Scalar>& net) {
  net.Initialize(Uniforms(1, kParameters));
  const std::vector<Scalar> noise = Centred<Scalar>(2, kParameters);
  for (int64_t i = 0; i < kParameters; ++i) {
    net.parameters()[i] += noise[i] / 10;
  }
}

TEST(MlpTest, Example) {
  const std::vector<double> uniforms = Uniforms(0, kParameters);
  Mlp<float> net(/*max_batch=*/2);
  net.Initialize(uniforms);  // [Mlp<float>::kParameters] draws from [0, 1).
  float q[2 * Mlp<float>::kOutputs];
  net.Forward({0.1f, 0, 0, 0, -0.1f, 0, 0, 0}, absl::MakeSpan(q));
  EXPECT_NE(q[0], q[2]);
}

TEST(MlpTest, ForwardAgreesWithTheFormula) {
  Mlp<float> net(33);
  Randomise(net);
  for (int64_t batch : {0, 1, 2, 7, 33}) {
    const std::vector<float> input = Centred<float>(3, batch * 4);
    std::vector<float> output(batch * 2);
    net.Forward(input, absl::MakeSpan(output));
    const std::vector<double> expected = SlowForward<float>(net, input);
    ASSERT_EQ(output.size(), expected.size());
    for (size_t i = 0; i < output.size(); ++i) {
      // Sums of 64 floats of size about 1: a few dozen roundings of 6e-8.
      EXPECT_NEAR(output[i], expected[i], 1e-5) << "batch " << batch;
    }
  }
}

TEST(MlpTest, BackwardAgreesWithCentralDifferences) {
  constexpr int64_t kBatch = 5;
  Mlp<double> net(kBatch);
  Randomise(net);
  const std::vector<double> input = Centred<double>(4, kBatch * 4);
  const std::vector<double> slope = Centred<double>(5, kBatch * 2);
  std::vector<double> output(kBatch * 2);
  const auto loss = [&] {
    net.Forward(input, absl::MakeSpan(output));
    double sum = 0;
    for (size_t i = 0; i < output.size(); ++i) sum += slope[i] * output[i];
    return sum;
  };
  loss();
  std::vector<double> gradient(kParameters);
  net.Backward(slope, absl::MakeSpan(gradient));
  // Every parameter of the thin layers, every 7th of the wide one. The loss is
  // piecewise linear in each parameter, so a small step has no error but
  // rounding: 1e-16 * |loss| / 1e-6 is about 1e-9.
  constexpr double kStep = 1e-6;
  for (int64_t i = 0; i < kParameters;
       i += (i > 5 * kHidden && i < 5 * kHidden + kHidden * kHidden) ? 7 : 1) {
    double& parameter = net.parameters()[i];
    const double kept = parameter;
    parameter = kept + kStep;
    const double above = loss();
    parameter = kept - kStep;
    const double below = loss();
    parameter = kept;
    ASSERT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-7)
        << "parameter " << i;
  }
}

TEST(MlpTest, BackwardOverwritesTheGradient) {
  Mlp<float> net(3);
  Randomise(net);
  const std::vector<float> input = Centred<float>(6, 12);
  const std::vector<float> slope = Centred<float>(7, 6);
  std::vector<float> output(6);
  net.Forward(input, absl::MakeSpan(output));
  std::vector<float> first(kParameters, 99.0f), second(kParameters, -1.0f);
  net.Backward(slope, absl::MakeSpan(first));
  net.Backward(slope, absl::MakeSpan(second));
  EXPECT_EQ(first, second);
}

TEST(MlpTest, ResultsDoNotDependOnTheAddressesOfTheCallersArrays) {
  Mlp<float> net(16);
  Randomise(net);
  const std::vector<float> input = Centred<float>(8, 64);
  const std::vector<float> slope = Centred<float>(9, 32);
  std::vector<float> expected(32), expected_gradient(kParameters);
  net.Forward(input, absl::MakeSpan(expected));
  net.Backward(slope, absl::MakeSpan(expected_gradient));
  for (int shift = 1; shift < 16; ++shift) {
    std::vector<float> in(64 + shift), q(32 + shift);
    std::vector<float> gradient(kParameters + shift);
    std::copy(input.begin(), input.end(), in.begin() + shift);
    net.Forward(absl::MakeConstSpan(in).subspan(shift),
                absl::MakeSpan(q).subspan(shift));
    net.Backward(slope, absl::MakeSpan(gradient).subspan(shift));
    EXPECT_THAT(absl::MakeSpan(q).subspan(shift), ElementsAreArray(expected));
    EXPECT_THAT(absl::MakeSpan(gradient).subspan(shift),
                Pointwise(Eq(), expected_gradient));
  }
}

TEST(MlpTest, InitializeKeepsHesBoundsAndZeroBiases) {
  Mlp<float> net(1);
  net.Initialize(Uniforms(10, kParameters));
  const absl::Span<const float> p = net.parameters();
  const auto largest = [](absl::Span<const float> values) {
    float max = 0;
    for (float value : values) max = std::max(max, std::abs(value));
    return max;
  };
  const float first = std::sqrt(6.0f / 4), second = std::sqrt(6.0f / kHidden);
  const int64_t b1 = 4 * kHidden, w2 = b1 + kHidden;
  const int64_t b2 = w2 + kHidden * kHidden, w3 = b2 + kHidden;
  EXPECT_LE(largest(p.first(b1)), first);
  EXPECT_GE(largest(p.first(b1)), first / 2);
  EXPECT_THAT(p.subspan(b1, kHidden), Each(FloatEq(0)));
  EXPECT_LE(largest(p.subspan(w2, b2 - w2)), second);
  EXPECT_GE(largest(p.subspan(w2, b2 - w2)), second / 2);
  EXPECT_THAT(p.subspan(b2, kHidden), Each(FloatEq(0)));
  EXPECT_LE(largest(p.subspan(w3)), second / 10);
  EXPECT_THAT(p.last(2), Each(FloatEq(0)));
}

TEST(MlpDeathTest, SpansThatDisagreeAreRefused) {
  Mlp<float> net(2);
  std::vector<float> input(12), output(6);
  EXPECT_DEATH(net.Forward(input, absl::MakeSpan(output)), "max_batch");
  output.resize(2);
  EXPECT_DEATH(
      net.Forward(absl::MakeSpan(input).first(8), absl::MakeSpan(output)),
      "output.size");
}

}  // namespace
}  // namespace rill::dqn_cartpole
