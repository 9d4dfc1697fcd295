// SPDX-License-Identifier: Apache-2.0
#include "rill/base/parallel_for.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"

namespace rill {
namespace {

// Threads take the next index from one counter, so that a slow call delays no
// other. Relaxed: the counter publishes nothing. pthread_create hands the
// inputs over, and pthread_join the results.
struct Work {
  int64_t count;
  absl::FunctionRef<void(int64_t)> fn;
  std::atomic<int64_t> next = 0;

  void Run() {
    for (int64_t i;
         (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
      fn(i);
    }
  }
};

void* RunWork(void* work) {
  static_cast<Work*>(work)->Run();
  return nullptr;
}

}  // namespace

// pthread_create and not std::thread, whose constructor throws where there is
// no thread to be had.
void ParallelFor(int64_t count, int num_threads,
                 absl::FunctionRef<void(int64_t)> fn) {
  Work work = {count, fn};
  std::vector<pthread_t> threads;
  const int64_t others = std::min<int64_t>(num_threads, count) - 1;
  for (int64_t i = 0; i < others; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, RunWork, &work) != 0) break;
    threads.push_back(thread);
  }
  work.Run();
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
}

}  // namespace rill
