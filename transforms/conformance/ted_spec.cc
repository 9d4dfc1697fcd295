// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/conformance/ted_spec.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "rill/testing/status_matchers.h"

namespace rill {

TensorDictSpec TedSpec() {
  TensorDictSpec spec;
  const LeafSpec observation = LeafSpec::Bounded(DType::kFloat32, {4}, -1, 1);
  RILL_EXPECT_OK(spec.Set("observation", observation));
  RILL_EXPECT_OK(spec.Set("action", LeafSpec::Categorical(2)));
  RILL_EXPECT_OK(spec.Set("next/observation", observation));
  RILL_EXPECT_OK(
      spec.Set("next/reward", LeafSpec::Bounded(DType::kFloat32, {1}, -2, 2)));
  for (const char* flag : {"done", "terminated", "truncated"}) {
    RILL_EXPECT_OK(spec.Set(flag, LeafSpec::Binary({1})));
    RILL_EXPECT_OK(
        spec.Set(absl::StrCat("next/", flag), LeafSpec::Binary({1})));
  }
  return spec;
}

}  // namespace rill
