// SPDX-License-Identifier: Apache-2.0
#include "rill/device/testing/cuda_record.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rill {
namespace {

std::string RecordPath() {
  // Absolute, for children that change their directory.
  return std::filesystem::absolute(::testing::TempDir()).string() +
         "/cuda_calls." + std::to_string(getpid());
}

class CheckAtTheEnd final : public ::testing::Environment {
 public:
  void TearDown() override {
    EXPECT_THAT(CudaCalls(), ::testing::IsEmpty())
        << "a path that must not touch CUDA called its driver";
  }
};

// Before main, so that children inherit the variable. A child that is the same
// program goes on with its parent's record.
[[maybe_unused]] const bool installed = [] {
  if (std::getenv("RILL_CUDA_RECORD") == nullptr) {
    setenv("RILL_CUDA_RECORD", RecordPath().c_str(), /*overwrite=*/0);
    unlink(RecordPath().c_str());
  }
  ::testing::AddGlobalTestEnvironment(new CheckAtTheEnd);
  return true;
}();

}  // namespace

std::vector<std::string> CudaCalls() {
  std::vector<std::string> names;
  const char* const path = std::getenv("RILL_CUDA_RECORD");
  std::ifstream file(path == nullptr ? "" : path);
  for (std::string line; std::getline(file, line);) names.push_back(line);
  return names;
}

void ForgetCudaCalls() {
  if (const char* path = std::getenv("RILL_CUDA_RECORD")) unlink(path);
}

}  // namespace rill
