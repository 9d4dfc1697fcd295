// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_TESTING_FAKE_BACKEND_H_
#define RILL_DEVICE_TESTING_FAKE_BACKEND_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/device/backend.h"
#include "rill/device/graphs/graph.h"
#include "rill/device/testing/fake_memory.h"
#include "rill/device/testing/fake_queue.h"

namespace rill {

// Devices "fake:0" and "fake:1", made of host memory, as unforgiving as a GPU
// and fully determined. Bugs of stream order, of lifetimes and of host access
// to device memory show in a unit test without a GPU.
//
// Order: work that is given to a stream does nothing until somebody waits for
// it
//   (Synchronize..., in the caller's thread) or the test runs it (RunOne,
//   RunAll). A copy whose source is changed before it runs copies the changed
//   bytes. Streams know no order between them but events, and the default
//   stream is a stream like others.
// Memory: see fake_memory.h. Copies take any host memory; Fill, row copies and
//   kernels device and pinned memory only. Ranges are checked when work is given:
//   the call fails. They are checked again when it runs: its device fails.
// Failures: work that fails while it runs takes its device along, as on a GPU.
//   All work behind it there is dropped, and each call for the device is its
//   error, until Recover. An event that was reached meanwhile keeps the error.
// Misuse that has no status to return (a wrong Free, freeing what queued work
//   still uses, a handle that is destroyed twice) is kept for TakeMisuse.
// Thread-safety: thread-safe; operations run one at a time.
//
// Linking this library registers one with default options, so that
// Device::Fake() works; Install puts another in its place.
//
// Example (FakeBackendTest.Example runs it):
//   FakeBackend* fake = FakeBackend::Install({});
//   auto stream = *Stream::Create(Device::Fake());
//   auto copy = CopyAsync(device->data(), &value, sizeof(value), stream);
//   value = 2;             // A bug: the copy has not run yet.
//   stream.Synchronize();  // Now it has, and the device holds 2.
class FakeBackend final : public Backend {
 public:
  struct Options {
    int num_devices = 2;
    int64_t memory_limit_bytes = int64_t{1} << 30;  // Device, and pinned.
    bool reach_peers = true;  // Devices copy from and to each other.
    // Each IsComplete that answers false then runs one operation of the
    // event's stream, so that a loop that polls comes to an end.
    bool run_one_per_poll = false;
    // One in sixteen operations that are given is followed by up to 32 that
    // run, of streams that this seed picks: copies have any delay. None: the
    // longest.
    std::optional<uint64_t> run_some_seed = std::nullopt;
  };

  // Operations that are counted and can be made to fail.
  enum class Operation {
    kAllocate,  // These fail at once,
    kCreateStream,
    kCreateEvent,
    kCopy,  // and these when they run, and their device with them.
    kFill,
    kGatherRows,
    kScatterRows,
    kLaunch,
    kLaunchGraph,
    kNumOperations,
  };

  // A call that gave work, waited or began a capture.
  struct Call {
    enum class Kind {
      kCopy,
      kCompute,
      kSynchronizeStream,
      kSynchronizeEvent,
      kBeginCapture,
    };
    Kind kind;               // kCopy: also one column of a row copy.
    void* stream = nullptr;  // The handle; null of an event.
    int64_t bytes = 0;       // Of a copy.
    bool from_device = false;
    bool to_device = false;
    int64_t host_bytes = 0;  // kCompute: of memory that is not a device's.
  };

  // Registers a new one; no buffer, stream or event of the old one may live.
  // The registry owns it.
  static FakeBackend* Install(const Options& options);

  explicit FakeBackend(const Options& options);
  ~FakeBackend() override;

  // A kernel of the test's own, in the order of the stream. It gets the host
  // addresses of `ranges`, device or pinned memory that it reads or writes, and
  // calls no backend.
  using Range = device_internal::FakeRange;
  using Kernel = std::function<void(absl::Span<std::byte* const>)>;
  absl::Status Launch(int index, StreamHandle stream, std::vector<Range> ranges,
                      Kernel kernel);

  // GraphBackend's (graphs/graph.h), which is registered too.
  absl::Status BeginCapture(int index, StreamHandle stream);
  absl::StatusOr<GraphHandle> EndCapture(int index, StreamHandle stream);
  absl::Status LaunchGraph(int index, GraphHandle handle, StreamHandle stream);
  void DestroyGraph(int index, GraphHandle handle);

  // The `nth` (1: the next) operation of this kind from now on, on any device,
  // fails with `status`.
  void FailNext(Operation operation, int64_t nth, absl::Status status);
  // How many were asked for since the start.
  int64_t Count(Operation operation) const;

  // The `nth` call from now on that can fail, of any operation of Backend or
  // Launch, fails at once with `status`. It has no effect, but a wait that
  // fails has waited. With `is_lost` all devices fail with it.
  void FailCall(int64_t nth, absl::Status status, bool is_lost = false);
  // Takes FailCall and FailNext back, and devices that failed work again, as no
  // GPU does: for tests of what a failure leaves behind. Events keep its error,
  // streams forget it: nobody may be about to wait for a stream whose work was
  // dropped. False: nothing that was planted since has failed.
  bool Recover();

  // The calls from now on, and those since then.
  void StartCalls();
  std::vector<Call> TakeCalls();

  // Operations that are waiting to run; {} is the default stream.
  int64_t NumPending(int index, StreamHandle stream) const;
  // Runs the next operation of a stream. False if there is none, or it waits
  // for an event that was not reached.
  bool RunOne(int index, StreamHandle stream);
  // Runs everything that was given, one operation at a time, each from a stream
  // that `seed` picks: another seed is another interleaving.
  void RunAll(uint64_t seed = 0);

