// SPDX-License-Identifier: Apache-2.0

// The library of ONNX Runtime looks for a file of this project.

#include "rill/onnx/onnx_model.h"

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace {

TEST(OnnxModelTest, AFileThatIsNotThereIsAStatusOfTheLibrary) {
  const auto model = rill::OnnxModel::Load("rover.onnx");
  EXPECT_EQ(model.status().code(), absl::StatusCode::kNotFound)
      << model.status();
}

}  // namespace
