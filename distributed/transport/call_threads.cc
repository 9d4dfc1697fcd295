// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/call_threads.h"

#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"

namespace rill {

CallThreads::~CallThreads() {
  std::vector<std::thread> threads;
  {
    absl::MutexLock lock(&mu_);
    is_stopping_ = true;
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void CallThreads::Run(Work work) {
  absl::MutexLock lock(&mu_);
  ready_.push_back(std::move(work));
  if (num_idle_ < ready_.size()) threads_.emplace_back([this] { Loop(); });
}

void CallThreads::Loop() {
  const auto has_work = [this] {
    mu_.AssertReaderHeld();
    return HasWork();
  };
  for (;;) {
    {
      absl::MutexLock lock(&mu_);
      ++num_idle_;
    }
    if (idle_ != nullptr) {
      idle_([this] {
        absl::MutexLock lock(&mu_);
        return HasWork();
      });
    }
    Work work;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(&has_work));
      --num_idle_;
      if (ready_.empty()) return;
      work = std::move(ready_.front());
      ready_.pop_front();
    }
    work();
  }
}

}  // namespace rill
