// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_DOC_EXAMPLES_CONTEXT_H_
#define RILL_DEVICE_DOC_EXAMPLES_CONTEXT_H_

#include <cstdint>
#include <memory>

#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"

// Names that the examples of this package take for granted.
namespace rill::doc_examples {

constexpr int64_t bytes = 1 << 20;
extern const std::shared_ptr<Buffer> device;
extern int value;

}  // namespace rill::doc_examples

#endif  // RILL_DEVICE_DOC_EXAMPLES_CONTEXT_H_
