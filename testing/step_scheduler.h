// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TESTING_STEP_SCHEDULER_H_
#define RILL_TESTING_STEP_SCHEDULER_H_

#include <algorithm>
#include <atomic>
#include <condition_variable>  // NOLINT
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>   // NOLINT
#include <thread>  // NOLINT
#include <vector>

#include "rill/base/rng.h"

namespace rill {

// Lets one thread run at a time; before every access to an atomic, and wherever
// Step is called, chance says who goes on. So a run is one order of steps, the
// same for the same seed. Memory orders are not explored: all orders of steps
// are sequentially consistent.
class StepScheduler {
 public:
  explicit StepScheduler(uint64_t seed) : rng_(seed) {}

  void Run(std::vector<std::function<void()>> bodies) {
    is_done_.assign(bodies.size(), false);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < bodies.size(); ++i) {
      threads.emplace_back([this, i, &bodies] {
        current = this;
        me = i;
        {
          std::unique_lock<std::mutex> lock(mutex_);
          turn_changed_.wait(lock, [&] { return turn_ == i; });
        }
        bodies[i]();
        std::unique_lock<std::mutex> lock(mutex_);
        is_done_[i] = true;
        Choose();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  static void Step() {
    if (current != nullptr) current->DoStep();
  }
  // Orders that never end are a mistake.
  int64_t steps() const { return steps_; }

 private:
  void DoStep() {
    std::unique_lock<std::mutex> lock(mutex_);
    ++steps_;
    if (Draw(3) != 0) return;
    Choose();
    turn_changed_.wait(lock, [&] { return turn_ == me; });
  }
  void Choose() {
    const auto left = std::count(is_done_.begin(), is_done_.end(), false);
    if (left == 0) return;
    int64_t pick = Draw(left);
    for (turn_ = 0; is_done_[turn_] || pick-- > 0;) ++turn_;
    turn_changed_.notify_all();
  }
  int64_t Draw(int64_t n) { return rng_.UniformInt(draws_++, 0, n); }

  static inline thread_local StepScheduler* current = nullptr;
  static inline thread_local size_t me = 0;

  const Rng rng_;
  std::mutex mutex_;
  std::condition_variable turn_changed_;
  size_t turn_ = 0;
  std::vector<bool> is_done_;
  uint64_t draws_ = 0;
  int64_t steps_ = 0;
};

// A std::atomic that asks StepScheduler before every access.
template <typename T>
class ScheduledAtomic {
 public:
  ScheduledAtomic(T value) : value_(value) {}  // NOLINT: as std::atomic.
  T load(std::memory_order order = std::memory_order_seq_cst) const {
    StepScheduler::Step();
    return value_.load(order);
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) {
    StepScheduler::Step();
    value_.store(value, order);
  }
  T fetch_add(T by) {
    StepScheduler::Step();
    return value_.fetch_add(by);
  }
  T fetch_sub(T by) {
    StepScheduler::Step();
    return value_.fetch_sub(by);
  }
  bool compare_exchange_strong(T& expected, T desired) {
    StepScheduler::Step();
    return value_.compare_exchange_strong(expected, desired);
  }

 private:
  std::atomic<T> value_;
};

}  // namespace rill

#endif  // RILL_TESTING_STEP_SCHEDULER_H_