  // Live allocations, streams, events and graphs: 0 when nothing leaks.
  int64_t NumAllocations(int index, MemoryKind kind) const;
  int64_t AllocatedBytes(int index, MemoryKind kind) const;
  int64_t NumStreamsAndEvents() const;
  int64_t NumGraphs() const;
  // Errors of use since the last call, in order; empty is good.
  std::vector<std::string> TakeMisuse();
  // The bytes of device memory now, whatever is queued. For tests that look
  // without waiting.
  absl::StatusOr<std::vector<uint8_t>> Peek(int index, const void* data,
                                            int64_t bytes) const;

  Device::Type type() const override { return Device::Type::kFake; }
  absl::StatusOr<int> NumDevices() override { return options_.num_devices; }
  absl::StatusOr<void*> Allocate(int index, MemoryKind kind,
                                 int64_t bytes) override;
  void Free(int index, MemoryKind kind, void* data, int64_t bytes) override;
  absl::StatusOr<StreamHandle> CreateStream(int index) override;
  void DestroyStream(int index, StreamHandle stream) override;
  absl::StatusOr<EventHandle> CreateEvent(int index) override;
  void DestroyEvent(int index, EventHandle event) override;
  absl::StatusOr<bool> ReachesPeer(int index, int peer) override;
  absl::Status Copy(int index, void* to, const void* from, int64_t bytes,
                    StreamHandle stream) override;
  absl::Status Fill(int index, void* to, uint8_t value, int64_t bytes,
                    StreamHandle stream) override;
  absl::Status GatherRows(int index, absl::Span<const RowColumn> columns,
                          absl::Span<const int64_t> rows,
                          StreamHandle stream) override;
  absl::Status ScatterRows(int index, absl::Span<const RowColumn> columns,
                           absl::Span<const int64_t> rows,
                           StreamHandle stream) override;
  absl::Status Record(int index, EventHandle event,
                      StreamHandle stream) override;
  absl::Status Wait(int index, StreamHandle stream, EventHandle event) override;
  absl::Status SynchronizeStream(int index, StreamHandle stream) override;
  absl::Status SynchronizeEvent(int index, EventHandle event) override;
  absl::StatusOr<bool> IsComplete(int index, EventHandle event) override;

 private:
  using Queue = device_internal::FakeQueue;
  using Event = device_internal::FakeEvent;
  struct CapturedWork {
    int index;
    std::vector<Queue::Recorded> operations;
  };
  struct Fault {
    int64_t at;  // The count that fails.
    absl::Status status;
  };
  struct Tally {
    int64_t asked = 0;
    int64_t reached = 0;  // Asked, or run where that is when it fails.
    std::vector<Fault> faults;
  };

  struct Move {
    const void* to = nullptr;
    const void* from = nullptr;
    int64_t bytes = 0;
  };

  absl::Status CheckIndex(int index) const;
  // FAILED_PRECONDITION for `call` on a stream whose work is captured.
  static absl::Status CheckRuns(const Queue& queue, absl::string_view call);
  // The device's failure, or the planted status of the next call.
  absl::Status Enter(int index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts one operation as reached and gives its planted status.
  absl::Status Reach(Operation operation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Queue*> FindQueue(int index, StreamHandle stream) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Event*> FindEvent(int index, EventHandle event) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Memory of a peer that a copy from or to memory of `index` may use.
  int PeerOf(int index, const void* data, const void* other) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckRanges(Operation operation, int index,
                           absl::Span<const Range> ranges) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts `run` into the stream; it gets the ranges' host addresses. `moves` is
  // what it copies.
  absl::Status Enqueue(Operation operation, int index, StreamHandle stream,
                       std::vector<Range> ranges, Kernel run,
                       absl::Span<const Move> moves = {});
  void Note(const Call& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunSome() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs one operation, of the stream that the draw picks. False: none can run.
  bool RunAny(const Rng& rng, uint32_t draw)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status EnqueueRows(Operation operation, int index,
                           absl::Span<const RowColumn> columns,
                           absl::Span<const int64_t> rows, StreamHandle stream);
  // Work that is left in a destroyed stream keeps the queue in queues_.
  void DropFinishedQueues() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable absl::Mutex mutex_;
  // By device; queues point at them.
  std::vector<absl::Status> failures_ ABSL_GUARDED_BY(mutex_);
  FakeMemory memory_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Queue>> queues_ ABSL_GUARDED_BY(mutex_);
  std::map<void*, Queue*> streams_ ABSL_GUARDED_BY(mutex_);
  std::map<void*, std::pair<int, std::unique_ptr<Event>>> events_
      ABSL_GUARDED_BY(mutex_);
  std::map<const void*, std::shared_ptr<const CapturedWork>> graphs_
      ABSL_GUARDED_BY(mutex_);
  std::array<Tally, static_cast<size_t>(Operation::kNumOperations)> tallies_
      ABSL_GUARDED_BY(mutex_);
  int64_t calls_to_failure_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status call_failure_ ABSL_GUARDED_BY(mutex_);  // OK: none is planted.
  bool is_lost_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::string> misuse_ ABSL_GUARDED_BY(mutex_);
  std::optional<std::vector<Call>> calls_ ABSL_GUARDED_BY(mutex_);
  uint32_t run_some_draws_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace rill

#endif  // RILL_DEVICE_TESTING_FAKE_BACKEND_H_
