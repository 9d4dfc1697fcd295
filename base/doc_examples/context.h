// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_DOC_EXAMPLES_CONTEXT_H_
#define RILL_BASE_DOC_EXAMPLES_CONTEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/base/file.h"
#include "rill/base/mapped_file.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"

// Names that the examples of this package take for granted.
namespace rill::doc_examples {

constexpr int64_t kBytes = int64_t{1} << 30;

extern const Rng rng;
extern const std::string path;
extern const std::string text;

namespace base_status_macros_h {

struct Tensor {};
struct TensorDict {
  absl::StatusOr<Tensor> Get(const char* key) const;
};
extern const TensorDict dict;
absl::Status Load(const std::string& path);

}  // namespace base_status_macros_h
}  // namespace rill::doc_examples

#endif  // RILL_BASE_DOC_EXAMPLES_CONTEXT_H_
