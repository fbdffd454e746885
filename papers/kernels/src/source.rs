//! A generated C program as input for a compiler.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::work::mix;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Functions in the program that call other functions
    #[arg(long, default_value_t = 2000)]
    functions: u64,
}

/// Prints one function without calls. Then prints `functions` functions that loop, branch, and call
/// earlier functions.
pub(crate) fn run(args: &Args) -> ExitCode {
    let mut program =
        String::from("static long cells[4096];\nlong f0(long a, long b) { return a - b; }\n");
    for number in 1..=args.functions {
        write_function(&mut program, number);
    }
    match io::stdout().write_all(program.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn write_function(program: &mut String, number: u64) {
    let chance = |part: u64, among: u64| mix(number * 16 + part) % among;
    let (one, other) = (chance(0, number), chance(1, number));
    let (mask, shift, step, limit) =
        (chance(2, 4096), chance(3, 30), chance(4, 7) + 1, chance(5, 99) + 9);
    // Writing to a string cannot fail.
    let _ = write!(
        program,
        "long f{number}(long a, long b) {{
  long sum = {mask};
  for (long i = 0; i < {limit}; i += {step}) {{
    long cell = cells[(a * i + b + {mask}) & 4095];
    if (cell & {limit}) sum += f{one}(cell, i) ^ (a >> {shift});
    else if (cell > b) sum = sum * {limit} + f{other}(i, cell);
    else cells[(sum + i) & 4095] = a + {step};
    switch (cell & 7) {{
      case 0: sum ^= b; break;
      case 1: sum -= i << {step}; break;
      case 3: sum += cells[i]; break;
      case 6: return sum;
      default: b += cell;
    }}
  }}
  return sum + a * b;
}}
"
    );
}
