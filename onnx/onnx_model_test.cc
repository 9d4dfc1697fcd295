// SPDX-License-Identifier: Apache-2.0
#include "rill/onnx/onnx_model.h"

#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/process_traces.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pointwise;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string PathOf(const std::string& name) {
  return absl::StrCat("testing/fixtures/onnx/", name, ".onnx");
}

// The path of a file with these bytes, which the next call overwrites.
std::string Written(const std::string& bytes) {
  const std::string path = ::testing::TempDir() + "/written.onnx";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

OnnxModel Loaded(const std::string& name) {
  auto model = OnnxModel::Load(PathOf(name));
  RILL_EXPECT_OK(model);
  return model.ok() ? *model : OnnxModel();
}

// Multiples of 1/8 that are not alike.
Tensor Observations(int64_t lanes) {
  std::vector<float> values;
  for (int64_t i = 0; i < 3 * lanes; ++i) {
    values.push_back(static_cast<float>((i * 7 + lanes) % 17 - 8) / 8);
  }
  return *Tensor::From<float>(values, {lanes, 3});
}

// linear.onnx makes this of them, by the weights of write.py.
std::vector<float> Logits(const Tensor& observations) {
  const float w[3][4] = {{0.5, -1, 2, 0}, {1, 0.25, -0.5, 3}, {-2, 1, 0, 0.75}};
  const float b[4] = {0.1f, 0.2f, -0.3f, 0};
  std::vector<float> logits;
  for (int64_t lane = 0; lane < observations.shape()[0]; ++lane) {
    for (int j = 0; j < 4; ++j) {
      float sum = b[j];
      for (int i = 0; i < 3; ++i) {
        sum += observations.data<float>()[3 * lane + i] * w[i][j];
      }
      logits.push_back(sum);
    }
  }
  return logits;
}

TEST(OnnxModelTest, Example) {
  const std::string path = PathOf("linear");
  const Tensor observation = Observations(1);
  RILL_ASSERT_OK_AND_ASSIGN(OnnxModel model, OnnxModel::Load(path));
  Tensor logits;
  RILL_ASSERT_OK(model.Run({observation}, absl::MakeSpan(&logits, 1)));
  EXPECT_EQ(logits.shape(), Shape({1, 4}));
}

TEST(OnnxModelTest, ComputesWhatTheFileSaysForAnyNumberOfLanes) {
  const OnnxModel model = Loaded("linear");
  for (const int64_t lanes : {1, 2, 3, 7, 64, 1000}) {
    const Tensor observations = Observations(lanes);
    Tensor logits;
    RILL_ASSERT_OK(model.Run({observations}, absl::MakeSpan(&logits, 1)));
    EXPECT_EQ(logits.shape(), Shape({lanes, 4}));
    EXPECT_THAT(*logits.Flat<float>(),
                Pointwise(FloatNear(1e-5f), Logits(observations)));
  }
}

TEST(OnnxModelTest, AnOutputWithBytesIsWrittenThere) {
  const OnnxModel model = Loaded("linear");
  const Tensor observations = Observations(5);
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor bytes,
                            Tensor::Zeros(DType::kFloat32, {7, 4}));
  RILL_ASSERT_OK_AND_ASSIGN(Tensor logits, bytes.Slice(0, 1, 6));
  RILL_ASSERT_OK(model.Run({observations}, absl::MakeSpan(&logits, 1)));
  EXPECT_EQ(logits.buffer(), bytes.buffer());
  EXPECT_EQ(logits.raw_data(), bytes.raw_data() + 4 * sizeof(float));
  EXPECT_THAT(*logits.Flat<float>(),
              Pointwise(FloatNear(1e-5f), Logits(observations)));
  EXPECT_EQ(bytes.data<float>()[3], 0);
  EXPECT_EQ(bytes.data<float>()[24], 0);
}

TEST(OnnxModelTest, AResultOutlivesTheModel) {
  const Tensor observations = Observations(4);
  Tensor logits;
  {
    const OnnxModel model = Loaded("linear");
    RILL_ASSERT_OK(model.Run({observations}, absl::MakeSpan(&logits, 1)));
  }
  EXPECT_THAT(*logits.Flat<float>(),
              Pointwise(FloatNear(1e-5f), Logits(observations)));
}

