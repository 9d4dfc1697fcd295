// SPDX-License-Identifier: Apache-2.0
// The stand-in for libcuda.so.1 is what a program finds, and it sees a call: so
// the tests that expect none can fail.
#include "rill/device/testing/cuda_record.h"

#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rill {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CudaRecordTest : public ::testing::Test {
 protected:
  void TearDown() override {
    ForgetCudaCalls();  // They were planted.
    if (driver_ != nullptr) dlclose(driver_);
  }
  // Loads the driver as libcudart does.
  template <typename Function>
  Function* Find(const char* name) {
    if (driver_ == nullptr) driver_ = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver_ == nullptr) return nullptr;
    return reinterpret_cast<Function*>(dlsym(driver_, name));
  }

  void* driver_ = nullptr;
};

TEST_F(CudaRecordTest, IsEmptyAsLongAsNobodyTouchesCuda) {
  EXPECT_THAT(CudaCalls(), IsEmpty());
}

TEST_F(CudaRecordTest, PlantedCallIsRecordedAndSaysThereIsNoDevice) {
  auto* const init = Find<int(unsigned int)>("cuInit");
  ASSERT_NE(init, nullptr) << dlerror();
  EXPECT_EQ(init(0), 100);
  EXPECT_THAT(CudaCalls(), ElementsAre("(loaded)", "cuInit"));
}

TEST_F(CudaRecordTest, FunctionsAreFoundByNameAsLibcudartDoes) {
  auto* const find =
      Find<int(const char*, void**, int, uint64_t)>("cuGetProcAddress");
  ASSERT_NE(find, nullptr) << dlerror();
  void* function = nullptr;
  EXPECT_EQ(find("cuMemcpyAsync", &function, 13000, 0), 0);
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(reinterpret_cast<int (*)()>(function)(), 100);
  EXPECT_EQ(find("cuSomethingNew", &function, 13000, 0), 500);
  EXPECT_THAT(CudaCalls(), Contains("cuSomethingNew"));
  EXPECT_EQ(CudaCalls().back(), "cuSomethingNew");
  EXPECT_THAT(CudaCalls(), Contains("cuMemcpyAsync").Times(2));
}

TEST_F(CudaRecordTest, ChildProcessIsRecordedToo) {
  // By a shell, which is a program that knows nothing of this one.
  const char* const arguments[] = {
      "sh", "-c", "LD_PRELOAD=libcuda.so.1 /bin/true", nullptr};
  pid_t child = 0;
  ASSERT_EQ(posix_spawn(&child, "/bin/sh", nullptr, nullptr,
                        const_cast<char**>(arguments), environ),
            0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_THAT(CudaCalls(), ElementsAre("(loaded)"));
}

}  // namespace
}  // namespace rill
