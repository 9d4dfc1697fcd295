// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_WORKERS_DICT_BYTES_H_
#define RILL_COLLECTORS_WORKERS_DICT_BYTES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::workers_internal {

// A dictionary of host tensors, nested dictionaries and values of one kind for
// all rows (NonTensor) as bytes, for another process of this program: a state.
// No format for files (formats/ has those): the byte order is the machine's,
// and there is no version. Thread-safety: thread-safe.

// UNIMPLEMENTED names an entry of another kind.
absl::StatusOr<std::string> DictToBytes(const TensorDict& dict);

// DATA_LOSS where the bytes are not such a dictionary.
absl::StatusOr<TensorDict> DictFromBytes(absl::string_view bytes);

}  // namespace rill::workers_internal

#endif  // RILL_COLLECTORS_WORKERS_DICT_BYTES_H_
