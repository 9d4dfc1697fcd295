// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_DOC_EXAMPLES_CONTEXT_H_
#define RILL_DEVICE_DOC_EXAMPLES_CONTEXT_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/graphs/graph.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/device/kernels/testing/scale_kernel.h"
#include "rill/device/priorities/device_priorities.h"
#include "rill/device/staging/staging_ring.h"
#include "rill/device/stream.h"
#include "rill/device/uploads/stream_uploads.h"

// Names that the examples of this package take for granted.
namespace rill::doc_examples {

constexpr int64_t bytes = 1 << 20;
extern const std::shared_ptr<Buffer> device;
extern int value;

// A kernel works on these.
extern double* const values;
extern const int64_t n;
extern const std::vector<DevicePriorities::Change> changes;
extern const int64_t* const slots;
extern const int64_t* const generations;
extern const float* const td_errors;
extern const Stream stream;
extern StagingRing ring;
extern void* const to;
extern const void* const from;

}  // namespace rill::doc_examples

#endif  // RILL_DEVICE_DOC_EXAMPLES_CONTEXT_H_
