// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TESTING_DOC_EXAMPLES_CONTEXT_H_
#define RILL_TESTING_DOC_EXAMPLES_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/formats/manifest.h"
#include "rill/replay/replay_buffer.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

// Names that the examples of this package take for granted.
namespace rill::doc_examples {

using ::testing::AllOf;
using ::testing::Eq;
using ::testing::StartsWith;

extern const std::unique_ptr<ReplayBuffer> buffer;
extern const std::vector<double> probabilities;
extern const std::vector<int64_t> counts;
extern const Tensor t;
extern const Tensor want;
extern const TensorDict batch;
extern const TensorDict dict;
extern const TensorDict other;

namespace testing_status_matchers_h {

struct Writer {
  absl::Status Write(const TensorDict& batch);
  absl::Status Sync();
};
extern Writer storage;
extern const Manifest manifest;

}  // namespace testing_status_matchers_h
}  // namespace rill::doc_examples

#endif  // RILL_TESTING_DOC_EXAMPLES_CONTEXT_H_
