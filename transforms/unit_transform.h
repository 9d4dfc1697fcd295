// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_UNIT_TRANSFORM_H_
#define RILL_TRANSFORMS_UNIT_TRANSFORM_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/option_values.h"  // IWYU pragma: export
#include "rill/device/uploads/stream_uploads.h"
#include "rill/slots/plan_layout.h"
#include "rill/slots/sample_plan.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// The arithmetic of a sampler's unit: what the rows that it planned become. The
// sampler tells which rows (n-step: a row, those behind it and the last of
// them), this which leaves of them are read and what is made of those. A replay
// buffer calls it between the gather and the transforms.
//
// Thread-safety: immutable.
// Implementations pass transforms/conformance:unit_transform_conformance.
class UnitTransform {
 public:
  // The facts about it, fixed when it is made.
  struct Traits {
    std::string name;  // "NStepReturns": named in errors and checkpoints.
    // The options that it was made with, for checkpoints to compare.
    OptionValues options = {};
    // The result of a draw is the same whatever draws a plan has beside it,
    // so that a batch may be made of parts of its plan.
    bool is_drawwise = false;
    // Rows of a draw are consecutive steps, and the end of a draw is marked, as
    // transforms/timeline/timeline.h reads it. The batch's dimension is named
    // "time" then, else "rows" (tensordict/dim_names.h).
    bool marks_pieces = false;
    // Enqueue launches nothing by itself, but leaves all kernels to the next
    // Send of the uploads (StreamUploads::Behind). For plans with as many rows
    // in each list only the values that are sent differ. So a batch's work can
    // be a graph.
    bool leaves_launches = false;
  };

  // Keys of leaves of the stored rows. A leaf that is not named is not read.
  struct Reads {
    // The keys of one list of rows.
    struct List {
      // Gathered straight into the batch's leaf of the same key, each key from
      // one list only. A list of context may have some only where it has just
      // one row for each of the batch, in the same order.
      std::vector<std::string> batch;
      // Some of `batch`: Apply and Enqueue neither read nor change them. A
      // reader may make something else of their rows.
      std::vector<std::string> untouched;
      // Gathered into a dictionary of their own, for Apply to read.
      std::vector<std::string> apart;
    };
    List rows;  // The batch's own rows.
    // The lists of SamplePlan::context, in its order: as many as the unit
    // plans.
    std::vector<List> context;
  };

  virtual ~UnitTransform() = default;

  const Traits& traits() const { return traits_; }
  absl::string_view name() const { return traits_.name; }

  // OK where it works on plans of this layout; else INVALID_ARGUMENT names what
  // differs.
  virtual absl::Status CheckLayout(const PlanLayout& plans) const = 0;

  // From what a stored row holds. INVALID_ARGUMENT or NOT_FOUND, naming the
  // key and what there is, where it cannot work on such rows.
  virtual absl::StatusOr<Reads> PlanReads(const TensorDictSpec& rows) const = 0;

  // The spec of the batch afterwards, without the sampler's own leaves. Errors
  // as PlanReads.
  virtual absl::StatusOr<TensorDictSpec> BatchSpec(
      const TensorDictSpec& rows) const = 0;

  // Leaves of the batch whose rows are stored rows, one behind the other, as a
  // stack of frames is. A reader may put them together itself, and leave the
  // others to WithoutJoined(). Empty where there are none. BatchSpec has passed
  // the rows.
  struct Joined {
    std::string key;
    std::vector<std::string> parts;  // Keys of stored leaves.
  };
  virtual std::vector<Joined> JoinedLeaves(
      const TensorDictSpec& /*rows*/) const {
    return {};
  }
  // The rows that `joined`, one of these, is made of: for each row of the batch
  // one slot a part. Errors of Apply for the plan.
  virtual absl::Status JoinedSlots(const SamplePlan& /*plan*/,
                                   const Joined& /*joined*/,
                                   std::vector<Slot>* slots) const {
    slots->clear();
    return absl::OkStatus();
  }
  // The same unit, which neither reads nor makes leaves that are joined. Null
  // where there are none.
  virtual std::unique_ptr<UnitTransform> WithoutJoined() const {
    return nullptr;
  }

  // `batch` [R] holds the leaves that were gathered into it (and `index`, ...);
  // `rows` [R] and context[i] those apart. context[i] may have more rows than
  // plan.context[i].rows: those behind mean nothing. All are contiguous and the
  // sample's own. The other leaves of BatchSpec are
  // written in place, without allocation, where `batch` holds them already
  // with their layout, writable and contiguous; else they are made. So a caller
  // that hands in a batch of BatchSpec decides where everything lies. INTERNAL
  // where the plan is not one of the unit's; FAILED_PRECONDITION for leaves on
  // a device, which Enqueue takes. With an error the batch is to be dropped.
  virtual absl::Status Apply(const SamplePlan& plan, const TensorDict& rows,
                             absl::Span<const TensorDict> context,
                             TensorDict* batch) const = 0;

  // The same of leaves on a device: enqueued on uploads->stream(), the device's
  // current one, and the host goes on. Everything that is handed in has its
  // values there at that point, and lives until the batch of `uploads` has
  // ended, which also keeps what this makes for itself. `rows` too may have
  // more rows behind. The caller sends what `uploads` has then. Errors as
  // Apply; FAILED_PRECONDITION of a unit that works in host memory alone.
  virtual absl::Status Enqueue(const SamplePlan& plan, const TensorDict& rows,
                               absl::Span<const TensorDict> context,
                               StreamUploads* uploads, TensorDict* batch) const;

 protected:
  explicit UnitTransform(Traits traits) : traits_(std::move(traits)) {}

 private:
  const Traits traits_;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_UNIT_TRANSFORM_H_
