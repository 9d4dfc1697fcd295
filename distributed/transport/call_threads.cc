// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/call_threads.h"

#include <cstddef>
#include <deque>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace rill {

class CallThreads::State {
 public:
  explicit State(Idle idle) : idle_(std::move(idle)) {}

  void Run(const std::shared_ptr<State>& self, Work work) {
    absl::MutexLock lock(&mu_);
    ready_.push_back(std::move(work));
    if (num_idle_ < ready_.size()) {
      threads_.emplace_back([self] { self->Loop(); });
    }
  }
  // Threads end behind the last work. All of them.
  std::vector<std::thread> Stop() {
    absl::MutexLock lock(&mu_);
    is_stopping_ = true;
    return std::exchange(threads_, {});
  }

 private:
  void Loop();
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return !ready_.empty() || is_stopping_;
  }

  const Idle idle_;
  absl::Mutex mu_;
  std::deque<Work> ready_ ABSL_GUARDED_BY(mu_);
  size_t num_idle_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mu_);
};

CallThreads::CallThreads(Idle idle)
    : state_(std::make_shared<State>(std::move(idle))) {}

CallThreads::~CallThreads() {
  for (std::thread& thread : state_->Stop()) {
    thread.get_id() == std::this_thread::get_id() ? thread.detach()
                                                  : thread.join();
  }
}

void CallThreads::Run(Work work) { state_->Run(state_, std::move(work)); }

void CallThreads::State::Loop() {
  const auto has_work = [this] {
    mu_.AssertReaderHeld();
    return HasWork();
  };
  for (;;) {
    {
      absl::MutexLock lock(&mu_);
      // Where the end came out of this thread's work, nothing that idle_ needs
      // is left.
      if (is_stopping_ && ready_.empty()) return;
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
