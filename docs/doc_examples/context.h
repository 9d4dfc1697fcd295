// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DOCS_DOC_EXAMPLES_CONTEXT_H_
#define RILL_DOCS_DOC_EXAMPLES_CONTEXT_H_

#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/current_stream.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/transformed_env.h"
#include "rill/envs/wrappers/frame_skip.h"
#include "rill/envs/wrappers/noop_reset.h"
#include "rill/estimators/reward_to_go.h"
#include "rill/estimators/value_estimators.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/actions/action_chunk.h"
#include "rill/transforms/actions/action_discretizer.h"
#include "rill/transforms/actions/action_mask.h"
#include "rill/transforms/actions/action_scaling.h"
#include "rill/transforms/actions/discrete_action_projection.h"
#include "rill/transforms/actions/flatten_action.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/compose.h"
#include "rill/transforms/env/end_of_life.h"
#include "rill/transforms/env/random_truncation.h"
#include "rill/transforms/env/tensor_dict_primer.h"
#include "rill/transforms/env/terminate.h"
#include "rill/transforms/env/timer.h"
#include "rill/transforms/episodes/burn_in.h"
#include "rill/transforms/episodes/episode_trackers.h"
#include "rill/transforms/episodes/multi_step.h"
#include "rill/transforms/episodes/next_observation_delta.h"
#include "rill/transforms/episodes/policy_age_filter.h"
#include "rill/transforms/episodes/random_crop.h"
#include "rill/transforms/episodes/return_scaling.h"
#include "rill/transforms/episodes/target_return.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/function_transform.h"
#include "rill/transforms/images/cat_frames.h"
#include "rill/transforms/images/crop.h"
#include "rill/transforms/images/gray_scale.h"
#include "rill/transforms/images/resize.h"
#include "rill/transforms/images/time_max_pool.h"
#include "rill/transforms/images/to_tensor_image.h"
#include "rill/transforms/next_state_reconstructor.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/rows/row_map.h"
#include "rill/transforms/rows/row_steps.h"
#include "rill/transforms/rows/rowwise_transform.h"
#include "rill/transforms/step_counter.h"
#include "rill/transforms/structure/cat_tensors.h"
#include "rill/transforms/structure/device_cast.h"
#include "rill/transforms/structure/dtype_cast.h"
#include "rill/transforms/structure/expand_as.h"
#include "rill/transforms/structure/flatten_tensor_dict.h"
#include "rill/transforms/structure/remove_empty_specs.h"
#include "rill/transforms/structure/rename.h"
#include "rill/transforms/structure/row_shapes.h"
#include "rill/transforms/structure/select.h"
#include "rill/transforms/structure/sequence_lines.h"
#include "rill/transforms/to_device.h"
#include "rill/transforms/values/finite_tensor_dict_check.h"
#include "rill/transforms/values/hash.h"
#include "rill/transforms/values/observation_norm.h"
#include "rill/transforms/values/unary.h"
#include "rill/transforms/values/value_clips.h"

// Names that the examples of these pages use and do not declare.
namespace rill::doc_examples {

extern const TensorDictSpec goal, spec;
extern const Unary::Function LogOfRows;
bool IsPositive(Terminate::Leaves step, int64_t lane);
extern const std::shared_ptr<Storage> storage;
extern ReplayBuffer* const buffer;
extern const TensorDict batch;
extern TransformedEnv &actor, &other_actor, &evaluation;

}  // namespace rill::doc_examples

#endif  // RILL_DOCS_DOC_EXAMPLES_CONTEXT_H_
