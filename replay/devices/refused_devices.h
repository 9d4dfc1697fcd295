// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_DEVICES_REFUSED_DEVICES_H_
#define RILL_REPLAY_DEVICES_REFUSED_DEVICES_H_

namespace rill {

// Replay buffers in a program whose CUDA driver is of no use: each way to
// cuda:0 is FAILED_PRECONDITION and says what to do, each time. Rows in host
// memory and in files stay, and are written, sampled and opened. GoogleTest
// failures otherwise.
void ExpectDevicesAreRefused();

}  // namespace rill

#endif  // RILL_REPLAY_DEVICES_REFUSED_DEVICES_H_
