// SPDX-License-Identifier: Apache-2.0
#include "rill/device/current_stream.h"

namespace rill {
namespace {

thread_local const StreamScope* innermost = nullptr;

}  // namespace

StreamScope::StreamScope(const Stream& stream)
    : device_(stream.device()), handle_(stream.handle()), outer_(innermost) {
  innermost = this;
}

StreamScope::~StreamScope() { innermost = outer_; }

absl::StatusOr<Stream> CurrentStream(Device device) {
  const StreamScope* scope = innermost;
  while (scope != nullptr && scope->device_ != device) scope = scope->outer_;
  return scope == nullptr ? Stream::Default(device)
                          : Stream::Borrow(device, scope->handle_);
}

}  // namespace rill
