// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_ENVS_MUJOCO_ENVS_H_
#define RILL_PYTHON_BINDINGS_ENVS_MUJOCO_ENVS_H_

#include <memory>
#include <string>
#include <vector>

#include "nanobind/nanobind.h"
#include "rill/python/bindings/envs/env_part.h"

namespace rill::python {

// The tasks of //envs/mujoco by the names of rill.envs; none in a wheel without
// MuJoCo.
std::vector<std::string> MujocoTasks();

// One of them. `options` are the task's, by their names. Throws UNIMPLEMENTED
// in a wheel without MuJoCo. The interpreter's lock is held.
std::unique_ptr<EnvPart> MakeMujoco(const std::string& name,
                                    const nanobind::dict& options);

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_ENVS_MUJOCO_ENVS_H_
