// SPDX-License-Identifier: Apache-2.0
#include "rill/base/parallel_for.h"

#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/base/config.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"

namespace rill {
namespace {

TEST(ParallelForTest, CallsEachIndexOnce) {
  for (const int64_t count : {0, 1, 2, 7, 1000}) {
    for (const int num_threads : {0, 1, 2, 16}) {
      std::vector<std::atomic<int>> calls(count);
      ParallelFor(count, num_threads, [&](int64_t i) { ++calls[i]; });
      for (int64_t i = 0; i < count; ++i) {
        EXPECT_EQ(calls[i], 1) << i << " of " << count;
      }
    }
  }
}

// Two calls that wait for each other end only if two threads make them.
TEST(ParallelForTest, ThreadsWorkAtTheSameTime) {
  absl::Mutex mutex;
  int inside = 0;
  ParallelFor(2, 2, [&](int64_t) {
    absl::MutexLock lock(&mutex);
    ++inside;
    mutex.Await(absl::Condition(
        +[](int* n) { return *n == 2; }, &inside));
  });
  EXPECT_EQ(inside, 2);
}

// A sanitizer needs memory of its own while the limit holds.
#if !defined(ABSL_HAVE_ADDRESS_SANITIZER) && \
    !defined(ABSL_HAVE_THREAD_SANITIZER)
TEST(ParallelForTest, WhereNoThreadStartsThoseThatThereAreDoAll) {
  std::vector<std::atomic<int>> calls(100);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  // No address space, so no stack for a thread.
  const rlimit none = {1, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &none), 0);
  ParallelFor(100, 64, [&](int64_t i) { ++calls[i]; });
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  for (const auto& count : calls) EXPECT_EQ(count, 1);
}
#endif

}  // namespace
}  // namespace rill
