// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_ENVS_COLLECTOR_H_
#define RILL_PYTHON_BINDINGS_ENVS_COLLECTOR_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "nanobind/nanobind.h"
#include "rill/collectors/sync_collector.h"
#include "rill/flow/sink.h"
#include "rill/python/bindings/batch.h"
#include "rill/python/bindings/envs/env_part.h"
#include "rill/python/bindings/envs/interrupt.h"
#include "rill/python/bindings/envs/python_policy.h"
#include "rill/python/bindings/fork.h"
#include "rill/specs/spec.h"

namespace rill::python {

// SyncCollector for Python: batches as dicts of arrays, or into a buffer. No
// lock of the interpreter's is held but for Python functions.
//
// An interrupt, as of Ctrl-C, and Close end a batch behind a step; one that a
// Python function raises ends it before the step at hand. The steps of an
// interrupted batch come with the next call, or are in the buffer already.
// Thread-safety: all calls hold the interpreter's lock. A call beside another
//   one is FAILED_PRECONDITION, but for Close.
class Collector {
 public:
  // `act` is None for random actions, else as PythonPolicy's. `options` are
  // those of SyncCollector, by their names.
  Collector(EnvPart* env, const nanobind::object& act,
            const TensorDictSpec& outputs, const nanobind::dict& options);
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // [lanes, time]; with `splits` [trajectories, longest].
  nanobind::object Next(bool splits);
  // A call in flight ends soon, CANCELLED.
  void Close();

  bool is_closed() const { return running_ == nullptr; }
  // As Buffer's of replay_buffer.cc.
  int64_t calls_in_flight() const {
    return fork_guard_.is_stranded() ? 0 : fork_guard_.calls();
  }
  // Whether steps that count already come with the next call.
  bool has_pending() const { return kept_ != nullptr || has_refused_; }
  // Steps so far, and those of a batch.
  int64_t frames() const { return frames_; }
  int64_t frames_per_batch() const { return frames_per_batch_; }

 private:
  struct Running {
    std::unique_ptr<PythonPolicy> policy;  // Null: random actions.
    std::unique_ptr<SyncCollector> collector;
    std::atomic<bool> is_closed = false;
    bool has_refused = false;  // A batch, which the next call offers again.
    InterruptLook look;
    absl::Status interrupt;
  };

 public:
  // A call that collects one batch into a sink.
  class Call {
   public:
    // Throws FAILED_PRECONDITION where none may begin.
    explicit Call(Collector* collector);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    const SyncCollector& collector() const { return *running_->collector; }
    // Without the interpreter's lock. Where an interrupt comes back the batch
    // has been written, as far as it went.
    absl::Status CollectInto(Sink& sink) const;

   private:
    Collector* const owner_;
    std::shared_ptr<Running> running_;
    const ForkGuard::Call in_flight_;
  };

 private:
  // Without the interpreter's lock: an environment may wait for its processes.
  static void Drop(std::shared_ptr<Running> running);

  ForkGuard fork_guard_;
  std::shared_ptr<Running> running_;  // Null: closed.
  int64_t frames_ = 0;
  bool has_refused_ = false;  // As of Running.
  int64_t frames_per_batch_ = 0;
  OutputMaker output_;
  std::shared_ptr<OutputBatch> kept_;   // Of an interrupted call.
  std::shared_ptr<OutputBatch> whole_;  // Before it is split.
};

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_ENVS_COLLECTOR_H_
