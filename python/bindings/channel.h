// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_CHANNEL_H_
#define RILL_PYTHON_BINDINGS_CHANNEL_H_

#include <memory>

#include "rill/flow/channel/record_channel.h"

namespace rill::python {

// The owner's end of a channel that a buffer drains.
struct ChannelPart {
  std::unique_ptr<RecordChannel> channel;
};

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_CHANNEL_H_
