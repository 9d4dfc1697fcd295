// SPDX-License-Identifier: Apache-2.0
// In the place of mujoco_envs.cc, in a wheel without MuJoCo.
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/python/bindings/envs/mujoco_envs.h"
#include "rill/python/bindings/status.h"

namespace rill::python {

std::vector<std::string> MujocoTasks() { return {}; }

std::unique_ptr<EnvPart> MakeMujoco(const std::string& name,
                                    const nanobind::dict& /*options*/) {
  throw StatusError{absl::UnimplementedError(absl::StrCat(
      name,
      ": got a wheel without MuJoCo's environments in C++, want one of "
      "`tools/wheel --mujoco`; GymEnv(\"",
      name, "-v5\") is the task in Gymnasium's package"))};
}

}  // namespace rill::python
