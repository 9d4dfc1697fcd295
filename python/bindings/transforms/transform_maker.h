// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_TRANSFORMS_TRANSFORM_MAKER_H_
#define RILL_PYTHON_BINDINGS_TRANSFORMS_TRANSFORM_MAKER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/python/bindings/options.h"
#include "rill/transforms/batch_transform.h"

namespace rill::python {

// Transforms by their names in C++, made of dictionaries of their options.

using MadeTransform = absl::StatusOr<std::unique_ptr<BatchTransform>>;

// Reads the options of T and creates one.
using TransformMaker = std::function<MadeTransform(OptionReader* reader)>;

// `read` fills the options. Most have the keys that MakerOf reads.
template <typename T, typename Options, typename Read>
TransformMaker MakerOf(Read read) {
  return [read](OptionReader* reader) -> MadeTransform {
    Options options;
    if constexpr (requires { options.in_keys; }) {
      reader->Read("in_keys", &options.in_keys);
    }
    if constexpr (requires { options.out_keys; }) {
      reader->Read("out_keys", &options.out_keys);
    }
    if constexpr (requires { options.in_keys_inv; }) {
      reader->Read("in_keys_inv", &options.in_keys_inv);
    }
    read(reader, &options);
    reader->CheckAllRead();
    return T::Create(options);
  };
}
template <typename T, typename Read>
TransformMaker MakerOf(Read read) {
  return MakerOf<T, typename T::Options>(read);
}
// One without other options.
template <typename T>
TransformMaker MakerOf() {
  return MakerOf<T>([](OptionReader*, typename T::Options*) {});
}

using TransformMakers = std::map<std::string, TransformMaker, std::less<>>;

// Those of transforms/structure, images, values and episodes, and of
// estimators/.
void AddStructure(TransformMakers* makers);
void AddImages(TransformMakers* makers);
void AddValues(TransformMakers* makers);
void AddEpisodes(TransformMakers* makers);
void AddEstimators(TransformMakers* makers);

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_TRANSFORMS_TRANSFORM_MAKER_H_
