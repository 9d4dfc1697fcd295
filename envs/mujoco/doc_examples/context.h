// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_MUJOCO_DOC_EXAMPLES_CONTEXT_H_
#define RILL_ENVS_MUJOCO_DOC_EXAMPLES_CONTEXT_H_

#include <cmath>

#include "absl/status/status.h"
#include "rill/base/status_macros.h"
#include "rill/envs/mujoco/ant.h"
#include "rill/envs/mujoco/half_cheetah.h"
#include "rill/envs/mujoco/hopper.h"
#include "rill/envs/mujoco/humanoid.h"
#include "rill/envs/mujoco/inverted_pendulum.h"
#include "rill/envs/mujoco/mujoco_env.h"
#include "rill/envs/mujoco/mujoco_model.h"
#include "rill/envs/mujoco/reset_noise.h"
#include "rill/envs/mujoco/walker2d.h"

// Names that the examples of this package use and do not declare.
namespace rill::doc_examples {

MujocoOutcome walk(const MujocoStep& step);

}  // namespace rill::doc_examples

#endif  // RILL_ENVS_MUJOCO_DOC_EXAMPLES_CONTEXT_H_
