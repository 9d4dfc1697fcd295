// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DOCS_DOC_EXAMPLES_GUIDES_OWN_TRANSFORM_H_
#define RILL_DOCS_DOC_EXAMPLES_GUIDES_OWN_TRANSFORM_H_

#include <cmath>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/batch_transform.h"

// The transform that docs/extending.md shows.
std::unique_ptr<rill::BatchTransform> MakeSquashReward();

#endif  // RILL_DOCS_DOC_EXAMPLES_GUIDES_OWN_TRANSFORM_H_
