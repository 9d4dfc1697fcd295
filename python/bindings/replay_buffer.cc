// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/replay_buffer.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "nanobind/nanobind.h"
#include "nanobind/stl/optional.h"
#include "nanobind/stl/shared_ptr.h"
#include "nanobind/stl/string.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/flow/sink.h"
#include "rill/python/bindings/arguments.h"
#include "rill/python/bindings/array.h"
#include "rill/python/bindings/batch.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/buffer_part.h"
#include "rill/python/bindings/channel.h"
#include "rill/python/bindings/envs/collector.h"
#include "rill/python/bindings/exception.h"
#include "rill/python/bindings/fork.h"
#include "rill/python/bindings/in_call.h"
#include "rill/python/bindings/interpreter_lock.h"
#include "rill/python/bindings/lane_sink.h"
#include "rill/python/bindings/parts.h"
#include "rill/python/bindings/query.h"
#include "rill/python/bindings/status.h"
#include "rill/python/bindings/waiting_sink.h"
#include "rill/replay/rate_limiter.h"
#include "rill/samplers/priority_reduction.h"
#include "rill/slots/slot.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;

// How long a call waits for the rate limiter before it looks for an interrupt.
constexpr absl::Duration kWaitAtOnce = absl::Milliseconds(50);

// A batch whose arrays Python code fills anew for each write.
struct BoundRows {
  TensorDict rows;
};

BoundRows Bind(const nb::object& rows) {
  return {InputReader(/*batch_rank=*/1).ReadPlaces(rows.ptr())};
}

// rill::ReplayBuffer for Python: arrays in and out, no lock of the
// interpreter's while it works.
class Buffer final : public BufferPart {
 public:
  Buffer(std::shared_ptr<Storage> storage, SamplerPart* sampler,
         WriterPart* writer, int64_t batch_size, uint64_t seed,
         int64_t prefetch, int prefetch_threads,
         std::shared_ptr<RateLimiter> rate_limiter, double rate_limit_timeout,
         const nb::list& transforms,
         const std::optional<std::string>& directory)
      : fork_guard_(/*has_threads=*/prefetch > 0),
        priorities_(sampler->priorities),
        reduction_(sampler->reduction),
        has_prefetch_(prefetch > 0),
        may_wait_(rate_limiter != nullptr),
        timeout_(absl::Seconds(rate_limit_timeout)),
        input_(storage->lanes().count > 1 ? 2 : 1) {
    BufferOptions options = {.storage = std::move(storage),
                             .sampler = sampler->Take(),
                             .batch_size = batch_size,
                             .seed = seed,
                             .prefetch = prefetch,
                             .prefetch_threads = prefetch_threads,
                             .rate_limiter = std::move(rate_limiter),
                             .rate_limit_timeout = kWaitAtOnce};
    if (writer != nullptr) options.writer = std::move(writer->writer);
    for (const nb::handle transform : transforms) {
      options.transforms.push_back(nb::cast<TransformPart*>(transform)->Take());
    }
    const Unlocked unlocked;
    buffer_ = Value(directory.has_value()
                        ? ReplayBuffer::Open(*directory, std::move(options))
                        : ReplayBuffer::Create(std::move(options)));
  }

