// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_MUJOCO_MUJOCO_MODEL_H_
#define RILL_ENVS_MUJOCO_MUJOCO_MODEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mujoco/mujoco.h"

namespace rill {

// Compiles a model of MuJoCo's XML format (MJCF), or of URDF. It never changes,
// so environments and threads share it.
//
// Errors: NOT_FOUND where there is no file, INVALID_ARGUMENT with MuJoCo's text
//   where it does not load.
// Thread-safety: thread-safe. Cost: some milliseconds.
//
// Example (MujocoModelTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto model, LoadMujocoModel("arm/scene.xml"));
//   const double dt = model->opt.timestep;
using MujocoModel = std::shared_ptr<const mjModel>;
absl::StatusOr<MujocoModel> LoadMujocoModel(const std::string& xml_file);
// The same from the text itself, which names no further files.
absl::StatusOr<MujocoModel> ParseMujocoModel(absl::string_view xml);

}  // namespace rill

#endif  // RILL_ENVS_MUJOCO_MUJOCO_MODEL_H_
