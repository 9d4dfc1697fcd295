// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_VALUES_UNARY_H_
#define RILL_TRANSFORMS_VALUES_UNARY_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/leaf_spec.h"
#include "rill/transforms/rows/rowwise_transform.h"

namespace rill {

// A user's function of the rows of some leaves: after reads, before writes,
// beside an environment, and on the way of a gather. TorchRL's UnaryTransform,
// which takes `fn` before writes where there is no inv_fn.
//
// Thread-safety: that of the functions, which several threads call at once.
// Cost: that of the functions.
//
// Example (UnaryTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto root,
//       Unary::Create({.in_keys = {"observation"},
//                      .fn = [](const BoundLeaf& from, const BoundLeaf& to) {
//                        for (size_t i = 0; i < to.As<float>().size(); ++i) {
//                          to.As<float>()[i] = std::sqrt(from.As<float>()[i]);
//                        }
//                        return absl::OkStatus();
//                      }}));
struct Unary {
  // From rows that are only read to as many rows that are to be written: any
  // number of them, also one lane's. A row depends on the one at its place
  // alone. Both are flat. The dtypes that As may take are those of the leaves.
  using Function =
      std::function<absl::Status(const BoundLeaf& from, const BoundLeaf& to)>;
  // The leaf afterwards. Its dtype and shape depend on dtype and shape alone. A
  // dtype that the function does not take is refused here.
  using SpecFunction =
      std::function<absl::StatusOr<LeafSpec>(const LeafSpec& leaf)>;

  struct Options {
    std::vector<std::string> in_keys = {};
    std::vector<std::string> out_keys = {};  // Empty: in_keys.
    std::vector<std::string> in_keys_inv = {};
    Function fn = nullptr;
    Function inv_fn = nullptr;  // Where there are in_keys_inv.
    // The spec of `fn`. None: dtype and shape stay, and the values are any, as
    // with inv_fn.
    SpecFunction spec_fn = nullptr;
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<RowwiseTransform>> Create(
      Options options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_VALUES_UNARY_H_