  ~Buffer() override {
    if (fork_guard_.is_stranded()) {
      new auto(std::move(buffer_));  // It is left where it lies.
      return;
    }
    Close();  // Its threads may wait for the interpreter's lock.
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  nb::object Extend(const nb::object& rows) {
    const std::vector<Draw> written = Write(rows, /*is_step=*/false);
    const auto count = static_cast<int64_t>(written.size());
    Tensor slots = Value(Tensor::Empty(DType::kInt64, {count}));
    for (int64_t i = 0; i < count; ++i) {
      slots.data<int64_t>()[i] = written[static_cast<size_t>(i)].slot;
    }
    ArrayMaker arrays(slots.buffer());
    ShapeTuple shape;
    return arrays.Make(slots, "index", &shape);
  }

  // The slot of the step; that of the first lane where there are several; -1
  // where nothing was kept.
  int64_t Add(const nb::object& step) {
    written_ = Write(step, /*is_step=*/true);
    return written_.empty() ? -1 : written_.front().slot;
  }

  // Appends rows that were bound, as they are now.
  void Append(const BoundRows& bound) {
    const Held buffer = Begin("extend");
    Run([&] { return buffer->Extend(bound.rows).status(); });
  }

  nb::object Sample(int64_t batch_size) {
    const Held buffer = Begin("sample");
    const std::shared_ptr<OutputBatch> batch = output_.Take();
    Run([&] { return buffer->SampleInto(batch_size, &batch->rows); });
    return output_.Make(batch);
  }

  // The next batch in the memory of `out`, which is arrays of this buffer's or
  // of the caller's own.
  void SampleInto(int64_t batch_size, const nb::object& out) {
    const Held buffer = Begin("sample");
    TensorDict rows = InputReader(/*batch_rank=*/1).ReadPlaces(out.ptr());
    const TensorDict places = rows;
    if (has_prefetch_) {
      // Batches that were made ahead lie elsewhere.
      const std::shared_ptr<OutputBatch> batch = output_.Take();
      Run([&]() -> absl::Status {
        RILL_RETURN_IF_ERROR(buffer->SampleInto(batch_size, &batch->rows));
        RILL_RETURN_IF_ERROR(CheckPlaces(places, batch->rows));
        return rows.CopyFrom(batch->rows);
      });
      return;
    }
    Run([&] { return buffer->SampleInto(batch_size, &rows); });
    Check(CheckPlaces(places, rows));
    // A leaf that did not do has a new tensor.
    Check(FillPlaces(rows, places));
  }

  void UpdatePriority(const nb::object& index, const nb::object& generation,
                      const nb::object& priority) {
    const Held buffer = Begin("update_priority");
    const PriorityUpdate update =
        ReadPriorities(index, generation, priority, reduction_, output_);
    Run([&] {
      return buffer->UpdatePriorities(update.draws, update.priorities);
    });
  }

  // The rows of these slots, in order.
  nb::object Read(const nb::object& index) {
    const Held buffer = Get("__getitem__");
    const std::vector<Slot> rows = SlotsOf("ReplayBuffer::__getitem__", index);
    const auto batch = std::make_shared<OutputBatch>();
    Run([&] { return buffer->storage().Read(rows, &batch->rows); });
    OutputMaker maker;
    return maker.Make(batch);
  }

  // The trajectories that are stored.
  nb::list QueryTrajectories(const nb::object& where, const nb::dict& options) {
    return Query(Begin("query").get(), where, options);
  }

  // Writes all that the workers of a channel have sent; the number of batches.
  int64_t Drain(ChannelPart* channel) {
    const Held buffer = Begin("drain");
    LaneSink lanes(buffer.get());
    Sink* const sink = buffer->storage().lanes().count > 1
                           ? static_cast<Sink*>(&lanes)
                           : buffer.get();
    // It counts those of all tries that the rate limiter makes.
    int64_t batches = 0;
    FunctionSink counting(
        [&](const TensorDict& batch, const WriteInfo& info) {
          const absl::Status written = sink->Write(batch, info);
          if (written.ok()) ++batches;
          return written;
        },
        [&](int64_t producer, LaneRange range) {
          return sink->Cut(producer, range);
        });
    CheckNotInCall(channel, /*has_threads=*/false, "Channel", "drain");
    Run([&] {
      const InCall in_call(channel);
      return channel->channel->Drain(&counting).status();
    });
    return batches;
  }

  // One batch of a collector's.
  void Collect(Collector* collector) {
    const Held buffer = Begin("collect");
    const Collector::Call call(collector);
    bool is_late = false;
    // Only its writes are this buffer's: the policy may sample it.
    RunOutside(
        [&] {
          WaitingSink sink(buffer.get(), AsPart());
          absl::Status status = call.CollectInto(sink);
          is_late = sink.is_late();
          return status;
        },
        &is_late);
  }

  void InsertTransform(int64_t place, TransformPart* transform) {
    const Held buffer = Begin("insert_transform");
    std::unique_ptr<BatchTransform> taken = transform->Take();
    Run([&] { return buffer->InsertTransform(place, std::move(taken)); });
  }

  void Clear() {
    const Held buffer = Begin("empty");
    Run([&] { return buffer->Clear(); });
  }

  void Save(const std::string& directory) {
    const Held buffer = Begin("dumps");
    Run([&] { return buffer->Save(directory); });
  }

  // Calls in flight hold the buffer until they end. Those that wait for the
  // rate limiter see it at their next look; others may share the limiter.
  void Close() {
    if (buffer_ == nullptr || fork_guard_.is_stranded()) return;
    DropUnlocked(std::move(buffer_));
  }
  std::shared_ptr<ReplayBuffer> Share() const override {
    Get("Share");
    return buffer_;
  }
  bool has_threads() const override { return has_prefetch_; }
  bool is_closed() const { return buffer_ == nullptr; }
  // None that this process waits for where it was forked meanwhile.
  int64_t calls_in_flight() const {
    return fork_guard_.is_stranded() ? 0 : fork_guard_.calls();
  }

  int64_t size() const { return Get("__len__")->size(); }
  int64_t capacity() const { return Get("capacity")->capacity(); }

  double alpha() const { return Exponents()->alpha(); }
  double beta() const { return Exponents()->beta(); }
  void SetAlpha(double alpha) { Check(Exponents()->SetAlpha(alpha)); }
  void SetBeta(double beta) { Check(Exponents()->SetBeta(beta)); }

 private:
  using Held = HeldForCall<Buffer, ReplayBuffer>;

  Held Get(const char* caller) const {
    if (buffer_ == nullptr) {
      throw StatusError{FailedPrecondition(
          "ReplayBuffer::", caller, ": got a closed buffer, want an open one")};
    }
    fork_guard_.Check();
    return Held(this, buffer_, &fork_guard_);
  }

  // For calls that take locks of the buffer, which its functions must not.
  Held Begin(const char* caller) const {
    CheckNotInCall(AsPart(), has_prefetch_, "ReplayBuffer", caller);
    return Get(caller);
  }

  PrioritizedSelector* Exponents() const {
    Get("alpha");
    if (priorities_ == nullptr) {
      throw StatusError{FailedPrecondition(
          "ReplayBuffer: got a sampler without priorities, want a "
          "PrioritizedSampler")};
    }
    return priorities_;
  }

  // `call` of this buffer, as RunOutside.
  void Run(absl::FunctionRef<absl::Status()> call) {
    RunOutside([&] {
      const InCall in_call(AsPart());
      return call();
    });
  }
  // By this InCall knows the buffer.
  const BufferPart* AsPart() const { return this; }

  // `call` without the interpreter's lock. Where it waits for the rate limiter
  // an interrupt, as of Ctrl-C, ends it. `is_late` tells, after each call, if a
  // deadline was the limiter's; null: all are.
  void RunOutside(absl::FunctionRef<absl::Status()> call,
                  const bool* is_late = nullptr) {
    const auto must_wait = [&](const absl::Status& status) {
      return absl::IsDeadlineExceeded(status) &&
             (is_late == nullptr || *is_late);
    };
    absl::Status status = CallOnce(call);
    if (may_wait_ && must_wait(status)) {
      const absl::Time deadline = Clock::Steady().Now() + timeout_;
      do {
        CheckPython(PyErr_CheckSignals() == 0);
        if (is_closed()) {
          throw StatusError{absl::CancelledError(
              "ReplayBuffer: got a buffer that was closed while a call waited "
              "for its rate limiter, want an open one")};
        }
        status = CallOnce(call);
      } while (must_wait(status) && Clock::Steady().Now() < deadline);
    }
    Check(std::move(status));
  }
  static absl::Status CallOnce(absl::FunctionRef<absl::Status()> call) {
    const Unlocked unlocked;
    return TakeNoted(call());
  }

  // The rows that were written.
  std::vector<Draw> Write(const nb::object& rows, bool is_step) {
    const Held buffer = Begin(is_step ? "add" : "extend");
    if (!input_.has_schema()) input_.Expect(buffer->storage().spec());
    std::unique_ptr<InputBatch> batch = input_.Read(rows.ptr(), is_step);
    const int64_t lanes = buffer->storage().lanes().count;
    if (lanes > 1 && batch->rows.batch_shape()[0] != lanes) {
      throw StatusError{InvalidArgument(
          "ReplayBuffer::", is_step ? "add" : "extend", ": lanes: got ",
          batch->rows.batch_shape()[0], ", want ", lanes)};
    }
    std::vector<Draw> written = std::move(written_);
    Run([&] { return buffer->Extend(batch->rows, {}, &written).status(); });
    input_.Accept(rows.ptr(), std::move(batch));
    return written;
  }

  mutable ForkGuard fork_guard_;
  PrioritizedSelector* const priorities_;
  const PriorityReduction reduction_;
  const bool has_prefetch_;
  const bool may_wait_;
  const absl::Duration timeout_;
  InputReader input_;
  OutputMaker output_;
  std::vector<Draw> written_;  // Of the last step; its memory serves again.
  std::shared_ptr<ReplayBuffer> buffer_;  // Null: closed.
};

}  // namespace

