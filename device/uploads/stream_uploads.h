// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_UPLOADS_STREAM_UPLOADS_H_
#define RILL_DEVICE_UPLOADS_STREAM_UPLOADS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/uploads/upload_kernels.h"

namespace rill {

// Values that the host has computed, on their way to a device in the order of a
// stream: a batch's rows, their weights, the places that kernels work on. The
// host goes on. Memory that enqueued work reads is kept until that work has
// ended, and serves later work then.
//
// Work comes in batches: Begin, then any number of rooms and Sends, then End
// with an event behind all of it. Up to kMaxBatches may be under way.
// Thread-safety: thread-compatible. The destructor waits for all batches.
// Cost: a Send is a launch for up to 32 pieces. Memory is taken until it fits,
//   then no more.
//
// Example (StreamUploadsTest.Example runs it):
//   StreamUploads uploads(Device::Fake());
//   RILL_RETURN_IF_ERROR(uploads.Begin(stream));
//   RILL_ASSIGN_OR_RETURN(auto places, uploads.Mirror<int64_t>(n));
//   std::iota(places.host, places.host + n, 0);
//   RILL_RETURN_IF_ERROR(uploads.Send());
//   // Kernels that are launched on the stream now read places.device.
//   RILL_ASSIGN_OR_RETURN(Event end, Event::Record(stream));
//   uploads.End(std::make_shared<const Event>(std::move(end)));
class StreamUploads {
 public:
  // Begin waits for the oldest one where so many are under way.
  static constexpr size_t kMaxBatches = 8;

  explicit StreamUploads(Device device) : device_(device) {}
  ~StreamUploads();
  StreamUploads(const StreamUploads&) = delete;
  StreamUploads& operator=(const StreamUploads&) = delete;

  // Opens a batch, on a stream of the device. One that was not ended is
  // forgotten: its caller has waited for the stream.
  absl::Status Begin(const Stream& stream);
  const Stream& stream() const { return *stream_; }

  // Memory for `count` values, aligned to 64 bytes: of the host, to be filled
  // before Send, and on the device, which has the values behind Send.
  // RESOURCE_EXHAUSTED without memory.
  template <typename T>
  struct Values {
    T* host = nullptr;
    T* device = nullptr;
  };
  template <typename T>
  absl::StatusOr<Values<T>> Mirror(int64_t count) {
    auto values = TakeMirror(count * static_cast<int64_t>(sizeof(T)));
    if (!values.ok()) return values.status();
    return Values<T>{static_cast<T*>(values->host),
                     static_cast<T*>(values->device)};
  }
  // The same of the host alone, for values that go to memory of the caller's.
  template <typename T>
  absl::StatusOr<T*> Room(int64_t count, T* to) {
    auto room = TakeRoom(count * static_cast<int64_t>(sizeof(T)), to);
    if (!room.ok()) return room.status();
    return static_cast<T*>(*room);
  }
  // Called once by the next Send, behind its copies and in order.
  using LaunchFn = std::function<absl::Status(const Stream& stream)>;
  void Behind(LaunchFn launch) { behind_.push_back(std::move(launch)); }
  // Enqueues the copies of all that was taken since the last Send, and then
  // what is to be behind them.
  absl::Status Send();
  // The two steps of a Send. The launches may go to another stream.
  absl::Status SendValues();
  absl::Status SendLaunches(const Stream& stream);
  void DropLaunches() { behind_.clear(); }

  // From the next batch on each mirror has one place on the device, the same in
  // all batches, so that captured work finds it. Batches take mirrors of the
  // same sizes in the same order, else FAILED_PRECONDITION, and each comes
  // behind the one before in one stream.
  void FixMirrors() { fixes_mirrors_ = true; }

  // Kept until the batch has ended.
  void Keep(std::shared_ptr<const void> memory) {
    open_->kept.push_back(std::move(memory));
  }
  // `end` is recorded behind all work of the batch; null: it has ended.
  void End(std::shared_ptr<const Event> end);

 private:
  // Memory of one kind, in a row; more than one chunk only until it fits.
  struct Arena {
    std::vector<std::shared_ptr<Buffer>> chunks;
    int64_t used = 0;  // Of the last chunk.
  };
  struct Batch {
    Arena pinned;
    Arena device;
    std::vector<std::shared_ptr<const void>> kept;
    std::shared_ptr<const Event> end;  // Null: nothing is under way.
  };

  absl::StatusOr<std::byte*> Take(int64_t bytes, MemoryKind kind, Arena* arena);
  absl::StatusOr<Values<void>> TakeMirror(int64_t bytes);
  absl::StatusOr<std::byte*> TakeFixed(int64_t bytes);
  absl::StatusOr<void*> TakeRoom(int64_t bytes, void* to);
  // A batch that has ended is as new, but for its memory.
  static void Reset(Batch* batch);

  const Device device_;
  bool fixes_mirrors_ = false;
  std::vector<std::shared_ptr<Buffer>> fixed_;  // A mirror each.
  size_t num_fixed_ = 0;                        // That the open batch has.
  std::vector<LaunchFn> behind_;
  std::vector<std::unique_ptr<Batch>> batches_;  // But the open one, by age.
  std::unique_ptr<Batch> open_;
  std::optional<Stream> stream_;  // Borrowed.
  std::vector<device_internal::UploadKernel::Piece> pieces_;
};

}  // namespace rill

#endif  // RILL_DEVICE_UPLOADS_STREAM_UPLOADS_H_
