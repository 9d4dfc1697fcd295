// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_DOC_EXAMPLES_CONTEXT_H_
#define RILL_FORMATS_DOC_EXAMPLES_CONTEXT_H_

#include <string>
#include <vector>

#include "rill/base/status_macros.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/manifest.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/memmap_options.h"
#include "rill/formats/tdz_archive.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

// Names that the examples of this package take for granted.
namespace rill::doc_examples {

extern const std::string directory;
extern const std::string other;
extern const TensorDict steps;
extern const TensorDictSpec spec;

}  // namespace rill::doc_examples

#endif  // RILL_FORMATS_DOC_EXAMPLES_CONTEXT_H_