void BindReplayBuffer(nb::module_& module) {
  nb::class_<BoundRows>(module, "BoundRows");
  module.def("bind_rows", &Bind, "rows"_a);
  nb::class_<BufferPart>(module, "BufferPart");
  nb::class_<Buffer, BufferPart>(module, "Buffer")
      .def(
          nb::init<std::shared_ptr<Storage>, SamplerPart*, WriterPart*, int64_t,
                   uint64_t, int64_t, int, std::shared_ptr<RateLimiter>, double,
                   const nb::list&, const std::optional<std::string>&>(),
          "storage"_a, "sampler"_a, "writer"_a.none(), "batch_size"_a, "seed"_a,
          "prefetch"_a, "prefetch_threads"_a, "rate_limiter"_a.none(),
          "rate_limit_timeout"_a, "transforms"_a,
          "directory"_a.none() = nb::none())
      .def("extend", &Buffer::Extend, "rows"_a)
      .def("add", &Buffer::Add, "step"_a)
      .def("append", &Buffer::Append, "rows"_a)
      .def("sample", &Buffer::Sample, "batch_size"_a)
      .def("sample_into", &Buffer::SampleInto, "batch_size"_a, "out"_a)
      .def("update_priority", &Buffer::UpdatePriority, "index"_a,
           "generation"_a.none(), "priority"_a.none())
      .def("read", &Buffer::Read, "index"_a)
      .def("query", &Buffer::QueryTrajectories, "where"_a.none(), "options"_a)
      .def("drain", &Buffer::Drain, "channel"_a)
      .def("collect", &Buffer::Collect, "collector"_a)
      .def("insert_transform", &Buffer::InsertTransform, "place"_a,
           "transform"_a)
      .def("clear", &Buffer::Clear)
      .def("save", &Buffer::Save, "directory"_a)
      .def("close", &Buffer::Close)
      .def("__len__", &Buffer::size)
      .def_prop_ro("is_closed", &Buffer::is_closed)
      .def_prop_ro("calls_in_flight", &Buffer::calls_in_flight)
      .def_prop_ro("capacity", &Buffer::capacity)
      .def_prop_rw("alpha", &Buffer::alpha, &Buffer::SetAlpha)
      .def_prop_rw("beta", &Buffer::beta, &Buffer::SetBeta);
}

}  // namespace rill::python
