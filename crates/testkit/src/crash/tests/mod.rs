//! Tests of the simulation: correct protocols must pass, and flawed ones must fail.

mod protocols;
mod rules;
mod toys;
