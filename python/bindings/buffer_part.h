// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_BUFFER_PART_H_
#define RILL_PYTHON_BINDINGS_BUFFER_PART_H_

#include <memory>
#include <utility>

#include "nanobind/nanobind.h"
#include "rill/python/bindings/exception.h"
#include "rill/python/bindings/fork.h"
#include "rill/python/bindings/interpreter_lock.h"
#include "rill/replay/replay_buffer.h"

namespace rill::python {

// A buffer of Python's, for other parts. The interpreter's lock is held.
class BufferPart {
 public:
  BufferPart() = default;
  virtual ~BufferPart() = default;
  BufferPart(const BufferPart&) = delete;
  BufferPart& operator=(const BufferPart&) = delete;

  // It lives on where this one is closed. Throws FAILED_PRECONDITION of a
  // closed one.
  virtual std::shared_ptr<ReplayBuffer> Share() const = 0;
  virtual bool has_threads() const = 0;
};

// Where it is the last reference threads of buffers end, which may wait for the
// interpreter's lock. In a function that may be one of them, as where the
// collector of cycles runs, the main thread does it, soon.
template <typename T>
void DropUnlocked(std::shared_ptr<T> object) {
  const auto drop = [](void* held) {
    const Unlocked unlocked;
    delete static_cast<std::shared_ptr<T>*>(held);
    return 0;
  };
  auto* held = new std::shared_ptr<T>(std::move(object));
  // Where so many wait already it stays.
  if (IsInCallPython()) {
    Py_AddPendingCall(drop, held);
  } else {
    drop(held);
  }
}

// Holds the object of `owner` for a call that lets go of the interpreter's lock.
// It may be the last reference, where the owner was closed meanwhile.
template <typename Owner, typename T>
class HeldForCall {
 public:
  HeldForCall(const Owner* owner, std::shared_ptr<T> object, ForkGuard* guard)
      : owner_(owner), object_(std::move(object)), in_flight_(guard) {}
  ~HeldForCall() {
    if (owner_->is_closed()) DropUnlocked(std::move(object_));
  }
  HeldForCall(const HeldForCall&) = delete;
  HeldForCall& operator=(const HeldForCall&) = delete;

  T* get() const { return object_.get(); }
  T* operator->() const { return object_.get(); }

 private:
  const Owner* const owner_;
  std::shared_ptr<T> object_;
  const ForkGuard::Call in_flight_;
};

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_BUFFER_PART_H_
