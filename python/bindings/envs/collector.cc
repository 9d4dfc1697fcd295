// SPDX-License-Identifier: Apache-2.0
#include "rill/python/bindings/envs/collector.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "nanobind/nanobind.h"
#include "nanobind/stl/string.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/flow/sink.h"
#include "rill/formats/consolidated.h"
#include "rill/python/bindings/batch.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/envs/lent_rows.h"
#include "rill/python/bindings/envs/worker_source.h"
#include "rill/python/bindings/exception.h"
#include "rill/python/bindings/in_call.h"
#include "rill/python/bindings/interpreter_lock.h"
#include "rill/python/bindings/options.h"
#include "rill/python/bindings/status.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/split_trajectories.h"

namespace rill::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;

// The Running of the collector whose worker this thread is; null: of none.
thread_local const void* g_collector_of_thread = nullptr;

// So long a destructor waits for workers, which go on then.
constexpr absl::Duration kMostOfDestructor = absl::Seconds(5);

// How long Close waits before it looks for an interrupt.
constexpr absl::Duration kWaitAtOnce = absl::Milliseconds(50);

absl::Status SplitInto(const TensorDict& whole, TensorDict* rows) {
  RILL_ASSIGN_OR_RETURN(*rows, SplitTrajectories(whole));
  return absl::OkStatus();
}

}  // namespace

Collector::Collector(EnvPart* env, const nb::object& act,
                     const TensorDictSpec& outputs, const nb::dict& given)
    : fork_guard_(env->has_workers(), "SyncDataCollector"),
      running_(std::make_shared<Running>()) {
  SyncCollector::Options options;
  OptionReader("SyncDataCollector", given)
      .Read("frames_per_batch", &options.frames_per_batch)
      .Read("total_frames", &options.total_frames)
      .Read("init_random_frames", &options.init_random_frames)
      .Read("max_frames_per_traj", &options.max_frames_per_traj)
      .Read("reset_at_each_batch", &options.reset_at_each_batch)
      .Read("set_truncated", &options.set_truncated)
      .Read("seed", &options.seed)
      .CheckAllRead();
  Check(SyncCollector::CheckOptions(options));
  options.producer = NewProducers(1);
  options.env = env->Take();
  if (!act.is_none()) {
    running_->policy = std::make_unique<PythonPolicy>(
        act, options.env->spec().action, outputs);
    options.policy = running_->policy.get();
  }
  // Its owner holds it as long as it is called.
  options.is_interrupted = [running = running_.get()] {
    return running->IsInterrupted();
  };
  options.is_interrupt = [running = running_.get()](const absl::Status& error) {
    if (!CarriesInterrupt(error)) return false;
    running->interrupt = error;
    return true;
  };
  absl::StatusOr<std::unique_ptr<SyncCollector>> made;
  {
    // It clears the memory of a batch, or ends an environment that it refuses.
    const Unlocked unlocked;
    made = SyncCollector::Create(std::move(options));
  }
  std::unique_ptr<SyncCollector> collector = Value(std::move(made));
  frames_per_batch_ = collector->frames_per_batch();
  running_->collector = std::move(collector);
}

Collector::Collector(const nb::list& envs, const nb::list& acts,
                     const TensorDictSpec& outputs, const nb::dict& given,
                     bool is_sync)
    : fork_guard_(/*has_threads=*/true, NameOfWorkers(is_sync)),
      running_(std::make_shared<Running>()) {
  running_->has_workers = true;
  running_->is_joined = is_sync;
  running_->name = NameOfWorkers(is_sync);
  WorkerSource made = MakeWorkerSource({
      .envs = envs,
      .acts = acts,
      .outputs = outputs,
      .options = given,
      .is_sync = is_sync,
      .begin_thread =
          [running = running_.get()] {
            g_collector_of_thread = running;
            KeepThreadState();
          },
      .is_closed = &running_->is_closed,
      .is_interrupted =
          [running = running_.get()] { return running->IsInterrupted(); },
  });
  if (!made.source.ok()) Check(running_->End(made.source.status()));
  frames_per_batch_ = made.frames_per_batch;
  running_->rounds = made.rounds;
  running_->collector = *std::move(made.source);
}

Collector::~Collector() {
  if (fork_guard_.is_stranded()) {
    new auto(running_);  // It is left where it lies.
    return;
  }
  running_->is_closed = true;
  BeginEnd();
  // Where the collector of cycles runs in a Python function, that one may hold
  // what a worker waits for.
  if (IsInCallPython() || IsOwnThread()) return;
  const Unlocked unlocked;
  running_->has_ended.WaitForNotificationWithTimeout(kMostOfDestructor);
}

bool Collector::IsOwnThread() const {
  return g_collector_of_thread == running_.get();
}

void Collector::BeginEnd() {
  if (!is_ending() || std::exchange(running_->has_begun_to_end, true)) return;
  std::thread([running = running_] {
    running->collector = nullptr;
    running->policy = nullptr;
    running->has_ended.Notify();
  }).detach();
}

void Collector::Close(bool waits) {
  if (fork_guard_.is_stranded()) return;
  running_->is_closed = true;
  BeginEnd();
  if (!waits || IsOwnThread()) return;
  while (is_ending()) {
    {
      const Unlocked unlocked;
      running_->has_ended.WaitForNotificationWithTimeout(kWaitAtOnce);
    }
    CheckPython(PyErr_CheckSignals() == 0);
  }
}

