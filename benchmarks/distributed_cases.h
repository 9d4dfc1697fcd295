// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BENCHMARKS_DISTRIBUTED_CASES_H_
#define RILL_BENCHMARKS_DISTRIBUTED_CASES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/distributed/transport/transport.h"
#include "rill/tensordict/tensor_dict.h"

// Shared by the programs of benchmarks/distributed, one an engine: each
// measures Rill over that engine, or the engine alone.
namespace rill {

// Exchanges of rows of one size. An exchange is a request and its reply, and
// the rows are in one of them, or in both (kCall).
struct DistributedCase {
  enum Kind { kInsert, kSample, kCall };

  const char* name;
  Kind kind;
  int64_t pixels;  // Bytes of a row beside the 47 of its other leaves.
  int64_t rows;    // Of an exchange.
  int64_t ahead;   // Requests without a reply.
};
absl::Span<const DistributedCase> DistributedCases();

// Rows of as many exchanges fill a table of Rill's: its side walks over that
// much memory, and so does the side kWalkSide.
inline constexpr int64_t kWalkedBlocks = 16;

// The rows of one exchange.
absl::StatusOr<TensorDict> MakeRows(const DistributedCase& of);

// Makes as many exchanges; all replies are there when it returns.
using RunExchanges = std::function<absl::Status(int64_t exchanges)>;
using OpenCase =
    absl::FunctionRef<absl::StatusOr<RunExchanges>(const DistributedCase&)>;

// Prints a line a case: its name, seconds an exchange, and bytes of its rows,
// with tabs between.
absl::Status MeasureCases(bool is_quick, OpenCase open);

// The sides of a program's command line.
inline constexpr char kBareSide[] = "bare";  // As many blocks as are ahead.
inline constexpr char kWalkSide[] = "walk";  // Bare over kWalkedBlocks.
inline constexpr char kRillSide[] = "rill";
// The main of these programs: a side, one of `others` too, and perhaps --quick.
int SideMain(
    int argc, char** argv, const std::vector<absl::string_view>& others,
    absl::FunctionRef<absl::Status(absl::string_view side, bool is_quick)> run);

// The service of Rill's server: a table for each size of rows, and an echo.
absl::StatusOr<std::shared_ptr<Service>> MakeCasesService();
// MeasureCases by Rill's clients; then lines of two columns, with the share of
// its time for which a learner waits.
absl::Status MeasureRill(bool is_quick, std::shared_ptr<Transport> transport,
                         const std::string& address);

}  // namespace rill

#endif  // RILL_BENCHMARKS_DISTRIBUTED_CASES_H_
