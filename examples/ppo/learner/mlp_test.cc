// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/learner/mlp.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/examples/dqn_cartpole/learner/aligned_vector.h"

namespace rill::ppo {
namespace {

constexpr int kHidden = Mlp<double>::kHidden;

template <typename Scalar>
using Array = dqn_cartpole::AlignedVector<Scalar>;

template <typename Scalar>
std::vector<Scalar> Centred(uint64_t seed, int64_t count) {
  const Rng rng(seed);
  std::vector<Scalar> values(count);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = static_cast<Scalar>(2 * rng.UniformDouble(i, 0) - 1);
  }
  return values;
}

// Initialised, and with biases that are not zero.
template <typename Scalar>
Array<Scalar> RandomParameters(const Mlp<Scalar>& net) {
  Array<Scalar> parameters(net.num_parameters());
  net.Initialize(Rng(1), /*stream=*/0, /*output_gain=*/1,
                 absl::MakeSpan(parameters));
  const auto noise = Centred<Scalar>(2, net.num_parameters());
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i] += noise[i] / 10;
  return parameters;
}

// The formulas of mlp.h, one number at a time.
template <typename Scalar>
std::vector<double> SlowForward(const Mlp<Scalar>& net,
                                const Array<Scalar>& parameters,
                                absl::Span<const Scalar> input) {
  const int64_t in = net.inputs(), out = net.outputs();
  const Scalar* w1 = parameters.data();
  const Scalar* b1 = w1 + in * kHidden;
  const Scalar* w2 = b1 + kHidden;
  const Scalar* b2 = w2 + kHidden * kHidden;
  const Scalar* w3 = b2 + kHidden;
  const Scalar* b3 = w3 + out * kHidden;
  std::vector<double> output;
  for (size_t x = 0; x < input.size(); x += in) {
    std::vector<double> h1(kHidden), h2(kHidden);
    for (int i = 0; i < kHidden; ++i) {
      h1[i] = b1[i];
      for (int k = 0; k < in; ++k) h1[i] += w1[k * kHidden + i] * input[x + k];
      h1[i] = std::tanh(h1[i]);
    }
    for (int i = 0; i < kHidden; ++i) {
      h2[i] = b2[i];
      for (int k = 0; k < kHidden; ++k) h2[i] += w2[k * kHidden + i] * h1[k];
      h2[i] = std::tanh(h2[i]);
    }
    for (int j = 0; j < out; ++j) {
      double y = b3[j];
      for (int k = 0; k < kHidden; ++k) y += w3[j * kHidden + k] * h2[k];
      output.push_back(y);
    }
  }
  return output;
}

TEST(MlpTest, ForwardAgreesWithTheFormula) {
  for (const auto& [in, out] : {std::pair{4, 2}, {17, 6}, {3, 1}}) {
    Mlp<float> net(in, out, 33);
    const Array<float> parameters = RandomParameters(net);
    for (int64_t batch : {0, 1, 2, 8, 33}) {
      const std::vector<float> input = Centred<float>(3, batch * in);
      std::vector<float> output(batch * out);
      net.Forward(parameters, input, absl::MakeSpan(output));
      const std::vector<double> expected =
          SlowForward<float>(net, parameters, input);
      ASSERT_EQ(output.size(), expected.size());
      for (size_t i = 0; i < output.size(); ++i) {
        // Sums of 64 floats of size about 1, and tanh to a few roundings.
        EXPECT_NEAR(output[i], expected[i], 1e-5) << in << ", batch " << batch;
      }
    }
  }
}

TEST(MlpTest, BackwardAgreesWithCentralDifferences) {
  constexpr int64_t kBatch = 5, kIn = 3, kOut = 2;
  Mlp<double> net(kIn, kOut, kBatch);
  Array<double> parameters = RandomParameters(net);
  const std::vector<double> input = Centred<double>(4, kBatch * kIn);
  const std::vector<double> slope = Centred<double>(5, kBatch * kOut);
  std::vector<double> output(kBatch * kOut);
  const auto loss = [&] {
    net.Forward(parameters, input, absl::MakeSpan(output));
    double sum = 0;
    for (size_t i = 0; i < output.size(); ++i) sum += slope[i] * output[i];
    return sum;
  };
  loss();
  Array<double> gradient(net.num_parameters(), 99.0);
  net.Backward(parameters, slope, absl::MakeSpan(gradient));
  // Errors: third derivatives times step^2 (1e-10), rounding 1e-16 / 1e-5.
  constexpr double kStep = 1e-5;
  for (int64_t i = 0; i < net.num_parameters(); ++i) {
    const double kept = parameters[i];
    parameters[i] = kept + kStep;
    const double above = loss();
    parameters[i] = kept - kStep;
    const double below = loss();
    parameters[i] = kept;
    ASSERT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-8)
        << "parameter " << i;
  }
}

TEST(MlpTest, InitialWeightsAreOrthogonalAndBiasesZero) {
  Mlp<double> net(17, 6, 1);
  Array<double> parameters(net.num_parameters(), 99.0);
  net.Initialize(Rng(10), 0, /*output_gain=*/0.01, absl::MakeSpan(parameters));
  const auto expect_orthogonal = [&](int64_t at, int64_t columns, double gain) {
    for (int64_t a = 0; a < columns; ++a) {
      for (int64_t b = 0; b <= a; ++b) {
        double dot = 0;
        for (int k = 0; k < kHidden; ++k) {
          dot += parameters[at + a * kHidden + k] *
                 parameters[at + b * kHidden + k];
        }
        EXPECT_NEAR(dot, a == b ? gain * gain : 0, 1e-12);
      }
    }
  };
  const int64_t b1 = 17 * kHidden, w2 = b1 + kHidden;
  const int64_t b2 = w2 + kHidden * kHidden, w3 = b2 + kHidden;
  const int64_t b3 = w3 + 6 * kHidden;
  expect_orthogonal(0, 17, std::sqrt(2.0));
  expect_orthogonal(w2, kHidden, std::sqrt(2.0));
  expect_orthogonal(w3, 6, 0.01);
  for (int64_t begin : {b1, b2}) {
    for (int k = 0; k < kHidden; ++k) EXPECT_EQ(parameters[begin + k], 0);
  }
  for (int64_t i = b3; i < net.num_parameters(); ++i) {
    EXPECT_EQ(parameters[i], 0);
  }
}

TEST(MlpTest, ResultsDoNotDependOnTheAddressesOfTheCallersArrays) {
  Mlp<float> net(4, 2, 16);
  const Array<float> parameters = RandomParameters(net);
  const std::vector<float> input = Centred<float>(8, 64);
  std::vector<float> expected(32);
  net.Forward(parameters, input, absl::MakeSpan(expected));
  for (int shift = 1; shift < 16; ++shift) {
    std::vector<float> in(64 + shift), out(32 + shift);
    std::copy(input.begin(), input.end(), in.begin() + shift);
    net.Forward(parameters, absl::MakeConstSpan(in).subspan(shift),
                absl::MakeSpan(out).subspan(shift));
    EXPECT_THAT(absl::MakeSpan(out).subspan(shift),
                ::testing::ElementsAreArray(expected));
  }
}

}  // namespace
}  // namespace rill::ppo
