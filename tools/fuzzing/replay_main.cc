// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target on each file of its corpus, without a fuzzer.
// usage: <target>_replay FOLDER   (relative to the runfiles)
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "gtest/gtest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::string* corpus;  // NOLINT: the program's argument.

// A copy of just the right size, so that a sanitizer sees one byte too far.
void RunOne(const std::string& bytes) {
  const std::vector<uint8_t> copy(bytes.begin(), bytes.end());
  EXPECT_EQ(LLVMFuzzerTestOneInput(copy.data(), copy.size()), 0);
}

TEST(FuzzReplay, TheEmptyInput) { RunOne(""); }

TEST(FuzzReplay, EachFileOfTheCorpus) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(*corpus, error)) {
    files.push_back(entry.path());
  }
  ASSERT_FALSE(error) << *corpus << ": " << error.message();
  ASSERT_FALSE(files.empty()) << *corpus;
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    ASSERT_TRUE(file) << path;
    // Said before, as a broken promise ends the program.
    std::fprintf(stderr, "replaying %s\n", path.c_str());
    RunOne({std::istreambuf_iterator<char>(file), {}});
  }
  RecordProperty("files", static_cast<int>(files.size()));
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  corpus = new std::string(argv[1]);
  return RUN_ALL_TESTS();
}
