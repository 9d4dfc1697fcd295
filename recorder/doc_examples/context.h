// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_RECORDER_DOC_EXAMPLES_CONTEXT_H_
#define RILL_RECORDER_DOC_EXAMPLES_CONTEXT_H_

#include <cstdint>
#include <string>

#include "rill/base/status_macros.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/replay/buffer_options.h"
#include "rill/tensordict/tensor_dict.h"

// Names that the examples of this package use and do not declare.
namespace rill::doc_examples {

extern const std::string path, log_path;
extern const TensorDict first, second;
extern MultiCollectorOptions collector_options;
extern BufferOptions buffer_options;
extern const bool is_time_left;
extern const int argc;
extern char** const argv;

}  // namespace rill::doc_examples

#endif  // RILL_RECORDER_DOC_EXAMPLES_CONTEXT_H_
