// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Clock of the lock-step bench. Exit code 0: the run ended and everything was equal.

#include <cstdio>
#include <memory>

#include "Vlockstep.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

int main(int argc, char **argv) {
  const auto context = std::make_unique<VerilatedContext>();
  context->commandArgs(argc, argv);
  const auto top = std::make_unique<Vlockstep>(context.get());
#if VM_TRACE
  // All waveforms, if the binary was built with --trace.
  context->traceEverOn(true);
  VerilatedVcdC trace;
  top->trace(&trace, 99);
  trace.open("lockstep.vcd");
#endif
  top->clk_i = 0;
  while (!context->gotFinish() && !top->done_o) {
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
  const bool is_equal = top->done_o && !top->failed_o;
  if (!is_equal) std::fprintf(stderr, "lockstep: FAILED\n");
  return is_equal ? 0 : 1;
}