TEST(OnnxModelTest, InputsWithGapsAreReadInTheirOrder) {
  const OnnxModel model = Loaded("linear");
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor even,
                            Observations(8).Slice(0, 0, 8, 2));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor contiguous, even.Clone());
  Tensor logits;
  RILL_ASSERT_OK(model.Run({even}, absl::MakeSpan(&logits, 1)));
  EXPECT_THAT(*logits.Flat<float>(),
              Pointwise(FloatNear(1e-5f), Logits(contiguous)));
}

TEST(OnnxModelTest, SaysItsInputsAndOutputs) {
  const OnnxModel model = Loaded("recurrent");
  ASSERT_EQ(model.inputs().size(), 2);
  EXPECT_EQ(model.inputs()[0].name, "observation");
  EXPECT_EQ(model.inputs()[0].dtype, DType::kFloat32);
  EXPECT_THAT(model.inputs()[0].sizes, ElementsAre(-1, 3));
  EXPECT_EQ(model.inputs()[1].ToString(), "\"hidden\" float32[?, 2]");
  ASSERT_EQ(model.outputs().size(), 2);
  EXPECT_EQ(model.outputs()[0].ToString(), "\"logits\" float32[?, 4]");
  EXPECT_EQ(model.outputs()[1].name, "next_hidden");
}

// All bits, of all dtypes but the complex ones, which ONNX Runtime lacks.
TEST(OnnxModelTest, EachDtypeCrossesBothWays) {
  const OnnxModel model = Loaded("types");
  std::vector<Tensor> inputs;
  for (const OnnxModel::Value& value : model.inputs()) {
    EXPECT_EQ(value.name, DTypeName(value.dtype));
    RILL_ASSERT_OK_AND_ASSIGN(Tensor input, Tensor::Zeros(value.dtype, {5}));
    for (int64_t i = 0; i < input.size_bytes(); ++i) {
      input.data<uint8_t>()[i] = static_cast<uint8_t>(
          value.dtype == DType::kBool ? i % 2 : 31 * i + 5);
    }
    inputs.push_back(input);
  }
  ASSERT_EQ(inputs.size(), kNumDTypes - 2);
  std::vector<Tensor> outputs(inputs.size());
  RILL_ASSERT_OK(model.Run(inputs, absl::MakeSpan(outputs)));
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_THAT(outputs[i].BitEquals(inputs[i]), IsOkAndHolds(true))
        << inputs[i].dtype();
  }
}

// Nor does the library, which would be to report its use.
TEST(OnnxModelTest, OneThreadStartsNoneOfItsOwn) {
  const auto threads = [] { return NamesIn("/proc/self/task").size(); };
  RILL_ASSERT_OK_AND_ASSIGN(const OnnxModel one,
                            OnnxModel::Load(PathOf("linear")));
  EXPECT_EQ(threads(), 1);
  RILL_ASSERT_OK_AND_ASSIGN(const OnnxModel three,
                            OnnxModel::Load(PathOf("linear"), {.threads = 3}));
  EXPECT_EQ(threads(), 3);
}

