// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Clock of a bench with the ports clk_i, done_o and failed_o. Exit code 0: the run ended and all
// checks passed.

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "Vbench.h"
#include "verilated.h"
#if VM_COVERAGE
#include "verilated_cov.h"
#endif
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

int main(int argc, char **argv) {
  const auto context = std::make_unique<VerilatedContext>();
  context->commandArgs(argc, argv);
  // An assertion that fails ends the run in the code below and not with abort().
  context->fatalOnError(false);
  const auto top = std::make_unique<Vbench>(context.get());
#if VM_TRACE
  // All waveforms, if the binary was built with --trace.
  context->traceEverOn(true);
  VerilatedVcdC trace;
  top->trace(&trace, 99);
  trace.open("bench.vcd");
#endif
  top->clk_i = 0;
  // Initial blocks run here. Until then the outputs are anything.
  top->eval();
  while (!context->gotFinish() && !context->gotError() && !top->done_o) {
    top->eval();
#if VM_TRACE
    trace.dump(context->time());
#endif
    context->timeInc(1);
    top->clk_i = !top->clk_i;
  }
#if VM_TRACE
  trace.close();
#endif
  top->final();
#if VM_COVERAGE
  // The counts, if the binary was built with --coverage.
  context->coveragep()->write(std::getenv("COVERAGE_FILE"));
#endif
  const bool is_good = top->done_o && !top->failed_o && !context->gotError();
  if (!is_good) std::fprintf(stderr, "bench: FAILED\n");
  return is_good ? 0 : 1;
}
