// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PROGRAM_STOP_SIGNAL_H_
#define RILL_EXAMPLES_PROGRAM_STOP_SIGNAL_H_

#include <atomic>

namespace rill::examples {

// Has the first Ctrl-C or SIGTERM set the result to true, so that the program
// saves and stops; a second one ends the program at once. Call it from main,
// before threads start. Thread-safety: the result may be read by any thread.
const std::atomic<bool>& CatchStopSignals();

}  // namespace rill::examples

#endif  // RILL_EXAMPLES_PROGRAM_STOP_SIGNAL_H_
