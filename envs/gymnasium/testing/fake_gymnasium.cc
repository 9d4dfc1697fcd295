// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/gymnasium/testing/fake_gymnasium.h"

#include <cstdlib>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace rill {

absl::StatusOr<std::unique_ptr<Env>> MakeFakeGymnasiumEnv(
    GymnasiumEnvOptions options) {
  options.python_path = {absl::StrCat(std::getenv("TEST_SRCDIR"), "/",
                                      std::getenv("TEST_WORKSPACE"),
                                      "/envs/gymnasium/testdata")};
  return MakeGymnasiumEnv(options);
}

void NeedsNumpy::SetUp() {
  if (std::system("python3 -c 'import numpy' 2>/dev/null") != 0) {
    GTEST_SKIP() << "python3 has no NumPy: install python3-numpy";
  }
}

}  // namespace rill
