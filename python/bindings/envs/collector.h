// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_ENVS_COLLECTOR_H_
#define RILL_PYTHON_BINDINGS_ENVS_COLLECTOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "nanobind/nanobind.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/python/bindings/batch.h"
#include "rill/python/bindings/envs/env_part.h"
#include "rill/python/bindings/envs/interrupt.h"
#include "rill/python/bindings/envs/python_policy.h"
#include "rill/python/bindings/exception.h"
#include "rill/python/bindings/fork.h"
#include "rill/specs/spec.h"

namespace rill::python {

// A collector for Python: batches as dicts of arrays, or into a buffer. No lock
// of the interpreter's is held but for Python functions.
//
// An interrupt, as of Ctrl-C, and Close end a batch behind a step; one that a
// Python function raises ends it before the step at hand. The steps of an
// interrupted batch come with the next call, or are in the buffer already. With
// workers both end the wait for them, who make their batches whole.
// Thread-safety: all calls hold the interpreter's lock. A call beside another
//   one is FAILED_PRECONDITION, but for Close.
class Collector {
 public:
  // `act` is None for random actions, else as PythonPolicy's. `options` are
  // those of SyncCollector, by their names.
  Collector(EnvPart* env, const nanobind::object& act,
            const TensorDictSpec& outputs, const nanobind::dict& options);
  // Workers, a thread for each environment: `acts` is a list of as many, or
  // empty. `options` are those of MultiCollectorOptions. is_sync: a batch is of
  // all workers.
  Collector(const nanobind::list& envs, const nanobind::list& acts,
            const TensorDictSpec& outputs, const nanobind::dict& options,
            bool is_sync);
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // [lanes, time]; with `splits` [trajectories, longest].
  nanobind::object Next(bool splits);
  // The state that the next batch depends on, but for the policy, to one file
  // (formats/consolidated.h), and back. Both wait for workers. A batch that an
  // interrupt has kept for the next call is FAILED_PRECONDITION in Save, and
  // gone behind Load.
  void Save(const std::string& path);
  void Load(const std::string& path);
  // A call in flight ends soon, CANCELLED. Else waits until all has ended:
  // workers with a policy behind a step, others behind their batch. An
  // interrupt ends the wait; another Close waits again. They cannot wait for
  // themselves, so in a thread of theirs it returns at once.
  void Close(bool waits);

  bool is_closed() const { return running_->is_closed; }
  // Closed, with no call in flight, and not all has ended.
  bool is_ending() const {
    return is_closed() && !fork_guard_.is_stranded() &&
           fork_guard_.calls() == 0 && !running_->has_ended.HasBeenNotified();
  }
  // As Buffer's of replay_buffer.cc; an end counts as one.
  int64_t calls_in_flight() const {
    return fork_guard_.is_stranded() ? 0 : fork_guard_.calls() + is_ending();
  }
  // Whether steps that count already come with the next call.
  bool has_pending() const { return kept_ != nullptr || has_refused_; }
  // Steps so far, and those of a batch.
  int64_t frames() const { return frames_; }
  int64_t frames_per_batch() const { return frames_per_batch_; }

 private:
  struct Running {
    // Null: random actions, or workers, which have theirs.
    std::unique_ptr<PythonPolicy> policy;
    std::unique_ptr<Source> collector;
    const MultiSyncCollector* rounds = nullptr;  // The source, where it is one.
    const char* name = "SyncDataCollector";
    bool has_workers = false;
    // Batches of workers, which Next of the source joins.
    bool is_joined = false;
    std::atomic<bool> is_closed = false;
    bool has_begun_to_end = false;
    absl::Notification has_ended;  // The source and the policy are gone.
    bool has_refused = false;      // A batch, which the next call offers again.
    InterruptLook look;
    absl::Status interrupt;

    // An interrupt's, or Close's.
    bool IsInterrupted() {
      if (is_closed) return true;
      interrupt = look.Status();
      return !interrupt.ok();
    }
    // The result of a call, in the place of `status`.
    absl::Status End(absl::Status status);
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

    const Source& collector() const { return *running_->collector; }
    // Without the interpreter's lock. Where an interrupt comes back the batch
    // has been written, as far as it went.
    absl::Status CollectInto(Sink& sink) const;
    // The same of a batch for the caller, in one piece.
    absl::Status NextInto(Sink& sink) const;
    // `call` without the interpreter's lock, which this takes care of.
    absl::Status WithState(absl::FunctionRef<absl::Status(Source&)> call) const;

   private:
    absl::Status Collect(
        absl::FunctionRef<absl::Status(Source&)> collect) const;

    Collector* const owner_;
    Running* const running_;
    std::optional<ForkGuard::Call> in_flight_;
  };

 private:
  // Where it is closed and no call is in flight what runs ends, in a thread of
  // its own: the one at hand may be a worker.
  void BeginEnd();
  // Whether this thread is one of its workers.
  bool IsOwnThread() const;

  ForkGuard fork_guard_;
  const std::shared_ptr<Running> running_;  // The thread that ends it has it.
  int64_t frames_ = 0;
  bool has_refused_ = false;  // As of Running.
  int64_t frames_per_batch_ = 0;
  OutputMaker output_;
  std::shared_ptr<OutputBatch> kept_;   // Of an interrupted call.
  std::shared_ptr<OutputBatch> whole_;  // Before it is split.
};

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_ENVS_COLLECTOR_H_
