// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/program/stop_signal.h"

#include <signal.h>

#include <atomic>

namespace rill::examples {
namespace {

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free,
              "set in a signal handler");

// The handler does nothing but set it: little else is allowed there.
extern "C" void RequestStop(int) {
  stop_requested.store(true, std::memory_order_relaxed);
}

}  // namespace

const std::atomic<bool>& CatchStopSignals() {
  struct sigaction action = {};
  action.sa_handler = RequestStop;
  // SA_RESETHAND takes the handler away with the first signal, and SA_RESTART
  // keeps that one from failing a read or write.
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return stop_requested;
}

}  // namespace rill::examples
