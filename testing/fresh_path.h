// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TESTING_FRESH_PATH_H_
#define RILL_TESTING_FRESH_PATH_H_

#include <string>

#include "absl/strings/string_view.h"

namespace rill {

// A path in the tests' temporary folder where nothing is, of the test that
// calls and of `name`. Removes what an earlier call has left there.
std::string FreshPath(absl::string_view name = "path");
// The same, with an empty folder there.
std::string FreshDirectory(absl::string_view name = "directory");

// Another path with each call, all below one folder of this name. The first
// call of a test removes those of the tests before it.
std::string NextFreshPath(absl::string_view name);

}  // namespace rill

#endif  // RILL_TESTING_FRESH_PATH_H_
