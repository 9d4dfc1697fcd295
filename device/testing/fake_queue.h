// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_TESTING_FAKE_QUEUE_H_
#define RILL_DEVICE_TESTING_FAKE_QUEUE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace rill::device_internal {

class FakeQueue;

// A point in a queue. An event that was never recorded counts as reached.
struct FakeEvent {
  // One recording; a later one of the same event is another.
  struct Point {
    std::shared_ptr<FakeQueue> queue;
    bool reached = false;
    absl::Status status;  // The device's when it got here.
  };
  std::shared_ptr<Point> last;
};

// Memory that an operation reads or writes.
struct FakeRange {
  const void* data = nullptr;
  int64_t bytes = 0;
  int peer = -1;  // The device that has it; -1: the queue's, or the host.

  int DeviceFor(int index) const { return peer < 0 ? index : peer; }
};

// A queue of operations that run when somebody asks: one stream.
//
// An operation that fails leaves the device failed: operations of all its
// queues are dropped from then on. Points are still reached and carry the
// status.
//
// Thread-safety: thread-compatible (FakeBackend locks around it).
class FakeQueue : public std::enable_shared_from_this<FakeQueue> {
 public:
  // `failure` is the device's: all its queues share it. It outlives this.
  FakeQueue(int index, absl::Status* failure)
      : index_(index), failure_(failure) {}

  int index() const { return index_; }
  int64_t size() const { return static_cast<int64_t>(operations_.size()); }

  // `ranges` is what the operation touches while it runs.
  void Push(std::vector<FakeRange> ranges, std::function<absl::Status()> run);
  void PushRecord(FakeEvent& event);
  // Operations behind this one run after `event`'s latest point.
  void PushWait(const FakeEvent& event);

  // The front operation, if any, may run now.
  bool CanRun() const;
  // Runs the front operation; needs CanRun().
  void RunOne();
  // Runs everything, and in other queues what it waits for.
  void RunAll();
  // Runs until `point`, which its queue holds, is reached.
  static void RunUntil(const FakeEvent::Point& point);
  // Runs one operation that `point` needs.
  static void RunTowards(const FakeEvent::Point& point);

  // From here on operations are recorded and are none of the queue's, until
  // they are taken. They can run any number of times.
  struct Recorded {
    std::vector<FakeRange> ranges;
    std::function<absl::Status()> run;
  };
  void Record() { recorded_.emplace(); }
  bool is_recording() const { return recorded_.has_value(); }
  std::vector<Recorded> TakeRecorded() {
    return *std::exchange(recorded_, std::nullopt);
  }

  // An operation that has not run touches a byte of the range.
  bool Uses(const FakeRange& range) const;

 private:
  struct Operation {
    std::vector<FakeRange> ranges;
    std::function<absl::Status()> run;         // Or one of:
    std::shared_ptr<FakeEvent::Point> record;  // reaches this point,
    std::shared_ptr<FakeEvent::Point> wait;    // waits for this one.
  };

  const int index_;
  absl::Status* const failure_;
  std::deque<Operation> operations_;
  std::optional<std::vector<Recorded>> recorded_;
};

}  // namespace rill::device_internal

#endif  // RILL_DEVICE_TESTING_FAKE_QUEUE_H_
