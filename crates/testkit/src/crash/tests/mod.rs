//! The world is tried as well: it has to leave sound protocols alone, and to find out the others.

mod protocols;
mod rules;
mod toys;
