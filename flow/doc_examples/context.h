// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_DOC_EXAMPLES_CONTEXT_H_
#define RILL_FLOW_DOC_EXAMPLES_CONTEXT_H_

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/flow/channel/record_channel.h"
#include "rill/flow/conformance/sink_conformance.h"
#include "rill/flow/conformance/source_conformance.h"
#include "rill/flow/exactly_once_sink.h"
#include "rill/flow/frames/frame.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

// Names that the examples of this package take for granted.
namespace rill::doc_examples {

extern const TensorDict batch;
extern const TensorDict weights;
extern const TensorDict better;
extern const TensorDictSpec spec;
extern Sink& buffer;
extern int64_t steps;
absl::StatusOr<std::unique_ptr<Source>> MakeMine();
SinkSubject MakeMySink();

}  // namespace rill::doc_examples

#endif  // RILL_FLOW_DOC_EXAMPLES_CONTEXT_H_
