// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_ENVS_ENV_PART_H_
#define RILL_PYTHON_BINDINGS_ENVS_ENV_PART_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "nanobind/nanobind.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env.h"
#include "rill/envs/env_spec.h"
#include "rill/python/bindings/fork.h"
#include "rill/python/bindings/interpreter_lock.h"
#include "rill/python/bindings/status.h"

namespace rill::python {

// An environment until a collector, or another environment, takes it for good.
// Thread-safety: all calls hold the interpreter's lock.
class EnvPart {
 public:
  // has_workers: it has threads or processes, which a fork leaves behind.
  EnvPart(std::unique_ptr<Env> env, bool has_workers)
      : env_(std::move(env)),
        spec_(env_->spec()),
        has_workers_(has_workers),
        fork_guard_(has_workers, "Env") {}
  ~EnvPart() {
    if (fork_guard_.is_stranded()) {
      env_.release();  // It is left where it lies.
    } else {
      Drop();
    }
  }
  EnvPart(const EnvPart&) = delete;
  EnvPart& operator=(const EnvPart&) = delete;

  // Also of one that was taken.
  const EnvSpec& spec() const { return spec_; }
  bool has_workers() const { return has_workers_; }

  // No effect where it was taken, or left behind by a fork.
  void Close() {
    if (env_ == nullptr || fork_guard_.is_stranded()) return;
    Get();
    Drop();
  }

  // A rollout in flight ends behind a step, CANCELLED, as do those after it.
  void Stop() { is_stopped_ = true; }
  // As Buffer's of replay_buffer.cc.
  int64_t calls_in_flight() const {
    return fork_guard_.is_stranded() ? 0 : fork_guard_.calls();
  }

  std::unique_ptr<Env> Take() {
    Get();
    return std::move(env_);
  }

  // For one call, which other threads may not enter meanwhile.
  class Call {
   public:
    explicit Call(EnvPart* part)
        : part_(part), env_(part->Get()), in_flight_(&part->fork_guard_) {}
    Env& env() const { return *env_; }
    // For any thread.
    bool is_stopped() const { return part_->is_stopped_; }

   private:
    EnvPart* const part_;
    Env* const env_;
    const ForkGuard::Call in_flight_;
  };

  // Throws FAILED_PRECONDITION where no call may begin.
  Env* Get() {
    fork_guard_.Check();
    if (fork_guard_.calls() != 0) {
      throw StatusError{FailedPrecondition(
          "Env: got a call beside another one, want one at a time")};
    }
    if (env_ == nullptr) {
      throw StatusError{FailedPrecondition(
          "Env: got one that a collector or another environment has taken, or "
          "a closed one, want one of its own")};
    }
    return env_.get();
  }

 private:
  // Its processes end without the interpreter's lock.
  void Drop() {
    std::unique_ptr<Env> env = std::move(env_);
    const Unlocked unlocked;
    env = nullptr;
  }

  std::unique_ptr<Env> env_;
  const EnvSpec spec_;
  const bool has_workers_;
  std::atomic<bool> is_stopped_ = false;
  ForkGuard fork_guard_;
};

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_ENVS_ENV_PART_H_
