// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DOCS_DOC_EXAMPLES_RECALL_H_
#define RILL_DOCS_DOC_EXAMPLES_RECALL_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"

// The environment of docs/recurrent.md.
absl::StatusOr<std::unique_ptr<rill::Env>> MakeRecall(int64_t lanes);

#endif  // RILL_DOCS_DOC_EXAMPLES_RECALL_H_
