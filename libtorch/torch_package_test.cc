// SPDX-License-Identifier: Apache-2.0
// A package that torch compiles here, with the Python that RILL_TORCH_PYTHON or
// RILL_PEER_PYTHON names.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/libtorch/action_distribution.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/libtorch/torch_model.h"
#include "rill/libtorch/torch_policy.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "torch/version.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string NamedPython() {
  for (const char* name : {"RILL_TORCH_PYTHON", "RILL_PEER_PYTHON"}) {
    const char* const python = std::getenv(name);
    if (python != nullptr) return python;
  }
  return "";
}

at::Tensor Numbers(c10::IntArrayRef sizes) {
  return StandardNormals(Rng(1), 0, sizes);
}

class TorchPackageTest : public ::testing::Test {
 protected:
  // Compiles once for all tests.
  static void SetUpTestSuite() {
    const std::string python = NamedPython();
    if (python.empty()) return;
    path_ = new std::string(::testing::TempDir() + "/recurrent.pt2");
    const std::string command = absl::StrCat(
        "TORCHINDUCTOR_CACHE_DIR='", ::testing::TempDir(), "/inductor' '",
        python, "' -B libtorch/testdata/make_package.py '", *path_, "'");
    FILE* const pipe = popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    char line[256];
    std::string version;
    while (std::fgets(line, sizeof(line), pipe) != nullptr) version = line;
    ASSERT_EQ(pclose(pipe), 0) << command;
    version_ = new std::string(absl::StripAsciiWhitespace(version));
  }

  void SetUp() override {
    if (NamedPython().empty()) {
      GTEST_SKIP() << "Neither RILL_TORCH_PYTHON nor RILL_PEER_PYTHON names a "
                      "Python with torch, passed by --test_env";
    }
    ASSERT_NE(version_, nullptr) << "the package was not made, as shown";
    if (*version_ != TORCH_VERSION) {
      GTEST_SKIP() << NamedPython() << " has torch " << *version_
                   << ", this program " << TORCH_VERSION;
    }
    RILL_ASSERT_OK_AND_ASSIGN(model_, TorchModel::LoadPackage(*path_));
  }

  // The logits of make_package.py.
  static at::Tensor Logits(const at::Tensor& observation,
                           const at::Tensor& hidden) {
    const at::Tensor weight = at::arange(6, at::kFloat).view({2, 3}) / 10;
    return at::tanh(
               at::linear(observation, weight, at::tensor({0.5f, -1.0f}))) +
           hidden;
  }

  static std::string *path_, *version_;
  TorchModel model_;
};

std::string* TorchPackageTest::path_ = nullptr;
std::string* TorchPackageTest::version_ = nullptr;

TEST_F(TorchPackageTest, IsAFunctionOfTensorsOfAnyNumberOfLanes) {
  for (const int64_t lanes : {2, 33}) {
    const at::Tensor observation = Numbers({lanes, 3}),
                     hidden = Numbers({lanes, 2});
    RILL_ASSERT_OK_AND_ASSIGN(const auto outputs,
                              model_.Run({observation, hidden}));
    ASSERT_THAT(outputs, SizeIs(2));
    EXPECT_TRUE(outputs[0].allclose(Logits(observation, hidden), 1e-5, 1e-6));
    EXPECT_TRUE(outputs[1].equal(hidden + 1));
  }
}

TEST_F(TorchPackageTest, TakesInputsWithStrides) {
  const at::Tensor observation = Numbers({3, 5}).t();
  const at::Tensor hidden = Numbers({5, 7}).narrow(1, 2, 2);
  RILL_ASSERT_OK_AND_ASSIGN(const auto outputs,
                            model_.Run({observation, hidden}));
  EXPECT_TRUE(outputs[0].allclose(Logits(observation, hidden), 1e-5, 1e-6));
}

TEST_F(TorchPackageTest, RefusesInputsOfAnotherShapeDtypeOrNumber) {
  const at::Tensor hidden = at::zeros({5, 2});
  EXPECT_THAT(model_.Run({at::ones({5, 2}), hidden}),
              StatusIs(kInvalid, AllOf(HasSubstr("unmatched dim value at 1"),
                                       HasSubstr("Float[5, 2] on cpu"))));
  EXPECT_THAT(model_.Run({at::ones({5, 3}, at::kDouble), hidden}),
              StatusIs(kInvalid, AllOf(HasSubstr("unmatched dtype"),
                                       HasSubstr("Double[5, 3] on cpu"))));
  EXPECT_THAT(model_.Run({at::ones({5, 3}), at::zeros({4, 2})}),
              StatusIs(kInvalid, HasSubstr("Float[4, 2] on cpu")));
  EXPECT_THAT(model_.Run({at::ones({5, 3})}),
              StatusIs(kInvalid, HasSubstr("inputs: Float[5, 3] on cpu")));
}

TEST_F(TorchPackageTest, IsThePolicyOfATorchPolicy) {
  constexpr int64_t kLanes = 6;
  TorchPolicy::Options options = {
      .model = model_,
      .in_keys = {"observation", "hidden"},
      .actions = TorchPolicy::Actions::kGreedy,
  };
  RILL_ASSERT_OK(options.outputs.Set(
      "next/hidden", LeafSpec::Unbounded(DType::kFloat32, {2})));
  RILL_ASSERT_OK_AND_ASSIGN(const auto policy,
                            TorchPolicy::Create(std::move(options)));
  TensorDict root({kLanes}), step({kLanes});
  const at::Tensor observation = Numbers({kLanes, 3});
  RILL_ASSERT_OK(root.Set("observation", *FromTorch(observation)));
  RILL_ASSERT_OK(
      root.Set("hidden", *Tensor::Zeros(DType::kFloat32, {kLanes, 2})));
  RILL_ASSERT_OK(step.Set("action", *Tensor::Zeros(DType::kInt64, {kLanes})));
  RILL_ASSERT_OK(
      step.Set("next/hidden", *Tensor::Zeros(DType::kFloat32, {kLanes, 2})));
  RILL_ASSERT_OK(policy->Act(root, {}, &step));
  const at::Tensor best =
      Logits(observation, at::zeros({kLanes, 2})).argmax(-1);
  EXPECT_TRUE(ToTorch(*step.Find("action"))->equal(best));
  EXPECT_TRUE(ToTorch(*step.Find("next/hidden"))->equal(at::ones({kLanes, 2})));
}

}  // namespace
}  // namespace rill