TEST(OnnxModelTest, SeveralThreadsRunOneModel) {
  const OnnxModel model = Loaded("linear");
  std::vector<std::thread> threads;
  for (int64_t lanes = 1; lanes <= 4; ++lanes) {
    threads.emplace_back([&model, lanes] {
      const Tensor observations = Observations(lanes);
      for (int i = 0; i < 200; ++i) {
        Tensor logits;
        RILL_EXPECT_OK(model.Run({observations}, absl::MakeSpan(&logits, 1)));
        EXPECT_THAT(*logits.Flat<float>(),
                    Pointwise(FloatNear(1e-5f), Logits(observations)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(OnnxModelTest, AFileThatIsNoModelIsAStatus) {
  EXPECT_THAT(OnnxModel::Load("no/such.onnx"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no/such.onnx")));
  EXPECT_THAT(OnnxModel::Load(Written("no model")),
              StatusIs(kInvalid, HasSubstr("written.onnx")));
  EXPECT_THAT(
      OnnxModel::Load(PathOf("text")),
      StatusIs(kInvalid, HasSubstr("\"text\": got a tensor of element "
                                   "type 8, want a tensor of numbers")));
  EXPECT_THAT(OnnxModel::Load(PathOf("linear"), {.threads = 0}),
              StatusIs(kInvalid, HasSubstr("threads: got 0")));
}

TEST(OnnxModelTest, AFileThatIsCutOffOrDamagedIsAStatusOrAModel) {
  RILL_ASSERT_OK_AND_ASSIGN(const std::string whole,
                            ReadFile(PathOf("linear")));
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x15);
    for (const std::string& bytes : {whole.substr(0, i), damaged}) {
      const auto model = OnnxModel::Load(Written(bytes));
      EXPECT_TRUE(model.ok() || !model.status().message().empty());
    }
  }
}

struct BadCase {
  const char* name;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  const char* text;
};

TEST(OnnxModelTest, TensorsThatDoNotFitAreAStatusWithGotAndWant) {
  const OnnxModel model = Loaded("linear");
  const Tensor fits = Observations(2);
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor wide,
                            Tensor::Zeros(DType::kFloat32, {2, 8}));
  const std::vector<BadCase> cases = {
      {"no input", {}, {Tensor()}, "got 0 inputs and 1 outputs, want 1 and 1"},
      {"two outputs", {fits}, {Tensor(), Tensor()}, "2 outputs"},
      {"empty tensor", {Tensor()}, {Tensor()}, "got an empty tensor"},
      {"other dtype",
       {*Tensor::Zeros(DType::kFloat64, {2, 3})},
       {Tensor()},
       "got float64[2, 3] on cpu, want \"observation\" float32[?, 3]"},
      {"other width",
       {*Tensor::Zeros(DType::kFloat32, {2, 4})},
       {Tensor()},
       "got float32[2, 4] on cpu, want \"observation\" float32[?, 3]"},
      {"other rank",
       {*Tensor::Zeros(DType::kFloat32, {3})},
       {Tensor()},
       "got float32[3] on cpu"},
      {"output of another width",
       {fits},
       {*Tensor::Zeros(DType::kFloat32, {2, 3})},
       "got float32[2, 3] on cpu, want \"logits\" float32[?, 4]"},
      {"output with gaps",
       {fits},
       {*wide.Slice(1, 0, 8, 2)},
       "\"logits\": got"},
      {"output of other lanes",
       {fits},
       {*Tensor::Zeros(DType::kFloat32, {3, 4})},
       "OnnxModel::Run: "},
  };
  for (const BadCase& bad : cases) {
    SCOPED_TRACE(bad.name);
    std::vector<Tensor> outputs = bad.outputs;
    EXPECT_THAT(model.Run(bad.inputs, absl::MakeSpan(outputs)),
                StatusIs(kInvalid, HasSubstr(bad.text)));
  }
  EXPECT_THAT(OnnxModel().inputs(), IsEmpty());
  EXPECT_THAT(OnnxModel().outputs(), IsEmpty());
  EXPECT_THAT(OnnxModel().Run({}, {}),
              StatusIs(kInvalid, HasSubstr("no model")));
}

TEST(OnnxModelTest, AnErrorOfTheLibraryIsAStatusWithItsTextAlone) {
  const OnnxModel model = Loaded("reshape");
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor x,
                            Tensor::Zeros(DType::kFloat32, {6}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor shape,
                            Tensor::From<int64_t>({4, 2}, {2}));
  Tensor y;
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(model.Run({x, shape}, absl::MakeSpan(&y, 1)),
              StatusIs(kInvalid, HasSubstr("cannot be reshaped")));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  // The model goes on.
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor good,
                            Tensor::From<int64_t>({3, 2}, {2}));
  RILL_EXPECT_OK(model.Run({x, good}, absl::MakeSpan(&y, 1)));
}

}  // namespace
}  // namespace rill
