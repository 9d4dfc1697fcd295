// SPDX-License-Identifier: Apache-2.0
// Transforms of values, episodes and estimates.
#include "rill/estimators/reward_to_go.h"
#include "rill/estimators/value_estimators.h"
#include "rill/python/bindings/options.h"
#include "rill/python/bindings/transforms/transform_maker.h"
#include "rill/transforms/actions/action_chunk.h"
#include "rill/transforms/episodes/burn_in.h"
#include "rill/transforms/episodes/next_observation_delta.h"
#include "rill/transforms/episodes/random_crop.h"
#include "rill/transforms/next_state_reconstructor.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/values/finite_tensor_dict_check.h"
#include "rill/transforms/values/observation_norm.h"
#include "rill/transforms/values/value_clips.h"

namespace rill::python {
namespace {

void ReadKeys(OptionReader* reader, ValueKeys* keys) {
  reader->Read("reward_key", &keys->reward)
      .Read("value_key", &keys->value)
      .Read("next_value_key", &keys->next_value)
      .Read("done_key", &keys->done)
      .Read("terminated_key", &keys->terminated)
      .Read("advantage_key", &keys->advantage)
      .Read("value_target_key", &keys->value_target);
}

}  // namespace

void AddValues(TransformMakers* makers) {
  (*makers)["ObservationNorm"] = MakerOf<ObservationNorm>(
      [](OptionReader* reader, ObservationNorm::Options* options) {
        reader->Read("loc", &options->loc)
            .Read("scale", &options->scale)
            .Read("standard_normal", &options->standard_normal);
      });
  (*makers)["Clip"] =
      MakerOf<Clip>([](OptionReader* reader, Clip::Options* options) {
        reader->Read("low", &options->low).Read("high", &options->high);
      });
  (*makers)["RewardClipping"] = MakerOf<RewardClipping>(
      [](OptionReader* reader, RewardClipping::Options* options) {
        reader->Read("clamp_min", &options->clamp_min)
            .Read("clamp_max", &options->clamp_max);
      });
  (*makers)["BinarizeReward"] = MakerOf<BinarizeReward>();
  (*makers)["Sign"] = MakerOf<Sign>();
  (*makers)["RewardScaling"] = MakerOf<RewardScaling>(
      [](OptionReader* reader, RewardScaling::Options* options) {
        reader->Read("loc", &options->loc)
            .Read("scale", &options->scale)
            .Read("standard_normal", &options->standard_normal)
            .Read("key", &options->key);
      });
  (*makers)["FiniteTensorDictCheck"] =
      [](OptionReader* reader) -> MadeTransform {
    reader->CheckAllRead();
    return FiniteTensorDictCheck::Create();
  };
}

void AddEpisodes(TransformMakers* makers) {
  (*makers)["BurnIn"] =
      MakerOf<BurnIn>([](OptionReader* reader, BurnIn::Options* options) {
        reader->Read("burn_in", &options->burn_in)
            .Read("mask_key", &options->mask_key);
      });
  (*makers)["RandomCropTensorDict"] = MakerOf<RandomCropTensorDict>(
      [](OptionReader* reader, RandomCropTensorDict::Options* options) {
        reader->Read("sub_seq_len", &options->sub_seq_len)
            .Read("sample_dim", &options->sample_dim)
            .Read("mask_key", &options->mask_key)
            .Read("seed", &options->seed);
      });
  (*makers)["NextStateReconstructor"] = MakerOf<NextStateReconstructor>(
      [](OptionReader* reader, NextStateReconstructor::Options* options) {
        reader->Read("keys", &options->keys)
            .Read("traj_key", &options->traj_key)
            .Read("done_key", &options->done_key)
            .Read("step_count_key", &options->step_count_key)
            .Read("mask_key", &options->mask_key)
            .Read("fill_value", &options->fill_value)
            .Read("strict", &options->strict);
      });
  (*makers)["ActionChunk"] = MakerOf<ActionChunk>(
      [](OptionReader* reader, ActionChunk::Options* options) {
        reader->Read("chunk_size", &options->chunk_size)
            .Read("action_key", &options->action_key)
            .Read("chunk_key", &options->chunk_key)
            .Read("pad_key", &options->pad_key)
            .Read("done_key", &options->done_key);
      });
  (*makers)["NextObservationDelta"] = MakerOf<NextObservationDelta>(
      [](OptionReader* reader, NextObservationDelta::Options* options) {
        reader->Read("delta_dtype", &options->delta_dtype)
            .Read("drop_delta", &options->drop_delta);
      });
}

void AddEstimators(TransformMakers* makers) {
  (*makers)["Reward2Go"] = MakerOf<Reward2Go>([](OptionReader* reader,
                                                 Reward2Go::Options* options) {
    reader->Read("gamma", &options->gamma).Read("done_key", &options->done_key);
  });
  (*makers)["DensifyReward"] = MakerOf<DensifyReward>(
      [](OptionReader* reader, DensifyReward::Options* options) {
        reader->Read("reward_key", &options->reward_key)
            .Read("done_key", &options->done_key)
            .Read("reward_key_out", &options->reward_key_out)
            .Read("discount", &options->discount);
      });
  (*makers)["GAE"] =
      MakerOf<GAE>([](OptionReader* reader, GAE::Options* options) {
        reader->Read("gamma", &options->gamma)
            .Read("lmbda", &options->lmbda)
            .Read("average_gae", &options->average_gae);
        ReadKeys(reader, &options->keys);
      });
  (*makers)["TDLambdaEstimator"] = MakerOf<TDLambdaEstimator>(
      [](OptionReader* reader, TDLambdaEstimator::Options* options) {
        reader->Read("gamma", &options->gamma).Read("lmbda", &options->lmbda);
        ReadKeys(reader, &options->keys);
      });
  (*makers)["VTrace"] =
      MakerOf<VTrace>([](OptionReader* reader, VTrace::Options* options) {
        reader->Read("gamma", &options->gamma)
            .Read("rho_thresh", &options->rho_thresh)
            .Read("c_thresh", &options->c_thresh)
            .Read("average_adv", &options->average_adv)
            .Read("log_prob_key", &options->log_prob_key)
            .Read("sample_log_prob_key", &options->sample_log_prob_key);
        ReadKeys(reader, &options->keys);
      });
}

}  // namespace rill::python
