// SPDX-License-Identifier: Apache-2.0
#include "rill/python/bindings/channel.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "nanobind/nanobind.h"
#include "nanobind/stl/unique_ptr.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/flow/channel/record_channel.h"
#include "rill/flow/sink.h"
#include "rill/python/bindings/batch.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/interpreter_lock.h"
#include "rill/python/bindings/status.h"
#include "rill/specs/spec.h"

namespace rill::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;

// How long a wait goes on before it looks for an interrupt, as of Ctrl-C.
constexpr absl::Duration kWaitAtOnce = absl::Milliseconds(50);

// `call`, which waits so long at most, without the interpreter's lock, until it
// is done or `timeout` has passed.
absl::Status CallUntil(absl::Duration timeout,
                       absl::FunctionRef<absl::Status()> call) {
  const absl::Time deadline = Clock::Steady().Now() + timeout;
  for (;;) {
    absl::Status status;
    {
      const Unlocked unlocked;
      status = call();
    }
    if (!absl::IsDeadlineExceeded(status) ||
        Clock::Steady().Now() >= deadline) {
      return status;
    }
    CheckPython(PyErr_CheckSignals() == 0);
  }
}

// `step` is one step, a dictionary of arrays without the dimension of time.
RecordChannel::Options OptionsOf(const nb::object& step, int64_t producers,
                                 int64_t bytes) {
  InputReader reader(/*batch_rank=*/1);
  const auto batch = reader.Read(step.ptr(), /*is_step=*/true);
  return {.spec = TensorDictSpec::Of(batch->rows),
          .producers = producers,
          .bytes = bytes,
          .timeout = kWaitAtOnce};
}

// A producer's end. Thread-safe: calls wait for each other without the
// interpreter's lock, and Close ends one that waits for space.
class Writer {
 public:
  // `step` is as the channel's.
  Writer(std::unique_ptr<Sink> sink, const nb::object& step)
      : sink_(std::move(sink)) {
    input_.Accept(step.ptr(), input_.Read(step.ptr(), /*is_step=*/true));
  }

  void Extend(const nb::object& rows, bool is_step) {
    auto batch = input_.Read(rows.ptr(), is_step);
    Check(CallUntil(absl::InfiniteDuration(), [&]() -> absl::Status {
      const absl::MutexLock lock(&mutex_);
      if (sink_ == nullptr) {
        return FailedPrecondition(
            "ChannelWriter::extend: got a closed writer, want an open one");
      }
      RILL_RETURN_IF_ERROR(
          sink_->Write(batch->rows, {.sequence = sequence_ + 1}));
      ++sequence_;
      return absl::OkStatus();
    }));
    input_.Accept(rows.ptr(), std::move(batch));
  }

  // Trajectories end here without a last step.
  void Cut(int64_t producer) {
    Check(CallUntil(absl::InfiniteDuration(), [&]() -> absl::Status {
      const absl::MutexLock lock(&mutex_);
      if (sink_ == nullptr) return absl::OkStatus();
      return sink_->Cut(producer, {.first = 0, .count = 1});
    }));
  }

  void Close() {
    const Unlocked unlocked;
    const absl::MutexLock lock(&mutex_);
    sink_ = nullptr;
  }

 private:
  InputReader input_{/*batch_rank=*/1};
  absl::Mutex mutex_;
  std::unique_ptr<Sink> sink_ ABSL_GUARDED_BY(mutex_);  // Null: closed.
  int64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;
};

ChannelPart Create(const nb::object& step, int64_t producers, int64_t bytes) {
  return {Value(RecordChannel::Create(OptionsOf(step, producers, bytes)))};
}

std::unique_ptr<Writer> Attach(int fd, int64_t producer, const nb::object& step,
                               int64_t producers, int64_t bytes) {
  return std::make_unique<Writer>(
      Value(RecordChannel::AttachProducer(fd, producer,
                                          OptionsOf(step, producers, bytes))),
      step);
}

std::unique_ptr<Writer> Open(const ChannelPart& part, int64_t producer,
                             const nb::object& step) {
  return std::make_unique<Writer>(Value(part.channel->OpenProducer(producer)),
                                  step);
}

bool Wait(const ChannelPart& part, double seconds) {
  const absl::Duration timeout = absl::Seconds(seconds);
  absl::Status status = CallUntil(timeout, [&] {
    return part.channel->Wait(std::min(timeout, kWaitAtOnce));
  });
  if (absl::IsDeadlineExceeded(status)) return false;
  Check(std::move(status));
  return true;
}

}  // namespace

void BindChannel(nb::module_& module) {
  nb::class_<ChannelPart>(module, "Channel")
      .def(nb::new_(&Create), "step"_a, "producers"_a, "bytes"_a)
      .def("open", &Open, "producer"_a, "step"_a)
      .def("wait", &Wait, "seconds"_a)
      .def_prop_ro("fd",
                   [](const ChannelPart& part) { return part.channel->fd(); });
  nb::class_<Writer>(module, "ChannelWriter")
      .def("extend", &Writer::Extend, "rows"_a, "is_step"_a)
      .def("cut", &Writer::Cut, "producer"_a)
      .def("close", &Writer::Close);
  module.def("attach_channel", &Attach, "fd"_a, "producer"_a, "step"_a,
             "producers"_a, "bytes"_a);
}

}  // namespace rill::python
