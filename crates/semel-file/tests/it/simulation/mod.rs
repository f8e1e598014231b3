//! The simulator over a machine that loses its power: `rebooting` is the machine, `worlds` what happens on it.

mod rebooting;
mod worlds;
