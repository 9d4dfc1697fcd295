// SPDX-License-Identifier: Apache-2.0
// Transforms of structure and of images.
#include "rill/python/bindings/options.h"
#include "rill/python/bindings/transforms/transform_maker.h"
#include "rill/transforms/images/cat_frames.h"
#include "rill/transforms/images/crop.h"
#include "rill/transforms/images/gray_scale.h"
#include "rill/transforms/images/resize.h"
#include "rill/transforms/images/to_tensor_image.h"
#include "rill/transforms/structure/cat_tensors.h"
#include "rill/transforms/structure/dtype_cast.h"
#include "rill/transforms/structure/expand_as.h"
#include "rill/transforms/structure/rename.h"
#include "rill/transforms/structure/row_shapes.h"
#include "rill/transforms/structure/select.h"
#include "rill/transforms/structure/sequence_lines.h"

namespace rill::python {
namespace {

template <typename Options>
void ReadDim(OptionReader* reader, Options* options) {
  reader->Read("dim", &options->dim);
}

template <typename Options>
void ReadJoin(OptionReader* reader, Options* options) {
  reader->Read("out_key", &options->out_key)
      .Read("dim", &options->dim)
      .Read("del_keys", &options->del_keys);
}

template <typename Options>
void ReadSize(OptionReader* reader, Options* options) {
  reader->Read("w", &options->w).Read("h", &options->h);
}

}  // namespace

void AddStructure(TransformMakers* makers) {
  (*makers)["DTypeCast"] =
      MakerOf<DTypeCast>([](OptionReader* reader, DTypeCast::Options* options) {
        reader->Read("dtype_in", &options->dtype_in)
            .Read("dtype_out", &options->dtype_out);
      });
  (*makers)["DoubleToFloat"] = MakerOf<DoubleToFloat>();
  (*makers)["Select"] =
      MakerOf<Select>([](OptionReader* reader, Select::Options* options) {
        reader->Read("selected_keys", &options->selected_keys)
            .Read("keep_rewards", &options->keep_rewards)
            .Read("keep_dones", &options->keep_dones);
      });
  (*makers)["Exclude"] =
      MakerOf<Exclude>([](OptionReader* reader, Exclude::Options* options) {
        reader->Read("excluded_keys", &options->excluded_keys)
            .Read("inverse", &options->inverse);
      });
  (*makers)["Rename"] =
      MakerOf<Rename>([](OptionReader* reader, Rename::Options* options) {
        reader->Read("out_keys_inv", &options->out_keys_inv)
            .Read("create_copy", &options->create_copy);
      });
  (*makers)["CatTensors"] = MakerOf<CatTensors>(
      [](OptionReader* reader, CatTensors::Options* options) {
        ReadJoin(reader, options);
        reader->Read("sort", &options->sort);
      });
  (*makers)["StackTensors"] =
      MakerOf<StackTensors>(ReadJoin<StackTensors::Options>);
  (*makers)["FlattenObservation"] = MakerOf<FlattenObservation>(
      [](OptionReader* reader, FlattenObservation::Options* options) {
        reader->Read("first_dim", &options->first_dim)
            .Read("last_dim", &options->last_dim);
      });
  (*makers)["Unsqueeze"] = MakerOf<Unsqueeze>(ReadDim<Unsqueeze::Options>);
  (*makers)["Squeeze"] = MakerOf<Squeeze>(ReadDim<Squeeze::Options>);
  (*makers)["Permute"] =
      MakerOf<Permute>([](OptionReader* reader, Permute::Options* options) {
        reader->Read("dims", &options->dims);
      });
  (*makers)["ExpandAs"] =
      MakerOf<ExpandAs>([](OptionReader* reader, ExpandAs::Options* options) {
        reader->Read("in_key", &options->in_key)
            .Read("ref_key", &options->ref_key)
            .Read("out_key", &options->out_key);
      });
  (*makers)["SequenceLines"] = MakerOf<SequenceLines>(
      [](OptionReader* reader, SequenceLines::Options* options) {
        reader->Read("length", &options->length);
      });
}

void AddImages(TransformMakers* makers) {
  (*makers)["ToTensorImage"] = MakerOf<ToTensorImage>(
      [](OptionReader* reader, ToTensorImage::Options* options) {
        reader->Read("from_int", &options->from_int)
            .Read("unsqueeze", &options->unsqueeze)
            .Read("dtype", &options->dtype)
            .Read("shape_tolerant", &options->shape_tolerant);
      });
  (*makers)["Crop"] =
      MakerOf<Crop>([](OptionReader* reader, Crop::Options* options) {
        ReadSize(reader, options);
        reader->Read("top", &options->top).Read("left", &options->left);
      });
  (*makers)["CenterCrop"] = MakerOf<CenterCrop>(ReadSize<CenterCrop::Options>);
  (*makers)["Resize"] = MakerOf<Resize>([](OptionReader* reader,
                                           Resize::Options* options) {
    ReadSize(reader, options);
    reader
        ->ReadEnum(
            "interpolation", &options->interpolation, {"bilinear", "nearest"},
            {Resize::Interpolation::kBilinear, Resize::Interpolation::kNearest})
        .Read("antialias", &options->antialias);
  });
  (*makers)["GrayScale"] = MakerOf<GrayScale>();
  (*makers)["CatFrames"] = MakerOf<CatFrames>([](OptionReader* reader,
                                                 CatFrames::Options* options) {
    reader->Read("num_frames", &options->num_frames)
        .Read("dim", &options->dim)
        .ReadEnum("padding", &options->padding, {"same", "constant"},
                  {CatFrames::Padding::kSame, CatFrames::Padding::kConstant})
        .Read("padding_value", &options->padding_value)
        .Read("done_key", &options->done_key);
  });
}

}  // namespace rill::python
