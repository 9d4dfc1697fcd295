// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_DECISION_LOG_H_
#define RILL_FLOW_DECISION_LOG_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// One thing that an asynchronous run decided, or did where that shows whether
// another run does the same. `numbers` by kind:
struct Decision {
  // The values are those of docs/formats/flight_log.md.
  enum class Kind : uint8_t {
    kPart = 1,  // A part has joined; its number is that of its kPart, from 0.
    // A collector with workers has these.
    kArrival = 2,  // See Arrival below.
    kCut = 3,      // worker, producer.
    // worker, restarts of it so far, status of wait(2) or -1, DeathCause.
    kReplace = 4,
    kStop = 5,     // A call was CANCELLED.
    kFailure = 6,  // code: the error of a worker's parts that a call had.
    // A replay buffer has these.
    kWrite = 7,        // first lane, lanes, steps.
    kEndLanes = 8,     // first lane, lanes: Cut.
    kDraw = 9,         // items.
    kPriorities = 10,  // rows, or those of PriorityCounts below.
    kPatch = 11,       // rows.
    kClear = 12,
    // A WeightStore has this.
    kPublish = 13,  // version.
    // The program has these.
    kChoice = 14,  // value.
    kEnd = 15,     // The run has ended by itself.
  };
  static constexpr uint8_t kMaxKind = 15;

  Kind kind = Kind::kEnd;
  int64_t part = 0;
  std::vector<int64_t> numbers = {};
  uint32_t digest = 0;  // CRC32C of the values; 0 where there are none.

  friend bool operator==(const Decision&, const Decision&) = default;
};

// A worker's batch, as the numbers of a kArrival: worker, sequence, steps,
// run_before, and of each element of `versions` steps and version.
struct Arrival {
  // Steps that follow one another with one version of the weights.
  struct Versions {
    int64_t steps = 0;
    int64_t version = 0;
  };
  int64_t worker = 0;      // In [0, 2^31].
  int64_t sequence = 0;    // Among the producer's.
  int64_t steps = 0;       // In time, also of a short batch; in [0, 2^31].
  int64_t run_before = 0;  // SyncCollector::RunFrames::before; within 2^61.
  std::vector<Versions> versions = {};  // Of all steps, in order.

  std::vector<int64_t> ToNumbers() const;
  // DATA_LOSS where ToNumbers cannot have made them.
  static absl::StatusOr<Arrival> FromNumbers(absl::Span<const int64_t> numbers);
};

// New priorities as a histogram, as the numbers of a kPriorities: rows, zeros,
// first, and the elements of `counts`.
struct PriorityCounts {
  int64_t rows = 0;   // All of them.
  int64_t zeros = 0;  // That are not above 0.
  int64_t first = 0;  // counts[i] are in [2^(first + i), 2^(first + i + 1)).
  std::vector<int64_t> counts = {};

  static PriorityCounts Of(absl::Span<const float> priorities);
  std::vector<int64_t> ToNumbers() const;
  // DATA_LOSS where ToNumbers cannot have made them.
  static absl::StatusOr<PriorityCounts> FromNumbers(
      absl::Span<const int64_t> numbers);
};

// Where the parts of a run say what they decide: an option of collectors,
// replay buffers and weight stores. `recorder/flight_recorder.h` is one, which
// writes a log, or repeats the run of a log. Then Note compares, a collector
// asks Next which worker's batch comes, and steps that worker itself.
//
// Thread-safety: thread-safe. A run that is to be repeated calls its parts from
//   one thread: a repeat holds no thread back until it is its turn.
// Cost: where a part has none, one comparison with null a call.
class DecisionLog {
 public:
  virtual ~DecisionLog() = default;

  // Whether a run is repeated. Never changes.
  virtual bool repeats() const = 0;

  // A part's number. `description` says what the part is; that of a repeated
  // run must be equal.
  virtual absl::StatusOr<int64_t> AddPart(absl::string_view description) = 0;

  // A part has done this, with these values. While a run is recorded it is OK,
  // whatever becomes of the log. While one is repeated it is DATA_LOSS where
  // the log has something else next, and names both; ABORTED where the log
  // ends. After the first DATA_LOSS all that follows is that error, so that a
  // program which ignores it repeats nothing more.
  virtual absl::Status Note(Decision::Kind kind, int64_t part,
                            absl::Span<const int64_t> numbers,
                            const TensorDict& values,
                            absl::Span<const absl::string_view> pieces) = 0;
  // The same of plain bytes, piece by piece.
  virtual absl::Status Note(
      Decision::Kind kind, int64_t part, absl::Span<const int64_t> numbers,
      absl::Span<const absl::string_view> pieces = {}) = 0;

  // These are for a run that is repeated.
  // Whether the log has such an event of this part next.
  virtual bool IsNext(Decision::Kind kind, int64_t part) const = 0;
  // The next event, which Note is to take. Errors as Note, where it is another
  // part's.
  virtual absl::StatusOr<Decision> Next(int64_t part) = 0;
  // A part does what the log does not have next: DATA_LOSS with `got`, as Note
  // of another event.
  virtual absl::Status Differs(absl::string_view got) = 0;
  // The weights that a store published, on the host, where a later arrival
  // names the version; NOT_FOUND else.
  virtual absl::StatusOr<std::shared_ptr<const TensorDict>> Published(
      int64_t part, int64_t version) = 0;
};

}  // namespace rill

#endif  // RILL_FLOW_DECISION_LOG_H_