Collector::Call::Call(Collector* collector)
    : owner_(collector),
      running_([&] {
        if (collector->is_closed()) {
          throw StatusError{FailedPrecondition(
              "collector: got a closed collector, want an open one")};
        }
        collector->fork_guard_.Check();
        if (collector->IsOwnThread() ||
            InCall::Has(collector->running_.get())) {
          throw StatusError{FailedPrecondition(
              collector->running_->name,
              ": got a call from its own policy or environment, want one from "
              "elsewhere: it would wait for itself; use another collector "
              "there")};
        }
        if (collector->fork_guard_.calls() != 0) {
          throw StatusError{FailedPrecondition(
              collector->running_->name,
              ": got a call beside another one, want one at a "
              "time; give each thread a collector of its own")};
        }
        return collector->running_.get();
      }()),
      in_flight_(std::in_place, &collector->fork_guard_) {}

Collector::Call::~Call() {
  owner_->frames_ = running_->collector->frames();
  owner_->has_refused_ =
      running_->has_refused ||
      (running_->rounds != nullptr && running_->rounds->is_in_round());
  in_flight_.reset();
  owner_->BeginEnd();
}

absl::Status Collector::Running::End(absl::Status status) {
  if (is_closed) {
    return absl::CancelledError(absl::StrCat(
        name, ": got a collector that was closed in a call, want an open one"));
  }
  if (!interrupt.ok()) return std::move(interrupt);
  return status;
}

absl::Status Collector::Call::Collect(
    absl::FunctionRef<absl::Status(Source&)> collect) const {
  running_->interrupt = absl::OkStatus();
  const int64_t frames = running_->collector->frames();
  absl::Status status;
  {
    const InCall in_call(running_);
    status = collect(*running_->collector);
  }
  // A batch counts when it is made. Until a call ends well it is offered again.
  // Those of workers count when they are handed out.
  running_->has_refused =
      !running_->has_workers && !status.ok() &&
      (running_->has_refused || running_->collector->frames() != frames);
  return running_->End(std::move(status));
}

absl::Status Collector::Call::CollectInto(Sink& sink) const {
  return Collect([&](Source& source) { return source.CollectInto(sink); });
}

absl::Status Collector::Call::NextInto(Sink& sink) const {
  if (!running_->is_joined) return CollectInto(sink);
  return Collect([&](Source& source) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(const TensorDict batch, source.Next());
    return sink.Write(batch, WriteInfo());
  });
}

absl::Status Collector::Call::WithState(
    absl::FunctionRef<absl::Status(Source&)> call) const {
  running_->interrupt = absl::OkStatus();
  absl::Status status;
  {
    const Unlocked unlocked;
    status = call(*running_->collector);
  }
  return running_->End(std::move(status));
}

void Collector::Save(const std::string& path) {
  const Call call(this);
  if (kept_ != nullptr) {
    throw StatusError{FailedPrecondition(
        running_->name,
        "::dumps: got a batch that an interrupt has kept for the next call, "
        "want none: call next() first")};
  }
  Check(call.WithState([&](Source& source) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(const TensorDict state, source.SaveState());
    return SaveConsolidated(state, path);
  }));
}

void Collector::Load(const std::string& path) {
  const Call call(this);
  Check(call.WithState([&](Source& source) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(const TensorDict state, LoadConsolidated(path));
    RILL_RETURN_IF_ERROR(source.LoadState(state));
    // Rounds know theirs.
    running_->has_refused =
        !running_->has_workers && state.FindDict("refused_batch") != nullptr;
    return absl::OkStatus();
  }));
  kept_ = nullptr;
}

nb::object Collector::Next(bool splits) {
  const Call call(this);
  std::shared_ptr<OutputBatch> batch = std::move(kept_);
  if (batch == nullptr) {
    batch = splits && whole_ != nullptr ? whole_ : output_.Take();
    LentRows rows(call.collector().spec(), &batch->rows);
    absl::Status status;
    {
      const Unlocked unlocked;
      status = call.NextInto(rows);
    }
    if (!status.ok()) {
      if (rows.is_written()) kept_ = std::move(batch);
      // An interrupt ends the environment's processes, too.
      CheckPython(PyErr_CheckSignals() == 0);
      throw StatusError{std::move(status)};
    }
  }
  if (splits) {
    whole_ = std::move(batch);
    batch = output_.Take();
    absl::Status status;
    {
      const Unlocked unlocked;
      status = SplitInto(whole_->rows, &batch->rows);
    }
    Check(std::move(status));
  }
  return output_.Make(batch);
}

void BindCollector(nb::module_& module) {
  nb::class_<Collector>(module, "Collector")
      .def(nb::init<EnvPart*, const nb::object&, const TensorDictSpec&,
                    const nb::dict&>(),
           "env"_a, "act"_a.none(), "outputs"_a, "options"_a)
      .def(nb::init<const nb::list&, const nb::list&, const TensorDictSpec&,
                    const nb::dict&, bool>(),
           "envs"_a, "acts"_a, "outputs"_a, "options"_a, "is_sync"_a)
      .def("next", &Collector::Next, "splits"_a)
      .def("save", &Collector::Save, "path"_a)
      .def("load", &Collector::Load, "path"_a)
      .def("close", &Collector::Close, "waits"_a = true)
      .def_prop_ro("is_closed", &Collector::is_closed)
      .def_prop_ro("is_ending", &Collector::is_ending)
      .def_prop_ro("calls_in_flight", &Collector::calls_in_flight)
      .def_prop_ro("has_pending", &Collector::has_pending)
      .def_prop_ro("frames", &Collector::frames)
      .def_prop_ro("frames_per_batch", &Collector::frames_per_batch);
}

}  // namespace rill::python
