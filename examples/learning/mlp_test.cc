// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/learning/mlp.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/examples/learning/aligned_vector.h"
#include "rill/examples/learning/central_differences.h"

namespace rill::learning {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;

constexpr int kHidden = Mlp<double>::kHidden;

template <typename Scalar>
using Array = AlignedVector<Scalar>;

// Each kind of network that a learner has.
MlpOptions Tanh(int64_t inputs, int64_t outputs, int64_t max_batch) {
  return {.inputs = inputs, .outputs = outputs, .max_batch = max_batch};
}
MlpOptions ThinRelu(int64_t inputs, int64_t outputs, int64_t max_batch) {
  return {.inputs = inputs,
          .outputs = outputs,
          .max_batch = max_batch,
          .activation = Activation::kRelu,
          .has_thin_ends = true};
}

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
  net.InitializeOrthogonally(Rng(1), /*stream=*/0, /*output_gain=*/1,
                             absl::MakeSpan(parameters));
  const auto noise = Centred<Scalar>(2, net.num_parameters());
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i] += noise[i] / 10;
  return parameters;
}

// The formulas of mlp.h, one number at a time.
template <typename Scalar>
std::vector<double> SlowForward(const Mlp<Scalar>& net, Activation activation,
                                const Array<Scalar>& parameters,
                                absl::Span<const Scalar> input) {
  const int64_t in = net.inputs(), out = net.outputs();
  const Scalar* w1 = parameters.data();
  const Scalar* b1 = w1 + in * kHidden;
  const Scalar* w2 = b1 + kHidden;
  const Scalar* b2 = w2 + kHidden * kHidden;
  const Scalar* w3 = b2 + kHidden;
  const Scalar* b3 = w3 + out * kHidden;
  const auto f = [activation](double z) {
    return activation == Activation::kTanh ? std::tanh(z) : std::max(z, 0.0);
  };
  std::vector<double> output;
  for (size_t x = 0; x < input.size(); x += in) {
    std::vector<double> h1(kHidden), h2(kHidden);
    for (int i = 0; i < kHidden; ++i) {
      h1[i] = b1[i];
      for (int k = 0; k < in; ++k) h1[i] += w1[k * kHidden + i] * input[x + k];
      h1[i] = f(h1[i]);
    }
    for (int i = 0; i < kHidden; ++i) {
      h2[i] = b2[i];
      for (int k = 0; k < kHidden; ++k) h2[i] += w2[k * kHidden + i] * h1[k];
      h2[i] = f(h2[i]);
    }
    for (int j = 0; j < out; ++j) {
      double y = b3[j];
      for (int k = 0; k < kHidden; ++k) y += w3[j * kHidden + k] * h2[k];
      output.push_back(y);
    }
  }
  return output;
}

TEST(MlpTest, Example) {
  Mlp<float> net({.inputs = 4, .outputs = 2, .max_batch = 2});
  AlignedVector<float> parameters(net.num_parameters());
  net.InitializeOrthogonally(Rng(1), /*stream=*/0, /*output_gain=*/1,
                             absl::MakeSpan(parameters));
  float y[2 * 2];
  net.Forward(parameters, {0.1f, 0, 0, 0, -0.1f, 0, 0, 0}, absl::MakeSpan(y));
  EXPECT_NE(y[0], y[2]);
}

TEST(MlpTest, ForwardAgreesWithTheFormula) {
  for (const MlpOptions& options :
       {Tanh(4, 2, 33), Tanh(17, 6, 33), Tanh(3, 1, 33), ThinRelu(4, 2, 33),
        ThinRelu(3, 1, 33)}) {
    Mlp<float> net(options);
    const Array<float> parameters = RandomParameters(net);
    for (int64_t batch : {0, 1, 2, 8, 33}) {
      const auto input = Centred<float>(3, batch * options.inputs);
      std::vector<float> output(batch * options.outputs);
      net.Forward(parameters, input, absl::MakeSpan(output));
      const std::vector<double> expected =
          SlowForward<float>(net, options.activation, parameters, input);
      ASSERT_EQ(output.size(), expected.size());
      for (size_t i = 0; i < output.size(); ++i) {
        // Sums of 64 floats of size about 1, and tanh to a few roundings.
        EXPECT_NEAR(output[i], expected[i], 1e-5)
            << options.inputs << ", batch " << batch;
      }
    }
  }
}

