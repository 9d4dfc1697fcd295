// SPDX-License-Identifier: Apache-2.0
#include "rill/device/testing/fake_queue.h"

namespace rill::device_internal {
namespace {

bool Overlap(const FakeRange& a, const FakeRange& b) {
  const auto a_first = reinterpret_cast<uintptr_t>(a.data);
  const auto b_first = reinterpret_cast<uintptr_t>(b.data);
  return a_first < b_first + b.bytes && b_first < a_first + a.bytes;
}

}  // namespace

void FakeQueue::Push(std::vector<FakeRange> ranges,
                     std::function<absl::Status()> run) {
  if (recorded_.has_value()) {
    recorded_->push_back({std::move(ranges), std::move(run)});
    return;
  }
  Operation operation;
  operation.ranges = std::move(ranges);
  operation.run = std::move(run);
  operations_.push_back(std::move(operation));
}

void FakeQueue::PushRecord(FakeEvent& event) {
  event.last = std::make_shared<FakeEvent::Point>();
  event.last->queue = shared_from_this();
  Operation operation;
  operation.record = event.last;
  operations_.push_back(std::move(operation));
}

void FakeQueue::PushWait(const FakeEvent& event) {
  if (event.last == nullptr) return;
  Operation operation;
  operation.wait = event.last;
  operations_.push_back(std::move(operation));
}

bool FakeQueue::CanRun() const {
  if (operations_.empty()) return false;
  const Operation& front = operations_.front();
  return front.wait == nullptr || front.wait->reached;
}

void FakeQueue::RunOne() {
  const Operation front = std::move(operations_.front());
  operations_.pop_front();
  if (front.record != nullptr) {
    front.record->reached = true;
    front.record->status = *failure_;
    front.record->queue.reset();
  } else if (front.run != nullptr && failure_->ok()) {
    *failure_ = front.run();
  }
}

void FakeQueue::RunAll() {
  while (!operations_.empty()) {
    if (CanRun()) {
      RunOne();
    } else {
      RunUntil(*std::shared_ptr(operations_.front().wait));
    }
  }
}

void FakeQueue::RunUntil(const FakeEvent::Point& point) {
  while (!point.reached) RunTowards(point);
}

void FakeQueue::RunTowards(const FakeEvent::Point& point) {
  std::shared_ptr<FakeQueue> queue = point.queue;
  // The event was put in its queue before the wait was put in this one, so this
  // ends.
  while (!queue->CanRun()) queue = queue->operations_.front().wait->queue;
  queue->RunOne();
}

bool FakeQueue::Uses(const FakeRange& range) const {
  for (const Operation& operation : operations_) {
    for (const FakeRange& used : operation.ranges) {
      if (Overlap(used, range)) return true;
    }
  }
  return false;
}

}  // namespace rill::device_internal
