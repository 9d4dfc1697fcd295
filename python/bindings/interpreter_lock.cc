// SPDX-License-Identifier: Apache-2.0
#include "rill/python/bindings/interpreter_lock.h"

#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "nanobind/nanobind.h"
#include "rill/python/bindings/bindings.h"

namespace rill::python {
namespace {

std::atomic<bool> g_is_ending = false;
std::thread::id g_ending_thread;  // Set before g_is_ending.
// Threads that get the lock now. One counts itself before it looks at
// g_is_ending, so EndCalls sees it or it parks.
std::atomic<int> g_asking = 0;

// Whether this thread is in an Unlocked.
thread_local bool t_is_unlocked = false;

// Around a call that takes the lock.
class Asking {
 public:
  Asking() {
    ++g_asking;
    if (!g_is_ending || std::this_thread::get_id() == g_ending_thread) return;
    --g_asking;
    Park();
  }
  ~Asking() { --g_asking; }
};

}  // namespace

void Park() {
  while (true) pause();
}

void EndCalls() {
  if (g_is_ending) return;
  // The extension has an unwinder of its own, which CallObject's handler needs.
  // An exception prepares it; without one before, it aborts.
  try {
    throw 0;
  } catch (int) {
  }
  g_ending_thread = std::this_thread::get_id();
  g_is_ending = true;
  PyThreadState* const state = PyEval_SaveThread();
  while (g_asking != 0) std::this_thread::yield();
  PyEval_RestoreThread(state);
}

Unlocked::Unlocked() : state_(PyEval_SaveThread()) { t_is_unlocked = true; }

Unlocked::~Unlocked() {
  const Asking asking;
  PyEval_RestoreThread(state_);
  t_is_unlocked = false;
}

Locked::Locked() : was_unlocked_(std::exchange(t_is_unlocked, false)) {
  // One that has the lock must not wait with it.
  std::optional<Asking> asking;
  if (was_unlocked_ || PyGILState_GetThisThreadState() == nullptr) {
    asking.emplace();
  }
  state_ = PyGILState_Ensure();
}

Locked::~Locked() {
  PyGILState_Release(state_);
  t_is_unlocked = was_unlocked_;
}

void KeepThreadState() {
  // The state goes with the last one that asked for it.
  struct State {
    Locked locked;
    Unlocked unlocked;
  };
  thread_local const State state;
}

void BindInterpreterLock(nanobind::module_& module) {
  module.def("end_calls", &EndCalls);
}

}  // namespace rill::python
