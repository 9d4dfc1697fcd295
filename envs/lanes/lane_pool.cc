// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/lanes/lane_pool.h"

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "absl/memory/memory.h"
#include "rill/base/pause_cpu.h"
#include "rill/base/status_macros.h"

// A round is two counters. `left_` has the calls that no thread has taken, and
// gives pieces of them away by compare-exchange. `unfinished_` has those that
// have not returned; the thread that brings it to 0 ends the round. Threads
// look for a new round for a while before they sleep: a step often follows
// within microseconds, and a wake-up takes longer.

namespace rill::envs_internal {
namespace {

// A few hundred looks.
bool BecomesTrue(absl::FunctionRef<bool()> is_true) {
  constexpr int kLooks = 100;
  constexpr int kPauses = 4;
  for (int i = 0; i < kLooks; ++i) {
    if (is_true()) return true;
    for (int k = 0; k < kPauses; ++k) PauseCpu();
  }
  return false;
}

}  // namespace

// pthread_create and not std::thread, whose constructor throws.
absl::StatusOr<std::unique_ptr<LanePool>> LanePool::Create(
    int threads, std::function<void(int64_t i)> call) {
  auto pool = absl::WrapUnique(new LanePool(threads, std::move(call)));
  for (int i = 1; i < threads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, &RunThread, pool.get()) != 0) {
      return ResourceExhausted("threads: want ", threads,
                               ", but the system starts ", "no more than ", i,
                               "; take fewer");
    }
    pool->others_.push_back(thread);
  }
  return pool;
}

LanePool::~LanePool() {
  stops_.store(true, std::memory_order_relaxed);
  work_.Notify();
  for (const pthread_t thread : others_) pthread_join(thread, nullptr);
}

void* LanePool::RunThread(void* pool) {
  LanePool& self = *static_cast<LanePool*>(pool);
  const auto has_news = [&self] {
    return self.left_.load(std::memory_order_relaxed) > 0 ||
           self.stops_.load(std::memory_order_relaxed);
  };
  while (!self.stops_.load(std::memory_order_relaxed)) {
    if (self.TakeSome() || BecomesTrue(has_news)) continue;
    self.work_.Await();
  }
  return nullptr;
}

// The release of `left_` publishes count_ and all that the caller wrote before;
// the exchange in TakeSome acquires it. It comes last: a thread may take calls
// the moment that `left_` is above 0.
void LanePool::Publish(int64_t count, int64_t wanted_threads) {
  count_ = count;
  unfinished_.store(count, std::memory_order_relaxed);
  left_.store(count, std::memory_order_release);
  const int64_t wake = std::min<int64_t>(wanted_threads, threads_ - 1);
  if (wake > 0) work_.Notify(wake);
}

// Large pieces first, so that threads seldom meet, and single calls last, so
// that all end together. `left_` belongs to the round that is on, whichever
// round the thread has looked for.
bool LanePool::TakeSome() {
  int64_t left = left_.load(std::memory_order_relaxed);
  while (left > 0) {
    const int64_t size = std::max<int64_t>(left / (2 * threads_), 1);
    if (!left_.compare_exchange_weak(left, left - size,
                                     std::memory_order_acquire,
                                     std::memory_order_relaxed)) {
      continue;
    }
    const int64_t begin = count_ - left;
    for (int64_t i = begin; i < begin + size; ++i) call_(i);
    // Release and acquire: Finish sees what every thread wrote, through the
    // chain of subtractions.
    if (unfinished_.fetch_sub(size, std::memory_order_acq_rel) == size &&
        threads_ > 1) {
      end_.Notify();
    }
    return true;
  }
  return false;
}

void LanePool::Finish() {
  while (TakeSome()) {
  }
  const auto is_over = [this] {
    return unfinished_.load(std::memory_order_acquire) == 0;
  };
  // A ring may be left over from a round whose end was seen without it.
  while (!BecomesTrue(is_over)) end_.Await();
}

}  // namespace rill::envs_internal