TEST(MlpTest, BackwardAgreesWithCentralDifferences) {
  constexpr int64_t kBatch = 5;
  for (const MlpOptions& options :
       {Tanh(3, 2, kBatch), ThinRelu(4, 2, kBatch)}) {
    Mlp<double> net(options);
    Array<double> parameters = RandomParameters(net);
    const auto input = Centred<double>(4, kBatch * options.inputs);
    const auto slope = Centred<double>(5, kBatch * options.outputs);
    std::vector<double> output(kBatch * options.outputs);
    const auto loss = [&] {
      net.Forward(parameters, input, absl::MakeSpan(output));
      double sum = 0;
      for (size_t i = 0; i < output.size(); ++i) sum += slope[i] * output[i];
      return sum;
    };
    loss();
    Array<double> gradient(net.num_parameters(), 99.0);
    net.Backward(parameters, slope, absl::MakeSpan(gradient));
    // No larger step: it would switch a relu.
    ExpectGradientOf(loss, absl::MakeSpan(parameters), gradient,
                     {.step = 1e-6});
  }
}

// Float has kernels of its own. The test above compares those of double with
// differences.
TEST(MlpTest, GradientInFloatIsThatInDouble) {
  constexpr int64_t kBatch = 33;
  for (const MlpOptions& options :
       {Tanh(17, 6, kBatch), ThinRelu(4, 2, kBatch)}) {
    const auto gradient_in = [&options](auto scalar) {
      using Scalar = decltype(scalar);
      Mlp<Scalar> net(options);
      // Parameters and arrays that are floats in both.
      const Array<float> floats = RandomParameters(Mlp<float>(options));
      const Array<Scalar> parameters(floats.begin(), floats.end());
      const auto input = Centred<float>(4, kBatch * options.inputs);
      const auto slope = Centred<float>(5, kBatch * options.outputs);
      std::vector<Scalar> output(slope.size());
      net.Forward(parameters, std::vector<Scalar>(input.begin(), input.end()),
                  absl::MakeSpan(output));
      Array<Scalar> gradient(net.num_parameters(), 99);
      net.Backward(parameters, std::vector<Scalar>(slope.begin(), slope.end()),
                   absl::MakeSpan(gradient));
      return gradient;
    };
    const Array<float> gradient = gradient_in(0.0f);
    const Array<double> expected = gradient_in(0.0);
    for (size_t i = 0; i < gradient.size(); ++i) {
      ASSERT_NEAR(gradient[i], expected[i], 2e-5) << "parameter " << i;
    }
  }
}

TEST(MlpTest, InitialWeightsAreOrthogonalAndBiasesZero) {
  Mlp<double> net(Tanh(17, 6, 1));
  Array<double> parameters(net.num_parameters(), 99.0);
  net.InitializeOrthogonally(Rng(10), 0, /*output_gain=*/0.01,
                             absl::MakeSpan(parameters));
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

TEST(MlpTest, UniformWeightsKeepHesBoundsAndBiasesAreZero) {
  Mlp<float> net(Tanh(4, 2, 1));
  std::vector<double> uniforms(net.num_parameters());
  for (size_t i = 0; i < uniforms.size(); ++i) {
    uniforms[i] = Rng(10).UniformDouble(i, 0);
  }
  Array<float> parameters(net.num_parameters(), 99);
  net.InitializeUniformly(uniforms, absl::MakeSpan(parameters));
  const absl::Span<const float> p = parameters;
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
  EXPECT_THAT(p.subspan(b1, kHidden), Each(0));
  EXPECT_LE(largest(p.subspan(w2, b2 - w2)), second);
  EXPECT_GE(largest(p.subspan(w2, b2 - w2)), second / 2);
  EXPECT_THAT(p.subspan(b2, kHidden), Each(0));
  EXPECT_LE(largest(p.subspan(w3)), second / 10);
  EXPECT_THAT(p.last(2), Each(0));
}

TEST(MlpTest, ResultsDoNotDependOnTheAddressesOfTheCallersArrays) {
  for (const MlpOptions& options : {Tanh(4, 2, 16), ThinRelu(4, 2, 16)}) {
    Mlp<float> net(options);
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
                  ElementsAreArray(expected));
    }
  }
}

TEST(MlpDeathTest, SpansThatDisagreeAreRefused) {
  Mlp<float> net(Tanh(4, 2, 2));
  const Array<float> parameters(net.num_parameters());
  std::vector<float> input(12), output(6);
  EXPECT_DEATH(net.Forward(parameters, input, absl::MakeSpan(output)),
               "max_batch");
  output.resize(2);
  EXPECT_DEATH(net.Forward(parameters, absl::MakeSpan(input).first(8),
                           absl::MakeSpan(output)),
               "output.size");
}

}  // namespace
}  // namespace rill::learning
